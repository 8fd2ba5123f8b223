//! When the operations of an open loop are due: one schedule per thread, drawn on demand.
//!
//! Threads share nothing, so each has its own part: every n-th operation of an even schedule, or a random
//! process with an n-th of the rate (the sum of independent Poisson processes is one). Times are computed
//! from the operation's number and not summed, so that rounding errors do not accumulate over a day of 20,000
//! operations a second.

use crate::refusal::Refusal;
use linerate_contract::alternation::Turn;
use linerate_contract::{Alternation, Arrival, Nanos, Spec};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// Faster than any engine here; a gap below 100 ns would be a wrong unit.
const HIGHEST_RATE: f64 = 1e7;

/// A client that works in turns wakes up so long before its next turn counts: its CPU's clock is up by then,
/// and a late timer makes no operation late. Longer, it would poll while the other's last operations end.
const LEAD: Nanos = Nanos(1_000_000);

/// An endless sequence of times since the window's start, never decreasing. Of a client that works in turns:
/// times on its clock.
#[derive(Debug, Clone)]
pub struct Schedule {
    shape: ArrivalShape,
    /// Number of this thread's next operation in the common schedule.
    number: u64,
    threads: u64,
}

#[derive(Debug, Clone)]
enum ArrivalShape {
    Constant {
        gap: f64,
    },
    Poisson {
        gap: f64,
        at: f64,
        random: Pcg64Mcg,
    },
    /// The n-th operation is due at `sqrt(n * square)`.
    Ramp {
        square: f64,
    },
    Turns(Box<InTurns>),
    /// Recorded times, again and again.
    Recorded {
        times: Box<[Nanos]>,
        gap: f64,
    },
}

/// Arrivals in own turns alone. Those of a turn are drawn by the seed of its pair.
#[derive(Debug, Clone)]
struct InTurns {
    alternation: Alternation,
    /// Between two operations of this thread.
    gap: f64,
    is_random: bool,
    thread: u64,
    turn: Turn,
    random: Pcg64Mcg,
    /// When the last operation is due, since its turn counts.
    at: f64,
    rest: [Nanos; 2],
}

impl InTurns {
    fn enter(&mut self, turn: Turn) {
        let seed = self.alternation.seed_of(turn.pair).wrapping_add(self.thread << 32);
        (self.turn, self.random) = (turn, Pcg64Mcg::seed_from_u64(seed));
        // Even gaps have a random phase: one that is longer than a turn has operations in some turns.
        self.at = if self.is_random { 0.0 } else { -self.gap * uniform(&mut self.random) };
    }

    fn next(&mut self) -> Nanos {
        let mut ended = None;
        loop {
            self.at += if self.is_random { exponential(self.gap, &mut self.random) } else { self.gap };
            let due = self.turn.counts_from + Nanos(self.at as u64);
            if due < self.turn.end {
                return due;
            }
            let from = *ended.get_or_insert(self.turn.end);
            self.enter(self.alternation.own(self.turn.end));
            self.rest = [from, self.turn.counts_from.since(LEAD)];
        }
    }
}

impl Schedule {
    /// The part of thread `thread` of `threads`; `None` for a closed loop.
    ///
    /// # Errors
    /// A rate out of range, or a ramp without `duration_ns`.
    pub fn new(spec: &Spec, thread: u32, threads: u32) -> Result<Option<Self>, Refusal> {
        let Some(rate) = spec.rate else { return Ok(None) };
        if !(rate > 0.0 && rate <= HIGHEST_RATE) {
            return Err(Refusal::BadSpec(format!(
                "\"rate\" must be above 0 and at most {HIGHEST_RATE}: {rate}"
            )));
        }
        let gap = 1e9 / rate;
        let random = Pcg64Mcg::seed_from_u64(spec.seed.wrapping_add(u64::from(thread) << 32));
        let of_thread = gap * f64::from(threads);
        let shape = match (spec.arrival, spec.alternation, spec.duration_ns) {
            _ if !spec.replay.is_empty() => recorded(spec, gap, threads)?,
            (Arrival::Ramp, Some(_), _) => {
                return Err(Refusal::BadSpec(
                    "\"arrival\" ramp has no turns: leave out \"alternation\"".into(),
                ));
            }
            (arrival, Some(alternation), _) => ArrivalShape::Turns(Box::new(InTurns {
                alternation,
                gap: of_thread,
                is_random: arrival == Arrival::Poisson,
                thread: thread.into(),
                turn: alternation.own(Nanos::ZERO),
                random,
                at: 0.0,
                rest: [Nanos::ZERO; 2],
            })),
            (Arrival::Constant, None, _) => ArrivalShape::Constant { gap },
            (Arrival::Poisson, None, _) => ArrivalShape::Poisson { gap: of_thread, at: 0.0, random },
            (Arrival::Ramp, None, Some(duration)) => {
                ArrivalShape::Ramp { square: 2.0 * gap * duration.0 as f64 }
            }
            (Arrival::Ramp, None, None) => {
                return Err(Refusal::BadSpec("\"arrival\" ramp needs \"duration_ns\"".into()));
            }
        };
        Ok(Some(Self { shape, number: thread.into(), threads: threads.into() }))
    }

    /// Begins at `now`; returns what its times count from. In turns with the next one that begins.
    pub fn start(&mut self, now: Nanos) -> Nanos {
        let ArrivalShape::Turns(turns) = &mut self.shape else { return now };
        let turn = turns.alternation.own(now);
        turns.enter(if turn.begin < now { turns.alternation.own(turn.end) } else { turn });
        turns.rest = [Nanos::ZERO, turns.turn.counts_from.since(LEAD)];
        Nanos::ZERO
    }

    /// From when to when a client that works in turns has nothing to send, before the turn of its last time
    /// or the one that follows; without turns never.
    #[inline]
    pub fn rest(&self) -> [Nanos; 2] {
        if let ArrivalShape::Turns(turns) = &self.shape { turns.rest } else { [Nanos::ZERO; 2] }
    }
}

/// The times of `replay`, which one thread keeps.
fn recorded(spec: &Spec, gap: f64, threads: u32) -> Result<ArrivalShape, Refusal> {
    let times: Box<[Nanos]> = spec.replay.iter().map(|(at, _)| *at).collect();
    let requests = spec.requests.len().max(1);
    let is_known = |(_, number): &(Nanos, u32)| (*number as usize) < requests;
    let wrong = match () {
        () if threads != 1 || spec.alternation.is_some() => "is for one thread, and without \"alternation\"",
        () if !times.is_sorted() => "is in the order of its times",
        () if !spec.replay.iter().all(is_known) => "has a number that is none of \"requests\"",
        () => return Ok(ArrivalShape::Recorded { times, gap }),
    };
    Err(Refusal::BadSpec(format!("\"replay\" {wrong}")))
}

/// In (0, 1], so that the logarithm is finite; 53 bits are the precision of an f64.
#[inline]
fn uniform(random: &mut Pcg64Mcg) -> f64 {
    ((random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

/// A gap of a Poisson process with this mean.
#[inline]
fn exponential(mean: f64, random: &mut Pcg64Mcg) -> f64 {
    -mean * uniform(random).ln()
}

impl Iterator for Schedule {
    type Item = Nanos;

    #[inline]
    fn next(&mut self) -> Option<Nanos> {
        let number = self.number as f64;
        self.number += self.threads;
        let at = match &mut self.shape {
            ArrivalShape::Constant { gap } => number * *gap,
            ArrivalShape::Ramp { square } => (number * *square).sqrt(),
            ArrivalShape::Poisson { gap, at, random } => {
                *at += exponential(*gap, random);
                *at
            }
            ArrivalShape::Turns(turns) => return Some(turns.next()),
            ArrivalShape::Recorded { times, gap } => {
                // The last operation and the first one of the next time have a usual gap between them.
                let (round, place) =
                    ((self.number - 1) as usize / times.len(), (self.number - 1) as usize % times.len());
                let span = times[times.len() - 1].0 + *gap as u64;
                return Some(Nanos(round as u64 * span + times[place].0));
            }
        };
        Some(Nanos(at as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Layer, Role, Workload};

    fn spec(rate: f64, arrival: Arrival) -> Spec {
        let mut spec = Spec::new(Role::Client, Layer::Http, Workload::Rr);
        (spec.rate, spec.arrival, spec.duration_ns, spec.seed) =
            (Some(rate), arrival, Some(Nanos(1_000_000_000)), 7);
        spec
    }

    /// The operations of all threads in the first second.
    fn second(spec: &Spec, threads: u32) -> Vec<u64> {
        let part = |t| {
            Schedule::new(spec, t, threads).unwrap().unwrap().map(|n| n.0).take_while(|n| *n < 1_000_000_000)
        };
        let mut all: Vec<u64> = (0..threads).flat_map(part).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn an_even_schedule_is_even_over_all_threads() {
        for threads in [1, 3] {
            let times = second(&spec(20_000.0, Arrival::Constant), threads);
            assert_eq!(times.len(), 20_000);
            assert!(times.windows(2).all(|pair| pair[1] - pair[0] == 50_000));
        }
    }

    #[test]
    fn recorded_times_are_kept_and_come_again_after_a_gap() {
        let mut spec = spec(1.0, Arrival::Constant);
        spec.replay = [0, 5, 5, 9].map(|second| (Nanos(second * 1_000_000_000), 0)).to_vec();
        let times: Vec<u64> = Schedule::new(&spec, 0, 1).unwrap().unwrap().take(6).map(|at| at.0).collect();
        assert_eq!(times, [0, 5, 5, 9, 10, 15].map(|second| second * 1_000_000_000));
        assert!(Schedule::new(&spec, 0, 2).unwrap_err().to_string().contains("one thread"));
        spec.replay[3].1 = 1;
        assert!(Schedule::new(&spec, 0, 1).unwrap_err().to_string().contains("none of"));
        spec.replay.swap(0, 1);
        assert!(Schedule::new(&spec, 0, 1).unwrap_err().to_string().contains("order of its times"));
    }

    #[test]
    fn random_gaps_have_the_mean_and_spread_of_a_poisson_process() {
        for threads in [1, 4] {
            let times = second(&spec(100_000.0, Arrival::Poisson), threads);
            // Four standard deviations of a Poisson count.
            assert!((times.len() as f64 - 1e5).abs() < 4.0 * 1e5_f64.sqrt(), "{}", times.len());
            let above_mean = times.windows(2).filter(|pair| pair[1] - pair[0] > 10_000).count() as f64;
            assert!((above_mean / times.len() as f64 - (-1.0_f64).exp()).abs() < 0.01);
        }
        let poisson = spec(1000.0, Arrival::Poisson);
        assert_eq!(second(&poisson, 2), second(&poisson, 2));
        assert_ne!(second(&poisson, 2), second(&Spec { seed: 8, ..poisson }, 2));
    }

    #[test]
    fn a_ramp_ends_at_its_rate_and_has_half_the_operations() {
        let times = second(&spec(10_000.0, Arrival::Ramp), 2);
        assert_eq!(times.len(), 5_000);
        let last = times.iter().filter(|t| **t >= 990_000_000).count();
        assert!((99..=101).contains(&last), "{last}");
    }

    /// The times of a client in 2 s, each with its turn.
    fn in_turns(rate: f64, arrival: Arrival, second: bool) -> Vec<(Turn, u64)> {
        let [length_ns, guard_ns] = [30_000_000, 3_000_000].map(Nanos);
        let alternation = Alternation { length_ns, guard_ns, seed: 9, second };
        let spec = Spec { alternation: Some(alternation), ..spec(rate, arrival) };
        let mut schedule = Schedule::new(&spec, 0, 1).unwrap().unwrap();
        let begin = Nanos(5_000_000_000);
        assert_eq!(schedule.start(begin), Nanos::ZERO);
        let mut times = Vec::new();
        while let Some(due) = schedule.next().filter(|due| *due < begin + Nanos(2_000_000_000)) {
            let turn = alternation.own(due);
            assert!(turn.counts_from <= due && due < turn.end, "{due:?} {turn:?}");
            // The time without anything to send is before this turn or after it.
            let [from, to] = schedule.rest();
            assert!(to <= turn.counts_from.since(LEAD) || from >= turn.end, "{due:?} {from:?} {to:?}");
            times.push((turn, due.since(turn.counts_from).0));
        }
        times
    }

    #[test]
    fn both_clients_have_the_same_arrivals_in_their_turns_of_a_pair_and_the_rate_in_each() {
        for (rate, arrival) in
            [(5_000.0, Arrival::Poisson), (5_000.0, Arrival::Constant), (20.0, Arrival::Poisson)]
        {
            let [one, two] = [false, true].map(|second| in_turns(rate, arrival, second));
            for (turn, _) in &one {
                let of = |all: &[(Turn, u64)]| {
                    all.iter()
                        .filter(|(other, _)| other.pair == turn.pair)
                        .map(|(_, at)| *at)
                        .collect::<Vec<_>>()
                };
                // The first and the last turn may be outside of the window.
                assert!(
                    of(&one) == of(&two)
                        || turn.pair == one[0].0.pair
                        || turn.pair == one[one.len() - 1].0.pair
                );
            }
            // 27 of 60 ms count, less a turn; five standard deviations.
            let expected = rate * 0.9;
            let off = (one.len() as f64 - expected).abs();
            assert!(off < 0.03 * rate + 5.0 * expected.sqrt(), "{rate} {}", one.len());
        }
    }

    #[test]
    fn rates_out_of_range_are_refused() {
        for rate in [0.0, -1.0, f64::NAN, 1e9] {
            assert!(Schedule::new(&spec(rate, Arrival::Constant), 0, 1).is_err(), "{rate}");
        }
        let endless = Spec { duration_ns: None, ..spec(1.0, Arrival::Ramp) };
        assert!(Schedule::new(&endless, 0, 1).is_err());
    }
}
