//! Profiles of two cells under the same load: in each launch, windows of both by turns, with samples of their
//! servers and relays, and without. They decide nothing.

use super::duet::both_stages;
use super::launch::{Launches, TimedWindow, alone};
use super::{Context, Stages, Stopped, failed, prepare, warm_up};
use crate::lab::pair::{Pair, on_both};
use crate::lab::{Lab, LabError, Label, Purpose, Sampling};
use crate::measurement::{CallWindow, Count, Outcome, PairProfile, PlannedSuite, Spent, StackSample, Stage};
use linerate_contract::{Nanos, Role};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;
use std::time::Duration;

/// Fresh processes this often: what one pair of them has by chance is no cause.
const LAUNCHES: u32 = 3;
/// One side's window. Short ones alternate often, which is how the sides have the same noise; and of few of
/// them, where a start takes most of the time, no function is certain.
const WINDOW: Nanos = Nanos(50_000_000);
/// The shortest window of clients that count whole seconds.
const SECOND: Nanos = Nanos(1_000_000_000);
/// Windows of a launch, also where its share of the time is used.
const LEAST_ROUNDS: u32 = 3;
/// The launch whose system calls are recorded: windows, their length, its part of the time, and the warm-up
/// of a server of the user's own: a compiler at work makes requests slower, and not their calls more.
const CALL_ROUNDS: u32 = 4;
const CALL_WINDOW: Nanos = Nanos(40_000_000);
const OF_CALLS: u64 = 10;
const WARMUP_OF_CALLS: Nanos = Nanos(200_000_000);
/// Stacks that are kept of a pair.
const MOST_STACKS: usize = 4_000;

/// Profiles the two cells for about this time, in at least two launches.
///
/// # Errors
/// [`LabError::Interrupted`] or [`LabError::Lost`]: the run cannot go on. All else is lacking in the profile.
pub fn run(
    [a, b]: Pair<'_>,
    context: Context<'_>,
    suite: &PlannedSuite,
    cells: [usize; 2],
    time: Duration,
    seed: u64,
) -> Result<PairProfile, LabError> {
    let mut profile = PairProfile {
        suite: suite.name.clone(),
        cells: cells.map(|cell| suite.cells[cell].id.clone()),
        ..PairProfile::default()
    };
    let mut random = Pcg64Mcg::seed_from_u64(seed ^ (cells[0] as u64) << 32);
    let least = context.servers.map_or(Nanos::ZERO, |servers| servers.learned.least_window());
    let begin = a.now();
    let all = Nanos::from(time);
    let time = Nanos(all.0 - all.0 / OF_CALLS);
    let stacks = (0..LAUNCHES).map(|number| (number, Sampling::Stacks));
    let mut took = Nanos::ZERO;
    for (launch, what) in stacks.chain([(LAUNCHES, Sampling::Calls)]) {
        let (start, is_of_stacks) = (a.now(), what == Sampling::Stacks);
        // A slow start leaves room for fewer.
        if is_of_stacks && launch > 0 && start + took > begin + time + Nanos(took.0 / 2) {
            continue;
        }
        let until = begin + Nanos(time.0 * u64::from(launch + 1) / u64::from(LAUNCHES));
        [&mut *a, &mut *b].into_iter().for_each(|lab| lab.sample(what));
        let launch = Launch { suite, cells, number: launch, what, until, end: begin + time, least };
        let measured = launch.measure([&mut *a, &mut *b], context, &mut profile, &mut random);
        [&mut *a, &mut *b].into_iter().for_each(|lab| lab.sample(Sampling::Off));
        let stopped = on_both([&mut *a, &mut *b], false, |lab, _| lab.stop());
        stopped.into_iter().collect::<Result<Vec<()>, _>>()?;
        if let Err(stopped) = measured {
            if let Outcome::Failed { reason, .. } = stopped.outcome()? {
                profile.lacking.push(format!("a launch with samples failed: {reason}"));
            }
            break;
        }
        took = a.now().since(start);
    }
    profile.shorten(MOST_STACKS);
    Ok(profile)
}

/// One launch of both sides.
struct Launch<'a> {
    suite: &'a PlannedSuite,
    cells: [usize; 2],
    number: u32,
    what: Sampling,
    /// No further window begins after this time, or after the end where no other launch fits before it.
    until: Nanos,
    end: Nanos,
    /// A window is at least as long, so that responses end in it.
    least: Nanos,
}

impl Launch<'_> {
    fn measure(
        &self,
        [a, b]: Pair<'_>,
        context: Context<'_>,
        profile: &mut PairProfile,
        random: &mut Pcg64Mcg,
    ) -> Result<(), Stopped> {
        let is_of_calls = self.what == Sampling::Calls;
        let (length, least) = if is_of_calls { (CALL_WINDOW, CALL_ROUNDS) } else { (WINDOW, LEAST_ROUNDS) };
        let mut launches = self.launches(context, length.max(self.least))?;
        if launches.iter().any(Launches::counts_whole_seconds) {
            launches = self.launches(context, SECOND.max(self.least))?;
        }
        let start = a.now();
        let label = |side: usize| Label {
            suite: self.suite.name.clone(),
            cell: self.suite.cells[self.cells[side]].id.clone(),
            round: self.number + 1,
            warmup: true,
        };
        let mut times = BTreeMap::new();
        both_stages([&mut *a, &mut *b], random.random(), &mut times, |lab, side, stages: &mut Stages| {
            prepare(lab, &launches[side], &label(side), stages)?;
            warm_up(lab, &launches[side], stages)?;
            // The first samples of a launch take a tenth of a second or more: symbols are read. Here both
            // sides read them at once.
            if self.what == Sampling::Stacks && !launches[side].counts_whole_seconds() {
                window(lab, &launches[side]).map_err(|error| Stopped::from_error(Stage::Measure, error))?;
            }
            Ok(())
        })?;
        let mut rounds = 0;
        let mut took = Nanos::ZERO;
        while rounds < least || !is_of_calls && self.has_time(start, a.now(), took) {
            let start = a.now();
            let second_first = random.random();
            let mut of_side = |side: usize| {
                let lab: &mut dyn Lab = if side == 0 { &mut *a } else { &mut *b };
                self.windows(lab, &launches[side], random.random())
                    .map_err(|error| Stopped::from_error(Stage::Measure, error))
            };
            let [one, two] = if second_first {
                let two = of_side(1)?;
                [of_side(0)?, two]
            } else {
                [of_side(0)?, of_side(1)?]
            };
            let sides = [&one, &two];
            if is_of_calls {
                let calls = sides.map(|(side, _)| CallWindow {
                    operations: side.spent.operations,
                    calls: side.sample.calls.clone(),
                    counts: side.counts.clone(),
                });
                profile.add_calls(calls, sides.map(|(side, _)| &side.sample));
            } else {
                profile.add(self.number, sides.map(|(side, beside)| (side.spent, &side.sample, *beside)));
            }
            rounds += 1;
            took = a.now().since(start);
        }
        Ok(())
    }

    /// The processes of both sides, with a client that works for this time.
    fn launches(&self, context: Context<'_>, length: Nanos) -> Result<[Launches; 2], Stopped> {
        let of_side = |side: usize| {
            // In one network the sides have a port each.
            let window = TimedWindow { second: side == 1, ..alone(length) };
            let mut cell = self.suite.cells[self.cells[side]].clone();
            if self.what == Sampling::Calls && context.servers.is_some() {
                cell.warm_for = Some(WARMUP_OF_CALLS);
            }
            Launches::new(context, &cell, Some(window))
                .map_err(|reason| failed(Stage::Start, reason, String::new()))
        };
        Ok([of_side(0)?, of_side(1)?])
    }

    /// A side's window with records of its servers; beside one of stacks, first or second, one without.
    fn windows(
        &self,
        lab: &mut dyn Lab,
        launches: &Launches,
        is_first: bool,
    ) -> Result<(Side, Option<Spent>), LabError> {
        if self.what != Sampling::Stacks {
            return Ok((window(lab, launches)?, None));
        }
        let unsampled = |lab: &mut dyn Lab| {
            lab.sample(Sampling::Off);
            let side = window(lab, launches)?;
            lab.sample(self.what);
            Ok::<_, LabError>(side.spent)
        };
        if is_first {
            let side = window(lab, launches)?;
            return Ok((side, Some(unsampled(lab)?)));
        }
        let beside = unsampled(lab)?;
        Ok((window(lab, launches)?, Some(beside)))
    }

    /// True if a window that takes this long has time yet, in a launch that began at `start`.
    fn has_time(&self, start: Nanos, now: Nanos, took: Nanos) -> bool {
        // Another launch takes as long as this one until now.
        let has_another = now + now.since(start) <= self.end;
        now + took < if has_another { self.until } else { self.end }
    }
}

/// Everything known of a window of one side.
struct Side {
    /// By server and relays.
    spent: Spent,
    sample: StackSample,
    counts: BTreeMap<Count, u64>,
}

fn window(lab: &mut dyn Lab, launches: &Launches) -> Result<Side, LabError> {
    let run = lab.run(launches.client(), Purpose::Measure, launches.timeout())?;
    let measurement = launches
        .read(&run)
        .and_then(|found| launches.check(&found).map(|()| found))
        .map_err(|reason| LabError::System { reason, log: run.stderr.join("\n") })?;
    let of_systems = run.cpu.iter().filter(|(role, _)| *role != Role::Client);
    let cpu = Nanos(of_systems.map(|(_, time)| time.0).sum());
    let spent = Spent { operations: measurement.operations, cpu };
    let sample = run.record.sample.unwrap_or_default();
    Ok(Side { spent, sample, counts: run.record.counts })
}
