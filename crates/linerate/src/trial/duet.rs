//! A duet: two cells at the same time on the same CPUs, each in a lab of its own.
//!
//! Noise on a virtual machine is common to all processes that run at the same time (docs/method.md). A unit
//! is a fresh pair of processes with one window; the order in which the sides start is random.

use super::launch::{Launches, TimedWindow};
use super::{Context, Stages, Stopped, failed, measure, prepare};
use crate::lab::protocol::Turns;
use crate::lab::{BrakeForce, Lab, LabError, Label};
use crate::measurement::{
    Duet, Measurement, Outcome, PlannedCell, PlannedSuite, Probe, Sharing, SideWindow, Stage,
};
use crate::plan::Step;
use crate::stats::bound::strangers;
use crate::stats::outliers::stolen;
use linerate_contract::{Alternation, Nanos, Role, clock};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

/// The window of a unit. A shorter one would leave the starts of clients a visible part; in the time of a
/// longer one, a further unit adds more, unless its systems take longer than that to be ready.
const WINDOW: Nanos = Nanos(500_000_000);
/// The window of two sides that take turns.
const WINDOW_OF_TURNS: Nanos = Nanos(800_000_000);
/// The window of two sides whose loads alternate: eight turns of each.
const WINDOW_OF_ALTERNATION: Nanos = Nanos(16 * ALTERNATION.0);
/// The turns of an open loop, and the part of them in which nothing is due. Latencies have the noise of their
/// own milliseconds: in turns of 100 ms their intervals were twice as wide (docs/decisions/0041-latency.md).
/// By the end of the guard all but stalled operations of the other side have ended.
const SLICE: Nanos = Nanos(30_000_000);
const GUARD_OF_SLICE: Nanos = Nanos(3_000_000);
/// The window of such a unit: 32 turns of each side.
const WINDOW_OF_SLICES: Nanos = Nanos(64 * SLICE.0);
/// The window of clients that count whole seconds.
const WHOLE_SECOND: Nanos = Nanos(1_000_000_000);
/// A turn is short against noise, which is common to what happens within a fraction of a second, and long
/// against the refill of caches after it: in turns of 1 ms a relay of several processes lost a quarter of
/// its rate (docs/decisions/0018-turns.md).
const TURN: Nanos = Nanos(30_000_000);
/// A turn of an alternating load, and the part of it that does not count: long enough that caches, timers and
/// the other side's last operations are no part of it (docs/decisions/0036-alternating-load.md,
/// docs/decisions/0060-shorter-guard.md).
const ALTERNATION: Nanos = Nanos(120_000_000);
const GUARD: Nanos = Nanos(10_000_000);
/// From the schedule of turns to the first of them: both clients have been started by then.
const FIRST_TURN: Nanos = Nanos(5_000_000);
/// The share of a role's CPU time that a probe takes. A smaller one is lost in the noise of the units; a
/// larger one makes a role the bottleneck that was none.
pub const PROBE_SHARE: f64 = 0.2;
/// The side that starts second waits this long, so that the order is the drawn one.
const HEAD_START: Duration = Duration::from_micros(200);

/// How a unit is measured.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    pub sharing: Sharing,
    /// A window is at least as long, where its length can be chosen.
    pub least: Nanos,
}

/// Measures one unit of a pair.
///
/// # Errors
/// [`LabError::Interrupted`] or [`LabError::Lost`]: the run cannot go on. All else is an outcome.
pub fn run(
    labs: [&mut (dyn Lab + 'static); 2],
    context: Context<'_>,
    suite: &PlannedSuite,
    step: &Step,
    Manner { sharing, least }: Manner,
    seed: u64,
) -> Result<Duet, LabError> {
    let cells = [&suite.cells[step.cell], &suite.cells[step.against.unwrap_or(step.cell)]];
    let at = labs[0].now();
    let in_seconds = cells.iter().any(|cell| counts_whole_seconds(context, cell));
    let is_paced = sharing == Sharing::Alternating && cells.iter().all(|cell| cell.is_paced_in_turns());
    let length = match sharing {
        Sharing::Alternating if is_paced => WINDOW_OF_SLICES,
        Sharing::Together if in_seconds => WHOLE_SECOND,
        Sharing::Together => WINDOW.max(least),
        Sharing::Turns if in_seconds => Nanos(2 * WHOLE_SECOND.0),
        Sharing::Turns => WINDOW_OF_TURNS.max(least),
        Sharing::Alternating => WINDOW_OF_ALTERNATION,
    };
    let of_role = step.probe.map_or(0, |role| role as u64 + 1) << 16;
    let mut random =
        Pcg64Mcg::seed_from_u64(seed ^ u64::from(step.unit) ^ of_role ^ (step.cell as u64) << 32);
    let probe = step.probe.map(|role| Probe { role, side: random.random_range(0..2), share: PROBE_SHARE });
    let mut stages = BTreeMap::new();
    // Neither side has a place of its own: what differs between the labs is noise, not bias.
    let [one, two] = labs;
    let [a, b] = if random.random() { [two, one] } else { [one, two] };
    let result = (|| {
        let order = random.random();
        let window = |second| TimedWindow {
            length,
            sharing: Some(sharing),
            second,
            may_starve: step.warmup && sharing == Sharing::Together,
            alternation: (sharing == Sharing::Alternating).then_some(Alternation {
                length_ns: if is_paced { SLICE } else { ALTERNATION },
                guard_ns: if is_paced { GUARD_OF_SLICE } else { GUARD },
                seed: order,
                second,
            }),
        };
        let launches =
            [launches(context, cells[0], window(false))?, launches(context, cells[1], window(true))?];
        let label = |cell: &PlannedCell| Label {
            suite: suite.name.clone(),
            cell: cell.id.clone(),
            round: step.unit,
            warmup: step.warmup,
        };
        // What is ready first rests until the other is: that is no side's either.
        let ready = on_both([&mut *a, &mut *b], random.random(), |lab, side| {
            let mut stages = Stages { at, times: BTreeMap::new() };
            let ready = prepare(lab, &launches[side], &label(cells[side]), &mut stages);
            (ready, stages.times)
        });
        // Also of a unit that fails here: a budget counts it.
        for (stage, time) in ready.iter().flat_map(|(_, times)| times) {
            let longest = stages.entry(*stage).or_insert(Nanos::ZERO);
            *longest = (*longest).max(*time);
        }
        ready.into_iter().try_for_each(|(ready, _)| ready)?;
        // What runs elsewhere cannot be stopped: without alternating clients, first one side has its window,
        // then the other.
        let one_by_one = context.programs.are_elsewhere() && sharing != Sharing::Alternating;
        if sharing == Sharing::Turns && !one_by_one {
            let (start, seed) = (clock::now() + FIRST_TURN, random.random());
            a.take_turns(Turns { start, length: TURN, seed, second: false });
            b.take_turns(Turns { start, length: TURN, seed, second: true });
        }
        if let Some(Probe { role, side, share }) = probe {
            let braked = if side == 0 { &mut *a } else { &mut *b };
            braked.brake(BrakeForce { role, share });
        }
        let begin = a.now();
        let of_side = |lab: &mut dyn Lab, side: usize| {
            measure(lab, &launches[side], false).map_err(|error| Stopped::from_error(Stage::Measure, error))
        };
        let second_first = random.random();
        let [one, two] = match (one_by_one, second_first) {
            (false, _) => on_both([&mut *a, &mut *b], second_first, of_side),
            (true, false) => [of_side(&mut *a, 0), of_side(&mut *b, 1)],
            (true, true) => {
                let two = of_side(&mut *b, 1);
                [of_side(&mut *a, 0), two]
            }
        };
        stages.insert(Stage::Measure, a.now().since(begin));
        let (one, two) = (one?, two?);
        // On other machines there are other CPUs, and windows one after the other.
        let both = [&one.0, &two.0];
        let others = if one_by_one { [None; 2] } else { [strangers(both), stolen(both)] };
        Ok((others, [side(one, is_paced), side(two, is_paced)]))
    })();
    let begin = a.now();
    let ended = on_both([&mut *a, &mut *b], false, |lab, _| {
        lab.stop().map_err(|error| Stopped::from_error(Stage::Stop, error))
    });
    stages.insert(Stage::Stop, a.now().since(begin));
    let [one, two] = ended;
    let (outcome, [strangers, stolen], sides) = match one.and(two).and(result) {
        Ok((others, sides)) => (Outcome::Ok, others, Some(sides)),
        Err(Stopped::Outcome(outcome)) => (outcome, [None; 2], None),
        Err(Stopped::Interrupted) => return Err(LabError::Interrupted),
        Err(Stopped::Lost(why)) => return Err(LabError::Lost(why)),
    };
    let ids = cells.map(|cell| cell.id.clone());
    Ok(Duet {
        suite: suite.name.clone(),
        cells: ids,
        unit: step.unit,
        warmup: step.warmup,
        sharing,
        probe,
        at,
        outcome,
        sides,
        strangers,
        stolen,
        stages,
    })
}

/// Does the same on both sides at once; `second_first` starts the second side before the first.
fn on_both<T: Send>(
    labs: [&mut (dyn Lab + 'static); 2],
    second_first: bool,
    work: impl Fn(&mut dyn Lab, usize) -> T + Sync,
) -> [T; 2] {
    let [a, b] = labs;
    thread::scope(|scope| {
        let work = &work;
        let delayed = |waits: bool| {
            if waits {
                thread::sleep(HEAD_START);
            }
        };
        let other = scope.spawn(move || {
            delayed(!second_first);
            work(b, 1)
        });
        delayed(second_first);
        let one = work(a, 0);
        [one, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))]
    })
}

fn launches(context: Context<'_>, cell: &PlannedCell, window: TimedWindow) -> Result<Launches, Stopped> {
    Launches::new(context, cell, Some(window)).map_err(|reason| failed(Stage::Start, reason, String::new()))
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
        cpu: measurement.cpu,
        brake,
    }
}
