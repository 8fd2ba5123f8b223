//! Programs of the user's own: what they find in the lab is what they find outside, at their own paths. Each
//! program says on stderr what it has found, and then becomes linerate's load engine.

use crate::commands::workplace;
use crate::common::{self, Output, skip};
use crate::{command, shared_machine};
use linerate::measurement::Run;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const SUITE: &str = "question = '?'\nrounds = 1\nwarmup-rounds = 0\nquick = { rounds = 1 }\n\
    [[tables]]\nname = 't'\ntitle = 't'\nmetric = 'seconds'\nlayer = 'http'\nworkload = 'crr'\n\
    rows = 'path'\ncolumns = 'server'\nid = '{{ server }}/{{ path }}'\nbaseline = { path = 'direct' }\n\
    roles = { client = 'native', relay = '{{ path }}', server = '{{ server }}' }\n\
    parameters = { operations = 100, connections = 2, size = 100 }\n\
    [tables.axes]\nserver = ['own']\npath = ['direct']\n";
const SYSTEM: &str = r#"about = 'a program of the user'
program = 'linerate-load'
[version]
args = ['{"contract":3,"role":"describe","layer":"","workload":""}']
pattern = '"version":"([^"]+)"'
[variants.own]
about = 'a program of the user'
roles = ['server']
start = ['{{ spec }}']
ready = 'event'
"#;

/// A user with programs, and linerate with a suite of one cell, whose server is a program.
struct User {
    base: PathBuf,
    /// The user's number; `None`: that of the test.
    number: Option<u32>,
}

impl User {
    fn new(name: &str, number: Option<u32>) -> Self {
        // Each process has a /tmp of its own, so one folder is elsewhere; that may be closed to other users.
        let parent = match number {
            None => PathBuf::from(env!("CARGO_TARGET_TMPDIR")),
            Some(_) => std::env::temp_dir(),
        };
        let base = parent.join(format!("linerate-test-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&base);
        let user = Self { base, number };
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for system in ["native", "direct"] {
            common::copy(&root.join("systems").join(system), &user.at("linerate/systems").join(system));
        }
        user.write("linerate/suites/one.toml", SUITE);
        user.write("linerate/systems/own/system.toml", SYSTEM);
        fs::create_dir_all(user.at("home")).unwrap();
        fs::create_dir_all(user.at("bin")).unwrap();
        let built = Path::new(env!("CARGO_BIN_EXE_linerate")).parent().unwrap();
        for program in ["linerate", "linerate-load", "linerate-natives"] {
            fs::copy(built.join(program), user.at("bin").join(program)).unwrap();
        }
        user
    }

    fn at(&self, path: &str) -> PathBuf {
        self.base.join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text.replace("@BASE@", self.base.to_str().unwrap())).unwrap();
    }

    /// A script, with the engine beside it.
    fn script(&self, path: &str, text: &str) {
        self.write(path, text);
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(0o755)).unwrap();
        self.engine(path);
    }

    fn engine(&self, beside: &str) {
        let engine = self.at(beside).with_file_name("engine");
        if !engine.exists() {
            fs::hard_link(self.at("bin/linerate-load"), engine).unwrap();
        }
    }

    fn link(&self, path: &str, target: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        symlink(target, self.at(path)).unwrap();
    }

    /// Compares two programs; what each of them wrote, and all output.
    fn compare(&self, base: &str, head: &str) -> ([Vec<String>; 2], Output) {
        let _ = fs::remove_dir_all(self.at("out"));
        let linerate = self.at("bin/linerate");
        let mut command = match self.number {
            None => Command::new(linerate),
            Some(number) => {
                let chown = Command::new("chown").args(["-R", &number.to_string()]).arg(&self.base).status();
                assert!(chown.unwrap().success());
                let mut command = Command::new("setpriv");
                command.args([format!("--reuid={number}"), format!("--regid={number}")]);
                command.arg("--clear-groups").arg(linerate);
                command
            }
        };
        command.args(["gate", "one", "--quick", "--budget", "1s", "--seed", "7", "--out", "out"]);
        command.args(["--base", &format!("program={base}"), "--head", &format!("program={head}")]);
        command.env("LINERATE_HOME", self.at("linerate")).env("XDG_CACHE_HOME", self.at("cache"));
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.at("home/.nvm/1/bin").display()));
        let out = Output::run(command.env("HOME", self.at("home")).current_dir(&self.base));
        let run = fs::read_to_string(self.at("out/run.json")).unwrap_or_default();
        let run: Option<Run> = serde_json::from_str(&run).ok();
        let written = run.and_then(|run| run.comparison).map(|comparison| comparison.written);
        let of = |subject: &str| {
            let all = written.iter().flatten().filter(|by| by.subject == subject);
            all.flat_map(|by| by.lines.clone()).collect()
        };
        ([of("own (base)"), of("own (head)")], out)
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.base);
    }
}

/// As the user of the test and, if that is root, as another one.
fn as_each_user(name: &str, test: impl Fn(&User)) {
    let Some(_machine) = shared_machine() else { return };
    test(&User::new(name, None));
    if nix::unistd::geteuid().is_root() {
        test(&User::new(&format!("{name}-other"), Some(65_534)));
    }
}

/// True on a machine where another user has no lab.
fn has_no_lab(out: &Output) -> bool {
    let is_refused = out.status == 3 && out.stderr.contains("the kernel refuses namespaces");
    if is_refused {
        skip(&out.stderr);
    }
    is_refused
}

#[test]
fn a_script_finds_what_is_beside_it_by_every_path_that_it_has() {
    as_each_user("own-scripts", |user| {
        let script = "#!/bin/sh\necho \"$0\" >&2\ncat '@HERE@/flag' \"$(dirname \"$0\")/flag\" >&2\n\
            exec \"$(dirname \"$0\")/engine\" \"$@\"\n";
        for folder in ["one", "two words"] {
            let here = user.at(folder).display().to_string();
            user.script(&format!("{folder}/server"), &script.replace("@HERE@", &here));
            user.write(&format!("{folder}/flag"), &format!("flag of {folder}\n"));
        }
        user.write("one/below/other", "");
        // One of them is relative, and leads through another folder.
        let two = user.at("two words/server").display().to_string();
        let (written, out) = user.compare("one/below/../server", &two);
        if has_no_lab(&out) {
            return;
        }
        let one = user.at("one/below/../server").display().to_string();
        let expected = |program: &str, folder: &str| {
            let flag = format!("flag of {folder}");
            vec![program.to_owned(), flag.clone(), flag]
        };
        assert_eq!(written, [expected(&one, "one"), expected(&two, "two words")], "{}", out.stderr);
        assert!(out.stdout.contains("own (head) wrote on stderr at its start"), "{}", out.stdout);
    });
}

#[test]
fn a_program_has_the_libraries_beside_it_and_a_link_what_is_beside_its_names() {
    as_each_user("own-links", |user| {
        let library = "#include <stdio.h>\nvoid NAME(void) { fputs(\"NAME is loaded\\n\", stderr); }\n";
        let program = "#include <string.h>\n#include <unistd.h>\nvoid beside(void), sibling(void);\n\
            int main(int count, char **words) {\n    char engine[4096] = {0};\n    beside(), sibling();\n\
            if (count < 1 || readlink(\"/proc/self/exe\", engine, 4000) < 0) return 1;\n\
            strcpy(strrchr(engine, '/'), \"/engine\");\n    execv(engine, words);\n    return 1;\n}\n";
        user.write("elf/out/main.c", program);
        let compile = |words: &str| {
            let mut cc = Command::new("cc");
            let done = cc.args(words.split(' ')).current_dir(user.at("elf/out")).status();
            done.is_ok_and(|status| status.success())
        };
        fs::create_dir_all(user.at("elf/sibling")).unwrap();
        for (name, path) in [("beside", "libbeside.so"), ("sibling", "../sibling/libsibling.so")] {
            user.write(&format!("elf/out/{name}.c"), &library.replace("NAME", name));
            if !compile(&format!("-shared -fPIC -o {path} {name}.c")) {
                return skip("no C compiler");
            }
        }
        let sibling = user.at("elf/sibling").display().to_string();
        assert!(compile(&format!(
            "-o server main.c -L. -L../sibling -lbeside -lsibling -Wl,-rpath,$ORIGIN:{sibling}"
        )));
        user.engine("elf/out/server");
        user.script(
            "v2/server",
            "#!/bin/sh\nreal=$(dirname \"$(readlink -f \"$0\")\")\n\
             echo \"$0\" >&2\ncat \"$(dirname \"$0\")/flag\" \"$real/flag\" >&2\n\
             exec \"$real/engine\" \"$@\"\n",
        );
        user.write("v2/flag", "beside the script\n");
        user.write("names/flag", "beside the link\n");
        user.link("current", "v2");
        user.link("names/server", "../current/server");
        let names = user.at("names/server").display().to_string();
        let (written, out) = user.compare("elf/out/server", &names);
        if has_no_lab(&out) {
            return;
        }
        let expected = [
            vec!["beside is loaded", "sibling is loaded"],
            vec![&*names, "beside the link", "beside the script"],
        ];
        assert_eq!(written, expected, "{}", out.stderr);
    });
}

#[test]
fn an_interpreter_on_the_users_path_is_there_and_what_is_beside_a_program_in_the_home_is_not() {
    as_each_user("own-homes", |user| {
        // As those of nvm and pyenv: found by PATH, with what they need beside their folder.
        user.script(
            "home/.nvm/1/bin/own-shell",
            "#!/bin/sh\ncat \"$(dirname \"$0\")/../lib/flag\" >&2\nexec /bin/sh \"$@\"\n",
        );
        user.write("home/.nvm/1/lib/flag", "of the installation\n");
        user.script("app/server", "#!/usr/bin/env own-shell\nexec \"$(dirname \"$0\")/engine\" \"$@\"\n");
        user.write("home/secret", "of the user\n");
        user.write("home/.ssh/key", "of the user\n");
        user.script(
            "v2/server",
            "#!/bin/sh\nls -A \"$(dirname \"$0\")\" >&2\n\
             exec \"$(dirname \"$(readlink -f \"$0\")\")/engine\" \"$@\"\n",
        );
        user.link("home/server", "../v2/server");
        let (written, out) = user.compare("app/server", "home/server");
        if has_no_lab(&out) {
            return;
        }
        assert_eq!(written, [vec!["of the installation"], vec!["server"]], "{}", out.stderr);
        let note = "home/server is beside files of others";
        assert!(out.stderr.contains(note) && !out.stderr.contains("app/server is"), "{}", out.stderr);
    });
}

#[test]
fn a_library_that_a_loader_does_not_find_fails_the_gate_also_where_the_program_goes_on() {
    as_each_user("own-loader", |user| {
        user.script("good/server", "#!/bin/sh\nexec \"$(dirname \"$0\")/engine\" \"$@\"\n");
        let preload = "export LD_PRELOAD=@BASE@/elsewhere/burn.so";
        let exec = "exec \"$(dirname \"$0\")/engine\" \"$@\"";
        user.script("always/server", &format!("#!/bin/sh\n{preload}\n{exec}\n"));
        let served = format!("#!/bin/sh\ncase $1 in *describe*) ;; *) {preload} ;; esac\n{exec}\n");
        user.script("served/server", &served);
        user.write("elsewhere/burn.so", "");
        for (head, place) in [("always/server", "in the lab, "), ("served/server", "at start: own: ")] {
            let (_, out) = user.compare("good/server", head);
            if has_no_lab(&out) {
                return;
            }
            let line = format!("ERROR: ld.so: object '{}'", user.at("elsewhere/burn.so").display());
            let all = format!("{}{}", out.stdout, out.stderr);
            assert!([2, 3].contains(&out.status) && all.contains(&line), "{head}: {}: {all}", out.status);
            assert!(all.contains(place) && all.contains("put it there"), "{head}: {all}");
        }
    });
}

#[test]
fn a_revision_finds_what_its_build_has_made() {
    let Some(_machine) = shared_machine() else { return };
    let user = User::new("own-revisions", None);
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@localhost"]).args(words);
        assert!(git.current_dir(user.at("repository")).status().unwrap().success(), "{words:?}");
    };
    fs::create_dir_all(user.at("repository")).unwrap();
    git(&["init", "--quiet"]);
    for tag in ["one", "two"] {
        user.write("repository/flag", &format!("{tag}\n"));
        git(&["add", "."]);
        git(&["commit", "--quiet", "-m", tag]);
        git(&["tag", tag]);
    }
    let script = "#!/bin/sh\nhere=$(dirname \"$0\")\ncat \"$here/flag\" \"TREE/share/flag\" >&2\n\
        exec \"$here/engine\" \"$@\"\n";
    user.write("server.sh", script);
    let base = user.base.display();
    let build = format!(
        "mkdir bin share && cp flag bin && cp flag share && ln {base}/bin/linerate-load bin/engine && \
         sed \"s|TREE|$PWD|\" {base}/server.sh > bin/server && chmod +x bin/server"
    );
    let mut gate = command(&["gate", "one", "--quick", "--budget", "1s", "--out", "out"]);
    gate.args(["--base", "git=one", "--head", "git=two", "--checkout", "repository", "--build", &build]);
    gate.args(["--program", "bin/server"]).env("XDG_CACHE_HOME", user.at("cache"));
    let out = Output::run(gate.env("LINERATE_HOME", user.at("linerate")).current_dir(&user.base));
    let run = fs::read_to_string(user.at("out/run.json")).unwrap();
    let run: Run = serde_json::from_str(&run).unwrap();
    let mut written = run.comparison.unwrap().written;
    written.sort_by(|one, other| one.subject.cmp(&other.subject));
    let lines: Vec<Vec<String>> = written.into_iter().map(|by| by.lines).collect();
    assert_eq!(lines, [["one", "one"], ["two", "two"]], "{}{}", out.stdout, out.stderr);
}

#[test]
fn commands_find_what_is_beside_them_and_their_first_lines_are_shown() {
    let Some(_machine) = shared_machine() else { return };
    let folder = workplace("own-commands");
    let script = format!(
        "#!/bin/sh\ncat \"$(dirname \"$0\")/flag\" '{}/two words/flag' >&2\nexec python3 server.py\n",
        folder.str()
    );
    for name in ["one", "two words"] {
        let here = folder.path().join(name);
        fs::create_dir_all(&here).unwrap();
        fs::write(here.join("run"), &script).unwrap();
        fs::set_permissions(here.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(here.join("flag"), format!("flag of {name}\n")).unwrap();
    }
    symlink("two words", folder.path().join("current")).unwrap();
    let compare = |words: &[&str]| {
        let _ = fs::remove_dir_all(folder.path().join("out"));
        let mut compare = command(&["compare"]);
        compare.args(words).args(["--budget", "2s", "--out", "out"]).current_dir(folder.path());
        Output::run(&mut compare)
    };
    let of_file =
        "[compare.all]\nstart = ['one/run', './current/run']\nname = ['old', 'new']\nconnections = 2\n";
    fs::write(folder.path().join("linerate.toml"), of_file).unwrap();
    for words in [&["one/run", "./current/run", "-n", "old", "-n", "new", "-c", "2"][..], &["all"]] {
        let out = compare(words);
        assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
        for (name, flag) in [("old", "one"), ("new", "two words")] {
            let note = format!("{name} wrote on stderr at its start: flag of {flag}");
            assert_eq!(out.stdout.matches(&note).count(), 1, "{words:?}: {}", out.stdout);
        }
    }
    let lacking = "env LD_PRELOAD=/nowhere/burn.so python3 server.py";
    let out = compare(&["python3 server.py", lacking, "-n", "old", "-n", "new"]);
    assert_eq!(out.status, 3, "{}{}", out.stdout, out.stderr);
    assert!(out.stderr.contains("new: ERROR: ld.so: object '/nowhere/burn.so'"), "{}", out.stderr);
}
