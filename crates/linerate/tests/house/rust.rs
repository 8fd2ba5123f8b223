//! As much of Rust as the rules need: the types and imports of each module, without test code.

use crate::files::TextFile;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) modules: Vec<Module>,
}

/// A source file.
#[derive(Debug, Default)]
pub(crate) struct Module {
    pub(crate) path: String,
    /// Module names from the root of the crate; empty: the root.
    names: Vec<String>,
    /// Line and name of each struct, enum, union, trait and alias at module level.
    pub(crate) types: Vec<(usize, String)>,
    /// Line and absolute path of all that begins with `crate`, `self` or `super`.
    imports: Vec<(usize, Vec<String>)>,
    /// Children that exist for tests only.
    test_children: Vec<Vec<String>>,
}

#[derive(Debug)]
pub(crate) struct Import {
    /// Top-level modules.
    pub(crate) from: String,
    pub(crate) to: String,
    /// File and line.
    pub(crate) place: String,
}

impl Crate {
    /// Imports between different top-level modules. What the root exports again counts as its module's.
    pub(crate) fn imports(&self) -> Vec<Import> {
        let top_level: BTreeSet<&str> =
            self.modules.iter().filter_map(|module| module.names.first()).map(String::as_str).collect();
        let root = self.modules.iter().filter(|module| module.names.is_empty());
        let exported: BTreeMap<&str, &str> = root
            .flat_map(|module| &module.imports)
            .filter(|(_, path)| path.len() > 1)
            .map(|(_, path)| (path[path.len() - 1].as_str(), path[0].as_str()))
            .collect();
        let target = |name: &str| {
            let known = top_level.get(name).or_else(|| top_level.get(exported.get(name)?));
            known.map(|name| (*name).to_owned())
        };
        let mut imports = Vec::new();
        for module in &self.modules {
            let Some(from) = module.names.first() else {
                continue;
            };
            for (line, path) in &module.imports {
                let to = path.first().and_then(|name| target(name)).filter(|to| to != from);
                let place = format!("{}:{line}", module.path);
                imports.extend(to.map(|to| Import { from: from.clone(), to, place }));
            }
        }
        imports
    }
}

/// Every folder with a `Cargo.toml` and a `src`.
pub(crate) fn crates(files: &[TextFile]) -> Vec<Crate> {
    let mut found = Vec::new();
    for manifest in files.iter().filter(|file| file.path.ends_with("/Cargo.toml")) {
        let folder = manifest.path.trim_end_matches("Cargo.toml");
        let source = format!("{folder}src/");
        let has_library = files.iter().any(|file| file.path == format!("{source}lib.rs"));
        let is_own = |file: &&TextFile| {
            let name = file.path.strip_prefix(&source);
            name.is_some_and(|name| name.ends_with(".rs") && !(has_library && name == "main.rs"))
        };
        let mut modules: Vec<_> = files.iter().filter(is_own).map(|file| parse(file, &source)).collect();
        let tests: Vec<_> = modules.iter().flat_map(|module| module.test_children.clone()).collect();
        modules.retain(|module| !tests.iter().any(|test| module.names.starts_with(test)));
        if !modules.is_empty() {
            found.push(Crate { name: folder.trim_end_matches('/').to_owned(), modules });
        }
    }
    found
}

fn parse(file: &TextFile, source: &str) -> Module {
    let name = file.path.trim_start_matches(source).trim_end_matches(".rs");
    let mut names: Vec<String> = name.split('/').map(String::from).collect();
    if ["lib", "main", "mod"].contains(&names[names.len() - 1].as_str()) {
        names.pop();
    }
    let tokens = tokens(&file.text);
    let mut module = Module { path: file.path.clone(), names, ..Module::default() };
    // Open blocks; a name where the block is a module.
    let mut blocks: Vec<Option<String>> = Vec::new();
    let mut header: Option<String> = None;
    let mut at = 0;
    while at < tokens.len() {
        let (line, word) = (&tokens[at].0, tokens[at].1.as_str());
        let next = |n: usize| tokens.get(at + n).map_or("", |token| token.1.as_str());
        let inner = || -> Vec<String> {
            module.names.iter().cloned().chain(blocks.iter().flatten().cloned()).collect()
        };
        match word {
            "#" if is_test_attribute(&tokens[at..]) => {
                let end = item_end(&tokens, at);
                let item: Vec<&str> = tokens[at..end].iter().map(|token| token.1.as_str()).collect();
                if let Some(found) = item.windows(3).find(|words| words[0] == "mod" && words[2] == ";") {
                    let child = inner().into_iter().chain([found[1].to_owned()]).collect();
                    module.test_children.push(child);
                }
                at = end;
                continue;
            }
            "mod" if next(2) == "{" => header = Some(next(1).to_owned()),
            "{" => blocks.push(header.take()),
            "}" => drop(blocks.pop()),
            "struct" | "enum" | "union" | "trait" | "type"
                if blocks.iter().all(Option::is_some) && is_name(next(1)) =>
            {
                module.types.push((*line, next(1).to_owned()));
            }
            "crate" | "self" | "super" if next(1) == "::" && (at == 0 || tokens[at - 1].1 != "$") => {
                let base = if word == "crate" { Vec::new() } else { inner() };
                let mut paths = Vec::new();
                at += usize::from(word != "super") * 2;
                expand(&tokens, &mut at, &base, &mut paths);
                module.imports.extend(paths.into_iter().map(|path| (*line, path)));
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    module
}

/// Adds every path of the use tree that begins here, and stops behind it.
fn expand(tokens: &[(usize, String)], at: &mut usize, base: &[String], paths: &mut Vec<Vec<String>>) {
    let mut path = base.to_vec();
    let word = |at: usize| tokens.get(at).map_or("", |token| token.1.as_str());
    loop {
        match word(*at) {
            "{" => {
                *at += 1;
                while !["}", ""].contains(&word(*at)) {
                    let before = *at;
                    expand(tokens, at, &path, paths);
                    *at += usize::from(word(*at) == "," || *at == before);
                }
                *at += 1;
                return;
            }
            "super" => drop(path.pop()),
            "self" | "*" => {}
            name if is_name(name) => path.push(name.to_owned()),
            _ => break,
        }
        *at += 1;
        if word(*at) != "::" {
            break;
        }
        *at += 1;
    }
    if word(*at) == "as" {
        *at += 2;
    }
    paths.push(path);
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// `#[cfg(test)]`, also with further conditions.
fn is_test_attribute(tokens: &[(usize, String)]) -> bool {
    let words: Vec<&str> = tokens.iter().take(12).map(|token| token.1.as_str()).collect();
    let end = words.iter().position(|word| *word == "]").unwrap_or(words.len());
    words[..end].starts_with(&["#", "[", "cfg", "("])
        && words[..end].contains(&"test")
        && !words[..end].iter().any(|word| ["not", "any"].contains(word))
}

/// Behind the item whose attributes begin at `at`.
fn item_end(tokens: &[(usize, String)], mut at: usize) -> usize {
    let mut depth = 0_i32;
    while at < tokens.len() {
        match tokens[at].1.as_str() {
            "(" | "[" | "{" => depth += 1,
            "}" if depth == 0 => return at,
            "}" if depth == 1 => return at + 1,
            ")" | "]" | "}" => depth -= 1,
            ";" | "," if depth == 0 => return at + 1,
            _ => {}
        }
        at += 1;
    }
    at
}

/// Words and signs with their lines, without comments and literals.
fn tokens(text: &str) -> Vec<(usize, String)> {
    let chars: Vec<char> = text.chars().collect();
    let is = |at: usize, what: &str| what.chars().enumerate().all(|(n, c)| chars.get(at + n) == Some(&c));
    let until = |at: usize, what: &str| (at..chars.len()).find(|at| is(*at, what)).unwrap_or(chars.len());
    let is_word = |c: &char| c.is_alphanumeric() || *c == '_';
    let (mut found, mut at, mut line) = (Vec::new(), 0, 1);
    while at < chars.len() {
        let start = at;
        match chars[at] {
            '/' if is(at, "//") => at = until(at, "\n"),
            '/' if is(at, "/*") => at = until(at, "*/") + 2,
            '"' => at = string_end(&chars, at + 1),
            '\'' if is(at + 1, "\\") => at = until(at + 3, "'") + 1,
            '\'' if is(at + 2, "'") => at += 3,
            c if is_word(&c) => {
                at += chars[at..].iter().take_while(|c| is_word(c)).count();
                let word: String = chars[start..at].iter().collect();
                let hashes = chars[at..].iter().take_while(|c| **c == '#').count();
                if ["r", "br", "cr"].contains(&word.as_str()) && is(at + hashes, "\"") {
                    let close = format!("\"{}", "#".repeat(hashes));
                    at = until(at + hashes + 1, &close) + close.len();
                } else {
                    found.push((line, word));
                }
            }
            ':' if is(at, "::") => {
                found.push((line, "::".to_owned()));
                at += 2;
            }
            c => {
                if !c.is_whitespace() {
                    found.push((line, c.to_string()));
                }
                at += 1;
            }
        }
        line += chars[start..at.min(chars.len())].iter().filter(|c| **c == '\n').count();
    }
    found
}

fn string_end(chars: &[char], mut at: usize) -> usize {
    while at < chars.len() && chars[at] != '"' {
        at += 1 + usize::from(chars[at] == '\\');
    }
    at + 1
}

#[test]
fn types_and_imports_are_found_and_comments_strings_and_tests_are_left_out() {
    let text = r##"
        //! struct InComment;
        use super::{plan::{self, Step}, stats as numbers};
        pub struct Found<'a>(&'a str);
        impl Iterator for Found<'_> { type Item = u8; }
        fn f() { let _ = ("struct InString", r#"enum Raw"#, '"', crate::lab::raise()); struct Local; }
        #[cfg(test)]
        mod tests { struct InTests; use crate::journal; }
        #[cfg(test)]
        mod fixture;
        mod inner { pub(super) enum Deep {} use super::super::trial; }
    "##;
    let file = TextFile { path: "x/src/report/html.rs".to_owned(), text: text.to_owned() };
    let module = parse(&file, "x/src/");
    let types: Vec<_> = module.types.iter().map(|(line, name)| (*line, name.as_str())).collect();
    assert_eq!(types, [(4, "Found"), (11, "Deep")]);
    let imports: Vec<_> = module.imports.iter().map(|(_, path)| path.join("::")).collect();
    let report = ["report::plan", "report::plan::Step", "report::stats", "lab::raise", "report::trial"];
    assert_eq!(imports, report);
    assert_eq!(module.test_children, [["report", "html", "fixture"]]);
}
