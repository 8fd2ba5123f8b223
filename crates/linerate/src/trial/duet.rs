//! A duet: two cells at the same time on the same CPUs, each in a lab of its own.
//!
//! Noise on a virtual machine is common to all processes that run at the same time (docs/method.md). A unit
//! is a fresh pair of processes with one window, in a comparison with several, one after the other, each with
//! connections of its own; the order in which the sides start is random.

use super::launch::{Launches, TimedWindow};
use super::windows::{ALTERNATION, GUARD, GUARD_OF_SLICE, Manner, SLICE};
use super::{Context, Stages, Stopped, failed, measure, prepare, warm_up};
use crate::lab::pair::{Pair, on_both};
use crate::lab::protocol::Turns;
use crate::lab::{BrakeForce, Lab, LabError, Label};
use crate::measurement::{
    ColdStart, Found, Measurement, Outcome, PlannedCell, PlannedSuite, Probe, RequestWindow, SecondLoadRate,
    Sharing, SideWindow, Sides, Stage, Together, Unit,
};
use crate::parameters::Parameters;
use crate::plan::Step;
use crate::stats::bound::strangers;
use crate::stats::outliers::stolen;
use crate::subject::Servers;
use linerate_contract::{Alternation, Nanos, Role, clock};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;

/// The share of a role's CPU time that a probe takes. A smaller one is lost in the noise of the units; a
/// larger one makes a role the bottleneck that was none.
pub const PROBE_SHARE: f64 = 0.2;

/// Starts of a server in a unit that may fail before another one.
const MOST_FAILED_STARTS: usize = 2;

/// A turn is short against noise, which is common to what happens within a fraction of a second, and long
/// against the refill of caches after it: in turns of 1 ms a relay of several processes lost a quarter of
/// its rate (docs/decisions/pairs.md).
const TURN: Nanos = Nanos(30_000_000);
/// The part of a turn that does not count, of servers that run already.
const GUARDS_OF_TURN: u64 = 6;
/// From the schedule of turns to the first of them: both clients have been started by then.
const FIRST_TURN: Nanos = Nanos(5_000_000);

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

/// The windows of a unit of two cells.
pub(super) struct Windows<'a> {
    context: Context<'a>,
    cells: [&'a PlannedCell; 2],
    sharing: Sharing,
    /// Open loops that alternate.
    is_paced: bool,
    windows: u32,
    length: Nanos,
    probe: Option<Probe>,
    random: Pcg64Mcg,
}

impl<'a> Windows<'a> {
    pub(super) fn new(
        context: Context<'a>,
        cells: [&'a PlannedCell; 2],
        manner: Manner,
        probe: Option<Probe>,
        random: Pcg64Mcg,
    ) -> Self {
        let in_seconds = cells.iter().any(|cell| counts_whole_seconds(context, cell));
        let sharing = manner.sharing;
        let is_paced = sharing == Sharing::Alternating && cells.iter().all(|cell| cell.is_paced_in_turns());
        let (windows, length) = manner.windows(in_seconds, is_paced);
        Self { context, cells, sharing, is_paced, windows, length, probe, random }
    }

    /// The processes of both sides.
    pub(super) fn launches(&mut self, is_warmup: bool) -> Result<[Launches; 2], Stopped> {
        let Self { sharing, is_paced, length, .. } = *self;
        let (turn, guard) = match self.context.servers.and_then(Servers::turn) {
            _ if is_paced => (SLICE, GUARD_OF_SLICE),
            Some(turn) => (turn, Nanos(turn.0 / GUARDS_OF_TURN)),
            None => (ALTERNATION, GUARD),
        };
        let seed = self.random.random();
        let window = |second| TimedWindow {
            length,
            sharing: Some(sharing),
            second,
            may_starve: is_warmup && sharing == Sharing::Together,
            alternation: (sharing == Sharing::Alternating).then_some(Alternation {
                length_ns: turn,
                guard_ns: guard,
                seed,
                second,
            }),
        };
        let of = |side: usize| {
            let launches = Launches::new(self.context, self.cells[side], Some(window(side == 1)));
            launches.map_err(|reason| failed(Stage::Start, reason, String::new()))
        };
        Ok([of(0)?, of(1)?])
    }

    /// Makes the windows, one after the other, and adds their time to the stages.
    pub(super) fn measure(
        &mut self,
        [a, b]: Pair<'_>,
        launches: &[Launches; 2],
        stages: &mut BTreeMap<Stage, Nanos>,
    ) -> Result<Vec<Window>, Stopped> {
        // What runs elsewhere cannot be stopped: without alternating clients, first one side has its window,
        // then the other.
        let can_stop = self.context.servers.is_none_or(Servers::are_started_here);
        let one_by_one = !can_stop && self.sharing != Sharing::Alternating;
        let mut all = Vec::new();
        for _ in 0..self.windows {
            if self.sharing == Sharing::Turns && !one_by_one {
                let (start, seed) = (clock::now() + FIRST_TURN, self.random.random());
                a.take_turns(Turns { start, length: TURN, seed, second: false });
                b.take_turns(Turns { start, length: TURN, seed, second: true });
            }
            if let Some(Probe { role, side, share }) = self.probe {
                let braked = if side == 0 { &mut *a } else { &mut *b };
                braked.brake(BrakeForce { role, share });
            }
            let begin = a.now();
            let of_side = |lab: &mut dyn Lab, side: usize| {
                measure(lab, &launches[side], false)
                    .map_err(|error| Stopped::from_error(Stage::Measure, error))
            };
            let second_first = self.random.random();
            let [one, two] = match (one_by_one, second_first) {
                (false, _) => on_both([&mut *a, &mut *b], second_first, of_side),
                (true, false) => [of_side(&mut *a, 0), of_side(&mut *b, 1)],
                (true, true) => {
                    let two = of_side(&mut *b, 1);
                    [of_side(&mut *a, 0), two]
                }
            };
            *stages.entry(Stage::Measure).or_insert(Nanos::ZERO) += a.now().since(begin);
            all.push(Window::new([one?, two?], self.is_paced, one_by_one));
        }
        Ok(all)
    }

    /// The unit, which began at a time since the start of the run.
    ///
    /// # Errors
    /// The run cannot go on.
    pub(super) fn unit(
        self,
        step: &Step,
        at: Nanos,
        measured: Result<Vec<Window>, Stopped>,
        stages: BTreeMap<Stage, Nanos>,
    ) -> Result<Unit, LabError> {
        let (outcome, all) = match measured {
            Ok(all) => (Outcome::Ok, all),
            Err(stopped) => (stopped.outcome()?, Vec::new()),
        };
        let [strangers, stolen] = [0, 1].map(|of| mean(all.iter().map(|window| window.others[of])));
        let windows: Vec<[SideWindow; 2]> = all.into_iter().map(|window| window.sides).collect();
        let sides = windows
            .iter()
            .cloned()
            .reduce(|[a, b], [next_of_a, next_of_b]| [a.followed_by(&next_of_a), b.followed_by(&next_of_b)]);
        let windows = if windows.len() > 1 { windows } else { Vec::new() };
        let Self { sharing, probe, .. } = self;
        let together = Together { probe, sides, windows, strangers, stolen, ..Together::new(sharing) };
        let Step { suite, sides, number, warmup, .. } = *step;
        Ok(Unit { suite, number, warmup, at, outcome, stages, ..Unit::new(sides, together.into()) })
    }
}

/// One window of both sides.
pub(super) struct Window {
    sides: [SideWindow; 2],
    /// The shares of the CPUs' time that processes of neither side had, and that the hypervisor took.
    others: [Option<f64>; 2],
}

impl Window {
    fn new([one, two]: [(Measurement, Option<Nanos>); 2], is_paced: bool, one_by_one: bool) -> Self {
        // On other machines there are other CPUs, and windows one after the other.
        let both = [&one.0, &two.0];
        let others = if one_by_one { [None; 2] } else { [strangers(both), stolen(both)] };
        Self { others, sides: [side(one, is_paced), side(two, is_paced)] }
    }
}

/// The mean of shares; `None` where one is not known, or without any.
fn mean(shares: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let shares: Vec<f64> = shares.collect::<Option<_>>()?;
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

fn counts_whole_seconds(context: Context<'_>, cell: &PlannedCell) -> bool {
    let client = cell.systems.iter().find(|system| system.role == Role::Client);
    client.is_some_and(|client| {
        context.registry.variant(&client.name, Role::Client).is_ok_and(|client| client.counts_whole_seconds())
    })
}

fn side((measurement, brake): (Measurement, Option<Nanos>), is_paced: bool) -> SideWindow {
    SideWindow {
        elapsed: measurement.counted.unwrap_or(measurement.elapsed),
        uncounted: measurement.uncounted,
        operations: measurement.operations,
        bytes: measurement.bytes,
        errors: measurement.errors,
        latency: measurement.latency.filter(|_| is_paced),
        requests: measurement.requests.into_iter().map(|one| of_window(one, is_paced)).collect(),
        cpu: measurement.cpu,
        counts: measurement.counts,
        brake,
        cold_start: None,
    }
}

fn of_window(request: RequestWindow, is_paced: bool) -> RequestWindow {
    RequestWindow { latency: request.latency.filter(|_| is_paced), ..request }
}
