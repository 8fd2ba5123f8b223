//! The systems of a suite, just before its first trial: installed on request, built, and their versions read.

use super::learn::Learned;
use super::{Event, Session, arms, stored};
use crate::error::Error;
use crate::measurement::Outcome;
use crate::placement;
use crate::programs::elsewhere;
use crate::programs::{self, Machine};
use crate::progress::note;
use crate::subject;
use crate::system::build::Permission;
use crate::system::install;
use std::collections::{BTreeMap, BTreeSet};

impl Session {
    /// # Errors
    /// The user stopped a build, `run.json` cannot be written, a system is not the one that the run began
    /// with, or an arm of a comparison cannot be built.
    pub(super) fn prepare(&mut self, suite: usize, on: &mut dyn FnMut(Event)) -> Result<(), Error> {
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
            .with(replacements, self.lab.as_mut())
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
        let mut learned = Learned::default();
        if let Some(commands) = commands {
            (now, learned) = self.learn(commands, now)?;
        }
        if self.programs.commands.is_none() {
            arms::check_different(&now, &self.programs)?;
        }
        self.find_capacities(suite, &mut now)?;
        if let Some(folder) = self.folder().filter(|_| self.has_trials(suite)) {
            stored::check_same(folder, &self.run.suites[suite], Some(&now))?;
        }
        self.run.suites[suite] = now;
        self.journal.plan(&self.run)?;
        learned.entries.into_iter().try_for_each(|entry| self.keep(entry))?;
        self.keep_written(suite, 0, learned.written, on)
    }
}
