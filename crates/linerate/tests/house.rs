//! Rules for the repository itself (CONTRIBUTING.md): lengths of files and lines, type names, imports, words.

#[path = "house/files.rs"]
mod files;
#[path = "house/rust.rs"]
mod rust;

use files::{TextFile, text_files};
use rust::{Crate, crates};
use std::collections::{BTreeMap, BTreeSet};

/// What fits on a few screens; a longer file has two subjects.
const LONGEST_SOURCE_FILE: usize = 400;
const MEDIAN_SOURCE_FILE: usize = 130;
const LONGEST_README: usize = 130;
const LONGEST_MARKDOWN_LINE: usize = 120;
/// The heading in systems/README.md; the table is the rest of the file.
const TABLE_OF_SYSTEMS: &str = "## All systems";
/// rustfmt's `max_width`; it leaves comments and strings alone.
const LONGEST_RUST_LINE: usize = 110;

/// A verdict's name, which is not personification.
const VERDICT: &str = "cannot tell";

/// Words that are mostly personification or padding here, and the number of lines that may contain them: a
/// tenth of the lines of 2026-11-22.
const WORDS: &[(&[&str], usize)] = &[
    (&["tell", "tells", "told"], 5),
    (&["stand", "stands", "stood"], 10),
    (&["nobody"], 9),
    (&["so many"], 5),
    (&["holds"], 12),
];

fn is_source(file: &TextFile) -> bool {
    ["rs", "cpp", "hpp", "h", "go", "py", "sh"].contains(&file.extension())
}

#[test]
fn source_files_are_short() {
    let source: Vec<_> = text_files().into_iter().filter(is_source).collect();
    let long = |file: &&TextFile| file.lines().count() > LONGEST_SOURCE_FILE;
    let faults = source.iter().filter(long).map(|file| format!("{}: {}", file.path, file.lines().count()));
    none_of("source files have over 400 lines", faults);
    let mut lengths: Vec<usize> = source.iter().map(|file| file.lines().count()).collect();
    lengths.sort_unstable();
    let median = lengths[lengths.len() / 2];
    assert!(median <= MEDIAN_SOURCE_FILE, "the median source file has {median} lines");
}

#[test]
fn the_readme_has_at_most_130_lines() {
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

#[test]
fn words_of_the_old_dialect_are_rare() {
    let files: Vec<_> = text_files().into_iter().filter(|file| !file.path.contains("tests/house")).collect();
    let mut faults = Vec::new();
    for (words, limit) in WORDS {
        let has_word = |line: &&str| contains_any(&line.replace(VERDICT, ""), words);
        let lines_of = |file: &TextFile| file.lines().filter(has_word).count();
        let mut found: Vec<_> = files.iter().map(|file| (lines_of(file), &file.path)).collect();
        found.retain(|(lines, _)| *lines > 0);
        found.sort_unstable_by(|a, b| b.cmp(a));
        let total: usize = found.iter().map(|(lines, _)| lines).sum();
        if total > *limit {
            let places: Vec<_> = found.iter().map(|(lines, path)| format!("{path} {lines}")).collect();
            faults.push(format!("{words:?} on {total} lines, limit {limit}: {}", places.join(", ")));
        }
    }
    none_of("words are too frequent (CONTRIBUTING.md, Plain English)", faults);
}

/// Whole words, without regard to case; an underscore is part of a word.
fn contains_any(line: &str, words: &[&str]) -> bool {
    let line = line.to_lowercase();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    words.iter().any(|word| {
        line.match_indices(word)
            .any(|(at, _)| !line[..at].ends_with(is_word) && !line[at + word.len()..].starts_with(is_word))
    })
}

#[test]
fn each_type_name_is_unique_in_its_crate() {
    let mut faults = Vec::new();
    for Crate { name, modules } in crates(&text_files()) {
        let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for module in &modules {
            for (line, item) in &module.types {
                places.entry(item).or_default().push(format!("{}:{line}", module.path));
            }
        }
        places.retain(|_, places| places.len() > 1);
        faults.extend(places.iter().map(|(item, at)| format!("{name}: {item}: {}", at.join(", "))));
    }
    none_of("type names occur more than once in their crate", faults);
}

#[test]
fn top_level_modules_do_not_import_each_other_in_a_circle() {
    let mut faults = Vec::new();
    for found in crates(&text_files()) {
        let imports = found.imports();
        let edges: BTreeSet<(&str, &str)> =
            imports.iter().map(|i| (i.from.as_str(), i.to.as_str())).collect();
        let modules: BTreeSet<&str> = edges.iter().map(|edge| edge.0).collect();
        for module in modules {
            let Some(circle) = shortest_circle(module, &edges) else {
                continue;
            };
            let next = circle.get(1).unwrap_or(&module);
            let example = imports.iter().find(|i| i.from == module && i.to == **next).map(|i| &i.place);
            let place = example.map(String::as_str).unwrap_or_default();
            faults.push(format!(
                "{}: {} -> {module} (first import: {place})",
                found.name,
                circle.join(" -> ")
            ));
        }
    }
    none_of("top-level modules import each other in a circle", faults);
}

/// The modules from `start` back to it, without its second occurrence.
fn shortest_circle<'a>(start: &'a str, edges: &BTreeSet<(&'a str, &'a str)>) -> Option<Vec<&'a str>> {
    let mut paths = vec![vec![start]];
    let mut seen = BTreeSet::new();
    while !paths.is_empty() {
        let mut longer = Vec::new();
        for path in paths {
            for (_, to) in edges.iter().filter(|(from, _)| Some(from) == path.last()) {
                if *to == start {
                    return Some(path);
                }
                if seen.insert(*to) {
                    longer.push([&path[..], &[*to]].concat());
                }
            }
        }
        paths = longer;
    }
    None
}

/// Fails with every fault.
#[track_caller]
fn none_of(what: &str, faults: impl IntoIterator<Item = String>) {
    let faults: Vec<String> = faults.into_iter().collect();
    assert!(faults.is_empty(), "{} {what}:\n  {}", faults.len(), faults.join("\n  "));
}
