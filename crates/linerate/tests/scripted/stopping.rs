//! When runs end: by a budget, by the precision of a suite.

use crate::common::{self, Folder, linerate};
use std::fs;

/// The tests' systems, and the suite `mini` with a precision.
fn home_with_precision(half_width: &str, time: &str) -> Folder {
    let home = Folder::new("precision-home");
    common::copy(&common::tests().join("lab"), home.path());
    let suite = fs::read_to_string(common::tests().join("lab/suites/mini.toml")).unwrap();
    let precision = format!("precision = {{ half-width = {half_width}, time = \"{time}\" }}");
    let suite = suite.replace("rounds = 6\n", &format!("rounds = 6\n{precision}\n"));
    fs::write(home.path().join("suites/mini.toml"), suite).unwrap();
    home
}

#[test]
fn a_budget_is_spent_on_wide_ratios_after_six_rounds_of_all() {
    for (half_width, is_spent) in [("0.5", false), ("0.000001", true)] {
        let (home, folder) = (home_with_precision(half_width, "1s"), Folder::new("budget"));
        let args = ["run", "mini", "--seed", "7", "--budget", "60s", "--out", folder.str()];
        let out = common::linerate_at(home.path(), "good", &args);
        assert_eq!(out.status, 0, "{}", out.stderr);
        let (trials, duets) = (folder.trials(), folder.duets());
        let times = trials.iter().map(|trial| trial.time()).chain(duets.iter().map(|duet| duet.time()));
        let seconds: f64 = times.map(|time| time.as_secs_f64()).sum();
        // A unit takes a second.
        assert!(seconds < 62.0 && is_spent == (seconds > 57.0), "{half_width}: {seconds} s");
        // Values have their six rounds; ratios have more units where they are wide.
        assert!(trials.iter().all(|t| t.number <= 6));
        assert_eq!(is_spent, duets.iter().any(|duet| duet.number > 12), "{half_width}");
        assert!(out.stdout.contains("6 of 6 rounds complete"), "{}", out.stdout);
    }
}

#[test]
fn cells_in_duets_may_have_fewer_trials_than_the_run_has_rounds() {
    let (home, folder) = (Folder::new("solos-home"), Folder::new("solos"));
    common::copy(&common::tests().join("lab"), home.path());
    let suite = fs::read_to_string(common::tests().join("lab/suites/mini.toml")).unwrap();
    let suite = suite.replace("rounds = 6\n", "rounds = 6\nsolos = 3\nunits = 1\n");
    fs::write(home.path().join("suites/mini.toml"), suite).unwrap();
    let out =
        common::linerate_at(home.path(), "good", &["run", "mini", "--seed", "7", "--out", folder.str()]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert_eq!(folder.trials().iter().filter(|trial| !trial.warmup).map(|trial| trial.number).max(), Some(3));
    assert!(out.stdout.contains("6 of 6 rounds complete"), "{}", out.stdout);
    assert!(!out.stdout.contains("incomplete run"), "{}", out.stdout);
}

#[test]
fn a_budget_without_time_for_a_round_of_all_ends_before_it() {
    let folder = Folder::new("short-budget");
    let out = linerate("good", &["run", "mini", "--seed", "7", "--budget", "12s", "--out", folder.str()]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    let trials = folder.trials();
    let rounds = trials.iter().map(|t| t.number).max().unwrap();
    assert!((1..6).contains(&rounds), "{rounds} rounds");
    assert_eq!(trials.len() as u32, 4 * (rounds + 1));
}

#[test]
fn pairs_with_wide_intervals_get_more_units_until_the_time_of_the_suite_is_used() {
    let units = |half_width: &str| {
        let home = home_with_precision(half_width, "80s");
        let run = Folder::new("precision");
        let out = common::linerate_at(home.path(), "good", &["run", "mini", "--out", run.str()]);
        assert_eq!(out.status, 0, "{}", out.stderr);
        // Each table is printed once.
        assert_eq!(out.stdout.matches("mini:").count(), 1, "{}", out.stdout);
        assert!(!out.stderr.contains("fast/pipe is"), "{}", out.stderr);
        run.read("journal.jsonl").lines().filter(|line| line.contains(r#""kind":"duet""#)).count()
    };
    // 3 pairs x 12 units
    assert_eq!(units("0.5"), 36);
    let narrow = units("0.000001");
    assert!((45..150).contains(&narrow), "{narrow}");
}
