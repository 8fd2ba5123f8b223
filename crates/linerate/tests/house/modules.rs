//! The modules of each crate and what they use, without test code. In this repository a path to another
//! top-level module begins with `crate`.

use crate::files::TextFile;
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

pub(crate) struct Crate {
    /// The folder of the crate.
    pub(crate) name: String,
    /// The modules that the root declares, without those for tests.
    pub(crate) modules: BTreeSet<String>,
    pub(crate) uses: Vec<Use>,
}

/// A module that uses another top-level module, or a library.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Use {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) file: String,
}

/// Every folder with a `Cargo.toml` and a `src`.
pub(crate) fn crates(files: &[TextFile]) -> Vec<Crate> {
    let manifests = files.iter().filter_map(|file| file.path.strip_suffix("/Cargo.toml"));
    manifests.map(|folder| read(folder, files)).filter(|found| !found.modules.is_empty()).collect()
}

fn read(folder: &str, files: &[TextFile]) -> Crate {
    let source = format!("{folder}/src/");
    let has_library = files.iter().any(|file| file.path == format!("{source}lib.rs"));
    let names = |file: &TextFile| -> Option<Vec<String>> {
        let name = file.path.strip_prefix(&source)?.strip_suffix(".rs")?;
        let names = name.split('/').filter(|name| !["lib", "main", "mod"].contains(name));
        (!(has_library && name == "main")).then(|| names.map(str::to_owned).collect())
    };
    let sources: Vec<(Vec<String>, &TextFile)> =
        files.iter().filter_map(|file| Some((names(file)?, file))).collect();
    let declared =
        Regex::new(r"(?m)^(#\[cfg\(.*test.*\)\]\n(?:#\[.*\]\n)*)?(?:pub(?:\(.*\))? )?mod (\w+);").unwrap();
    let (mut modules, mut for_tests) = (BTreeSet::new(), Vec::new());
    for (names, file) in &sources {
        for found in declared.captures_iter(&file.text) {
            let child = found[2].to_owned();
            if found.get(1).is_some() {
                for_tests.push([&names[..], &[child]].concat());
            } else if names.is_empty() {
                modules.insert(child);
            }
        }
    }
    let is_test = |names: &[String]| for_tests.iter().any(|test| names.starts_with(test));
    let exported = exported(sources.iter().filter(|(names, _)| names.is_empty()).map(|(_, file)| *file));
    let mut uses = BTreeSet::new();
    for (names, file) in sources.iter().filter(|(names, _)| !names.is_empty() && !is_test(names)) {
        for to in used(&without_tests(&file.text)) {
            let to = exported.get(&to).unwrap_or(&to).clone();
            if to != names[0] {
                uses.insert(Use { from: names[0].clone(), to, file: file.path.clone() });
            }
        }
    }
    Crate { name: folder.to_owned(), modules, uses: uses.into_iter().collect() }
}

/// Names that the root exports again, each with the module that has it.
fn exported<'a>(roots: impl Iterator<Item = &'a TextFile>) -> BTreeMap<String, String> {
    let line = Regex::new(r"(?m)^pub use (\w+)::\{?([^;}]*)").unwrap();
    let word = Regex::new(r"\w+").unwrap();
    let mut exported = BTreeMap::new();
    for root in roots {
        for found in line.captures_iter(&root.text) {
            let names = word.find_iter(found.get(2).unwrap().as_str());
            exported.extend(names.map(|name| (name.as_str().to_owned(), found[1].to_owned())));
        }
    }
    exported
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a valid pattern")
}

static TESTS: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?ms)^#\[cfg\(test\)\]\nmod \w+ \{.*?^\}$"));
static COMMENTS: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)//.*$"));
static PATH: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bcrate::(?:(\w+)|\{([^;]*)\};)"));
static FIRST: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?:^|,)\s*(\w+)"));
static INNER: LazyLock<Regex> = LazyLock::new(|| pattern(r"\{[^{}]*\}"));
static CLAP: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bclap(_\w+)?::"));

/// Without comments and without modules of tests.
fn without_tests(text: &str) -> String {
    COMMENTS.replace_all(&TESTS.replace_all(text, ""), "").into_owned()
}

/// The first names behind `crate::`, and `clap` where it occurs.
fn used(text: &str) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = BTreeSet::new();
    for path in PATH.captures_iter(text) {
        if let Some(name) = path.get(1) {
            found.insert(name.as_str().to_owned());
        } else {
            let flat = INNER.replace_all(&path[2], "");
            found.extend(FIRST.captures_iter(&flat).map(|name| name[1].to_owned()));
        }
    }
    found.extend(CLAP.is_match(text).then(|| "clap".to_owned()));
    found
}

#[test]
fn uses_are_found_and_comments_and_tests_are_left_out() {
    let file = |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
    let lib = "pub mod report;\n#[cfg(test)]\nmod fixture;\nmod plan;\npub use plan::{Step, Order};\n";
    let report = "//! See crate::lab.\nuse crate::{stats::{self, Better}, trial};\nuse clap::Args;\n\
                  fn f() -> crate::Step {}\n#[cfg(test)]\nmod tests {\n    use crate::journal;\n}\n";
    let files = [
        file("x/Cargo.toml", ""),
        file("x/src/lib.rs", lib),
        file("x/src/report/html.rs", report),
        file("x/src/fixture.rs", "use crate::session;\n"),
    ];
    let found = crates(&files).remove(0);
    assert_eq!(found.modules.into_iter().collect::<Vec<_>>(), ["plan", "report"]);
    let uses: Vec<_> = found.uses.iter().map(|each| (each.from.as_str(), each.to.as_str())).collect();
    assert_eq!(uses, ["clap", "plan", "stats", "trial"].map(|to| ("report", to)));
}
