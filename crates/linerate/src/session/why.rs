//! Where a difference comes from: profiles after the last unit, beside the journal. They decide nothing.

use super::Session;
use crate::error::Error;
use crate::journal;
use crate::measurement::{Outcome, PairProfile, Sides};
use crate::report::{self, comparison::ComparedCell};
use crate::subject::Servers;
use crate::trial::{self, Context};
use std::time::Duration;

/// The profiles' part of the budget, beside what the verdict has left of it, where the user does not ask for
/// them; and the most of a pair.
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
    /// Profiles the pairs of a suite that differ, or all.
    ///
    /// # Errors
    /// The user stopped the run, the lab is lost, or the profile cannot be written.
    pub(super) fn explain(&mut self, suite: usize) -> Result<(), Error> {
        let are_started = self.servers.as_ref().is_none_or(Servers::are_started_here);
        if self.why == Why::Never || !are_started || self.script.is_some() {
            return Ok(());
        }
        let is_compared = self.run.comparison.is_some();
        let comparison = is_compared.then(|| report::build(&self.run, &self.made).comparison).flatten();
        let pairs = self.unexplained(suite, comparison.as_ref().map_or(&[][..], |found| &found.cells));
        if pairs.is_empty() || self.second.is_none() {
            return Ok(());
        }
        let spent: Duration = self.made.units.iter().map(|unit| Duration::from(unit.time())).sum();
        let of_budget = self.run.budget.map_or(MOST, |budget| {
            let budget = Duration::from(budget);
            budget / OF_BUDGET + budget.saturating_sub(spent)
        });
        let time = match self.why {
            Why::Always => MOST,
            _ => MOST.min(of_budget / pairs.len() as u32),
        };
        // The answer is known by now.
        let answer = comparison.as_ref().and_then(|found| found.sentence.split(';').next());
        let words = answer.map_or_else(String::new, |answer| format!("{answer}; ")) + "profiling";
        for cells in pairs {
            let planned = &self.run.suites[suite];
            self.progress.stage(planned, &words);
            let cpus = self.lab.cpus();
            let (registry, programs, servers) = (&self.registry, &self.programs, self.servers.as_ref());
            let context = Context { registry, programs, cpus: &cpus, hosts: &self.run.hosts, servers };
            let Some(second) = &mut self.second else { continue };
            let labs = [self.lab.as_mut(), second.as_mut()];
            let found = trial::profile::run(labs, context, planned, cells, time, self.run.seed)?;
            self.profile.pairs.push(found);
            if let Some(folder) = self.journal.folder() {
                journal::write_profile(folder, &self.profile)?;
            }
        }
        Ok(())
    }

    /// The pairs of cells, each with its baseline, that are to be explained and have no profile yet.
    fn unexplained(&self, suite: usize, compared: &[ComparedCell]) -> Vec<[usize; 2]> {
        let planned = &self.run.suites[suite];
        let pairs = planned.pairs.iter().filter(|pair| pair.no_duet.is_none());
        let pairs = pairs.filter_map(|pair| planned.places(pair)).filter(|[cell, base]| cell != base);
        let differing: Vec<&ComparedCell> =
            compared.iter().filter(|cell| cell.verdict.is_difference()).collect();
        let mut wanted: Vec<[usize; 2]> = pairs.collect();
        wanted.retain(|[cell, base]| {
            let ids = [cell, base].map(|at| &planned.cells[*at].id);
            let is_known = |known: &PairProfile| known.suite == planned.name && known.cells.each_ref() == ids;
            let is_measured =
                |at: &usize| self.units(suite, Sides::One(*at)).any(|unit| unit.outcome == Outcome::Ok);
            let differs = || differing.iter().any(|cell| cell.is_of(&planned.name, ids[0]));
            (self.why == Why::Always || differs())
                && [*cell, *base].iter().all(is_measured)
                && !self.profile.pairs.iter().any(is_known)
        });
        wanted
    }
}
