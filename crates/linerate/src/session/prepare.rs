//! The systems of a suite, just before its first trial: installed on request, built, and their versions read.

use super::{Session, arms, stored};
use crate::error::Error;
use crate::measurement::Outcome;
use crate::output::note;
use crate::placement;
use crate::programs::elsewhere;
use crate::programs::{self, Machine};
use crate::subject;
use crate::system::build::Permission;
use crate::system::install;
use linerate_contract::Layer;
use std::collections::{BTreeMap, BTreeSet};

impl Session {
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
}
