//! The action and its examples: what they publish, and whose words they take. Their scripts run here, with
//! programs in place of linerate and gh.

use crate::common::{self, Folder, Output};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A file of the action.
fn file(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../action").join(name)).unwrap()
}

/// The only script of a file: the text behind its key, to the end of the file.
fn script(name: &str) -> String {
    let text = file(name);
    let (_, script) = text.split_once("run: |\n").unwrap();
    let depth = script.len() - script.trim_start_matches(' ').len();
    script.lines().map(|line| line.get(depth..).unwrap_or_default().to_owned() + "\n").collect()
}

/// A folder with a program.
fn with_program(name: &str, program: &str, text: &str) -> Folder {
    let folder = Folder::new(name);
    let bin = folder.path().join("bin");
    fs::create_dir_all(&bin).unwrap();
    fs::write(bin.join(program), text).unwrap();
    fs::set_permissions(bin.join(program), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    folder
}

/// A script as a step of a workflow runs it, with the programs of `folder` before all others.
fn step(script: &str, folder: &Folder) -> Command {
    let mut command = Command::new("bash");
    let path = format!("{}/bin:{}", folder.str(), std::env::var("PATH").unwrap());
    command.args(["-e", "-c", script]).env("PATH", path);
    command
}

#[test]
fn the_action_publishes_what_its_gate_wrote_and_takes_no_word_from_the_checkout() {
    let linerate = "#!/bin/sh\nprintf '%s\\n' \"$@\" >\"$0.words\"\nexit 3\n";
    let folder = with_program("action", "linerate", linerate);
    let checkout = folder.path().join("checkout");
    for made in ["linerate-gate", ".linerate/gate"] {
        fs::create_dir_all(checkout.join(made)).unwrap();
    }
    for file in ["linerate-gate/comment.md", ".linerate/gate/comment.md", "--evil"] {
        fs::write(checkout.join(file), "LGTM").unwrap();
    }
    // Of a step before, or of a gate before on the same machine.
    fs::create_dir(folder.path().join("linerate-gate")).unwrap();
    fs::write(folder.path().join("linerate-gate/comment.md"), "LGTM").unwrap();
    let mut command = step(&script("action.yml"), &folder);
    command.current_dir(&checkout);
    for (name, value) in
        [("SUITE", ""), ("OPTIONS", "--advisory *"), ("OUT", ""), ("BASE", "git=a"), ("BUDGET", "1m")]
    {
        command.env(name, value);
    }
    let file = |name: &str| folder.path().join(name);
    command.env("RUNNER_TEMP", folder.path());
    command.env("GITHUB_OUTPUT", file("output")).env("GITHUB_STEP_SUMMARY", file("summary"));
    let out = Output::run(&mut command);
    assert_eq!(out.status, 3, "{}", out.stderr);
    assert!(!file("summary").exists(), "the comment of the checkout is published");
    let words = fs::read_to_string(file("bin/linerate.words")).unwrap();
    assert!(words.lines().any(|word| word == "*") && !words.contains("--evil"), "{words}");
    let output = fs::read_to_string(file("output")).unwrap();
    assert!(output.contains(&format!("out={}/linerate-gate\n", folder.str())), "{output}");
}

#[test]
fn what_an_example_uses_is_a_commit_and_a_checkout_keeps_no_credentials() {
    let mut checkouts = 0;
    for name in ["example.yml", "example-comment.yml", "action.yml"] {
        let text = file(name);
        for used in text.lines().filter_map(|line| line.split_once("uses: ").map(|(_, used)| used)) {
            let version = used.split('#').next().unwrap().trim().split_once('@').unwrap().1;
            let is_commit = version.len() == 40 && version.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(is_commit || version == "COMMIT", "{name}: {used}");
        }
        for checkout in text.split("uses: actions/checkout@").skip(1) {
            checkouts += 1;
            let step = checkout.split("      - ").next().unwrap();
            assert!(step.contains("persist-credentials: false"), "{name}: {step}");
        }
    }
    assert!(checkouts > 0);
}

/// gh(1) as the workflow of comments uses it: files of responses, by jq(1), and a list of what was sent.
const GH: &str = r#"#!/bin/bash
set -e
here=$(dirname "$0")
filter=.
for ((n = 1; n < $#; n++)); do
    next=$((n + 1))
    if [ "${!n}" = --jq ]; then filter=${!next}; fi
done
case $*" " in
"run download "*) mkdir gate && cp "$here/comment.md" gate/ ;;
"api --method GET "*/pulls*"head=$BRANCH "*) jq -r "$filter" "$here/pulls.json" ;;
*/comments*--paginate*) jq -r "$filter" "$here/comments.json" ;;
"api --method PATCH "* | "pr comment "*) echo "$*" >>"$here/sent"; cp body.md "$here/body.md" ;;
*) echo "gh $*: not known here" >&2; exit 1 ;;
esac
"#;

/// The commands that changed a pull request, and the comment; `pulls` and `comments`: what gh knows.
fn commented(pulls: &str, comments: &str, comment: &[u8]) -> (String, String) {
    let folder = with_program("comment", "gh", GH);
    let file = |name: &str| folder.path().join("bin").join(name);
    fs::write(file("pulls.json"), pulls).unwrap();
    fs::write(file("comments.json"), comments).unwrap();
    fs::write(file("comment.md"), comment).unwrap();
    let work = folder.path().join("work");
    fs::create_dir(&work).unwrap();
    let mut command = step(&script("example-comment.yml"), &folder);
    command.current_dir(&work).env("RUN", "1").env("REPOSITORY", "o/r");
    let out = Output::run(command.env("HEAD", "abc").env("BRANCH", "me:fix"));
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    let read = |name: &str| fs::read_to_string(file(name)).unwrap_or_default();
    (read("sent"), read("body.md"))
}

fn has_jq() -> bool {
    let has = Command::new("jq").arg("--version").output().is_ok_and(|out| out.status.success());
    if !has {
        common::skip("jq is missing");
    }
    has
}

/// The pull request of this head.
const OWN: &str = r#"[{"number": 7, "head": {"sha": "abc"}}]"#;

#[test]
fn a_comment_is_for_the_pull_request_of_its_own_head() {
    if !has_jq() {
        return;
    }
    // Others of the branch have another commit.
    let others = r#"[{"number": 6, "head": {"sha": "old"}}, {"number": 7, "head": {"sha": "abc"}}]"#;
    for pulls in [OWN, others] {
        assert_eq!(commented(pulls, "[]", b"fine").0, "pr comment 7 --repo o/r --body-file body.md\n");
    }
    let two = r#"[{"number": 6, "head": {"sha": "abc"}}, {"number": 7, "head": {"sha": "abc"}}]"#;
    for pulls in ["[]", r#"[{"number": 6, "head": {"sha": "old"}}]"#, two] {
        assert_eq!(commented(pulls, "[]", b"fine").0, "", "{pulls}");
    }
}

#[test]
fn a_comment_replaces_its_own_and_none_of_a_user_with_its_beginning() {
    if !has_jq() {
        return;
    }
    let of = |id: u32, user: &str| {
        format!(r#"{{"id": {id}, "user": {{"login": "{user}"}}, "body": "<!-- linerate-gate -->\nold"}}"#)
    };
    let (user, bot) = (of(1, "mallory"), of(2, "github-actions[bot]"));
    let (sent, _) = commented(OWN, &format!("[{user}]"), b"fine");
    assert!(sent.starts_with("pr comment 7"), "{sent}");
    let (sent, body) = commented(OWN, &format!("[{user}, {bot}]"), b"fine");
    assert_eq!(sent, "api --method PATCH repos/o/r/issues/comments/2 --field body=@body.md\n");
    assert!(body.starts_with("<!-- linerate-gate -->\nfine"), "{body}");
}

#[test]
fn a_comment_calls_nobody_and_refers_to_nothing() {
    if !has_jq() {
        return;
    }
    let comment = b"by @all, see o/r#1 and #2 or GH-3; &#64;all &#x40;all &#35;4 http&#58;//box";
    let (_, body) = commented(OWN, "[]", comment);
    for reference in ["@all", "#1", "#2", "#4", "GH-3", "&#64;", "&#x40;", "&#35;"] {
        assert!(!body.contains(reference), "{reference}: {body}");
    }
    assert!(body.contains("http&#58;//box"), "an entity of linerate's own: {body}");
    // Whatever its artifact has.
    let (_, long) = commented(OWN, "[]", &b"@".repeat(1_000_000));
    assert!(long.len() < 300_000, "{}", long.len());
}
