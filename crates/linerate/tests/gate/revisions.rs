//! Arms of a git repository, built for real; measured on the scripted lab.

use crate::common::{Folder, Output};
use crate::script::Script;
use std::fs;
use std::process::Command;

/// A repository with two commits of a program, and a third that does not build.
struct Repository {
    folder: Folder,
}

impl Repository {
    fn new(name: &str) -> Self {
        let folder = Folder::new(&format!("repository-{name}"));
        fs::create_dir_all(folder.path()).unwrap();
        let made = Self { folder };
        made.git(&["init", "--quiet", "--initial-branch", "main"]);
        for (tag, text) in [("one", "#!/bin/sh\necho one\n"), ("two", "#!/bin/sh\necho two\n")] {
            made.commit(tag, text);
        }
        made
    }

    fn commit(&self, tag: &str, text: &str) {
        fs::write(self.folder.path().join("pipe.sh"), text).unwrap();
        self.git(&["add", "."]);
        let author = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
        self.git(&[&author[..], &["commit", "--quiet", "-m", tag]].concat());
        self.git(&["tag", tag]);
    }

    fn git(&self, arguments: &[&str]) {
        let git = Command::new("git").arg("-C").arg(self.folder.path()).args(arguments).output().unwrap();
        assert!(git.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&git.stderr));
    }

    fn gate(&self, build: &str, more: &[&str]) -> Output {
        let name = self.folder.path().file_name().unwrap().to_string_lossy().into_owned();
        let out = Folder::new(&format!("out-{name}"));
        let mut args = vec!["gate", "mini", "--only", "fast/pipe", "--out", out.str(), "--seed", "7"];
        args.extend(["--checkout", self.folder.str(), "--build", build, "--program", "bin/pipe"]);
        args.extend(more);
        Script::new(&name).run(&args)
    }
}

const BUILD: &str = "mkdir bin && sh -n pipe.sh && cp pipe.sh bin/pipe && chmod +x bin/pipe";

#[test]
fn both_revisions_are_built_before_anything_is_measured() {
    let repository = Repository::new("two");
    let out = repository.gate(BUILD, &["--base", "git=one", "--head", "git=two"]);
    assert_eq!(out.status, 0, "{}\n{}", out.stdout, out.stderr);
    assert_eq!(out.stderr.matches("building ").count(), 2, "{}", out.stderr);
    assert!(out.stderr.find("built ") < out.stderr.find("find a slowdown"), "{}", out.stderr);
    assert!(
        out.stdout.contains("base: git=one (") && out.stdout.contains("head: git=two ("),
        "{}",
        out.stdout
    );
    // The checkout itself is untouched.
    assert!(!repository.folder.path().join("bin").exists());
}

#[test]
fn the_defaults_are_the_merge_base_and_the_working_tree() {
    let repository = Repository::new("defaults");
    repository.git(&["checkout", "--quiet", "-b", "topic"]);
    repository.commit("three", "#!/bin/sh\necho three\n");
    let out = repository.gate(BUILD, &[]);
    assert_eq!(out.status, 0, "{}\n{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("base: git=merge-base (") && out.stdout.contains("head: git=working-tree ("));
}

#[test]
fn a_revision_that_does_not_build_is_status_3_with_the_compilers_words() {
    let repository = Repository::new("broken");
    repository.commit("broken", "#!/bin/sh\nif then\n");
    let arms = ["--base", "git=one", "--head", "git=broken"];
    let out = repository.gate(BUILD, &arms);
    assert_eq!(out.status, 3, "{}\n{}", out.stdout, out.stderr);
    for part in ["--head git=broken: its build failed", "pipe.sh: 2:"] {
        assert!(out.stderr.contains(part), "{part}: {}", out.stderr);
    }
    let bisect = repository.gate(BUILD, &[&arms[..], &["--bisect"]].concat());
    assert_eq!(bisect.status, 125);
    let empty = repository.gate("true", &["--base", "git=one", "--head", "git=two"]);
    assert!(empty.status == 3 && empty.stderr.contains("there is no "), "{}", empty.stderr);
    let none = repository.gate(BUILD, &["--base", "git=one", "--head", "git=four"]);
    assert!(none.status == 3 && none.stderr.contains("there is no revision `four`"), "{}", none.stderr);
}

#[test]
fn a_stored_comparison_executes_only_what_is_given_again() {
    let repository = Repository::new("resumed");
    let (folder, mark) = (Folder::new("out-resumed"), Folder::new("mark-resumed"));
    let script = Script::new("resumed");
    let source = ["--checkout", repository.folder.str(), "--build", BUILD, "--program", "bin/pipe"];
    let arms = ["--base", "git=one", "--head", "git=two"];
    let suite = ["gate", "mini", "--only", "fast/pipe", "--seed", "7", "--out", folder.str()];
    assert_eq!(script.run(&[&suite[..], &source, &arms].concat()).status, 0);

    let resume = ["gate", "--resume", folder.str()];
    for part in [&[][..], &source, &arms] {
        let out = script.run(&[&resume[..], part].concat());
        assert_eq!(out.status, 2, "{}", out.stderr);
        let again =
            format!("again: linerate gate --resume '{}' mini --only fast/pipe --seed 7", folder.str());
        assert!(out.stderr.contains(&again) && out.stderr.contains("'mkdir bin"), "{}", out.stderr);
    }
    let whole = [&resume[..], &source, &arms].concat();
    assert_eq!(script.run(&whole).status, 0);

    // Someone changed the command, and then an arm.
    let mut run: serde_json::Value = serde_json::from_str(&folder.read("run.json")).unwrap();
    let refused = |run: &serde_json::Value, part: &str| {
        fs::write(folder.path().join("run.json"), run.to_string()).unwrap();
        let out = script.run(&whole);
        assert!(out.status == 2 && out.stderr.contains(part), "{part}: {}", out.stderr);
    };
    run["comparison"]["source"]["build"] = format!("{BUILD} && mkdir {}", mark.str()).into();
    refused(&run, "comparison.source.build: ");
    run["comparison"]["source"]["build"] = BUILD.into();
    run["comparison"]["subjects"][1] = serde_json::json!({ "system": { "arm": "program=/bin/true" } });
    refused(&run, "comparison.subjects.1.system.arm: \"program=/bin/true\" in run.json, \"git=two\" here");
    let orphan = serde_json::json!({ "arm": "git=two", "resolved": "--orphan" });
    run["comparison"]["subjects"][1] = serde_json::json!({ "system": orphan });
    refused(&run, "`--orphan` is no commit");
    assert!(!mark.path().exists());
}
