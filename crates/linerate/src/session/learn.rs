//! Servers are learned before their first unit; the same start gives their first measurements.

use super::Session;
use crate::error::Error;
use crate::lab::pair::{Pair, on_both};
use crate::lab::{LabError, Written};
use crate::measurement::{DEFAULT_BUILD, PlannedSuite, Sharing, Stage, Unit};
use crate::subject::{self, Learner, Servers};
use crate::system::VERIFIER;
use crate::trial::Context;
use crate::trial::running::RunningPair;
use linerate_contract::Role;

/// The events of learning.
#[derive(Default)]
pub(super) struct First {
    /// The first measurements.
    pub(super) units: Vec<Unit>,
    /// First lines of the servers on stderr.
    pub(super) written: Vec<Written>,
}

impl Session {
    /// Learns what is not known yet of the servers of a comparison.
    ///
    /// # Errors
    /// A command does not serve, or answers otherwise than the baseline.
    pub(super) fn learn(&mut self, suite: &PlannedSuite) -> Result<First, Error> {
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
