//! Open loops in `linerate gate` and `compare`: latencies whose difference is known.

use crate::common::{Folder, Output};
use crate::script::Script;
use linerate::judge::pairs::{Confirmation, Finding};
use linerate::report::comparison::ComparedCell;
use linerate::stats::verdict::Verdict;

/// A gate of a pipe at a fixed rate: p50 is 200 us and p90 400 us, in both builds unless the script says
/// otherwise.
fn gate(script: &Script, folder: &Folder, more: &[&str]) -> Output {
    let mut args = vec!["gate", "mini", "--only", "fast/pipe", "--seed", "7", "--out", folder.str()];
    args.extend(super::ARMS);
    args.extend(more);
    script.run(&args)
}

fn cell(folder: &Folder) -> ComparedCell {
    folder.report().comparison.unwrap().cells.remove(0)
}

fn finding<'c>(cell: &'c ComparedCell, name: &str) -> &'c Finding {
    let mut latencies = cell.findings.latencies();
    latencies.find(|latency| latency.measure.name() == name).unwrap_or_else(|| panic!("{name}: {cell:?}"))
}

#[test]
fn a_planted_20_us_is_status_1_and_the_difference_of_each_percentile_is_found() {
    let folder = Folder::new("gate-latency");
    let script = Script::new("latency").cell("fast/pipe@head", 0.22, 0.003);
    let out = gate(&script, &folder, &["--rate", "4000", "--budget", "3m"]);
    assert_eq!(out.status, 1, "{}\n{}", out.stdout, out.stderr);
    let sentence = out.stdout.lines().next().unwrap();
    assert!(sentence.contains("pipe responds ") && sentence.contains(" % later at p50"), "{}", out.stdout);
    let found = cell(&folder);
    assert_eq!((found.findings.rate(), found.latency_verdict), (None, Some(Verdict::Slower)));
    for (name, us) in [("p50", 20.0), ("p90", 40.0), ("mean", 24.0), ("p99", 40.0), ("p99.9", 40.0)] {
        let latency = finding(&found, name);
        let difference = latency.difference.unwrap();
        let [low, high] = difference.ci95;
        assert!(low < us && us < high && high - low < us / 2.0, "{name}: {difference:?}");
        let [low, high] = latency.percent_ci95().unwrap();
        assert!(low < 10.0 && 10.0 < high && (latency.percent() - 10.0).abs() < 1.0, "{latency:?}");
        assert_eq!(latency.second_series, Some(Confirmation::Confirmed), "{name}");
    }
    assert!((finding(&found, "p50").values.unwrap()[0] - 200.0).abs() < 2.0, "{found:?}");
    for part in ["an open loop of 4,000/s", "turns of 30 ms", "p99.9"] {
        assert!(out.stdout.contains(part), "{part}: {}", out.stdout);
    }
    for file in ["report.md", "report.html"] {
        assert!(folder.read(file).contains("p99.9"), "{file}");
    }
    let run = folder.read("run.json");
    assert!(run.contains("--rate 4000") && !run.contains("--margin"), "it repeats the run: {run}");
}

#[test]
fn equal_builds_at_half_of_the_capacity_are_status_0_and_both_numbers_are_shown() {
    let folder = Folder::new("gate-latency-equal");
    let out = gate(&Script::new("latency-equal"), &folder, &["--rate", "50%", "--budget", "3m"]);
    assert_eq!(out.status, 0, "{}\n{}", out.stdout, out.stderr);
    assert!(out.stdout.starts_with("no slowdown of pipe with this change: 1 within 5 %"), "{}", out.stdout);
    let found = cell(&folder);
    let load = found.load.as_ref().unwrap();
    let capacity = load.capacity.unwrap();
    assert!((capacity - 5_000.0).abs() < 50.0, "1,000 requests in 0.2 s: {load:?}");
    assert_eq!((load.share, load.per_second), (Some(0.5), (capacity / 2.0).round() as u64));
    assert!(out.stdout.contains("/s, 50 % of the "), "{}", out.stdout);
    assert!(!folder.read("run.json").contains("percentile"), "{}", folder.read("run.json"));
    assert!(out.stdout.contains("p50 decides: the other latencies"), "{}", out.stdout);
    // It goes on with the same rate.
    let again = Script::new("latency-again").run(&["gate", "--resume", folder.str()]);
    assert_eq!((again.status, again.stdout), (0, out.stdout), "{}", again.stderr);
}

#[test]
fn the_margin_of_latencies_is_a_share_or_microseconds() {
    // 4 us, 2 %.
    let script = || Script::new("latency-margin").cell("fast/pipe@head", 0.204, 0.0005);
    let script = || script().cell("fast/pipe@base", 0.2, 0.0005);
    for (more, status, words) in [
        (&[][..], 0, "differs by less than 5 %"),
        (&["--margin", "1%"], 1, "later at p50"),
        // p90 differs by 8 us.
        (&["--margin-us", "10"], 0, "differs by less than 10 µs"),
        (&["--margin-us", "2us"], 1, "later at p50"),
    ] {
        let folder = Folder::new("gate-latency-margin");
        let mut args = vec!["--rate", "4000", "--budget", "3m"];
        args.extend(more);
        let out = gate(&script(), &folder, &args);
        assert_eq!(out.status, status, "{more:?}: {}\n{}", out.stdout, out.stderr);
        assert!(out.stdout.lines().next().unwrap().contains(words), "{more:?}: {}", out.stdout);
    }
}

#[test]
fn p90_decides_where_it_is_asked_for() {
    let folder = Folder::new("gate-latency-p90");
    let more = ["--rate", "4000", "--budget", "3m", "--percentile", "p90"];
    let out = gate(&Script::new("latency-p90"), &folder, &more);
    assert_eq!(out.status, 0, "{}\n{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("p50 and p90 decide"), "{}", out.stdout);
    assert!(folder.read("run.json").contains("--percentile p90"), "it repeats the run");
    let wrong = gate(&Script::new("latency-p99"), &folder, &["--percentile", "p99"]);
    assert!(wrong.status == 2 && wrong.stderr.contains("expected p50 or p90"), "{}", wrong.stderr);
}

#[test]
fn a_rate_that_cannot_be_is_refused_with_an_example() {
    for rate in ["0", "0%", "100%", "fast", "-5"] {
        let option = format!("--rate={rate}");
        let out = gate(&Script::new("latency-refused"), &Folder::new("gate-latency-refused"), &[&option]);
        assert!(out.status == 2 && out.stderr.contains("such as 50%"), "{rate}: {}", out.stderr);
    }
}

#[test]
fn a_build_that_does_not_keep_up_with_the_load_is_named() {
    let folder = Folder::new("gate-latency-overload");
    // 1,000 requests in 0.3 s.
    let script = Script::new("latency-overload").cell("fast/pipe@head", 0.3, 0.003);
    let out = gate(&script, &folder, &["--rate", "80%", "--budget", "3m"]);
    assert_eq!(out.status, 1, "{}\n{}", out.stdout, out.stderr);
    let sentence = out.stdout.lines().next().unwrap();
    assert!(sentence.contains("head does not keep up: 3,3") && !sentence.contains("base does"), "{sentence}");
    assert!(sentence.ends_with("so its latencies are those of a queue that grows"), "{sentence}");
    assert_eq!(cell(&folder).load.unwrap().keeps_up, [true, false]);
}
