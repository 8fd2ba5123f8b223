//! Commands are learned before their first unit; the same start gives their first measurements.

use super::Session;
use crate::error::Error;
use crate::lab::pair::{Pair, on_both};
use crate::lab::{CommandLine, LabError, Written};
use crate::measurement::{Entry, PlannedCell, PlannedCommands, PlannedSuite, Sharing, Stage};
use crate::subject::{self, Learner};
use crate::trial::Context;
use crate::trial::running::RunningPair;
use linerate_contract::Role;

/// Results of learning besides the plan.
#[derive(Default)]
pub(super) struct Learned {
    /// The first measurements.
    pub(super) entries: Vec<Entry>,
    /// First lines of the commands on stderr.
    pub(super) written: Vec<Written>,
}

impl Session {
    /// The suite of commands, with what is learned about them, and what came with that.
    ///
    /// # Errors
    /// A command does not serve, or answers otherwise than the baseline.
    pub(super) fn learn(
        &mut self,
        mut commands: PlannedCommands,
        now: PlannedSuite,
    ) -> Result<(PlannedSuite, Learned), Error> {
        if self.script.is_none() {
            subject::set_up(&commands)?;
        }
        self.programs.companions = subject::companions(&commands)?;
        self.programs.ports = commands.on_host.then(subject::free_ports).transpose()?;
        if commands.upstream.as_ref().is_some_and(|upstream| upstream.address.is_none()) {
            subject::find_upstream(self.lab.as_mut(), &self.programs, &mut commands)?;
        }
        let lines = subject::lines(&commands)?;
        self.insert(&subject::suite(&commands), &lines);
        let mut learned = Learned::default();
        if commands.commands.iter().any(|one| one.warmup.is_none()) && self.script.is_none() {
            self.programs.commands = Some(commands.clone());
            self.progress.stage(&now, "warming up");
            learned = self.learn_pairs(&mut commands, &lines)?;
        }
        let suite = subject::suite(&commands);
        let with_versions = suite.cells.into_iter().zip(now.cells).map(|(cell, now)| PlannedCell {
            systems: now.systems,
            absent: now.absent,
            ..cell
        });
        let cells = with_versions.collect();
        self.programs.commands = Some(commands.clone());
        if let Some(comparison) = &mut self.run.comparison {
            comparison.commands = Some(commands);
        }
        Ok((PlannedSuite { cells, rounds: now.rounds, ..suite }, learned))
    }

    /// The programs of the servers.
    fn insert(&mut self, suite: &PlannedSuite, lines: &[CommandLine]) {
        for (cell, line) in suite.cells.iter().zip(lines) {
            let servers = cell.systems.iter().filter(|system| system.role == Role::Server);
            servers.for_each(|server| {
                self.programs.insert(Role::Server, &server.name, &server.build, line.clone());
            });
        }
    }

    /// Each command beside the baseline.
    fn learn_pairs(
        &mut self,
        commands: &mut PlannedCommands,
        lines: &[CommandLine],
    ) -> Result<Learned, Error> {
        let Self { registry, programs, lab, second, run, .. } = self;
        let second = second.as_mut().ok_or_else(|| Error::Input("commands are measured in pairs".into()))?;
        let cpus = lab.cpus();
        let can_share = !programs.are_elsewhere() && lab.is_grouped();
        let sharing = if can_share { Sharing::Together } else { Sharing::Turns };
        let known = programs.clone();
        let mut learner = Learner::new(&cpus, &known, lines, commands, run.budget)?;
        let mut all = Learned::default();
        for command in 1..commands.commands.len() {
            let [a, b]: Pair<'_> = [lab.as_mut(), second.as_mut()];
            let learned = learner.pair([&mut *a, &mut *b], commands, command);
            programs.commands = Some(commands.clone());
            // An open loop has its own way to share the CPUs, and its rate may not be known before.
            let measured = match learned {
                Ok(stages) if commands.rate.is_none() => {
                    let pair = RunningPair {
                        suite: &subject::suite(commands),
                        cells: [command, 0],
                        alone: if command == 1 { &[0, 1] } else { &[0] },
                        budget: run.budget,
                        least: commands.least_window(),
                        sharing,
                        seed: run.seed,
                    };
                    let context = Context { registry, programs, cpus: &cpus, hosts: &run.hosts };
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
            if let Some(Entry::Duet(unit)) = measured.last_mut() {
                unit.stages.insert(Stage::Stop, stop);
            }
            all.entries.extend(measured);
        }
        Ok(all)
    }
}
