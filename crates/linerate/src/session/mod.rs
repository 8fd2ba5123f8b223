//! A run: open, measure.
//!
//! [`Session::open`] makes the plan and raises the lab. [`Session::measure`] takes suite by suite: it
//! prepares the systems, makes every trial, and appends each to the journal before the next; the first one
//! makes the folder. `--resume` opens a stored session and goes on. The caller makes the reports.

mod arms;
mod capacity;
#[cfg(any(test, fuzzing))]
mod fuzz;
mod measure;
mod remarks;
mod sharing;
mod stored;
mod times;
mod why;
mod written;

#[cfg(any(test, fuzzing))]
pub use fuzz::fuzz_stored;
pub use stored::again;
pub use times::{seconds_in_all, seconds_or_guess};
pub use why::Why;

use crate::error::Error;
use crate::home;
use crate::interrupt;
use crate::journal::{self, Journal};
use crate::lab::scripted::Scripted;
use crate::lab::{Lab, LabError, Site};
use crate::measurement::journal::Journal as Units;
use crate::measurement::{
    Learned, Place, PlannedComparison, PlannedSuite, Profile, RUN_SCHEMA, Run, Stored, Unit,
};
use crate::placement::{self, RolePlace};
use crate::plan::{self, Choice};
use crate::programs::{self, Programs};
use crate::progress::Progress;
use crate::stopping::{Made, Prospect, first_rounds};
use crate::subject::{self, Servers, Tether};
use crate::suite;
use crate::system::Registry;
use crate::timings::Timings;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

/// A new run, or one to go on with.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// With a comparison of two builds, its rounds end by its own rule.
    pub choice: Choice,
    /// As text: the command line that makes the run again.
    pub command: String,
    pub seed: u64,
    /// After the first rounds, units are made of what is open, until this time is used.
    pub budget: Option<Duration>,
    pub hosts: HostRequest,
    /// The folder of a new run; `None`: named after its start.
    pub out: Option<PathBuf>,
    /// The folder of a run to go on with.
    pub resume: Option<PathBuf>,
    /// The user says nothing about builds and servers, so a run that goes on has those of its own plan, if
    /// these are linerate's.
    pub is_bare: bool,
    /// Missing packages of systems are installed first.
    pub install: bool,
    /// Without progress.
    pub quiet: bool,
    /// Whether profiles say where a difference comes from.
    pub why: Why,
}

/// Roles on machines of their own; none: all on this one, in a lab.
#[derive(Debug, Clone, Default)]
pub struct HostRequest {
    pub places: Vec<RolePlace>,
    /// Where servers run that linerate does not start, by name: `--host NAME=WHERE`.
    pub servers: Vec<(String, Place)>,
    /// Addresses, CPUs and ssh options of the machines.
    pub file: Option<PathBuf>,
    /// The path is the real network.
    pub network: bool,
}

/// A seed for a run whose user gives none.
pub fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.as_nanos() as u64 & u64::from(u32::MAX)
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Complete,
    Interrupted,
}

/// The news of a run that goes on.
#[derive(Debug)]
pub enum Event {
    /// Before the units of a comparison, and once more after the first of them.
    Prospect(Prospect),
    /// All of a suite is measured, or as much as there was when the run was interrupted; with the profiles of
    /// the run so far.
    Suite(Box<Stored>, Profile),
}

/// A run that is going on.
#[allow(missing_debug_implementations, reason = "a lab has none")]
pub struct Session {
    registry: Registry,
    /// Source of the systems' presence in tests; `None`: the machine.
    script: Option<Scripted>,
    programs: Programs,
    /// Servers of the user's own.
    servers: Option<Servers>,
    lab: Box<dyn Lab>,
    /// The second lab of a duet, where the run has duets.
    second: Option<Box<dyn Lab>>,
    run: Run,
    made: Units,
    journal: Journal,
    timings: Timings,
    progress: Progress,
    install: bool,
    /// Set by a signal.
    interrupted: Arc<AtomicBool>,
    /// Processes that setups have left in the background end with these.
    tethers: Vec<Tether>,
    why: Why,
    profile: Profile,
}

impl Session {
    /// Plans a new run, which may be a comparison of builds, or opens a stored one, and raises the lab.
    ///
    /// # Errors
    /// Bad input, a folder that cannot be used, or a kernel that refuses the lab.
    pub fn open(request: &Request, script: Option<&Path>) -> Result<Self, Error> {
        let resumed = request
            .resume
            .as_ref()
            .filter(|folder| journal::is_run(folder) || request.choice.suites.is_empty());
        let stored = resumed.map(|folder| journal::read(folder)).transpose()?;
        let out = request.resume.as_ref().or(request.out.as_ref());
        if stored.is_none() {
            journal::check(out.map(PathBuf::as_path))?;
        }
        let home = home::find()?;
        let registry = Registry::load(&home)?;
        let hosts = placement::hosts(&request.hosts.places, request.hosts.file.as_deref())?;
        let choice = match (resumed, &stored) {
            (Some(folder), Some(stored)) => {
                stored::check_executed(folder, &stored.run, request, &hosts)?;
                stored::choice(&stored.run, &request.choice.suites)
            }
            _ => request.choice.clone(),
        };
        let comparison = choice.comparison.as_ref();
        let servers = comparison.and_then(PlannedComparison::servers);
        let mut command = request.command.clone();
        let (registry, mut suites) = match servers {
            Some(servers) => (registry.of_client(), vec![plan::suite_of_servers(servers)]),
            None => {
                let chosen = suite::choose(suite::load_all(&home)?, &choice.suites)?;
                let suites = plan::suites(&chosen, &registry, &choice)?;
                let of_project = chosen.iter().filter(|suite| !suite.path.starts_with(&home));
                command = in_project(command, of_project.map(|suite| suite.name.as_str()));
                (registry, suites)
            }
        };
        if !hosts.is_empty() {
            if choice.probe {
                return Err(Error::Input("--probe needs all roles on one host: leave out --host".into()));
            }
            placement::without_duets(&mut suites);
            placement::with_captions(&mut suites, &hosts);
        }
        let site = placement::site(&hosts, comparison, request.hosts.file.as_deref())?;
        let interrupted = interrupt::watch();
        let raise = || -> Result<Box<dyn Lab>, Error> {
            match programs::script(script)? {
                Some(script) => Ok(Box::new(script)),
                None => site.raise(&home, interrupted.clone()).map_err(|error| lab_is_lost(&site, &error)),
            }
        };
        let lab = raise()?;
        let second = suites.iter().any(has_duets).then(raise).transpose()?;
        let (run, made, journal) = match (resumed, stored) {
            (Some(folder), Some(stored)) => stored::open(folder, stored, suites, lab.hosts())?,
            _ => {
                let run = new_run(request, command, suites, lab.as_ref());
                let journal = Journal::new(out.cloned(), &run)?;
                (run, Units::default(), journal)
            }
        };
        let servers = run.servers();
        let servers = servers.map(|(subjects, load)| Servers::new(subjects, load, run.learned.clone()));
        // A run that goes on keeps its own.
        let profile = journal.folder().and_then(journal::profile).unwrap_or_default();
        let progress = Progress::new(&run, made.units.len() as u64, request.quiet);
        Ok(Self {
            registry,
            script: programs::script(script)?,
            programs: Programs::default(),
            servers,
            lab,
            second,
            run,
            made,
            journal,
            timings: Timings::load(),
            progress,
            install: request.install,
            interrupted,
            tethers: Vec::new(),
            why: request.why,
            profile,
        })
    }

    /// Prepares and measures each suite. `on` gets the trials of a suite when all are made, or when the
    /// run is interrupted in it, and before that when its rounds are made and much time is left.
    ///
    /// # Errors
    /// The journal cannot be written, or the lab is lost. Trials that were made are in the journal.
    pub fn measure(&mut self, on: &mut dyn FnMut(Event)) -> Result<End, Error> {
        let on = &mut self.progress.without_bar(on);
        let mut end = Ok(End::Complete);
        for suite in 0..self.run.suites.len() {
            let rounds = self.prepare(suite).and_then(|()| self.measure_suite(suite, on));
            let units = rounds.and_then(|()| self.go_on(suite, on));
            end = match units.and_then(|()| self.explain(suite)) {
                Ok(()) => Ok(End::Complete),
                Err(Error::Interrupted) => Ok(End::Interrupted),
                Err(error) => Err(error),
            };
            if self.has_trials(suite) || matches!(end, Ok(End::Complete)) {
                on(Event::Suite(Box::new(self.part(suite)), self.profile.clone()));
            }
            if !matches!(end, Ok(End::Complete)) {
                break;
            }
        }
        self.progress.finish();
        self.timings.save();
        end
    }

    /// Runs the cleanups of compared servers, also after a run that failed.
    ///
    /// # Errors
    /// The first that failed; all are tried.
    pub fn clean_up(&self) -> Result<(), Error> {
        match self.run.servers() {
            Some(servers) if self.script.is_none() => subject::clean_up(servers),
            _ => Ok(()),
        }
    }

    /// The folder of the run; `None`: nothing was measured.
    pub fn folder(&self) -> Option<&Path> {
        self.journal.folder()
    }

    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The content of the run's journal so far.
    pub fn made(&self) -> &Units {
        &self.made
    }

    /// The profiles of the run so far.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    fn questions(&self) -> Made<'_> {
        Made { run: &self.run, units: &self.made.units }
    }

    fn has_trials(&self, suite: usize) -> bool {
        self.made.units.iter().any(|unit| unit.suite == suite && unit.sides.is_one())
    }

    /// A suite of the run by itself.
    fn part(&self, suite: usize) -> Stored {
        let units = self.made.units.iter().filter(|unit| unit.suite == suite);
        let units = units.map(|unit| Unit { suite: 0, ..unit.clone() }).collect();
        let suites = vec![self.run.suites[suite].clone()];
        Stored { journal: Units { units, ..Units::default() }, run: Run { suites, ..self.run.clone() } }
    }
}

/// A command, and where it works: suites of a project are found in its folder alone.
fn in_project<'a>(command: String, suites: impl Iterator<Item = &'a str>) -> String {
    let files: Vec<String> = suites.map(|name| format!("suites/{name}.toml")).collect();
    let mark = if command.contains(" # ") { ";" } else { " #" };
    if files.is_empty() {
        command
    } else {
        format!("{command}{mark} in the project with {}", files.join(", "))
    }
}

fn new_run(request: &Request, command: String, suites: Vec<PlannedSuite>, lab: &dyn Lab) -> Run {
    let seed = request.seed;
    let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let mut run = Run {
        schema: RUN_SCHEMA.into(),
        id: format!("{}-{:04x}", started.replace([':', '-'], ""), seed & 0xffff),
        command,
        seed,
        rounds: 0,
        quick: request.choice.quick,
        published: request.choice.published,
        all_rows: request.choice.is_complete(),
        budget: request.budget.map(Into::into),
        comparison: request.choice.comparison.clone(),
        learned: Learned::default(),
        started,
        linerate: env!("CARGO_PKG_VERSION").into(),
        host: lab.host(),
        hosts: lab.hosts(),
        suites,
    };
    if run.budget.is_some() {
        let rounds = first_rounds(&run);
        run.suites.iter_mut().for_each(|suite| suite.rounds = rounds);
    }
    run.rounds = run.suites.iter().map(|suite| suite.rounds).max().unwrap_or(0);
    run
}

fn has_duets(suite: &PlannedSuite) -> bool {
    let is_probed = || suite.probes.iter().any(|probe| probe.no_probe.is_none());
    suite.pairs.iter().any(|pair| pair.no_duet.is_none()) || is_probed()
}

fn lab_is_lost(site: &Site, error: &LabError) -> Error {
    Error::NothingMeasured(match site {
        Site::Here(..) => format!("{error}\n`linerate doctor` shows what this machine lacks"),
        Site::Roles(_) | Site::Watched(_) => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::in_project;

    #[test]
    fn a_command_with_a_suite_of_a_project_says_where_it_works() {
        let command = || "linerate run equal --seed 7".to_owned();
        assert_eq!(in_project(command(), [].into_iter()), command());
        let told = "linerate run equal --seed 7 # in the project with suites/equal.toml";
        assert_eq!(in_project(command(), ["equal"].into_iter()), told);
    }
}
