//! A duet: two cells at the same time on the same CPUs, each in a lab of its own.
//!
//! Noise on a virtual machine is common to all processes that run at the same time (docs/method.md). A unit
//! is a fresh pair of processes with one window, in a comparison with several, one after the other, each with
//! connections of its own; the order in which the sides start is random.

use super::windows::{Manner, Windows};
use super::{Context, Stages, Stopped, prepare, warm_up};
use crate::lab::pair::{Pair, on_both};
use crate::lab::{Lab, LabError, Label};
use crate::measurement::{PlannedCell, PlannedSuite, Probe, Stage, Unit};
use crate::plan::Step;
use linerate_contract::Nanos;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;

/// The share of a role's CPU time that a probe takes. A smaller one is lost in the noise of the units; a
/// larger one makes a role the bottleneck that was none.
pub const PROBE_SHARE: f64 = 0.2;

/// Measures one unit of a pair.
///
/// # Errors
/// [`LabError::Interrupted`] or [`LabError::Lost`]: the run cannot go on. All else is an outcome.
pub fn run(
    labs: Pair<'_>,
    context: Context<'_>,
    suite: &PlannedSuite,
    step: &Step,
    manner: Manner,
    seed: u64,
) -> Result<Unit, LabError> {
    let cell = step.sides.cell();
    let cells = [cell, step.sides.beside().unwrap_or(cell)].map(|cell| &suite.cells[cell]);
    let at = labs[0].now();
    let of_role = step.sides.probed().map_or(0, |role| role as u64 + 1) << 16;
    let mut random = Pcg64Mcg::seed_from_u64(seed ^ u64::from(step.number) ^ of_role ^ (cell as u64) << 32);
    let probe =
        step.sides.probed().map(|role| Probe { role, side: random.random_range(0..2), share: PROBE_SHARE });
    let mut stages = BTreeMap::new();
    // Neither side has a place of its own: what differs between the labs is noise, not bias.
    let [one, two] = labs;
    let [a, b] = if random.random() { [two, one] } else { [one, two] };
    let [first_to_start, first_to_warm_up] = random.random();
    let mut windows = Windows::new(context, cells, manner, probe, random);
    let result = (|| {
        let launches = windows.launches(step.warmup)?;
        let label = |cell: &PlannedCell| Label {
            suite: suite.name.clone(),
            cell: cell.id.clone(),
            round: step.number,
            warmup: step.warmup,
        };
        // What is ready first rests until the other is: that is no side's either. Both warm up together.
        both_stages([&mut *a, &mut *b], first_to_start, &mut stages, |lab, side, stages| {
            prepare(lab, &launches[side], &label(cells[side]), stages)
        })?;
        both_stages([&mut *a, &mut *b], first_to_warm_up, &mut stages, |lab, side, stages| {
            warm_up(lab, &launches[side], stages)
        })?;
        windows.measure([&mut *a, &mut *b], &launches, &mut stages)
    })();
    let begin = a.now();
    let ended = on_both([&mut *a, &mut *b], false, |lab, _| {
        lab.stop().map_err(|error| Stopped::from_error(Stage::Stop, error))
    });
    stages.insert(Stage::Stop, a.now().since(begin));
    let [one, two] = ended;
    windows.unit(step, at, one.and(two).and(result), stages)
}

/// Does a stage on both sides at once, and adds the longer time, also of one that fails: a budget counts it.
pub(super) fn both_stages(
    labs: Pair<'_>,
    second_first: bool,
    stages: &mut BTreeMap<Stage, Nanos>,
    work: impl Fn(&mut dyn Lab, usize, &mut Stages) -> Result<(), Stopped> + Sync,
) -> Result<(), Stopped> {
    let done = on_both(labs, second_first, |lab, side| {
        let mut stages = Stages { at: lab.now(), times: BTreeMap::new() };
        (work(lab, side, &mut stages), stages.times)
    });
    let mut longest = BTreeMap::<Stage, Nanos>::new();
    for (stage, time) in done.iter().flat_map(|(_, times)| times) {
        let known = longest.entry(*stage).or_default();
        *known = (*known).max(*time);
    }
    longest.into_iter().for_each(|(stage, time)| *stages.entry(stage).or_default() += time);
    done.into_iter().try_for_each(|(result, _)| result)
}
