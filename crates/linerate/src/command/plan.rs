//! `linerate plan`.

use super::print;
use crate::cli::PlanArgs;
use crate::error::Error;
use crate::interrupt;
use crate::lab::namespaces::Namespaces;
use crate::lab::scripted::Scripted;
use crate::lab::{Lab, LabError};
use crate::measurement::{PlannedSuite, PlannedSystem, Precision, RUN_SCHEMA, Run};
use crate::plan::{self, Choice, Step};
use crate::programs::{self, Machine, Programs};
use crate::progress::{Progress, note};
use crate::report::numbers::counted;
use crate::report::outcome_text;
use crate::session::{seconds, seconds_in_all};
use crate::system::Registry;
use crate::system::build::Permission;
use crate::timings::Timings;
use crate::trial::{self, Context};
use crate::{home, suite};
use std::collections::BTreeSet;
use std::fmt::{Display, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Operations of a trial that only estimates durations.
const TRIAL_OPERATIONS: u64 = 500;
/// The same of one that moves bytes.
const TRIAL_BYTES: u64 = 1 << 22;
/// The same of one that lasts for a time.
const TRIAL_SECONDS: u64 = 1;

/// Prints the order of trials and the time they take.
///
/// # Errors
/// Bad input, or the lab cannot be raised for the trials that estimate durations.
pub fn plan(args: &PlanArgs, script: Option<&Path>) -> Result<ExitCode, Error> {
    let script = programs::script(script)?;
    let chosen = choose(args, script.as_ref())?;
    let run = run_of(&chosen.suites, args);
    let mut timings = Timings::load();
    if !args.no_trial {
        let raise = || -> Result<Box<dyn Lab>, LabError> {
            Ok(match script {
                Some(script) => Box::new(script),
                None => Box::new(Namespaces::raise(interrupt::watch())?),
            })
        };
        try_unknown_cells(&run, &chosen, &mut timings, raise)?;
    }
    print(&(describe(&run, &timings) + &builds(&chosen.to_build)))
}

/// The chosen suites, with the systems that are here; nothing is built.
struct ChosenSuites {
    registry: Registry,
    suites: Vec<PlannedSuite>,
    programs: Programs,
    /// Systems that a run would build.
    to_build: BTreeSet<String>,
}

fn choose(args: &PlanArgs, script: Option<&Scripted>) -> Result<ChosenSuites, Error> {
    let home = home::find()?;
    let registry = Registry::load(&home)?;
    let chosen = suite::choose(suite::load_all(&home)?, &args.selection.suites)?;
    let mut suites = plan::suites(&chosen, &registry, &Choice::from(&args.selection))?;
    let mut programs = Programs::default();
    let mut machine = Machine::new(Permission::Later, script);
    for suite in &mut suites {
        programs::resolve(suite, &registry, &mut programs, &mut machine);
    }
    Ok(ChosenSuites { registry, suites, programs, to_build: machine.to_build() })
}

fn run_of(suites: &[PlannedSuite], args: &PlanArgs) -> Run {
    Run {
        schema: RUN_SCHEMA.into(),
        seed: args.selection.seed.unwrap_or(0),
        rounds: suites.iter().map(|suite| suite.rounds).max().unwrap_or(0),
        quick: args.selection.quick,
        published: args.selection.published,
        linerate: env!("CARGO_PKG_VERSION").into(),
        suites: suites.to_vec(),
        ..Run::default()
    }
}

/// Makes one short trial of each cell whose time is not known and whose systems are here.
fn try_unknown_cells(
    run: &Run,
    chosen: &ChosenSuites,
    timings: &mut Timings,
    raise: impl FnOnce() -> Result<Box<dyn Lab>, LabError>,
) -> Result<(), Error> {
    let mut steps = plan::order(run);
    let is_here = |system: &PlannedSystem| {
        let variant = chosen.registry.variant(&system.name, system.role);
        variant.is_ok_and(|variant| !chosen.to_build.contains(&variant.system.name))
    };
    steps.retain(|step| {
        if step.against.is_some() {
            return false;
        }
        let suite = &run.suites[step.suite];
        timings.seconds(suite, step.cell).is_none() && suite.cells[step.cell].systems.iter().all(is_here)
    });
    steps.sort_by_key(|step| (step.suite, step.cell));
    steps.dedup_by_key(|step| (step.suite, step.cell));
    if steps.is_empty() {
        return Ok(());
    }
    let lost = |error: LabError| match error {
        LabError::Interrupted => Error::Interrupted,
        other => Error::NothingMeasured(format!("{other}; `--no-trial` plans without a lab")),
    };
    note(&format!("running {} once to estimate durations", counted(steps.len() as u64, "cell")));
    let mut short = run.suites.clone();
    for cell in short.iter_mut().flat_map(|suite| &mut suite.cells) {
        let parameters = &mut cell.parameters;
        parameters.operations = parameters.operations.map(|n| n.min(TRIAL_OPERATIONS));
        parameters.bytes = parameters.bytes.map(|n| n.min(TRIAL_BYTES));
        parameters.seconds = parameters.seconds.map(|n| n.min(TRIAL_SECONDS));
    }
    let mut lab = raise().map_err(lost)?;
    let cpus = lab.cpus();
    let context = Context { registry: &chosen.registry, programs: &chosen.programs, cpus: &cpus, hosts: &[] };
    let mut progress = Progress::new(steps.len() as u64, 0, false);
    for step in &steps {
        progress.next(step, &short[step.suite], None);
        timings.update(&trial::run(lab.as_mut(), context, &short[step.suite], step).map_err(lost)?);
        progress.done();
    }
    progress.finish();
    timings.save();
    Ok(())
}

fn describe(run: &Run, timings: &Timings) -> String {
    let steps = plan::order(run);
    let mut text = String::new();
    for (index, suite) in run.suites.iter().enumerate() {
        let of_suite: Vec<&Step> = steps.iter().filter(|step| step.suite == index).collect();
        let cells = counted(suite.cells.len() as u64, "cell");
        let rounds = counted(suite.rounds, "round");
        let warmup = suite.warmup_rounds;
        let duets = of_suite.iter().filter(|step| step.against.is_some()).count();
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
                "  then more units of pairs whose interval is wider than +-{percent} %, up to {time} in all"
            );
        }
        for (path, cells) in impaired_paths(suite) {
            let _ = writeln!(text, "  path of {}: {path}", counted(cells as u64, "cell"));
        }
        for cell in suite.cells.iter().filter(|cell| cell.absent.is_some()) {
            let _ = writeln!(text, "  left out: {}: {}", cell.id, outcome_text(cell.absent.as_ref()));
        }
        let mut last = None;
        for step in of_suite {
            if last.replace((step.round, step.warmup)) != Some((step.round, step.warmup)) {
                let kind = if step.warmup { "warm-up round" } else { "round" };
                let _ = writeln!(text, "  {kind} {}", step.round);
            }
            let time = seconds(run, timings, std::slice::from_ref(step));
            let time = time.map_or_else(|| "?".to_owned(), |seconds| format!("{seconds:.2} s"));
            let _ = writeln!(text, "    {:40} {time:>8}", step.id);
        }
    }
    let total = seconds_in_all(run, timings, &steps);
    let total = total.map_or_else(
        || "time: not known before every cell has been tried once".to_owned(),
        |[rounds, most]| {
            let further = match most > rounds {
                true => format!(", up to {} with more units", time(most)),
                false => String::new(),
            };
            format!("time: {} ({rounds:.0} s){further}, by earlier trials on this machine", time(rounds))
        },
    );
    let _ = writeln!(text, "{total}");
    text
}

fn time(seconds: f64) -> impl Display {
    humantime::format_duration(Duration::from_secs(seconds.round() as u64))
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
