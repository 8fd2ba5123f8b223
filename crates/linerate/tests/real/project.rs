//! `linerate.toml` in repositories of the user's own: gates without arguments, and the examples.

use crate::common::{Folder, Output, copy, skip};
use crate::{command, machine};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A copy of an example as a repository with one commit on `main`, and a branch from it.
struct Project {
    folder: Folder,
}

impl Project {
    fn new(example: &str) -> Self {
        let folder = Folder::new(&format!("project-{example}"));
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(example), folder.path());
        let made = Self { folder };
        made.git(&["init", "--quiet", "--initial-branch", "main"]);
        made.git(&["add", "."]);
        made.git(&["commit", "--quiet", "-m", "first"]);
        made.git(&["switch", "--quiet", "-c", "change"]);
        made
    }

    fn git(&self, words: &[&str]) {
        let mut git = Command::new("git");
        let out = with_author(git.arg("-C").arg(self.folder.path()).args(words)).output().unwrap();
        assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
    }

    fn edit(&self, file: &str, from: &str, to: &str) {
        let text = self.folder.read(file);
        assert!(text.contains(from), "{file}: {from}");
        fs::write(self.folder.path().join(file), text.replace(from, to)).unwrap();
    }

    /// Removes the last run.
    fn run(&self, words: &[&str], inside: &str) -> Output {
        let out = self.folder.path().join("out");
        let _ = fs::remove_dir_all(&out);
        let mut run = command(words);
        run.args(["--seed", "7", "--out"]).arg(&out).current_dir(self.folder.path().join(inside));
        Output::run(with_author(&mut run))
    }
}

fn with_author(command: &mut Command) -> &mut Command {
    let names = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
    command.envs(names.map(|name| (name, "t@localhost")))
}

#[test]
fn a_gate_without_arguments_finds_what_the_branch_made_slower() {
    let Some(_machine) = machine() else { return };
    let project = Project::new("python");
    let gate = |inside: &str| project.run(&["gate", "--budget", "90s"], inside);
    let unchanged = gate("");
    assert_eq!(unchanged.status, 2, "{}", unchanged.stderr);
    assert!(unchanged.stderr.contains("nothing has changed"), "{}", unchanged.stderr);
    // Not committed, and asked from a folder below.
    project.edit("server.py", "    return [", "    sum(range(20000))\n    return [");
    fs::create_dir(project.folder.path().join("below")).unwrap();
    let too_short = project.run(&["gate", "--budget", "2s"], "");
    assert_eq!(too_short.status, 3, "{}{}", too_short.stdout, too_short.stderr);
    assert!(
        too_short.stderr.contains("2s is too short for any difference: --budget "),
        "{}",
        too_short.stderr
    );
    let slower = gate("below");
    assert_eq!(slower.status, 1, "{}{}", slower.stdout, slower.stderr);
    let first = slower.stdout.lines().next().unwrap();
    // By the rate, or, where the server had no time left, by its CPU time.
    let ways = [
        "slower than merge-base",
        "times as fast as working-tree",
        "more CPU per request than merge-base",
        "times the CPU per request of merge-base",
    ];
    assert!(ways.iter().any(|words| first.contains(words)), "{first}");
    assert!(first.contains("working-tree"), "{first}");
    let long = project.folder.read("out/report.md");
    assert!(long.contains("base: git=merge-base ("), "{long}");
    let again = "\nlinerate gate --budget 90s --seed 7 # linerate.toml: ";
    assert!(long.contains(again), "{long}");
    let resumed = command(&["gate", "--resume", "out"]).current_dir(project.folder.path()).output().unwrap();
    assert_eq!(resumed.status.code(), Some(1), "{}", String::from_utf8_lossy(&resumed.stderr));
}

/// The examples, what they need, and a named comparison of each.
const EXAMPLES: [(&str, &str, &str); 4] = [
    ("go", "go", "threads"),
    ("rust", "cargo", "connections"),
    ("python", "python3", "optimized"),
    ("node", "node", "memory"),
];

#[test]
fn every_example_is_compared_by_its_file_and_a_gate_of_one_finds_nothing_in_documents() {
    let Some(_machine) = machine() else { return };
    for (example, program, named) in EXAMPLES {
        if Command::new(program).arg("--help").output().is_err() {
            skip(&format!("examples/{example}: {program} is not installed"));
            continue;
        }
        let project = Project::new(example);
        fs::write(project.folder.path().join("MANUAL.md"), "How to use it.\n").unwrap();
        project.git(&["add", "."]);
        project.git(&["commit", "--quiet", "-m", "a manual"]);
        if example == "python" {
            // Wide, so that a busy machine decides it, too: it makes disturbed units again. One on which
            // others have half of the CPUs does not within the time, and says so by status 4.
            let documents = project.run(&["gate", "--budget", "90s", "--margin", "25%", "--no-why"], "");
            let is_open = documents.status == 4 && documents.stdout.contains("undecided");
            assert!(documents.status == 0 || is_open, "{example}: {}{}", documents.stdout, documents.stderr);
            let first = documents.stdout.lines().next().unwrap_or_default();
            assert!(first.contains("merge-base"), "{example}: {first}");
        }
        let compared = project.run(&["compare", named, "--budget", "5s", "--no-why"], "");
        assert_eq!(compared.status, 0, "{example}: {}{}", compared.stdout, compared.stderr);
    }
}
