//! The published runs: those that `results/README.md` lists. Whatever else is in `results/` is someone's own.

use super::tests;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The files of a published run; its journal may be packed.
const FILES: [&str; 5] = ["run.json", "report.md", "report.html", "report.json", "report.csv"];
const JOURNALS: [&str; 2] = ["journal.jsonl", "journal.jsonl.gz"];

pub(crate) fn results() -> PathBuf {
    tests().join("../../../results")
}

/// Folders of the project's published runs, in the order of their dates.
pub(crate) fn runs() -> Vec<PathBuf> {
    let runs = runs_in(&results()).unwrap_or_else(|fault| panic!("{fault}"));
    assert!(runs.len() > 10, "{runs:?}");
    runs
}

/// The folders whose reports `README.md` links to. An error names a folder that lacks a file.
pub(crate) fn runs_in(results: &Path) -> Result<Vec<PathBuf>, String> {
    let readme = fs::read_to_string(results.join("README.md")).map_err(|e| e.to_string())?;
    let link = regex::Regex::new(r"\]\(([^/()]+)/report\.md\)").unwrap();
    let mut runs: Vec<PathBuf> = link.captures_iter(&readme).map(|found| results.join(&found[1])).collect();
    runs.sort();
    runs.dedup();
    for run in &runs {
        let lacks = FILES.into_iter().find(|file| !run.join(file).is_file());
        let has_journal = JOURNALS.iter().any(|file| run.join(file).is_file());
        if let Some(file) = lacks.or((!has_journal).then_some(JOURNALS[0])) {
            return Err(format!("{}: README.md lists this run, which has no {file}", run.display()));
        }
    }
    Ok(runs)
}

/// A folder with the published runs alone, as links.
pub(crate) fn link_to(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for run in runs() {
        let link = folder.join(run.file_name().unwrap());
        let _ = fs::remove_file(&link);
        symlink(run.canonicalize().unwrap(), link).unwrap();
    }
}
