//! Bottlenecks of cells for which they are known, because they were made so.

use crate::common::{self, Folder, Output, skip};
use crate::{command, machine};
use linerate::measurement::{Measurement, Sharing, SideWindow};
use linerate::report::model::{CellReport, Flag, OutcomeWord, Report};
use linerate::stats::bound::Bottleneck;
use linerate_contract::Role;
use std::path::Path;

/// The suite and its systems; other systems are the project's.
fn bound_home() -> Folder {
    let home = Folder::new("bound-home");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    common::copy(&here.join("tests/real/bound"), home.path());
    for name in ["ab", "direct", "native", "nginx"] {
        let system = here.join("../../systems").join(name);
        std::os::unix::fs::symlink(system, home.path().join("systems").join(name)).unwrap();
    }
    let engine = Path::new(env!("CARGO_BIN_EXE_linerate")).with_file_name("linerate-load");
    std::fs::copy(engine, home.path().join("systems/long/linerate-load")).unwrap();
    home
}

fn run(folder: &Folder, args: &[&str]) -> Report {
    let home = bound_home();
    let mut command = command(&["run", "bound", "--out", folder.str()]);
    let out = Output::run(command.args(args).env("LINERATE_HOME", home.path()));
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    folder.report()
}

/// Other work, or another guest, had a part of the CPUs, so that a role had less than its own.
fn is_disturbed(cell: &CellReport) -> bool {
    cell.flags.iter().any(|flag| matches!(flag, Flag::Disturbed(_) | Flag::Steal(_)))
}

const CLIENT: Bottleneck = Bottleneck::Role(Role::Client);
const SERVER: Bottleneck = Bottleneck::Role(Role::Server);

/// A cell is measured again if its answer is wrong, since a machine may be busy for seconds: a wrong rule is
/// wrong each time.
const ATTEMPTS: usize = 3;

#[test]
fn eight_constructed_cells_have_the_bottleneck_that_they_were_made_with() {
    let Some(_machine) = machine() else { return };
    let mut open = vec![
        ("client", vec![CLIENT]),
        ("server", vec![SERVER]),
        ("relay", vec![Bottleneck::Role(Role::Relay)]),
        ("packet-filter", vec![Bottleneck::Path]),
        ("waiting", vec![Bottleneck::Waiting]),
        ("spinning", vec![Bottleneck::Spinning]),
        ("rate", vec![Bottleneck::Waiting]),
        // Equal ends on one CPU: a tie.
        ("one-cpu", vec![CLIENT, SERVER]),
    ];
    let mut wrong = Vec::new();
    for _ in 0..ATTEMPTS {
        let only: Vec<&str> = open.iter().flat_map(|(id, _)| ["--only", id]).collect();
        let report = run(&Folder::new("bound"), &[&["--rounds", "1"], &only[..]].concat());
        wrong.clear();
        open.retain(|(id, truth)| {
            let cell = report.suites[0].cells.iter().find(|cell| cell.id == *id).unwrap();
            assert_ne!(cell.outcome, OutcomeWord::Failed, "{id}: {:?}", cell.detail);
            let Some(bound) = cell.bound_by else {
                skip(&format!("{id}: {:?}", cell.detail));
                return false;
            };
            if truth.contains(&bound) {
                return false;
            }
            let text = format!("{id}: {bound:?} instead of {truth:?}: {:?} {:?}", cell.cpu, cell.flags);
            wrong.push((is_disturbed(cell), text));
            true
        });
        if open.is_empty() {
            return;
        }
    }
    for (disturbed, text) in wrong {
        assert!(disturbed, "{text}");
        skip(&text);
    }
}

/// The role spins, so its CPU time per time is 1 without a brake.
#[test]
fn a_brake_takes_the_cpu_time_that_it_says() {
    let Some(_machine) = machine() else { return };
    let folder = Folder::new("brake");
    let report = run(&folder, &["--rounds", "1", "--only", "spinning", "--probe"]);
    let units = folder.duets().into_iter().filter(|unit| unit.sides.probed() == Some(Role::Server));
    let units: Vec<_> = units.collect();
    assert_eq!(units.len(), 2);
    for unit in units {
        let together = unit.together().unwrap();
        assert_eq!(together.sharing, Sharing::Turns);
        let (probe, sides) = (together.probe.unwrap(), unit.both().expect("the unit succeeded"));
        let (braked, free) = (&sides[probe.side], &sides[1 - probe.side]);
        let time = |side: &SideWindow| side.cpu[&Role::Server].0 as f64;
        assert_eq!(free.brake, None);
        let taken = braked.brake.expect("it has a brake").0 as f64;
        let share = taken / (taken + time(braked));
        assert!((share - probe.share).abs() < 0.01, "{share} of {}", probe.share);
        // The time that the brake took is the server's, too; what else is missing had other work or a guest.
        let had = |side: &SideWindow, taken: f64| (time(side) + taken) / side.elapsed.0 as f64;
        if had(free, 0.0).min(had(braked, taken)) < 0.95 {
            skip(&format!("the server had {:.2} and {:.2} of its CPU", had(free, 0.0), had(braked, taken)));
        } else {
            let left = had(braked, 0.0) / had(free, 0.0);
            assert!((left - (1.0 - probe.share)).abs() < 0.06, "{left}");
        }
    }
    let cell = report.suites[0].cells.iter().find(|cell| cell.id == "spinning").unwrap();
    assert_eq!(cell.sensitivity.keys().collect::<Vec<_>>(), [&Role::Client, &Role::Server]);
    assert!(is_disturbed(cell) || cell.sensitivity[&Role::Server].value < 0.5, "{:?}", cell.sensitivity);
}

#[test]
fn cpu_time_outside_of_the_window_does_not_count() {
    let Some(_machine) = machine() else { return };
    let folder = Folder::new("window");
    run(&folder, &["--rounds", "1", "--only", "{short,long}", "--install"]);
    let measured = |cell: &str| {
        let trials = folder.trials().into_iter().filter(|trial| trial.id == cell && !trial.warmup);
        trials
            .map(|trial| {
                trial.measurement().cloned().unwrap_or_else(|| panic!("{cell}: {:?}", trial.outcome))
            })
            .collect::<Vec<_>>()
    };
    let cpu = |made: &Measurement| made.cpu[&Role::Client].0 as f64;
    // One thread sends, so its CPU time is at most the window and an error of the clock. The process lives
    // ten times its window, and works there: what counted would be several times the window.
    for made in measured("long") {
        let share = cpu(&made) / made.elapsed.0 as f64;
        assert!(share < 1.5, "{share}");
    }
    // No part of the window is left out. The least of a cell's trials is what other work disturbed least.
    let per_operation = |cell: &str| {
        measured(cell).iter().map(|made| cpu(made) / made.operations as f64).min_by(f64::total_cmp).unwrap()
    };
    let ratio = per_operation("long") / per_operation("short");
    assert!(ratio > 0.5, "{ratio}");
}
