//! A duet: two cells at the same time on the same CPUs, each in a lab of its own.
//!
//! Noise on a virtual machine is common to all processes that run at the same time (docs/method.md). A unit
//! is a fresh pair of processes with one window, in a comparison with several, one after the other, each with
//! connections of its own; the order in which the sides start is random.

use super::launch::Launches;
use super::windows::{Manner, Windows};
use super::{Context, Stages, Stopped, prepare, warm_up};
use crate::lab::pair::{Pair, on_both};
use crate::lab::{Lab, LabError, Label};
use crate::measurement::{
    ColdStart, Found, Outcome, PlannedCell, PlannedSuite, Probe, SecondLoadRate, Sharing, Sides, Stage,
    Together, Unit,
};
use crate::parameters::Parameters;
use crate::plan::Step;
use linerate_contract::Nanos;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;

/// The share of a role's CPU time that a probe takes. A smaller one is lost in the noise of the units; a
/// larger one makes a role the bottleneck that was none.
pub const PROBE_SHARE: f64 = 0.2;

/// Starts of a server in a unit that may fail before another one.
const MOST_FAILED_STARTS: usize = 2;

/// Measures one unit of a pair. With a `second` load, its open loop follows on the same launch,
/// and is a unit of its own.
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
    second: Option<SecondLoadRate>,
) -> Result<Vec<Unit>, LabError> {
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
    let paced = second.map(|load| cells.map(|cell| at_rate(cell, load.per_second)));
    let of_second =
        |cells| Windows::new(context, cells, Manner::of_second_load(step.number), None, random.clone());
    let mut second_windows = paced.as_ref().map(|cells| of_second(cells.each_ref()));
    let mut starts = [None, None];
    let mut windows = Windows::new(context, cells, manner, probe, random);
    let (mut of_second, mut second_at, mut second_stages) = (None, at, BTreeMap::new());
    let result = (|| {
        let launches = windows.launches(step.warmup)?;
        let label = |cell: &PlannedCell| Label {
            suite: suite.name.clone(),
            cell: cell.id.clone(),
            round: step.number,
            warmup: step.warmup,
        };
        // What is ready first rests until the other is: that is no side's either. Both warm up together.
        starts = both_stages([&mut *a, &mut *b], first_to_start, &mut stages, |lab, side, stages| {
            prepared(lab, &launches[side], &label(cells[side]), stages)
        })?;
        both_stages([&mut *a, &mut *b], first_to_warm_up, &mut stages, |lab, side, stages| {
            warm_up(lab, &launches[side], stages)
        })?;
        let measured = windows.measure([&mut *a, &mut *b], &launches, &mut stages)?;
        if let Some(windows) = &mut second_windows {
            second_at = a.now();
            of_second = Some(
                windows
                    .launches(false)
                    .and_then(|launches| windows.measure([&mut *a, &mut *b], &launches, &mut second_stages)),
            );
        }
        Ok(measured)
    })();
    let begin = a.now();
    let ended = on_both([&mut *a, &mut *b], false, |lab, _| {
        lab.stop().map_err(|error| Stopped::from_error(Stage::Stop, error))
    });
    stages.insert(Stage::Stop, a.now().since(begin));
    let [one, two] = ended;
    let mut first = windows.unit(step, at, one.and(two).and(result), stages)?;
    if let Found::Together(Together { sides: Some(sides), .. }) = &mut first.found {
        sides.iter_mut().zip(starts).for_each(|(side, start)| side.cold_start = start);
    }
    let mut units = vec![first];
    if let (Some(windows), Some(measured), Some(load), Sides::Two(cells)) =
        (second_windows, of_second, second, step.sides)
    {
        let step = Step { sides: Sides::AtRate(cells), ..*step };
        let mut unit = windows.unit(&step, second_at, measured, second_stages)?;
        if let Found::Together(together) = &mut unit.found {
            together.second_load = Some(load);
        }
        units.push(unit);
    }
    Ok(units)
}

/// The cell under a second load.
fn at_rate(cell: &PlannedCell, rate: u64) -> PlannedCell {
    let parameters = Parameters { rate: Some(rate), ..cell.parameters };
    PlannedCell { parameters, pairs: Some(Sharing::Alternating), ..cell.clone() }
}

/// As [`prepare`]. A server of the user's own that fails at its start is started again.
fn prepared(
    lab: &mut dyn Lab,
    launches: &Launches,
    label: &Label,
    stages: &mut Stages,
) -> Result<Option<ColdStart>, Stopped> {
    let mut failed = Vec::new();
    loop {
        let begin = lab.now();
        match prepare(lab, launches, label, stages) {
            // One that does not become ready in all of its time is not given that again.
            Err(Stopped::Outcome(Outcome::Failed { reason, .. }))
                if launches.ready_within().is_some_and(|within| lab.now().since(begin) < within)
                    && failed.len() < MOST_FAILED_STARTS =>
            {
                failed.push(reason);
                stages.time(lab, Stage::Stop, |lab| lab.stop())?;
            }
            started => return Ok(started?.map(|start| ColdStart { failed, ..start })),
        }
    }
}

/// Does a stage on both sides at once, and adds the longer time, also of one that fails: a budget counts it.
pub(super) fn both_stages<T: Send>(
    labs: Pair<'_>,
    second_first: bool,
    stages: &mut BTreeMap<Stage, Nanos>,
    work: impl Fn(&mut dyn Lab, usize, &mut Stages) -> Result<T, Stopped> + Sync,
) -> Result<[T; 2], Stopped> {
    let [(one, of_one), (two, of_two)] = on_both(labs, second_first, |lab, side| {
        let mut stages = Stages { at: lab.now(), times: BTreeMap::new() };
        (work(lab, side, &mut stages), stages.times)
    });
    let mut longest = BTreeMap::<Stage, Nanos>::new();
    for (stage, time) in of_one.iter().chain(&of_two) {
        let known = longest.entry(*stage).or_default();
        *known = (*known).max(*time);
    }
    longest.into_iter().for_each(|(stage, time)| *stages.entry(stage).or_default() += time);
    Ok([one?, two?])
}
