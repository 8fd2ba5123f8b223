//! A run: open, measure, publish.
//!
//! [`Session::open`] makes the plan, raises the lab and creates the folder. [`Session::measure`] takes suite
//! by suite: it prepares the systems, makes every trial, and appends each to the journal before the next.
//! [`Session::publish`] writes the report files. `--resume` opens a stored session and goes on.

mod arms;
pub mod budget;
mod command;
mod measure;
mod prepare;
mod sequence;
mod stored;

pub use measure::seconds;

use crate::cli::{RunArgs, Selection};
use crate::error::Error;
use crate::home;
use crate::interrupt;
use crate::journal::{self, Journal};
use crate::lab::hosts::Hosts;
use crate::lab::namespaces::Namespaces;
use crate::lab::scripted::Scripted;
use crate::lab::{Lab, LabError};
use crate::measurement::{Duet, PlannedComparison, PlannedSuite, RUN_SCHEMA, Run, Trial};
use crate::placement;
use crate::plan::{self, Choice};
use crate::programs::Programs;
use crate::progress::Progress;
use crate::report;
use crate::report::model::Report;
use crate::subject;
use crate::suite;
use crate::system::Registry;
use crate::timings::Timings;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Complete,
    Interrupted,
}

/// How much of a suite is measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Extent {
    /// Its rounds. Units that make intervals narrow follow, for up to this many seconds.
    Rounds { left: f64 },
    /// All, or as much as there was when the run was interrupted.
    All,
}

/// Tables are shown after the rounds if the rest takes longer than this, in seconds: in the first suite, when
/// there is nothing to read yet, and in later ones.
const WAIT: [f64; 2] = [30.0, 300.0];

/// A run that is going on.
#[allow(missing_debug_implementations, reason = "a lab has none")]
pub struct Session {
    registry: Registry,
    /// Source of the systems' presence in tests; `None`: the machine.
    script: Option<Scripted>,
    programs: Programs,
    lab: Box<dyn Lab>,
    /// The second lab of a duet, where the run has duets.
    second: Option<Box<dyn Lab>>,
    run: Run,
    trials: Vec<Trial>,
    duets: Vec<Duet>,
    journal: Journal,
    timings: Timings,
    progress: Progress,
    folder: PathBuf,
    install: bool,
    /// A build is compared with itself, to calibrate.
    allows_equal_arms: bool,
}

impl Session {
    /// Plans a new run, which may be a comparison of builds, or opens a stored one, and raises the lab.
    ///
    /// # Errors
    /// Bad input, a folder that cannot be used, or a kernel that refuses the lab.
    pub fn open(
        args: &RunArgs,
        comparison: Option<PlannedComparison>,
        script: Option<&Path>,
    ) -> Result<Self, Error> {
        let resumed =
            args.resume.as_ref().filter(|folder| journal::is_run(folder) || args.selection.suites.is_empty());
        let stored = resumed.map(|folder| journal::read(folder)).transpose()?;
        let folder = args.resume.clone().or_else(|| args.out.clone()).unwrap_or_else(default_folder);
        if stored.is_none() {
            journal::check_vacant(&folder)?;
        }
        let comparison = stored.as_ref().map_or(comparison, |stored| stored.run.comparison.clone());
        let selection = stored.as_ref().map_or_else(|| args.selection.clone(), |s| stored::selection(&s.run));
        let home = home::find()?;
        let registry = Registry::load(&home)?;
        let (registry, mut suites) = match comparison.as_ref().and_then(|plan| plan.commands.as_ref()) {
            Some(commands) => (subject::registry(registry, commands), vec![subject::suite(commands)]),
            None => {
                let chosen = suite::choose(suite::load_all(&home)?, &selection.suites)?;
                let choice = Choice { comparison: comparison.clone(), ..Choice::from(&selection) };
                let suites = plan::suites(&chosen, &registry, &choice)?;
                (registry, suites)
            }
        };
        let hosts = match &stored {
            Some(stored) => stored.run.hosts.clone(),
            None => placement::hosts(&args.hosts.host, args.hosts.hosts.as_deref())?,
        };
        if !hosts.is_empty() {
            if selection.probe {
                return Err(Error::Input("--probe needs all roles on one host: leave out --host".into()));
            }
            placement::without_duets(&mut suites);
        }
        let load = || script.map(Scripted::load).transpose();
        let interrupted = interrupt::watch();
        let raise = || -> Result<Box<dyn Lab>, Error> {
            Ok(match load()? {
                Some(script) => Box::new(script),
                None if !hosts.is_empty() => Box::new(
                    Hosts::raise(hosts.clone(), &home, interrupted.clone())
                        .map_err(|error| Error::NothingMeasured(error.to_string()))?,
                ),
                None => Box::new(Namespaces::raise(interrupted.clone()).map_err(lab_is_lost)?),
            })
        };
        let lab = raise()?;
        let second = suites.iter().any(has_duets).then(raise).transpose()?;
        let (run, trials, duets, journal) = match stored {
            Some(stored) => stored::open(&folder, stored, suites)?,
            None => {
                let run = new_run(args, comparison, suites, lab.as_ref());
                let journal = journal::create(&folder, &run)?;
                (run, Vec::new(), Vec::new(), journal)
            }
        };
        let done = trials.len() + duets.len();
        // A comparison has one unit of each pair in a round: too little for a line in a log.
        let is_quiet = args.quiet || run.comparison.is_some() && !std::io::stderr().is_terminal();
        let progress = Progress::new(plan::order(&run).len() as u64, done as u64, is_quiet);
        Ok(Self {
            registry,
            script: load()?,
            programs: Programs::default(),
            lab,
            second,
            run,
            trials,
            duets,
            journal,
            timings: Timings::load(),
            progress,
            folder,
            install: args.install,
            allows_equal_arms: false,
        })
    }

    /// Lets both arms of a comparison be the same build.
    #[must_use]
    pub fn with_equal_arms(self) -> Self {
        Self { allows_equal_arms: true, ..self }
    }

    /// Prepares and measures each suite. `on_suite` gets the report of a suite when its trials are made, or
    /// when the run is interrupted in it, and before that when its rounds are made and much time is left.
    ///
    /// # Errors
    /// The journal cannot be written, or the lab is lost. Trials that were made are in the journal.
    pub fn measure(&mut self, on_suite: &mut dyn FnMut(&Report, Extent)) -> Result<End, Error> {
        let mut end = Ok(End::Complete);
        for suite in 0..self.run.suites.len() {
            let rounds = self.prepare(suite).and_then(|()| self.measure_suite(suite));
            let left = rounds.as_ref().map_or(0.0, |()| self.time_to_narrow(suite));
            if left > WAIT[suite.min(1)] {
                self.progress.suspend(|| on_suite(&self.report_of(suite), Extent::Rounds { left }));
            }
            end = match rounds.and_then(|()| self.narrow(suite)) {
                Ok(()) => Ok(End::Complete),
                Err(Error::Interrupted) => Ok(End::Interrupted),
                Err(error) => Err(error),
            };
            if self.has_trials(suite) || matches!(end, Ok(End::Complete)) {
                on_suite(&self.report_of(suite), Extent::All);
            }
            if !matches!(end, Ok(End::Complete)) {
                break;
            }
        }
        self.progress.finish();
        self.timings.save();
        end
    }

    /// Writes the report files; returns the folder.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn publish(&self) -> Result<&Path, Error> {
        report::write_files(&self.folder, &self.report())?;
        Ok(&self.folder)
    }

    /// The report of the run so far.
    #[must_use]
    pub fn report(&self) -> Report {
        report::build(&self.run, &self.trials, &self.duets)
    }

    /// Every trial of the run so far.
    #[must_use]
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    fn has_trials(&self, suite: usize) -> bool {
        self.trials.iter().any(|trial| trial.suite == self.run.suites[suite].name)
    }

    fn report_of(&self, suite: usize) -> Report {
        let suites = vec![self.run.suites[suite].clone()];
        let trials: Vec<Trial> =
            self.trials.iter().filter(|trial| trial.suite == suites[0].name).cloned().collect();
        let duets: Vec<Duet> =
            self.duets.iter().filter(|duet| duet.suite == suites[0].name).cloned().collect();
        report::build(&Run { suites, ..self.run.clone() }, &trials, &duets)
    }
}

impl From<&Selection> for Choice {
    fn from(selection: &Selection) -> Self {
        Self {
            quick: selection.quick,
            published: selection.published,
            rounds: selection.rounds,
            only: selection.only.clone(),
            probe: selection.probe,
            comparison: None,
        }
    }
}

fn new_run(
    args: &RunArgs,
    comparison: Option<PlannedComparison>,
    mut suites: Vec<PlannedSuite>,
    lab: &dyn Lab,
) -> Run {
    let seed = args.selection.seed.unwrap_or_else(fresh_seed);
    if args.budget.is_some() {
        for suite in &mut suites {
            (suite.rounds, suite.precision) = (budget::MOST_ROUNDS, None);
        }
    }
    let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    Run {
        schema: RUN_SCHEMA.into(),
        id: format!("{}-{:04x}", started.replace([':', '-'], ""), seed & 0xffff),
        command: command::line(args, comparison.as_ref(), seed),
        seed,
        rounds: suites.iter().map(|suite| suite.rounds).max().unwrap_or(0),
        quick: args.selection.quick,
        published: args.selection.published,
        budget: args.budget.map(Into::into),
        comparison,
        started,
        linerate: env!("CARGO_PKG_VERSION").into(),
        host: lab.host(),
        hosts: lab.hosts(),
        suites,
    }
}

fn has_duets(suite: &PlannedSuite) -> bool {
    let is_probed = || suite.probes.iter().any(|probe| probe.no_probe.is_none());
    suite.pairs.iter().any(|pair| pair.no_duet.is_none()) || is_probed()
}

fn lab_is_lost(error: LabError) -> Error {
    Error::NothingMeasured(format!("{error}\n`linerate doctor` shows what this machine lacks"))
}

fn default_folder() -> PathBuf {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    Path::new("results").join(now.replace(':', "").trim_end_matches('Z'))
}

fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.as_nanos() as u64 & u64::from(u32::MAX)
}
