//! Trials and units after the rounds of a suite.

use super::{Step, index_of};
use crate::measurement::Run;
use crate::stopping::Need;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

/// The steps that a suite needs when `made` units of the run are made, in random order.
pub fn further(run: &Run, index: usize, needs: &[Need], made: usize) -> Vec<Step> {
    let suite = &run.suites[index];
    let step = |need: &Need| {
        let against = need.against.as_ref().map(|other| index_of(suite, other));
        let against = if let Some(other) = against { Some(other?) } else { None };
        Some(Step {
            suite: index,
            cell: index_of(suite, &need.cell)?,
            against,
            probe: None,
            id: need.id(),
            round: if against.is_none() { need.unit } else { suite.rounds + 1 },
            unit: need.unit,
            warmup: false,
        })
    };
    let mut steps: Vec<Step> = needs.iter().filter_map(step).collect();
    steps.shuffle(&mut Pcg64Mcg::seed_from_u64(run.seed.wrapping_add(index as u64) ^ (made as u64) << 32));
    if run.policy().is_sequential() {
        // All pairs get a unit before any gets the next one.
        steps.sort_by_key(|step| step.unit);
    }
    steps
}
