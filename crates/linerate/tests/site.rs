//! `linerate site`: its pages, and that each link has a place.

mod common;

use common::{Folder, linerate, published};
use std::collections::BTreeMap;
use std::fs;

/// Two runs of one suite, the second with another version of a system, and their site.
fn site(name: &str) -> BTreeMap<String, String> {
    let (runs, out) = (Folder::new(&format!("{name}-runs")), Folder::new(&format!("{name}-site")));
    fs::create_dir_all(runs.path()).unwrap();
    for (run, seed) in [("a", "7"), ("b", "8")] {
        let folder = runs.path().join(run);
        let made = linerate("good", &["run", "mini", "--seed", seed, "--out", folder.to_str().unwrap()]);
        assert_eq!(made.status, 0, "{}", made.stderr);
    }
    let second = runs.path().join("b/run.json");
    let json = fs::read_to_string(&second).unwrap();
    let year = regex::Regex::new("\"started\": *\"\\d{4}").unwrap();
    let json = year.replace(&json, "\"started\":\"2126").replace("\"4.0\"", "\"4.1\"");
    fs::write(&second, json).unwrap();
    site_of(runs.str(), &out)
}

/// The site of a folder of runs.
fn site_of(runs: &str, out: &Folder) -> BTreeMap<String, String> {
    let made = linerate("good", &["site", runs, "--out", out.str()]);
    assert_eq!(made.status, 0, "{}", made.stderr);
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, fs::read_to_string(entry.path()).unwrap())
    };
    fs::read_dir(out.path()).unwrap().flatten().map(read).collect()
}

#[test]
fn a_site_has_an_index_a_history_the_method_and_a_page_for_each_run() {
    let pages = site("pages");
    let names: Vec<&str> = pages.keys().map(String::as_str).collect();
    assert_eq!(names, ["history.html", "index.html", "method.html", "run-a.html", "run-b.html"]);
    let index = &pages["index.html"];
    let newest = index.split("All runs").next().unwrap();
    assert!(newest.contains("run-b.html#mini") && !newest.contains("run-a.html"), "{newest}");
    assert!(index.contains("run-a.html#mini"));
    assert!(pages["method.html"].contains("From a trial to a verdict"));
}

#[test]
fn the_history_marks_versions_that_changed() {
    let history = &site("history")["history.html"];
    let row = history.split("<tr>").find(|row| row.contains("fast/pipe")).unwrap();
    assert_eq!(row.matches("<li>").count(), 2, "{row}");
    assert!(row.contains("pipe 4.0 to 4.1</strong>"), "{row}");
    assert!(row.contains("path class=\"change\""), "{row}");
}

/// Tables, derived ones, and findings by what the cells of the script say.
#[test]
fn a_run_of_a_documents_tables_makes_the_page_that_says_which_findings_hold() {
    let (runs, out) = (Folder::new("again-runs"), Folder::new("again-site"));
    let folder = runs.path().join("a");
    let args = ["run", "--published", "--seed", "7", "--out", folder.to_str().unwrap()];
    let made = linerate("again", &args);
    assert_eq!(made.status, 0, "{}", made.stderr);
    assert!(!made.stdout.contains("Not in the document"), "{}", made.stdout);
    common::assert_golden("again.txt", &made.stdout);
    let pages = site_of(runs.str(), &out);
    links(&pages);
    let (text, page) = (&pages["published.md"], &pages["published.html"]);
    let day = regex::Regex::new(r"\d{4}-\d\d-\d\d, on").unwrap();
    common::assert_golden("published.md", &day.replace(text, "<day>, on"));
    for (finding, answer) in [
        ("tic is ahead in round trips.", "holds"),
        ("tac is ahead in streams of 65,536 bytes.", "does not hold"),
        ("tac costs a quarter of the rate with 4,096 bytes.", "not decided"),
        ("toc cannot be measured.", "holds"),
        ("tic is faster elsewhere.", "not measured here"),
    ] {
        let row = text.lines().find(|line| line.starts_with(&format!("| {finding}"))).expect(finding);
        let cells: Vec<&str> = row.split(" | ").collect();
        assert_eq!(cells[3], answer, "{row}");
        let row = page.split("<tr>").find(|row| row.contains(finding)).expect(finding);
        assert!(row.contains(&format!(">{answer}</td>")), "{row}");
    }
    assert!(pages["index.html"].contains("published.html"));
}

#[test]
fn every_link_of_a_site_has_its_place() {
    assert!(links(&site("links")) > 30);
}

/// That of `make site`.
#[test]
fn every_link_of_the_published_site_has_its_place() {
    let runs = Folder::new("published-runs");
    published::link_to(runs.path());
    let pages = site_of(runs.str(), &Folder::new("published-site"));
    assert!(links(&pages) > 200);
    let in_docs = fs::read_to_string(published::results().join("../docs/published.md")).ok();
    assert!(pages.get("published.md") == in_docs.as_ref(), "docs/published.md: `make site` writes it");
}

/// The number of links, each of which has its place.
fn links(pages: &BTreeMap<String, String>) -> usize {
    let link = regex::Regex::new("(?:href|src)=\"([^\"]*)\"").unwrap();
    let mut checked = 0;
    for (name, text) in pages {
        let name = name.as_str();
        for found in link.captures_iter(text) {
            let target = &found[1];
            if target.starts_with("data:") || target.starts_with("https://") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { name } else { file };
            let page = pages.get(file).unwrap_or_else(|| panic!("{name}: {target}: no such page"));
            let is_there = anchor.is_empty() || page.contains(&format!("id=\"{anchor}\""));
            assert!(is_there, "{name}: {target}: no such place");
            checked += 1;
        }
    }
    checked
}

#[test]
fn a_folder_without_runs_is_refused_with_the_next_step() {
    let (empty, out) = (Folder::new("no-runs"), Folder::new("no-site"));
    fs::create_dir_all(empty.path()).unwrap();
    let made = linerate("good", &["site", empty.str(), "--out", out.str()]);
    assert_eq!(made.status, 2, "{}", made.stderr);
    assert!(made.stderr.contains("no folder in it has a run.json"), "{}", made.stderr);
}
