//! Text that the programs of a comparison write on stderr at their start.

use crate::common::Folder;
use crate::gate;
use crate::script::Script;

const LINES: [&str; 5] =
    ["\u{1b}[33mno config\u{1b}[0m: \u{7}defaults", "second", "third", "fourth", "fifth"];

#[test]
fn what_a_program_of_the_user_writes_at_its_start_is_shown_once_and_kept() {
    let script = Script::new("written").writes("fast/pipe@head", &LINES);
    let folder = Folder::new("gate-written");
    let out = script.run(&[
        "compare",
        "mini",
        "--only",
        "fast/pipe",
        "--head",
        "program=/bin/true",
        "--seed",
        "7",
        "--out",
        folder.str(),
    ]);
    assert_eq!(out.status, 0, "{}\n{}", out.stdout, out.stderr);
    let lines = "pipe (head) wrote on stderr at its start: no config: \\u0007defaults\n  second\n  \
        third\n  (and 2 more lines)\n";
    assert_eq!(out.stdout.matches(lines).count(), 1, "{}", out.stdout);
    let all = [out.stdout.as_str(), out.stderr.as_str()].map(|text| text.matches("wrote on stderr").count());
    assert_eq!(all, [1, 0], "the answer has it, and the server is none of the builds: {}", out.stdout);
    for text in [&out.stdout, &folder.read("report.md"), &folder.read("report.html")] {
        assert!(text.contains("pipe (head) wrote on stderr at its start: no config"), "{text}");
    }
    assert!(folder.read("run.json").contains("fifth"));
    assert_eq!(script.run(&["report", folder.str()]).stdout, out.stdout);
}

#[test]
fn what_linerates_own_systems_write_at_their_start_is_not_shown() {
    let script = Script::new("own").writes("fast/pipe@*", &LINES);
    let out = gate(&script, &Folder::new("gate-own"), &[]);
    assert_eq!(out.status, 0, "{}\n{}", out.stdout, out.stderr);
    assert!(!out.stdout.contains("wrote on stderr"), "{}", out.stdout);
}

#[test]
fn what_the_lab_remarks_about_a_command_is_a_note_and_hides_nothing_that_the_command_wrote() {
    let script = Script::new("remarks").writes("fast/pipe@*", &LINES[1..2]);
    let script = script.beside("remarks = ['/work is a copy', '/home stays']");
    let folder = Folder::new("gate-remarks");
    let head = "program=/bin/true";
    let args = ["compare", "mini", "--only", "fast/pipe", "--head", head, "--out", folder.str()];
    let out = script.run(&args);
    assert_eq!(out.status, 0, "{}\n{}", out.stdout, out.stderr);
    for text in [&out.stdout, &folder.read("report.md"), &folder.read("report.html")] {
        assert!(text.contains("pipe (head): /work is a copy"), "{text}");
        assert!(text.contains("pipe (head) wrote on stderr at its start: second"), "{text}");
        assert!(!text.contains("at its start: /work"), "{text}");
    }
    let comparison = folder.report().comparison.unwrap();
    let notes = ["pipe (head): /work is a copy", "pipe (head): /home stays"];
    assert!(notes.iter().all(|note| comparison.notes.iter().filter(|known| known == note).count() == 1));
    assert_eq!(comparison.written.len(), 1, "{:?}", comparison.written);
}
