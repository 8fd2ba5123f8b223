//! The systems of a suite, just before its first trial: installed on request, built, and their versions read.
//! Servers are learned then; the same start gives their first measurements.

use super::{Session, arms, stored};
use crate::error::Error;
use crate::lab::pair::{Pair, on_both};
use crate::lab::{LabError, Written};
use crate::measurement::{DEFAULT_BUILD, Outcome, PlannedSuite, Sharing, Stage, Unit};
use crate::output::note;
use crate::placement;
use crate::programs::elsewhere;
use crate::programs::{self, Machine};
use crate::subject::{self, Learner, Servers};
use crate::system::VERIFIER;
use crate::system::build::Permission;
use crate::system::install;
use crate::trial::Context;
use crate::trial::running::RunningPair;
use linerate_contract::{Layer, Role};
use std::collections::{BTreeMap, BTreeSet};

/// The events of learning.
#[derive(Default)]
struct First {
    /// The first measurements.
    units: Vec<Unit>,
    /// First lines of the servers on stderr.
    written: Vec<Written>,
}

impl Session {
    /// Prepares a suite for its first trial.
    ///
    /// # Errors
    /// The user stopped a build, `run.json` cannot be written, a system is not the one that the run began
    /// with, or an arm of a comparison cannot be built.
    pub(super) fn prepare(&mut self, suite: usize) -> Result<(), Error> {
        self.progress.stage(&self.run.suites[suite], "preparing");
        let mut replacements = BTreeMap::new();
        if let Some(comparison) = &mut self.run.comparison {
            replacements = arms::replacements(comparison, note)?;
            if let Some(servers) = self.servers.as_mut().filter(|_| self.script.is_none()) {
                servers.move_to(arms::trees(comparison, note)?);
            }
        }
        let planned = &self.run.suites[suite];
        if self.install && self.script.is_none() {
            let variants: BTreeSet<String> = planned
                .cells
                .iter()
                .flat_map(|cell| &cell.systems)
                .map(|system| system.name.clone())
                .collect();
            let packages = install::packages(&self.registry, &variants.into_iter().collect::<Vec<_>>());
            // Without rights, or on another distribution, the run goes on with the systems that are there.
            if let Err(error) = install::install(&packages, note) {
                note(&format!("linerate: {error}"));
            }
        }
        let mut now = planned.clone();
        let elsewhere = elsewhere::presences(self.lab.as_ref(), planned)?;
        let mut machine = Machine::new(Permission::Build(&note), self.script.as_ref())
            .with(replacements, self.lab.as_mut())
            .with_hosts(elsewhere, !self.run.hosts.is_empty());
        programs::resolve(&mut now, &self.registry, &mut self.programs, &mut machine);
        machine.check()?;
        if let Some(host) = placement::served(&self.run.hosts) {
            self.servers = Some(subject::served(host)?);
            for cell in now.cells.iter_mut().filter(|cell| cell.layer != Layer::Http) {
                let reason = format!("{} is a server of HTTP", host.place);
                cell.absent = Some(Outcome::Unsupported { reason });
            }
        }
        let first = self.learn(&now)?;
        arms::check_different(&now, &self.programs)?;
        self.find_capacities(suite, &mut now)?;
        if let Some(folder) = self.folder().filter(|_| self.has_trials(suite)) {
            stored::check_same(folder, &self.run.suites[suite], Some(&now))?;
        }
        self.run.suites[suite] = now;
        self.journal.plan(&self.run)?;
        first.units.into_iter().try_for_each(|unit| self.keep(unit))?;
        self.keep_written(suite, 0, first.written)
    }

    /// Learns what is not known yet of the servers of a comparison.
    ///
    /// # Errors
    /// A command does not serve, or answers otherwise than the baseline.
    fn learn(&mut self, suite: &PlannedSuite) -> Result<First, Error> {
        let planned = self.run.servers();
        let (Some(planned), Some(servers)) = (planned, &mut self.servers) else {
            return Ok(First::default());
        };
        if self.script.is_none() {
            self.tethers.extend(subject::set_up(planned, &self.interrupted)?);
        }
        servers.read_companions()?;
        if servers.awaits_upstream() {
            subject::find_upstream(self.lab.as_mut(), servers)?;
        }
        servers.read_lines()?;
        if servers.learned.is_complete() || self.script.is_some() {
            return Ok(First::default());
        }
        self.progress.stage(suite, "warming up");
        let first = self.learn_pairs(suite);
        self.run.learned = self.servers.as_ref().map(|servers| servers.learned.clone()).unwrap_or_default();
        first
    }

    /// Each server beside the baseline.
    fn learn_pairs(&mut self, suite: &PlannedSuite) -> Result<First, Error> {
        let can_share = self.can_share();
        let Self { registry, programs, servers, lab, second, run, .. } = self;
        let (Some(second), Some(servers)) = (second, servers) else {
            return Err(Error::Input("servers are measured in pairs".into()));
        };
        let cpus = lab.cpus();
        let sharing = if can_share { Sharing::Together } else { Sharing::Turns };
        let client = programs.command_line(Role::Client, VERIFIER, DEFAULT_BUILD).cloned();
        let client =
            client.ok_or_else(|| Error::NothingMeasured("linerate-load is not beside linerate".into()))?;
        let mut learner = Learner::new(&cpus, client, servers, run.budget);
        let mut all = First::default();
        for command in 1..suite.cells.len() {
            let [a, b]: Pair<'_> = [lab.as_mut(), second.as_mut()];
            let measured = match learner.pair([&mut *a, &mut *b], servers, command) {
                // An open loop has its own way to share the CPUs, and its rate may not be known before.
                Ok(stages) if suite.cells[command].parameters.rate.is_none() => {
                    let pair = RunningPair {
                        suite,
                        cells: [command, 0],
                        alone: if command == 1 { &[0, 1] } else { &[0] },
                        budget: run.budget,
                        least: servers.learned.least_window(),
                        sharing,
                        seed: run.seed,
                    };
                    let (cpus, servers) = (&cpus[..], Some(&*servers));
                    let context = Context { registry, programs, cpus, hosts: &run.hosts, servers };
                    pair.measure([&mut *a, &mut *b], context, stages).map_err(Error::from)
                }
                learned => learned.map(|_| Vec::new()),
            };
            all.written.extend([a.written(), b.written()].concat());
            let begin = a.now();
            let stopped = on_both([&mut *a, &mut *b], false, |lab, _| lab.stop());
            let stop = a.now().since(begin);
            // Of two errors, the first one is the cause.
            let mut measured = measured?;
            stopped.into_iter().collect::<Result<(), LabError>>()?;
            if let Some(unit) = measured.last_mut() {
                unit.stages.insert(Stage::Stop, stop);
            }
            all.units.extend(measured);
        }
        Ok(all)
    }

    /// True if both sides of a unit may have the CPUs at the same time.
    pub(super) fn can_share(&self) -> bool {
        self.servers.as_ref().is_none_or(Servers::are_started_here) && self.lab.is_grouped()
    }
}
