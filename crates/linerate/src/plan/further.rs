//! Units after the rounds of a suite.

use super::Step;
use crate::measurement::Run;
use crate::stopping::Need;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

/// The steps that a suite needs when `made` units of pairs of the run are made, in random order.
pub fn further(run: &Run, index: usize, needs: &[Need], made: usize) -> Vec<Step> {
    let suite = &run.suites[index];
    let is_present = |cell: usize| suite.cells[cell].absent.is_none();
    let needs = needs.iter().filter(|need| is_present(need.sides.cell()));
    let needs = needs.filter(|need| need.sides.beside().is_none_or(is_present));
    let mut steps: Vec<Step> = needs
        .map(|Need { sides, number }| Step {
            round: if sides.is_one() { *number } else { suite.rounds + 1 },
            number: *number,
            ..Step::new(index, *sides)
        })
        .collect();
    steps.shuffle(&mut Pcg64Mcg::seed_from_u64(run.seed.wrapping_add(index as u64) ^ (made as u64) << 32));
    if run.policy().is_sequential() {
        // All pairs get a unit before any gets the next one.
        steps.sort_by_key(|step| step.number);
    }
    steps
}
