//! The systems of a suite, just before its first trial: installed on request, built, and their versions read.

use super::{Session, arms, stored};
use crate::error::Error;
use crate::measurement::{Outcome, PlannedCell, PlannedCommands, PlannedSuite};
use crate::placement;
use crate::programs::elsewhere;
use crate::programs::{self, Machine};
use crate::progress::note;
use crate::subject;
use crate::system::build::Permission;
use crate::system::install;
use linerate_contract::Role;
use std::collections::{BTreeMap, BTreeSet};

impl Session {
    /// # Errors
    /// The user stopped a build, `run.json` cannot be written, a system is not the one that the run began
    /// with, or an arm of a comparison cannot be built.
    pub(super) fn prepare(&mut self, suite: usize) -> Result<(), Error> {
        self.progress.stage(&self.run.suites[suite], "preparing");
        let replacements = match &mut self.run.comparison {
            None => BTreeMap::new(),
            Some(comparison) if comparison.commands.is_some() => {
                if comparison.source.is_some() && self.script.is_none() {
                    let trees = arms::trees(comparison, note)?;
                    let commands = comparison.commands.iter_mut().flat_map(|all| &mut all.commands);
                    commands.zip(trees).for_each(|(command, tree)| command.folder = Some(tree));
                }
                BTreeMap::new()
            }
            Some(comparison) => arms::replacements(comparison, note)?,
        };
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
            .with(replacements)
            .with_hosts(elsewhere, !self.run.hosts.is_empty());
        let commands = self.run.comparison.as_ref().and_then(|comparison| comparison.commands.clone());
        self.programs.commands.clone_from(&commands);
        programs::resolve(&mut now, &self.registry, &mut self.programs, &mut machine);
        machine.check()?;
        if let Some(host) = placement::served(&self.run.hosts) {
            self.programs.served = Some(subject::served(host)?);
            for cell in now.cells.iter_mut().filter(|cell| cell.layer != "http") {
                let reason = format!("{} is a server of HTTP", host.place);
                cell.absent = Some(Outcome::Unsupported { reason });
            }
        }
        if let Some(commands) = commands {
            now = self.learn(commands, now)?;
        }
        if !self.allows_equal_arms && self.programs.commands.is_none() {
            arms::check_different(&now, &self.programs)?;
        }
        self.find_capacities(suite, &mut now)?;
        if let Some(folder) = self.folder().filter(|_| self.has_trials(suite)) {
            stored::check_same(folder, &self.run.suites[suite], Some(&now))?;
        }
        self.run.suites[suite] = now;
        self.journal.plan(&self.run)
    }

    /// The suite of commands, with what is learned about them before the first trial.
    fn learn(&mut self, mut commands: PlannedCommands, now: PlannedSuite) -> Result<PlannedSuite, Error> {
        if self.script.is_none() {
            subject::set_up(&commands)?;
        }
        self.programs.companions = subject::companions(&commands)?;
        self.programs.ports = commands.on_host.then(subject::free_ports).transpose()?;
        if commands.upstream.as_ref().is_some_and(|upstream| upstream.address.is_none()) {
            subject::find_upstream(self.lab.as_mut(), &self.programs, &mut commands)?;
        }
        let lines = subject::lines(&commands)?;
        if commands.commands.iter().any(|one| one.warmup.is_none()) && self.script.is_none() {
            self.programs.commands = Some(commands.clone());
            self.progress.stage(&now, "warming up");
            subject::learn(self.lab.as_mut(), &self.programs, &mut commands, &lines)?;
        }
        let suite = subject::suite(&commands);
        for (cell, line) in suite.cells.iter().zip(lines) {
            let servers = cell.systems.iter().filter(|system| system.role == Role::Server);
            servers.for_each(|server| {
                self.programs.insert(Role::Server, &server.name, &server.build, line.clone());
            });
        }
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
        Ok(PlannedSuite { cells, rounds: now.rounds, ..suite })
    }
}
