//! Who may use whom, and whether the maps are true.

use crate::files::{TextFile, text_files};
use crate::modules::{Crate, Use, crates};
use crate::none_of;
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};

/// A crate, and the crates of `crates/` that it may use.
const CRATES: &[(&str, &[&str])] = &[
    ("contract", &[]),
    ("proto", &["contract"]),
    ("load", &["contract", "proto"]),
    ("natives", &["contract", "load", "proto"]),
    ("model", &["contract"]),
    ("analysis", &["contract", "model"]),
    ("report", &["contract", "model", "analysis"]),
    ("lab", &["contract", "proto", "model"]),
    // What linerate's own server answers to a call is what its client expects.
    ("linerate", &["contract", "lab", "analysis", "model", "proto", "report"]),
];

/// A part of `crates/linerate`, its modules, and the other parts that they may use.
const PARTS: &[(&str, &[&str], &[&str])] = &[
    (
        "base",
        &[
            "address",
            "arm",
            "bounded",
            "error",
            "home",
            "image",
            "interrupt",
            "output",
            "pins",
            "placement",
            "printable",
            "timings",
            "toml_file",
        ],
        &["lab"],
    ),
    ("config", &["project", "suite", "system"], &["base", "lab"]),
    ("journal", &["journal"], &["base"]),
    ("engine", &["authority", "engine"], &["base", "config", "lab"]),
    (
        "run",
        &["plan", "programs", "progress", "selftest", "session", "subject", "trial"],
        &["base", "config", "journal", "engine", "lab"],
    ),
    ("merge", &["merge"], &["base", "journal"]),
    (
        "command",
        &["cli", "command", "fleet"],
        &["base", "config", "journal", "engine", "lab", "run", "merge", "clap"],
    ),
    // The library, which the command alone uses, and the crate, which reports do not.
    ("clap", &["clap"], &[]),
    ("lab", &["lab"], &[]),
];

fn linerate(files: &[TextFile]) -> Crate {
    crates(files).into_iter().find(|found| found.name == "crates/linerate").expect("it is there")
}

#[test]
fn a_module_uses_only_what_its_part_may_use() {
    let found = linerate(&text_files());
    let part_of = |module: &str| PARTS.iter().find(|(_, modules, _)| modules.contains(&module));
    let without = found.modules.iter().filter(|module| part_of(module).is_none());
    none_of("modules are in no part (PARTS in tests/house/rules.rs)", without.cloned());
    let is_known =
        |each: &&Use| ["clap", "lab"].contains(&each.to.as_str()) || found.modules.contains(&each.to);
    let may = |each: &&Use| {
        let (Some((from, _, may)), Some((to, ..))) = (part_of(&each.from), part_of(&each.to)) else {
            return true;
        };
        from == to || may.contains(to)
    };
    let against = found.uses.iter().filter(is_known).filter(|each| !may(each));
    none_of("uses are against PARTS", against.map(|each| format!("{} uses {}", each.file, each.to)));
}

#[test]
fn a_crate_uses_only_the_crates_below_it() {
    let dependency = Regex::new(r"(?m)^linerate-(\w+)(?:\.workspace)? *=").unwrap();
    let mut faults = Vec::new();
    for file in text_files() {
        let Some(name) = file.path.strip_prefix("crates/").and_then(|path| path.strip_suffix("/Cargo.toml"))
        else {
            continue;
        };
        let Some((_, may)) = CRATES.iter().find(|(known, _)| *known == name) else {
            faults.push(format!("{name} is not in CRATES"));
            continue;
        };
        let uses = dependency.captures_iter(&file.text).map(|found| found[1].to_owned());
        faults.extend(uses.filter(|to| !may.contains(&to.as_str())).map(|to| format!("{name} uses {to}")));
    }
    none_of("crates use one that is not below them", faults);
}

#[test]
fn top_level_modules_do_not_use_each_other_in_a_circle() {
    let mut faults = Vec::new();
    for found in crates(&text_files()) {
        let mut uses: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for each in found.uses.iter().filter(|each| found.modules.contains(&each.to)) {
            uses.entry(&each.from).or_default().insert(&each.to);
        }
        // A module that uses none of the others, or that none of them uses, is in no circle.
        let is_free = |uses: &BTreeMap<&str, BTreeSet<&str>>, module: &str| {
            let none_used = uses[module].iter().all(|to| !uses.contains_key(to));
            none_used || uses.values().all(|to| !to.contains(module))
        };
        while let Some(free) = uses.keys().copied().find(|module| is_free(&uses, module)) {
            uses.remove(free);
        }
        faults.extend(uses.iter().map(|(from, to)| format!("{}: {from} uses {to:?}", found.name)));
    }
    none_of("modules are in a circle, or between two circles", faults);
}

/// Names in the first column of a map: `[`name`]` or `` `name` ``.
fn mapped(lines: impl Iterator<Item = String>) -> BTreeSet<String> {
    let name = Regex::new(r"`(\w+)`").unwrap();
    let column = |line: String| line.split('|').nth(1).unwrap_or_default().to_owned();
    let names =
        |column: String| name.captures_iter(&column).map(|found| found[1].to_owned()).collect::<Vec<_>>();
    lines.map(column).flat_map(names).collect()
}

#[test]
fn the_map_of_a_crate_has_its_modules() {
    let files = text_files();
    let mut faults = Vec::new();
    for name in [
        "crates/analysis",
        "crates/lab",
        "crates/linerate",
        "crates/load",
        "crates/model",
        "crates/natives",
        "crates/proto",
    ] {
        let found = crates(&files).into_iter().find(|found| found.name == name).expect("it is there");
        let lib = files.iter().find(|file| file.path == format!("{name}/src/lib.rs")).expect("a library");
        let rows =
            lib.lines().filter_map(|line| line.strip_prefix("//! ")).filter(|line| line.starts_with('|'));
        let rows = mapped(rows.map(str::to_owned));
        let gone = rows.difference(&found.modules).filter(|row| !lib.text.contains(&format!("mod {row};")));
        let again = |row: &&String| !lib.text.contains(&format!("::{row};"));
        faults.extend(gone.filter(again).map(|row| format!("{name}: {row} is in the map alone")));
        faults.extend(
            found.modules.difference(&rows).map(|module| format!("{name}: {module} is not in the map")),
        );
    }
    none_of("modules are in a crate or in the map of its lib.rs, not in both", faults);
}

#[test]
fn the_layout_in_contributing_has_the_crates_and_modules_that_exist() {
    let files = text_files();
    let contributing = files.iter().find(|file| file.path == "CONTRIBUTING.md").expect("it is there");
    let of_row = |line: &str| Some(line.strip_prefix("| `crates/")?.split_once('`')?.0.to_owned());
    let rows: BTreeSet<String> = contributing.lines().filter_map(of_row).collect();
    let crate_of = |path: &str| Some(path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?.to_owned());
    let there: BTreeSet<String> = files.iter().filter_map(|file| crate_of(&file.path)).collect();
    none_of("crates have a folder or a row, not both", rows.symmetric_difference(&there).cloned());
    let row = contributing.lines().find(|line| line.starts_with("| `crates/linerate`")).expect("a row");
    let name = Regex::new(r"`(\w+)`").unwrap();
    let named: BTreeSet<String> = name.captures_iter(row).map(|found| found[1].to_owned()).collect();
    let modules = linerate(&files).modules;
    none_of("modules are named in CONTRIBUTING.md and gone", named.difference(&modules).cloned());
    let silent = modules.difference(&named).filter(|module| {
        let base = PARTS.iter().find(|(part, ..)| *part == "base").expect("a part").1;
        !base.contains(&module.as_str())
    });
    none_of("modules are not named in CONTRIBUTING.md", silent.cloned());
}

#[test]
fn a_walk_through_compare_has_at_most_25_files_and_they_exist() {
    let files = text_files();
    let contributing = files.iter().find(|file| file.path == "CONTRIBUTING.md").expect("it is there");
    let (_, walk) = contributing.text.split_once("### A walk").expect("a section");
    let walk = walk.split_once("\n## ").map_or(walk, |(walk, _)| walk);
    let name = Regex::new(r"`([\w/]+\.rs)`").unwrap();
    let named: Vec<&str> = name.captures_iter(walk).map(|found| found.get(1).unwrap().as_str()).collect();
    assert!(named.len() <= 25 && walk.contains(&format!("These {} files", named.len())), "{}", named.len());
    let is_there = |name: &str| files.iter().any(|file| file.path.ends_with(&format!("/{name}")));
    none_of(
        "files of the walk are gone",
        named.into_iter().filter(|name| !is_there(name)).map(str::to_owned),
    );
}
