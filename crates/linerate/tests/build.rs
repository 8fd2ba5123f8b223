//! `[build]` of `system.toml`: builds, their reuse, and the messages of failed builds. The compiler is
//! a shell.

mod common;

use common::{Folder, Output};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Home {
    folder: Folder,
}

impl Home {
    /// A home with one system, whose program is built by this shell command.
    fn new(name: &str, command: &str) -> Self {
        let home = Self { folder: Folder::new(name) };
        fs::create_dir_all(home.path("home/suites")).unwrap();
        fs::create_dir_all(home.path("home/systems/tiny")).unwrap();
        let manifest = format!(
            "about = 'tiny'\nversion = {{ args = [], pattern = 'version (\\S+)' }}\n[build]\n\
             commands = [['sh', '-c', '''{command}''']]\ninputs = ['*.sh']\nprogram = '{{{{ out }}}}/tiny'\n\
             [variants.tiny]\nabout = 'it'\nroles = ['client']\nstart = ['{{{{ spec }}}}']\n"
        );
        fs::write(home.path("home/systems/tiny/system.toml"), manifest).unwrap();
        home.source("#!/bin/sh\necho version 1.0\n");
        home
    }

    fn source(&self, text: &str) {
        fs::write(self.path("home/systems/tiny/tiny.sh"), text).unwrap();
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    fn systems(&self, args: &[&str]) -> Output {
        self.systems_with(args, &[])
    }

    fn systems_with(&self, args: &[&str], variables: &[(&str, &Path)]) -> Output {
        self.linerate(&[&["systems"], args].concat(), variables)
    }

    fn linerate(&self, args: &[&str], variables: &[(&str, &Path)]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        command.args(args).env("LINERATE_HOME", self.path("home"));
        command.envs(variables.iter().copied());
        Output::run(command.env("XDG_CACHE_HOME", self.path("cache")))
    }

    /// The folders of builds, finished or not.
    fn builds(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("cache/linerate/builds")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    }
}

const COPY: &str = "cp {{ source }}/tiny.sh {{ out }}/tiny && chmod +x {{ out }}/tiny";

#[test]
fn a_system_is_built_once_and_again_when_an_input_changes() {
    let home = Home::new("build-once", COPY);
    let output = home.systems(&[]).stdout;
    assert!(output.contains("it is not built: linerate systems --install tiny"), "{output}");
    assert!(home.builds().is_empty(), "looking builds nothing");
    let out = home.systems(&["--install"]);
    assert!(out.stdout.contains("ready") && out.stdout.contains("1.0"), "{}", out.stdout);
    assert!(out.stderr.contains("building tiny"), "{}", out.stderr);
    let out = home.systems(&["--install"]);
    assert!(out.stdout.contains("ready") && !out.stderr.contains("building"), "{}", out.stderr);
    home.source("#!/bin/sh\necho version 2.0\n");
    assert!(home.systems(&[]).stdout.contains("it is not built"));
    assert!(home.systems(&["--install"]).stdout.contains("2.0"));
    assert_eq!(home.builds().len(), 2);
}

/// The build of each waits for the start of the other's.
#[test]
fn two_systems_are_built_at_the_same_time() {
    let meet = "cd {{ out }}/..; touch $(basename {{ source }}).met; for i in $(seq 200); do \
                [ -e tiny.met ] && [ -e other.met ] && break; sleep 0.05; done; [ $i -lt 200 ]";
    let home = Home::new("build-several", &format!("{meet} && {COPY}"));
    let [one, other] = ["tiny", "other"].map(|name| home.path("home/systems").join(name));
    fs::create_dir_all(&other).unwrap();
    let manifest = fs::read_to_string(one.join("system.toml")).unwrap();
    fs::write(other.join("system.toml"), manifest.replace("variants.tiny", "variants.other")).unwrap();
    fs::copy(one.join("tiny.sh"), other.join("tiny.sh")).unwrap();
    let out = home.systems(&["--install"]);
    assert_eq!(out.stdout.matches("ready").count(), 2, "{}{}", out.stdout, out.stderr);
}

/// A suite of one cell, of the one system.
const SUITE: &str = "question = '?'\nrounds = 2\nquick = { rounds = 1 }\n\
    [[tables]]\nname = 't'\ntitle = 't'\nmetric = 'seconds'\n\
    layer = 'none'\nworkload = 'dispatch'\nrows = 'system'\ncolumns = 'threads'\n\
    id = '{{ system }}/{{ threads }}'\n\
    baseline = { system = 'tiny' }\nroles = { client = '{{ system }}' }\nparameters = { operations = 1000 }\n\
    verify = {}\nwarmup = {}\n[tables.axes]\nsystem = ['tiny']\nthreads = ['1']\n";

#[test]
fn a_plan_names_what_a_run_would_build_and_builds_nothing() {
    let home = Home::new("build-plan", COPY);
    fs::write(home.path("home/suites/one.toml"), SUITE).unwrap();
    let out = home.linerate(&["plan", "one"], &[]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    // It is a part of the run, so of its plan.
    assert!(out.stdout.contains("    tiny/1 ") && !out.stdout.contains("left out"), "{}", out.stdout);
    let is_named = out.stdout.contains("to be built first") && out.stdout.contains("--install tiny");
    assert!(is_named, "{}", out.stdout);
    assert!(home.builds().is_empty(), "a plan builds nothing");
    home.systems(&["--install"]);
    let out = home.linerate(&["plan", "one"], &[]);
    assert!(out.stdout.contains("    tiny/1 ") && !out.stdout.contains("to be built"), "{}", out.stdout);
}

#[test]
fn a_killed_build_starts_over() {
    let home = Home::new("build-killed", COPY);
    home.systems(&["--install"]);
    let folder = home.builds().pop().unwrap();
    fs::remove_file(folder.join(".linerate-built")).unwrap();
    fs::write(folder.join("left-over"), "").unwrap();
    assert!(home.systems(&[]).stdout.contains("it is not built"));
    assert!(home.systems(&["--install"]).stdout.contains("ready"));
    assert!(!folder.join("left-over").exists());
}

#[test]
fn unused_builds_are_removed_with_their_names_and_sizes() {
    let home = Home::new("build-prune", COPY);
    assert!(
        home.systems(&["--prune"]).stdout.contains("0 builds removed, 0 kept"),
        "no cache, nothing to do"
    );
    home.systems(&["--install"]);
    let old = home.builds().pop().unwrap();
    fs::write(old.join("object"), vec![1; 3 << 20]).unwrap();
    home.source("#!/bin/sh\necho version 2.0\n");
    home.systems(&["--install"]);
    let builds = home.path("cache/linerate/builds");
    // Of a system that is gone, one that is being built, and what is no build.
    for other in ["gone-0123456789abcdef", "busy-0123456789abcdef", "notes"] {
        fs::create_dir(builds.join(other)).unwrap();
    }
    let busy = fs::File::create(builds.join("busy-0123456789abcdef.lock")).unwrap();
    busy.lock().unwrap();
    let out = home.systems(&["--prune"]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    let name = old.file_name().unwrap().to_str().unwrap();
    let line =
        |part: &str| out.stdout.lines().find(|line| line.contains(part)).unwrap_or_default().to_owned();
    assert!(line(name).trim_start().starts_with("3.0 MiB  removed"), "{}", out.stdout);
    assert!(line("gone-").contains("removed"), "{}", out.stdout);
    assert!(line("freed").contains("2 builds removed, 3 kept"), "{}", out.stdout);
    assert!(!old.exists() && !old.with_extension("log").exists() && !old.with_extension("lock").exists());
    assert!(builds.join("busy-0123456789abcdef").exists() && builds.join("notes").exists());
    // The build in use was kept: nothing is built again.
    assert!(home.systems(&[]).stdout.contains("2.0"));
    // Without its inputs the current build is unknown.
    fs::remove_file(home.path("home/systems/tiny/tiny.sh")).unwrap();
    assert!(home.systems(&["--prune"]).stdout.contains("0 builds removed"));
    assert_eq!(home.systems(&["--prune", "tiny"]).status, 2);
}

#[test]
fn a_failed_build_is_reported_with_the_compilers_output_and_the_run_continues() {
    let home = Home::new("build-fails", "echo tiny.sh:7: no such header >&2; exit 3");
    let out = home.systems(&["--install"]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    for part in
        ["missing", "its build failed", "exit status: 3", "tiny.sh:7: no such header", "--install tiny"]
    {
        assert!(out.stdout.contains(part), "{part} is missing in {}", out.stdout);
    }
    let nothing = Home::new("build-nothing", "true").systems(&["--install"]).stdout;
    assert!(nothing.contains("there is no") && nothing.contains("/tiny"), "{nothing}");
}

#[test]
fn inputs_that_are_not_there_are_named() {
    let home = Home::new("build-inputs", COPY);
    fs::remove_file(home.path("home/systems/tiny/tiny.sh")).unwrap();
    let output = home.systems(&[]).stdout;
    assert!(output.contains("systems/tiny/system.toml: build.inputs: *.sh: no such file"), "{output}");
}

#[test]
fn files_named_by_a_variable_are_inputs_and_required() {
    let home = Home::new("build-variable", "cp $TINY_ROOT/tiny.sh {{ out }}/tiny && chmod +x {{ out }}/tiny");
    let manifest = home.path("home/systems/tiny/system.toml");
    let text = fs::read_to_string(&manifest).unwrap().replace("'*.sh'", "'$TINY_ROOT/*.sh'");
    fs::write(&manifest, text).unwrap();
    let output = home.systems(&["--install"]).stdout;
    assert!(output.contains("TINY_ROOT is not set"), "{output}");
    let root = home.path("home/systems/tiny");
    let install = || home.systems_with(&["--install"], &[("TINY_ROOT", &root)]);
    assert!(install().stdout.contains("1.0"));
    home.source("#!/bin/sh\necho version 2.0\n");
    assert!(install().stdout.contains("2.0"));
}

/// Every `[build]` of the project's own systems has the files that it names.
#[test]
fn the_inputs_of_every_system_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let registry = linerate::system::Registry::load(&root).unwrap();
    let builds = || linerate::system::build::Builds::new(linerate::system::build::Permission::Never);
    for system in registry.systems.values().filter(|system| system.manifest.build.is_some()) {
        if let Err(reason) = builds().folder(system, &[]) {
            let is_fine = reason == "it is not built" || reason.ends_with(" is not set");
            assert!(is_fine, "{}: {reason}", system.name);
        }
    }
}

#[test]
fn a_build_ends_with_a_linerate_that_was_killed() {
    let home =
        Home::new("build-ends", "sleep 1000 & echo $! > {{ out }}/pids; echo $$ >> {{ out }}/pids; wait");
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.args(["systems", "--install"]).env("LINERATE_HOME", home.path("home"));
    command.env("XDG_CACHE_HOME", home.path("cache")).stderr(std::process::Stdio::null());
    let mut linerate = command.spawn().unwrap();
    let pids = || -> Vec<String> {
        let texts = home.builds().into_iter().filter_map(|build| fs::read_to_string(build.join("pids")).ok());
        texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    };
    wait_until(|| pids().len() == 2);
    linerate.kill().unwrap();
    linerate.wait().unwrap();
    let lives = |pid: &String| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty());
    wait_until(|| !pids().iter().any(lives));
}

#[track_caller]
fn wait_until(done: impl Fn() -> bool) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !done() {
        assert!(std::time::Instant::now() < end, "it does not happen");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
