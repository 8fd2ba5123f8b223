//! Confinement of a system: one that tries everything that it must not do, as root and as another user.

use crate::common::{self, Folder, Named, Output, skip};
use crate::shared_machine;
use linerate::measurement::Outcome;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command};

/// A process of the host, visible to every user there.
struct Marked(Child);

const MARK: &str = "98761234";

impl Drop for Marked {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The folder of a user with a home, a cache and results, and a linerate with its own suites and systems.
fn host(name: &str, port: u16) -> Folder {
    let base = Folder::new(name);
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let write = |path: &str, text: &str| {
        let path = base.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for file in ["user/secret", "user/a.conf", "cache/linerate/other", "out-of-others/journal.jsonl"] {
        write(file, "of the user");
    }
    write("programs/run.sh", "#!/bin/sh\nexec sh \"$@\" \"$(dirname \"$0\")\"\n");
    fs::copy("/usr/bin/id", base.path().join("programs/other-id")).unwrap();
    fs::set_permissions(base.path().join("programs/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    common::copy(&here.join("tests/real/confined"), &base.path().join("home"));
    for system in ["direct", "native"] {
        common::copy(
            &here.join("../../systems").join(system),
            &base.path().join("home/systems").join(system),
        );
    }
    let separate = crate::linerate(&["doctor"]).stdout.contains("roles cannot trace or signal each other");
    if !separate {
        skip("roles are not separated: this kernel's Landlock is too old, or missing");
    }
    for file in ["probe.sh", "system.toml"] {
        let path = base.path().join("home/systems/curious").join(file);
        let text = fs::read_to_string(&path).unwrap();
        let text = text.replace("@BASE@", base.str());
        let text = text.replace("@MAR[K]@", &format!("{}[4]", &MARK[..MARK.len() - 1]));
        let text = text.replace("@PORT@", &port.to_string()).replace("@SEPARATE@", &separate.to_string());
        fs::write(&path, text).unwrap();
    }
    let bin = Path::new(env!("CARGO_BIN_EXE_linerate")).parent().unwrap();
    for program in ["linerate", "linerate-load", "linerate-natives"] {
        fs::create_dir_all(base.path().join("bin")).unwrap();
        fs::copy(bin.join(program), base.path().join("bin").join(program)).unwrap();
    }
    base
}

/// Runs the suite as root or as another user; the trials, and what was printed.
fn run(base: &Folder, user: Option<u32>) -> (Vec<Named>, Output) {
    let in_base = |name: &str| base.path().join(name);
    let linerate = in_base("bin/linerate");
    let mut command = match user {
        None => Command::new(linerate),
        Some(user) => {
            let chown = Command::new("chown").args(["-R", &user.to_string(), base.str()]).status();
            assert!(chown.unwrap().success());
            let mut command = Command::new("setpriv");
            command.args([format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".into()]);
            command.arg(linerate);
            command
        }
    };
    // Of the user who starts linerate: systems of root are another one.
    let id = in_base("programs/other-id");
    fs::set_permissions(&id, fs::Permissions::from_mode(0o4755)).unwrap();
    command.args(["run", "confined", "--out"]).arg(in_base("out")).current_dir(base.path());
    command.env("LINERATE_HOME", in_base("home")).env("XDG_CACHE_HOME", in_base("cache"));
    let out = Output::run(command.env("HOME", in_base("user")));
    let folder = in_base("out");
    (if folder.exists() { common::trials(&folder) } else { Vec::new() }, out)
}

/// Reason and log of the failed trial of a cell.
fn failed<'a>(trials: &'a [Named], cell: &str, out: &Output) -> (&'a str, &'a str) {
    let trial = trials.iter().find(|trial| trial.id == cell);
    match trial.map(|trial| &trial.outcome) {
        Some(Outcome::Failed { reason, log, .. }) => (reason, log),
        other => panic!("{cell}: {other:?}\n{}{}", out.stdout, out.stderr),
    }
}

fn a_system_reaches_nothing_of_the_host(name: &str, user: Option<u32>) {
    let Some(_machine) = shared_machine() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let _marked = Marked(Command::new("sleep").arg(MARK).spawn().unwrap());
    let base = host(name, listener.local_addr().unwrap().port());
    let (trials, out) = run(&base, user);
    if out.status == 3 && out.stderr.contains("the kernel refuses namespaces") {
        return skip(&out.stderr);
    }
    let (_, log) = failed(&trials, "curious", &out);
    assert!(log.contains("tried 3") && log.contains("wrong:."), "{log}");
    let (reason, _) = failed(&trials, "linking", &out);
    assert!(reason.contains("/sub: a system has put something else in its place"), "{reason}");
    let user = base.path().join("user");
    assert_eq!(fs::read_to_string(user.join("a.conf")).unwrap(), "of the user");
    assert_eq!(fs::read_dir(&user).unwrap().count(), 2, "nothing was added to the home");
}

#[test]
fn a_system_of_root_reaches_nothing_of_the_host_and_all_of_its_own() {
    if nix::unistd::geteuid().is_root() {
        a_system_reaches_nothing_of_the_host("confined-root", None);
    }
}

#[test]
fn a_system_of_another_user_reaches_nothing_of_that_user_and_all_of_its_own() {
    let user = nix::unistd::geteuid().is_root().then_some(65_534);
    a_system_reaches_nothing_of_the_host("confined-user", user);
}
