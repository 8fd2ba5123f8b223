//! Rules for the repository itself (CONTRIBUTING.md): lengths of files and lines, links, maps, and which
//! module may use which.

#[path = "house/files.rs"]
mod files;
#[path = "house/modules.rs"]
mod modules;
#[path = "house/rules.rs"]
mod rules;

use files::{TextFile, text_files};
use std::collections::BTreeSet;

/// Lines that fit on a few screens; a longer file has two subjects.
const LONGEST_SOURCE_FILE: usize = 400;
const LONGEST_README: usize = 90;
const LONGEST_MARKDOWN_LINE: usize = 120;
/// The heading in systems/README.md; the table is the rest of the file.
const TABLE_OF_SYSTEMS: &str = "## All systems";
/// rustfmt's `max_width`; it leaves comments and strings alone.
const LONGEST_RUST_LINE: usize = 110;

fn is_source(file: &TextFile) -> bool {
    ["rs", "cpp", "hpp", "h", "go", "py", "sh"].contains(&file.extension())
}

#[test]
fn source_files_are_short() {
    let source: Vec<_> = text_files().into_iter().filter(is_source).collect();
    let long = |file: &&TextFile| file.lines().count() > LONGEST_SOURCE_FILE;
    let faults = source.iter().filter(long).map(|file| format!("{}: {}", file.path, file.lines().count()));
    none_of("source files have over 400 lines", faults);
}

#[test]
fn the_readme_has_at_most_90_lines() {
    let files = text_files();
    let readme = files.iter().find(|file| file.path == "README.md").expect("there is a README.md");
    let lines = readme.lines().count();
    assert!(lines <= LONGEST_README, "README.md has {lines} lines");
}

#[test]
fn each_system_has_a_row_in_the_table_of_systems() {
    let files = text_files();
    let of_folder =
        |path: &str| Some(path.strip_prefix("systems/")?.strip_suffix("/system.toml")?.to_owned());
    let systems: BTreeSet<_> = files.iter().filter_map(|file| of_folder(&file.path)).collect();
    let readme = files.iter().find(|file| file.path == "systems/README.md").expect("there is a README.md");
    let table = readme.lines().skip_while(|line| *line != TABLE_OF_SYSTEMS);
    let of_row = |row: &str| Some(row.strip_prefix("| `")?.split_once('`')?.0.to_owned());
    let rows: BTreeSet<_> = table.filter_map(of_row).collect();
    let faults = systems.symmetric_difference(&rows).map(|system| format!("systems/{system}"));
    none_of("systems have a folder or a row in systems/README.md, not both", faults);
}

#[test]
fn markdown_lines_have_at_most_120_characters() {
    let mut faults = Vec::new();
    for file in text_files().iter().filter(|file| file.extension() == "md") {
        let mut in_code = false;
        for (number, line) in file.lines().enumerate() {
            let is_fence = line.trim_start().starts_with("```");
            in_code ^= is_fence;
            let is_free = in_code || is_fence || line.trim_start().starts_with('|');
            if !is_free && line.chars().count() > LONGEST_MARKDOWN_LINE {
                faults.push(format!("{}:{}", file.path, number + 1));
            }
        }
    }
    none_of("Markdown lines have over 120 characters", faults);
}

#[test]
fn rust_lines_have_at_most_110_characters() {
    let mut faults = Vec::new();
    for file in text_files().iter().filter(|file| file.extension() == "rs") {
        let long = |line: &str| line.chars().count() > LONGEST_RUST_LINE;
        let numbers = file.lines().enumerate().filter(|(_, line)| long(line)).map(|(number, _)| number + 1);
        faults.extend(numbers.map(|number| format!("{}:{number}", file.path)));
    }
    none_of("Rust lines have over 110 characters", faults);
}

/// A name such as `of` is everywhere, and a comment that begins with "Of" or with a pronoun does not name its
/// subject.
#[test]
fn functions_and_doc_comments_name_what_they_are_about() {
    let function = regex::Regex::new(r"\bfn of\b").unwrap();
    let comment = regex::Regex::new(r"^\s*//[/!] (Of|For|What|Those|The same|It|This) ").unwrap();
    let is_doc = |line: &str| line.trim_start().starts_with("///") || line.starts_with("//!");
    let mut faults = Vec::new();
    for file in text_files().iter().filter(|file| file.extension() == "rs" && !file.path.contains("/house")) {
        let mut before = "";
        for (number, line) in file.lines().enumerate() {
            let begins = comment.is_match(line) && !is_doc(before);
            if begins || function.is_match(line) {
                faults.push(format!("{}:{}: {}", file.path, number + 1, line.trim()));
            }
            before = line;
        }
    }
    none_of(
        "functions are called `of`, or doc comments begin with Of, For, What, Those, The same, It or This",
        faults,
    );
}

/// The list says which runs are published; what a user keeps there is not tracked.
#[test]
fn what_git_tracks_in_results_is_listed_in_its_readme() {
    let root = files::root();
    let readme = std::fs::read_to_string(root.join("results/README.md")).expect("it is there");
    let name = |path: String| Some(path.strip_prefix("results/")?.split('/').next()?.to_owned());
    let names: BTreeSet<String> = files::tracked(&root).into_iter().flatten().filter_map(name).collect();
    let is_listed = |name: &String| name == "README.md" || readme.contains(&format!("]({name}"));
    none_of("files of results/ are not in its README.md", names.into_iter().filter(|name| !is_listed(name)));
}

#[test]
fn links_of_markdown_files_lead_to_files() {
    let files = text_files();
    let link = regex::Regex::new(r"\]\(([^)#\s]+)[^)]*\)").unwrap();
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| file.extension() == "md") {
        let folder = files::root().join(&file.path);
        for (number, line) in file.lines().enumerate() {
            for found in link.captures_iter(line).map(|found| found[1].to_owned()) {
                let is_outside = found.contains("://") || found.starts_with("mailto:");
                if !is_outside && !folder.parent().unwrap().join(&found).exists() {
                    faults.push(format!("{}:{}: {found}", file.path, number + 1));
                }
            }
        }
    }
    none_of("links lead nowhere", faults);
}

#[test]
fn each_test_that_the_table_of_habits_names_is_there() {
    let files = text_files();
    let table = files.iter().find(|file| file.path == "docs/evidence/habits.md").expect("it is there");
    let name = regex::Regex::new(r"^\|[^|]*\|[^|]*\| `(\w+)` \|$").unwrap();
    let names: Vec<&str> =
        table.lines().filter_map(|line| Some(name.captures(line)?.get(1)?.as_str())).collect();
    assert!(names.len() > 33, "{names:?}");
    let is_there = |name: &&str| {
        let function = format!("fn {name}()");
        files.iter().any(|file| file.extension() == "rs" && file.text.contains(&function))
    };
    let faults = names.iter().filter(|name| !is_there(name)).map(|name| (*name).to_owned());
    none_of("tests of docs/evidence/habits.md are not there", faults);
}

/// Fails with every fault.
#[track_caller]
fn none_of(what: &str, faults: impl IntoIterator<Item = String>) {
    let faults: Vec<String> = faults.into_iter().collect();
    assert!(faults.is_empty(), "{} {what}:\n  {}", faults.len(), faults.join("\n  "));
}
