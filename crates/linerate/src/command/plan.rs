//! `linerate plan`.

use super::print;
use crate::cli::PlanArgs;
use crate::error::Error;
use crate::lab::scripted::Scripted;
use crate::measurement::{PlannedSuite, Precision, RUN_SCHEMA, Run};
use crate::plan::{self, Choice, Step};
use crate::programs::{self, Machine, Programs};
use crate::report::numbers::counted;
use crate::report::outcome_text;
use crate::session::{seconds_in_all, seconds_or_guess};
use crate::system::Registry;
use crate::system::build::Permission;
use crate::timings::Timings;
use crate::{home, suite};
use std::collections::BTreeSet;
use std::fmt::{Display, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Cells that are named with the reason why they are left out.
const NAMED: usize = 3;

/// Prints the order of trials and the time they take. Nothing is started.
///
/// # Errors
/// Bad input.
pub fn plan(args: &PlanArgs, script: Option<&Path>) -> Result<ExitCode, Error> {
    let script = programs::script(script)?;
    let (suites, to_build) = choose(args, script.as_ref())?;
    let run = run_of(&suites, args);
    print(&(describe(&run, &Timings::load()) + &builds(&to_build)))
}

/// The chosen suites, with the systems that are here, and the systems that a run would build; nothing is
/// built.
fn choose(
    args: &PlanArgs,
    script: Option<&Scripted>,
) -> Result<(Vec<PlannedSuite>, BTreeSet<String>), Error> {
    let home = home::find()?;
    let registry = Registry::load(&home)?;
    let chosen = suite::choose(suite::load_all(&home)?, &args.selection.suites)?;
    let mut suites = plan::suites(&chosen, &registry, &Choice::from(&args.selection))?;
    let mut programs = Programs::default();
    let mut machine = Machine::new(Permission::Later, script);
    for suite in &mut suites {
        programs::resolve(suite, &registry, &mut programs, &mut machine);
    }
    Ok((suites, machine.to_build()))
}

fn run_of(suites: &[PlannedSuite], args: &PlanArgs) -> Run {
    Run {
        schema: RUN_SCHEMA.into(),
        seed: args.selection.cells.seed.unwrap_or(0),
        rounds: suites.iter().map(|suite| suite.rounds).max().unwrap_or(0),
        quick: args.selection.cells.quick,
        published: args.selection.published,
        all_rows: Choice::from(&args.selection).is_complete(),
        linerate: env!("CARGO_PKG_VERSION").into(),
        suites: suites.to_vec(),
        ..Run::default()
    }
}

fn describe(run: &Run, timings: &Timings) -> String {
    let steps = plan::order(run);
    let mut text = String::new();
    for (index, suite) in run.suites.iter().enumerate() {
        let of_suite: Vec<&Step> = steps.iter().filter(|step| step.suite == index).collect();
        let cells = counted(suite.cells.len() as u64, "cell");
        let rounds = counted(suite.rounds, "round");
        let warmup = suite.warmup_rounds;
        let duets = of_suite.iter().filter(|step| !step.sides.is_one()).count();
        let _ = writeln!(text, "{}: {}", suite.name, suite.question);
        let _ = writeln!(
            text,
            "  {cells}, {rounds} and {warmup} to warm up: {} trials, {duets} duets",
            of_suite.len() - duets
        );
        if let Some(Precision { half_width, time }) = suite.precision {
            let percent = half_width * 100.0;
            let time = humantime::format_duration(time.into());
            let _ = writeln!(
                text,
                "  then more of the pairs whose interval is wider than +-{percent} %, up to {time} in all"
            );
        }
        for (path, cells) in impaired_paths(suite) {
            let _ = writeln!(text, "  path of {}: {path}", counted(cells as u64, "cell"));
        }
        for (reason, cells) in left_out(suite) {
            let more = cells.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let named = cells[..cells.len().min(NAMED)].join(", ");
            let _ = writeln!(text, "  left out: {reason}: {named}{more}");
        }
        let mut last = None;
        for step in of_suite {
            if last.replace((step.round, step.warmup)) != Some((step.round, step.warmup)) {
                let kind = if step.warmup { "warm-up round" } else { "round" };
                let _ = writeln!(text, "  {kind} {}", step.round);
            }
            let time = match seconds_or_guess(run, timings, step) {
                Ok(seconds) => format!("{seconds:.2} s"),
                Err(guess) => format!("~{guess:.0} s"),
            };
            let _ = writeln!(text, "    {:40} {time:>8}", step.sides.id(suite));
        }
    }
    let [rounds, most] = seconds_in_all(run, timings, &steps);
    let further = match most > rounds {
        true => format!(", up to {} with more pairs", time(most)),
        false => String::new(),
    };
    let cells = |is_meant: &dyn Fn(&&Step) -> bool| {
        let trials = steps.iter().filter(|step| step.sides.is_one()).filter(is_meant);
        trials.map(|step| (step.suite, step.sides)).collect::<BTreeSet<_>>().len()
    };
    let unknown = match cells(&|step| seconds_or_guess(run, timings, step).is_err()) {
        0 => String::new(),
        some => format!("; ~: {some} of {} cells have none, so their time is a guess", cells(&|_| true)),
    };
    let _ = writeln!(
        text,
        "time: {} ({rounds:.0} s){further}, by earlier trials on this machine{unknown}",
        time(rounds)
    );
    text
}

fn time(seconds: f64) -> impl Display {
    humantime::format_duration(Duration::from_secs(seconds.round() as u64))
}

/// Cells that are left out, by their reasons, in the suite's order.
fn left_out(suite: &PlannedSuite) -> Vec<(String, Vec<&str>)> {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for cell in suite.cells.iter().filter(|cell| cell.absent.is_some()) {
        let reason = outcome_text(cell.absent.as_ref());
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, cells)) => cells.push(&cell.id),
            None => reasons.push((reason, vec![&cell.id])),
        }
    }
    reasons
}

/// Each with the number of its cells, in the suite's order.
fn impaired_paths(suite: &PlannedSuite) -> Vec<(String, usize)> {
    let mut paths: Vec<(String, usize)> = Vec::new();
    for cell in suite.cells.iter().filter(|cell| cell.path.is_impaired()) {
        let text = cell.path.to_string();
        match paths.iter_mut().find(|(known, _)| *known == text) {
            Some((_, cells)) => *cells += 1,
            None => paths.push((text, 1)),
        }
    }
    paths
}

/// The systems that a run would build before its first trial.
fn builds(systems: &BTreeSet<String>) -> String {
    if systems.is_empty() {
        return String::new();
    }
    let systems: Vec<&str> = systems.iter().map(String::as_str).collect();
    format!(
        "to be built first, by `linerate run` or `linerate systems --install {}`: {}\n",
        systems.join(" "),
        systems.join(", ")
    )
}
