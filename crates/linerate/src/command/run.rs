//! `linerate run`.

use super::{Chosen, Terminal, choose, load_script, print, remark};
use crate::budget::MOST_ROUNDS;
use crate::cli::{RunArgs, Selection};
use crate::error::Error;
use crate::interrupt;
use crate::journal::{self, Journal, Stored};
use crate::lab::namespaces::Namespaces;
use crate::lab::{Lab, LabError};
use crate::measurement::{Outcome, RUN_SCHEMA, Run, Trial};
use crate::plan;
use crate::progress::Progress;
use crate::report::{self, Format};
use crate::run::End;
use crate::system::build::Permission;
use crate::timings::Timings;
use crate::trial::Context;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

/// Measures and reports.
///
/// # Errors
/// Bad input, or nothing could be measured; what was measured before is in the journal and reported.
pub fn run(args: &RunArgs, script: Option<&Path>, terminal: Terminal) -> Result<ExitCode, Error> {
    let script = load_script(script)?;
    let resumed =
        args.resume.as_ref().filter(|folder| journal::is_run(folder) || args.selection.suites.is_empty());
    let stored = resumed.map(|folder| journal::read(folder)).transpose()?;
    let folder = args.resume.clone().or_else(|| args.out.clone()).unwrap_or_else(default_folder);
    if stored.is_none() {
        journal::check_vacant(&folder)?;
    }
    let selection = match &stored {
        Some(stored) => stored_selection(&stored.run),
        None => args.selection.clone(),
    };
    let chosen = choose(&selection, script.as_ref(), Permission::Build(&remark))?;
    let interrupted = interrupt::watch();
    let mut lab: Box<dyn Lab> = match script {
        Some(script) => Box::new(script),
        None => Box::new(Namespaces::raise(interrupted).map_err(lost)?),
    };
    let (run, mut trials, mut journal) = match stored {
        Some(stored) => go_on(&folder, stored, &chosen)?,
        None => start(&folder, args, &chosen, lab.as_ref())?,
    };
    let mut timings = Timings::load();
    let steps = plan::order(&run).len() as u64;
    let mut progress = Progress::new(steps, trials.len() as u64, args.quiet);
    let cpus = lab.cpus();
    let context = Context { registry: &chosen.registry, programs: &chosen.programs, cpus: &cpus };
    let end =
        crate::run::run(lab.as_mut(), context, &run, &mut trials, &mut journal, &mut timings, &mut progress);
    progress.finish();
    drop(lab);
    timings.save();
    // Also after an error: what was measured is reported, then the error is told.
    if !trials.is_empty() || end.is_ok() {
        tell(&folder, &run, &trials, terminal)?;
    }
    Ok(match end? {
        End::Interrupted => {
            remark(&format!("interrupted; go on with: linerate run --resume {}", folder.display()));
            ExitCode::from(130)
        }
        End::Complete if trials.iter().any(|trial| trial.outcome == Outcome::Ok) => ExitCode::SUCCESS,
        End::Complete => {
            return Err(Error::NothingMeasured("nothing could be measured: see the report".into()));
        }
    })
}

fn start(
    folder: &Path,
    args: &RunArgs,
    chosen: &Chosen,
    lab: &dyn Lab,
) -> Result<(Run, Vec<Trial>, Journal), Error> {
    let seed = args.selection.seed.unwrap_or_else(fresh_seed);
    let mut suites = chosen.suites.clone();
    if args.budget.is_some() {
        suites.iter_mut().for_each(|suite| suite.rounds = MOST_ROUNDS);
    }
    let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let run = Run {
        schema: RUN_SCHEMA.into(),
        id: format!("{}-{:04x}", started.replace([':', '-'], ""), seed & 0xffff),
        command: command_line(args, seed),
        seed,
        rounds: suites.iter().map(|suite| suite.rounds).max().unwrap_or(0),
        quick: args.selection.quick,
        budget: args.budget.map(Into::into),
        started,
        linerate: env!("CARGO_PKG_VERSION").into(),
        host: lab.host(),
        suites,
    };
    let journal = journal::create(folder, &run)?;
    Ok((run, Vec::new(), journal))
}

/// A run that was cut off goes on only with the cells and versions that it began with.
fn go_on(folder: &Path, stored: Stored, chosen: &Chosen) -> Result<(Run, Vec<Trial>, Journal), Error> {
    let Stored { run, trials, warnings } = stored;
    warnings.iter().for_each(|warning| remark(&format!("warning: {warning}")));
    for suite in &run.suites {
        let now = chosen.suites.iter().find(|s| s.name == suite.name);
        for cell in &suite.cells {
            let same =
                now.and_then(|now| now.cells.iter().find(|c| c.id == cell.id)).is_some_and(|now| now == cell);
            if !same {
                return Err(Error::Input(format!(
                    "{}: `{}` is no longer what it was when this run began (its suite, a system or a version has changed): start a new run",
                    folder.display(),
                    cell.id
                )));
            }
        }
    }
    let journal = journal::open(folder)?;
    Ok((run, trials, journal))
}

/// Writes the report files, prints the tables, says where everything is.
fn tell(folder: &Path, run: &Run, trials: &[Trial], terminal: Terminal) -> Result<(), Error> {
    let report = report::build(run, trials);
    super::report::write_files(folder, &report)?;
    print(&report::render(&report, Format::Terminal, terminal.style))?;
    remark(&format!("report: {}/report.md (also .html, .json, .csv)", folder.display()));
    Ok(())
}

fn lost(error: LabError) -> Error {
    Error::NothingMeasured(format!("{error}\n`linerate doctor` tells more"))
}

fn default_folder() -> PathBuf {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    Path::new("results").join(now.replace(':', "").trim_end_matches('Z'))
}

fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.as_nanos() as u64 & u64::from(u32::MAX)
}

/// The command that makes the run again, with the seed that this one drew.
fn command_line(args: &RunArgs, seed: u64) -> String {
    let mut words = vec!["linerate run".to_owned()];
    words.extend(args.selection.suites.iter().cloned());
    words.extend(args.selection.quick.then(|| "--quick".into()));
    words.extend(args.selection.rounds.map(|rounds| format!("--rounds {rounds}")));
    words.extend(args.budget.map(|budget| {
        format!("--budget {}", humantime::format_duration(budget).to_string().replace(' ', ""))
    }));
    words.extend(args.selection.only.iter().map(|glob| format!("--only '{glob}'")));
    words.push(format!("--seed {seed}"));
    words.join(" ")
}

/// The selection that gives at least the cells of a stored run.
fn stored_selection(run: &Run) -> Selection {
    Selection {
        suites: run.suites.iter().map(|suite| suite.name.clone()).collect(),
        quick: run.quick,
        rounds: None,
        only: Vec::new(),
        seed: Some(run.seed),
    }
}
