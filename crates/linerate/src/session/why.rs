//! Where a difference comes from: profiles after the last unit, beside the journal. They decide nothing.

use super::Session;
use crate::error::Error;
use crate::journal;
use crate::measurement::{PROFILE_SCHEMA, Profile};
use crate::report;
use crate::stats::verdict::Verdict;
use crate::subject::Servers;
use crate::trial::{self, Context};
use std::time::Duration;

/// The profiles' part of the budget, and the most that they take where the user does not ask for them.
const OF_BUDGET: u32 = 5;
const MOST: Duration = Duration::from_secs(5);

/// Whether profiles say where a difference comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Why {
    /// Where there is a difference.
    #[default]
    Differences,
    Always,
    Never,
}

impl Session {
    /// Profiles the pairs of servers that differ, or all.
    ///
    /// # Errors
    /// The user stopped the run, the lab is lost, or the profile cannot be written.
    pub(super) fn explain(&mut self, suite: usize) -> Result<(), Error> {
        let are_started = self.servers.as_ref().is_some_and(Servers::are_started_here);
        if self.why == Why::Never || !are_started || self.script.is_some() {
            return Ok(());
        }
        // A run that goes on keeps its own.
        if self.why == Why::Differences && self.folder().and_then(journal::profile).is_some() {
            return Ok(());
        }
        let pairs = self.unexplained(suite);
        if pairs.is_empty() || self.second.is_none() {
            return Ok(());
        }
        let budget = self.run.budget.map_or(MOST, |budget| Duration::from(budget) / OF_BUDGET);
        let time = if self.why == Why::Always { MOST } else { budget.min(MOST) } / pairs.len() as u32;
        let mut profile = Profile { schema: PROFILE_SCHEMA.into(), pairs: Vec::new() };
        for cells in pairs {
            let planned = &self.run.suites[suite];
            self.progress.stage(planned, "profiling both sides");
            let cpus = self.lab.cpus();
            let (registry, programs, servers) = (&self.registry, &self.programs, self.servers.as_ref());
            let context = Context { registry, programs, cpus: &cpus, hosts: &self.run.hosts, servers };
            let Some(second) = &mut self.second else { continue };
            let labs = [self.lab.as_mut(), second.as_mut()];
            let found = trial::profile::run(labs, context, planned, cells, time, self.run.seed)?;
            profile.pairs.push(found);
        }
        let Some(folder) = self.journal.folder() else { return Ok(()) };
        journal::write_profile(folder, &profile)
    }

    /// The pairs of cells, each with its baseline, that are to be explained.
    fn unexplained(&self, suite: usize) -> Vec<[usize; 2]> {
        let report = report::build(&self.run, &self.made);
        let Some(comparison) = report.comparison else { return Vec::new() };
        let planned = &self.run.suites[suite].cells;
        let is_meant = |verdict: Verdict| {
            self.why == Why::Always || matches!(verdict, Verdict::Slower | Verdict::Faster)
        };
        let of_cell = |id: &String| planned.iter().position(|cell| cell.id == *id);
        let chosen = comparison.cells.iter().filter(|cell| is_meant(cell.verdict));
        chosen.filter_map(|cell| Some([of_cell(&cell.id)?, 0])).collect()
    }
}
