//! When the operations of an open loop are due: one schedule per thread, drawn on demand.
//!
//! Threads share nothing, so each has its own part: every n-th operation of an even schedule, or a random
//! process with an n-th of the rate (the sum of independent Poisson processes is one). Times are computed
//! from the operation's number and not summed, so that rounding errors do not accumulate over a day of 20,000
//! operations a second.

use crate::refusal::Refusal;
use linerate_contract::{Arrival, Nanos, Spec};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// Faster than any engine here; a gap below 100 ns would be a wrong unit.
const HIGHEST_RATE: f64 = 1e7;

/// An endless sequence of times since the window's start, never decreasing.
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
        let shape = match (spec.arrival, spec.duration_ns) {
            (Arrival::Constant, _) => ArrivalShape::Constant { gap },
            (Arrival::Poisson, _) => ArrivalShape::Poisson {
                gap: gap * f64::from(threads),
                at: 0.0,
                random: Pcg64Mcg::seed_from_u64(spec.seed.wrapping_add(u64::from(thread) << 32)),
            },
            (Arrival::Ramp, Some(duration)) => ArrivalShape::Ramp { square: 2.0 * gap * duration.0 as f64 },
            (Arrival::Ramp, None) => {
                return Err(Refusal::BadSpec("\"arrival\" ramp needs \"duration_ns\"".into()));
            }
        };
        Ok(Some(Self { shape, number: thread.into(), threads: threads.into() }))
    }
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
                // In (0, 1], so that the logarithm is finite; 53 bits are the precision of an f64.
                let uniform = ((random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
                *at -= *gap * uniform.ln();
                *at
            }
        };
        Some(Nanos(at as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Role;

    fn spec(rate: f64, arrival: Arrival) -> Spec {
        let mut spec = Spec::new(Role::Client, "http", "rr");
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

    #[test]
    fn rates_out_of_range_are_refused() {
        for rate in [0.0, -1.0, f64::NAN, 1e9] {
            assert!(Schedule::new(&spec(rate, Arrival::Constant), 0, 1).is_err(), "{rate}");
        }
        let endless = Spec { duration_ns: None, ..spec(1.0, Arrival::Ramp) };
        assert!(Schedule::new(&endless, 0, 1).is_err());
    }
}
