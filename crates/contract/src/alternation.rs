//! Load that alternates between two clients: one works while the other waits, and no process is stopped.
//!
//! Both clients cut the same clock into pairs of turns, so that they need no message to each other. In each
//! pair a seed draws who begins: a fixed order would let whatever has the same period favour one of them.

use crate::Nanos;
use serde::{Deserialize, Serialize};

/// The turns of one of two clients, on `CLOCK_MONOTONIC`.
///
/// Closed loop: operations begin only in own turns, and what ends within the guard or outside of own turns
/// does not count. Open loop: operations are due only in own turns after the guard. Their times in it are
/// drawn by [`Alternation::seed_of`], so that both clients have the same in their turns of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alternation {
    /// The length of a turn.
    pub length_ns: Nanos,
    /// The first part of each turn: operations of the other client end, and caches fill.
    pub guard_ns: Nanos,
    /// The seed of the order within each pair; the same for both clients.
    pub seed: u64,
    /// True for the second of the two clients.
    pub second: bool,
}

/// An own turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// The number of its pair.
    pub pair: u64,
    pub begin: Nanos,
    /// The end of its guard.
    pub counts_from: Nanos,
    pub end: Nanos,
}

impl Alternation {
    /// An error unless a turn is longer than its guard.
    ///
    /// # Errors
    /// The reason.
    pub fn check(&self) -> Result<(), String> {
        if self.guard_ns < self.length_ns {
            Ok(())
        } else {
            Err("\"alternation\": \"length_ns\" must be above \"guard_ns\"".into())
        }
    }

    /// The own turn that contains `now`, or else the next one.
    #[must_use]
    pub fn own(&self, now: Nanos) -> Turn {
        let length = self.length_ns.0;
        let mut pair = now.0 / (2 * length);
        loop {
            let is_first = self.draw(pair) != self.second;
            let begin = Nanos(2 * length * pair + if is_first { 0 } else { length });
            if begin.0 + length > now.0 {
                let counts_from = begin + self.guard_ns;
                return Turn { pair, begin, counts_from, end: begin + self.length_ns };
            }
            pair += 1;
        }
    }

    /// The time between `start` and `end` that counts.
    #[must_use]
    pub fn counted(&self, start: Nanos, end: Nanos) -> Nanos {
        let (mut sum, mut turn) = (Nanos::ZERO, self.own(start));
        while turn.begin < end {
            sum += turn.end.min(end).since(turn.counts_from.max(start));
            turn = self.own(turn.end);
        }
        sum
    }

    /// Whether the first client begins in this pair.
    fn draw(&self, pair: u64) -> bool {
        self.seed_of(pair) & 1 == 1
    }

    /// The seed of what both clients draw alike in their turns of this pair: its number, mixed as in
    /// SplitMix64 (Steele, Lea and Flood 2014, "Fast Splittable Pseudorandom Number Generators").
    #[must_use]
    pub fn seed_of(&self, pair: u64) -> u64 {
        let mut bits = self.seed.wrapping_add(pair.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(seed: u64) -> [Alternation; 2] {
        let side = |second| Alternation { length_ns: Nanos(100), guard_ns: Nanos(20), seed, second };
        [false, true].map(side)
    }

    #[test]
    fn at_any_time_it_is_the_turn_of_exactly_one_client() {
        for seed in 0..20 {
            let sides = both(seed);
            for now in 0..2_000 {
                let of = |side: &Alternation| side.own(Nanos(now)).begin.0 <= now;
                assert!(of(&sides[0]) != of(&sides[1]), "seed {seed}, {now}");
            }
        }
    }

    #[test]
    fn each_client_has_a_turn_of_each_pair_and_begins_half_of_them() {
        let [first, _] = both(7);
        let mut begun = 0;
        for pair in 0..1_000 {
            let turn = first.own(Nanos(pair * 200));
            assert!((pair * 200..(pair + 1) * 200).contains(&turn.begin.0), "{turn:?}");
            begun += u64::from(turn.begin.0 == pair * 200);
        }
        assert!((450..550).contains(&begun), "{begun}");
    }

    #[test]
    fn what_counts_is_each_own_turn_without_its_guard() {
        for side in both(3) {
            assert_eq!(side.counted(Nanos(0), Nanos(200_000)), Nanos(80_000));
            let turn = side.own(Nanos(10_000));
            assert_eq!(side.counted(turn.begin, turn.begin + Nanos(50)), Nanos(30));
            assert_eq!(side.counted(turn.begin, turn.begin + Nanos(10)), Nanos::ZERO);
            assert_eq!(side.counted(turn.end - Nanos(5), turn.end), Nanos(5));
        }
    }
}
