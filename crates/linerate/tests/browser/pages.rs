//! The pages that the browser opens: of scripted runs, of published runs, and a large one.

use crate::common::{self, linerate, published};
use crate::script::Script;
use linerate::report::{Style, format};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

pub(crate) struct Page {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

impl Page {
    pub(crate) fn url(&self) -> String {
        format!("file://{}", self.path.display())
    }
}

/// Screenshots and pages; kept after the test.
pub(crate) fn output() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Scripts of the scripted lab, and the suite of each.
const SCRIPTS: [(&str, &str); 6] = [
    ("good", "mini"),
    ("fails", "mini"),
    ("loops", "loops"),
    ("leaks", "leaks"),
    ("truth", "truth"),
    ("again", "again"),
];

/// Tests run at the same time and make the same pages.
static MAKING: Mutex<()> = Mutex::new(());

/// The pages of scripted runs, of the two published runs with the longest reports, and of the site of all.
pub(crate) fn pages() -> Vec<Page> {
    let scripted = SCRIPTS.iter().map(|(script, suite)| scripted(script, suite));
    let mut runs = published::runs();
    runs.sort_by_key(|run| fs::metadata(run.join("report.json")).map_or(0, |file| file.len()));
    let longest: Vec<Page> = runs.iter().rev().take(2).map(|run| of_published(run)).collect();
    scripted.chain(longest).chain(site()).chain([documents(), compared(), merged()]).collect()
}

/// The documents that a scripted run repeats.
fn documents() -> Page {
    let _alone = MAKING.lock().unwrap_or_else(|broken| broken.into_inner());
    let [runs, folder] = ["again-runs", "again-site"].map(|name| output().join(name));
    let path = folder.join("published.html");
    if !is_newer(&path) {
        let _ = fs::remove_dir_all(&runs);
        let run = runs.join("a");
        for args in [
            &["run", "again", "--published", "--seed", "7", "--out", run.to_str().unwrap()][..],
            &["site", runs.to_str().unwrap(), "--out", folder.to_str().unwrap()],
        ] {
            let out = linerate("again", args);
            assert_eq!(out.status, 0, "{}", out.stderr);
        }
    }
    Page { name: "documents".to_owned(), path }
}

fn site() -> Vec<Page> {
    let _alone = MAKING.lock().unwrap_or_else(|broken| broken.into_inner());
    let folder = output().join("site");
    if !is_newer(&folder.join("index.html")) {
        let runs = output().join("site-runs");
        published::link_to(&runs);
        let args = ["site", runs.to_str().unwrap(), "--out", folder.to_str().unwrap()];
        let out = linerate("good", &args);
        assert_eq!(out.status, 0, "{}", out.stderr);
    }
    let page = |name: &str| Page { name: format!("site-{name}"), path: folder.join(format!("{name}.html")) };
    ["index", "history", "method"].map(page).into()
}

/// A gate of two builds, of which one is slower, after an earlier one.
pub(crate) fn compared() -> Page {
    let _alone = MAKING.lock().unwrap_or_else(|broken| broken.into_inner());
    let [before, folder] = ["compare-before", "compare"].map(|name| output().join(name));
    let path = folder.join("report.html");
    if !is_newer(&path) {
        let history = output().join("compare-history.jsonl");
        let _ = fs::remove_file(&history);
        let script = Script::new("browser").cell("fast/pipe@head", 0.208, 0.003);
        let arms = ["--base", "set:buffer=16384", "--head", "set:buffer=4096"];
        for folder in [&before, &folder] {
            let _ = fs::remove_dir_all(folder);
            let out = ["--out", folder.to_str().unwrap(), "--history", history.to_str().unwrap()];
            let args = ["gate", "mini", "--only", "*/pipe", "--seed", "7"];
            let out = script.run(&[&args[..], &arms, &out].concat());
            assert_eq!(out.status, 1, "{}", out.stderr);
        }
    }
    Page { name: "compare".to_owned(), path }
}

/// A run of each of three hosts.
pub(crate) fn merged() -> Page {
    let _alone = MAKING.lock().unwrap_or_else(|broken| broken.into_inner());
    let folder = output().join("merge");
    let path = folder.join("report.html");
    if !is_newer(&path) {
        let _ = fs::remove_dir_all(&folder);
        let runs = ["host-a", "host-b", "host-c"].map(|host| (host, output().join(format!("merge-{host}"))));
        for (host, run) in &runs {
            let _ = fs::remove_dir_all(run);
            let out = linerate(host, &["run", "mini", "--seed", "7", "--out", run.to_str().unwrap()]);
            assert_eq!(out.status, 0, "{}", out.stderr);
        }
        let folders: Vec<&str> = runs.iter().map(|(_, run)| run.to_str().unwrap()).collect();
        let args = [&["merge"], &folders[..], &["--out", folder.to_str().unwrap()]].concat();
        let out = linerate("good", &args);
        assert_eq!(out.status, 0, "{}", out.stderr);
    }
    Page { name: "merge".to_owned(), path }
}

fn scripted(script: &str, suite: &str) -> Page {
    let _alone = MAKING.lock().unwrap_or_else(|broken| broken.into_inner());
    let folder = output().join(format!("run-{script}"));
    let path = folder.join("report.html");
    if !is_newer(&path) {
        let _ = fs::remove_dir_all(&folder);
        let args = ["run", suite, "--seed", "7", "--out", folder.to_str().unwrap()];
        let out = linerate(script, &args);
        assert_eq!(out.status, 0, "{script}: {}", out.stderr);
    }
    Page { name: script.to_owned(), path }
}

/// The newest published run of all suites.
pub(crate) fn published() -> Page {
    published_as("2026-11-28-epyc-2cpu-quick")
}

/// The published run of this name.
pub(crate) fn published_as(name: &str) -> Page {
    of_published(published::runs().iter().rfind(|run| run.ends_with(name)).unwrap())
}

/// As today's code shows it.
fn of_published(run: &Path) -> Page {
    let _alone = MAKING.lock().unwrap_or_else(|broken| broken.into_inner());
    let name = run.file_name().unwrap().to_str().unwrap().to_owned();
    let folder = output().join(&name);
    let path = folder.join("report.html");
    if !is_newer(&path) {
        common::copy(run, &folder);
        let folder = folder.to_str().unwrap();
        assert_eq!(linerate("good", &["report", folder, "--out", folder]).status, 0, "{name}");
    }
    Page { name, path }
}

/// A page of this number of cells: those of a published run, repeated as further tables, with the units of a
/// full run.
pub(crate) fn large_page(cells: usize) -> Page {
    let small = published();
    let mut report = common::report(small.path.parent().unwrap());
    let suite = report.suites.iter().position(|suite| suite.name == "proxy").unwrap();
    let mut suite = report.suites.swap_remove(suite);
    let (tables, first) = (suite.tables.clone(), suite.cells.clone());
    let mut copy = 0;
    while suite.cells.len() < cells {
        copy += 1;
        let renamed = |id: &str| format!("{id}~{copy}");
        suite.cells.extend(first.iter().cloned().map(|mut cell| {
            cell.id = renamed(&cell.id);
            cell.values = [cell.values.clone(), cell.values].concat();
            cell
        }));
        suite.tables.extend(tables.iter().cloned().map(|mut table| {
            table.name = renamed(&table.name);
            for cell in &mut table.cells {
                cell.id = renamed(&cell.id);
                for comparison in cell.vs_baseline.iter_mut().chain(&mut cell.scaling) {
                    comparison.with = renamed(&comparison.with);
                    comparison.units = [comparison.units.clone(), comparison.units.clone()].concat();
                }
                for share in cell.vs_limit.iter_mut().chain(&mut cell.vs_reference) {
                    share.with = renamed(&share.with);
                }
            }
            table
        }));
    }
    report.suites = vec![suite];
    let path = output().join("large.html");
    fs::write(&path, format("html").unwrap().render(&report, Style::default())).unwrap();
    Page { name: "large".to_owned(), path }
}

/// True if a page is newer than the program that makes it.
fn is_newer(page: &Path) -> bool {
    let time = |path: &Path| fs::metadata(path).and_then(|found| found.modified()).ok();
    time(page) > time(Path::new(env!("CARGO_BIN_EXE_linerate")))
}
