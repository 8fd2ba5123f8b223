//! Others use the CPUs: a warning below the answer says so.

use super::{gate, script::Script};
use crate::common::{Folder, linerate};
use regex::Regex;
use std::fs;

#[test]
fn a_disturbed_gate_warns_below_its_answer_and_in_its_comment_with_the_measured_shares() {
    let (folder, files) = (Folder::new("gate-disturbed"), Folder::new("gate-disturbed-files"));
    fs::create_dir_all(files.path()).unwrap();
    let comment = files.path().join("comment.md");
    let script = Script::new("disturbed").beside("others = 0.6\nsteal = 0.08");
    let out = gate(&script, &folder, &["--comment", comment.to_str().unwrap()]);
    assert_eq!(out.status, 0, "{}\n{}", out.stdout, out.stderr);
    let (first, second) = out.stdout.split_once('\n').unwrap();
    assert!(first.starts_with("no slowdown of pipe with this change"), "{first}");
    let pattern = concat!(
        r"^warning: disturbed \((\d+) of (\d+) pairs: other processes used \d\d %, ",
        r"other guests of the hypervisor 8 % of the CPU time\)"
    );
    let found = Regex::new(pattern).unwrap().captures(second);
    let found = found.unwrap_or_else(|| panic!("{second}"));
    assert_eq!(found[1], found[2], "all units");
    let comment = fs::read_to_string(&comment).unwrap();
    for text in [comment, folder.read("report.md"), folder.read("report.html")] {
        let [answer, warning] = ["no slowdown of pipe", "warning: disturbed ("].map(|part| text.find(part));
        assert!(answer.is_some() && answer < warning, "{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&folder.read("report.json")).unwrap();
    let disturbance = &json["run"]["disturbance"];
    assert!((disturbance["stolen"].as_f64().unwrap() - 0.08).abs() < 1e-6, "{disturbance}");
    assert!(disturbance["strangers"].as_f64().unwrap() > 0.1, "{disturbance}");
    assert_eq!(disturbance["is_of_cells"], false, "{disturbance}");
}

#[test]
fn a_disturbed_run_says_so_and_a_quiet_one_does_not() {
    let [quiet, busy] = ["good", "busy"].map(|script| {
        let folder = Folder::new(&format!("run-{script}"));
        let out = linerate(script, &["run", "mini", "--seed", "7", "--out", folder.str()]);
        assert_eq!(out.status, 0, "{}", out.stderr);
        (out.stdout.lines().next().unwrap().to_owned(), folder.read("report.md"), folder.read("report.json"))
    });
    assert!(quiet.0.starts_with("mini: "), "{}", quiet.0);
    assert!(!quiet.2.contains("disturbance"));
    assert!(busy.0.starts_with("warning: disturbed ("), "{}", busy.0);
    assert!(busy.0.contains("other processes used "), "{}", busy.0);
    assert!(busy.1.contains("warning: disturbed (") && busy.2.contains("\"disturbance\""));
}
