//! The systems of a suite, just before its first trial: installed on request, built, and their versions read.

use super::{Session, arms, stored};
use crate::error::Error;
use crate::journal;
use crate::programs::elsewhere;
use crate::programs::{self, Machine};
use crate::progress::note;
use crate::system::build::Permission;
use crate::system::install;
use std::collections::{BTreeMap, BTreeSet};

impl Session {
    /// # Errors
    /// The user stopped a build, `run.json` cannot be written, a system is not the one that the run began
    /// with, or an arm of a comparison cannot be built.
    pub(super) fn prepare(&mut self, suite: usize) -> Result<(), Error> {
        let replacements = match &mut self.run.comparison {
            None => BTreeMap::new(),
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
        programs::resolve(&mut now, &self.registry, &mut self.programs, &mut machine);
        machine.check()?;
        if !self.allows_equal_arms {
            arms::check_different(&now, &self.programs)?;
        }
        if self.has_trials(suite) {
            stored::check_same(&self.folder, &self.run.suites[suite], Some(&now))?;
        }
        self.run.suites[suite] = now;
        journal::write_run(&self.folder, &self.run)
    }
}
