//! The windows of a unit: of two cells whose systems run already and are warm.

use super::launch::{Launches, TimedWindow};
use super::{Context, Stopped, failed, measure};
use crate::lab::pair::{Pair, on_both};
use crate::lab::protocol::Turns;
use crate::lab::{BrakeForce, Lab, LabError};
use crate::measurement::{
    Measurement, Outcome, PlannedCell, Probe, RequestWindow, Sharing, SideWindow, Stage, Together, Unit,
};
use crate::plan::Step;
use crate::stats::bound::strangers;
use crate::stats::outliers::stolen;
use crate::stopping::EARLY_UNITS;
use crate::subject::Servers;
use linerate_contract::{Alternation, Nanos, Role, clock};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;

/// The window of a unit. A shorter one would leave the starts of clients a visible part; in the time of a
/// longer one, a further unit adds more, unless its systems take longer than that to be ready.
const WINDOW: Nanos = Nanos(500_000_000);
/// The window of two sides that take turns.
const WINDOW_OF_TURNS: Nanos = Nanos(800_000_000);
/// Windows of a unit of a comparison: their spread says how certain few units are
/// (docs/decisions/stopping.md).
pub const WINDOWS: u32 = 3;
/// The shortest of several windows of a unit: the start of a client is a hundredth of it.
const SHORTEST_WINDOW: Nanos = Nanos(250_000_000);
/// The window of two sides whose loads alternate: eight turns of each.
const WINDOW_OF_ALTERNATION: Nanos = Nanos(16 * ALTERNATION.0);
/// The turns of an open loop, and the part of them in which nothing is due. Latencies have the noise of their
/// own milliseconds: in turns of 100 ms their intervals were twice as wide (docs/decisions/latency.md).
/// By the end of the guard all but stalled operations of the other side have ended.
const SLICE: Nanos = Nanos(30_000_000);
const GUARD_OF_SLICE: Nanos = Nanos(3_000_000);
/// The window of such a unit: 32 turns of each side.
const WINDOW_OF_SLICES: Nanos = Nanos(64 * SLICE.0);
/// The window of the first units of a comparison.
const SHORT_WINDOW_OF_SLICES: Nanos = Nanos(32 * SLICE.0);
/// The window of a second load, which follows the windows of the first one; in the units of early looks half
/// of it.
const WINDOW_OF_SECOND_LOAD: Nanos = Nanos(32 * SLICE.0);
/// Windows of an open loop: each of them has some turns of either side.
const PACED_WINDOWS: u32 = 2;
/// The window of clients that count whole seconds.
const WHOLE_SECOND: Nanos = Nanos(1_000_000_000);
/// A turn is short against noise, which is common to what happens within a fraction of a second, and long
/// against the refill of caches after it: in turns of 1 ms a relay of several processes lost a quarter of
/// its rate (docs/decisions/pairs.md).
const TURN: Nanos = Nanos(30_000_000);
/// A turn of an alternating load, and the part of it that does not count: long enough that caches, timers and
/// the other side's last operations are no part of it (docs/decisions/pairs.md).
const ALTERNATION: Nanos = Nanos(120_000_000);
const GUARD: Nanos = Nanos(10_000_000);
/// The part of a turn that does not count, of servers that run already.
const GUARDS_OF_TURN: u64 = 6;
/// From the schedule of turns to the first of them: both clients have been started by then.
const FIRST_TURN: Nanos = Nanos(5_000_000);
/// How a unit is measured.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    pub sharing: Sharing,
    /// How long all windows together are, where their length can be chosen.
    length: Length,
    /// Windows of a launch, where their length can be chosen; else there is one.
    windows: u32,
}

#[derive(Debug, Clone, Copy)]
enum Length {
    AtLeast(Nanos),
    Exactly(Nanos),
}

impl Length {
    /// `usual`: by the way of sharing.
    fn or(self, usual: Nanos) -> Nanos {
        match self {
            Self::AtLeast(least) => usual.max(least),
            Self::Exactly(length) => length,
        }
    }
}

impl Manner {
    /// Several windows of a launch, together as long as usual, or `least`.
    pub fn at_least(sharing: Sharing, least: Nanos, windows: u32) -> Self {
        Self { sharing, length: Length::AtLeast(least), windows }
    }

    /// The open loop of a second load, in the unit of this number.
    pub fn of_second_load(number: u32) -> Self {
        let parts = if number <= EARLY_UNITS { 2 } else { 1 };
        let length = Length::Exactly(Nanos(WINDOW_OF_SECOND_LOAD.0 / parts));
        Self { sharing: Sharing::Alternating, length, windows: PACED_WINDOWS }
    }

    /// One window of this length.
    pub fn exactly(sharing: Sharing, length: Nanos) -> Self {
        Self { sharing, length: Length::Exactly(length), windows: 1 }
    }

    /// How many windows there are, and how long each of them is.
    fn windows(self, in_seconds: bool, is_paced: bool) -> (u32, Nanos) {
        let several = |all: Nanos| match self.windows {
            1 => (1, all),
            n => (n, Nanos(all.0 / u64::from(n)).max(SHORTEST_WINDOW)),
        };
        match self.sharing {
            Sharing::Alternating if is_paced => {
                let windows = self.windows.min(PACED_WINDOWS);
                let all = match self.length {
                    Length::AtLeast(least) if windows > 1 && least < SHORT_WINDOW_OF_SLICES => {
                        SHORT_WINDOW_OF_SLICES
                    }
                    Length::AtLeast(_) => WINDOW_OF_SLICES,
                    Length::Exactly(length) => length,
                };
                (windows, Nanos(all.0 / u64::from(windows)))
            }
            Sharing::Alternating if self.windows == 1 => (1, WINDOW_OF_ALTERNATION),
            Sharing::Alternating => several(self.length.or(WINDOW_OF_ALTERNATION)),
            Sharing::Together if in_seconds => (1, WHOLE_SECOND),
            Sharing::Together => several(self.length.or(WINDOW)),
            Sharing::Turns if in_seconds => (1, Nanos(2 * WHOLE_SECOND.0)),
            Sharing::Turns => several(self.length.or(WINDOW_OF_TURNS)),
        }
    }
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
