//! One direction of an impaired link: when each packet leaves, or why it does not. Pure: no clock, no socket.

use linerate_contract::{Bytes, Nanos};
use linerate_model::path::Impairment;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The fate of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The packet leaves at this time.
    Leaves(Nanos),
    Lost,
    /// The queue of the rate was full.
    Overflowed,
}

/// The state of a direction.
pub(super) struct Shaper {
    impairment: Impairment,
    random: Pcg64Mcg,
    /// Gilbert's model: in the bad state every packet is lost.
    is_bad: bool,
    /// When the last accepted packet has left the rate.
    idle_from: Nanos,
}

impl Shaper {
    pub(super) fn new(impairment: Impairment, seed: u64) -> Self {
        let random = Pcg64Mcg::seed_from_u64(seed);
        Self { impairment, random, is_bad: false, idle_from: Nanos::ZERO }
    }

    /// A packet of `bytes` that arrived at `now`. The times of calls must not go back.
    pub(super) fn arrive(&mut self, now: Nanos, bytes: Bytes) -> Fate {
        if self.loses() {
            return Fate::Lost;
        }
        let sent = match self.impairment.rate {
            None => now,
            Some(rate) => {
                let waiting = rate.bytes_in(self.idle_from.since(now));
                // A packet that is being sent does not wait, so an empty queue accepts any.
                if waiting.0 > 0 && (waiting + bytes) > self.impairment.queue.unwrap_or(Bytes(u64::MAX)) {
                    return Fate::Overflowed;
                }
                self.idle_from = self.idle_from.max(now) + rate.time_of(bytes);
                self.idle_from
            }
        };
        Fate::Leaves(sent + self.delay())
    }

    fn loses(&mut self) -> bool {
        let loss = self.impairment.loss.0;
        if loss == 0.0 {
            return false;
        }
        let Some(burst) = self.impairment.burst else { return self.happens(loss) };
        let change = if self.is_bad { 1.0 / burst } else { loss / (burst * (1.0 - loss)) };
        self.is_bad ^= self.happens(change);
        self.is_bad
    }

    fn delay(&mut self) -> Nanos {
        let Impairment { delay, jitter, reorder, .. } = self.impairment;
        if reorder.0 > 0.0 && self.happens(reorder.0) {
            return Nanos::ZERO;
        }
        if jitter == Nanos::ZERO {
            return delay;
        }
        Nanos(self.random.random_range(delay.since(jitter).0..=(delay + jitter).0))
    }

    fn happens(&mut self, share: f64) -> bool {
        self.random.random::<f64>() < share
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::path::units::{BitRate, Share};

    const PACKET: Bytes = Bytes(1_250);

    fn fates(impairment: Impairment, packets: u64, gap: u64) -> Vec<Fate> {
        let mut shaper = Shaper::new(impairment, 1);
        (0..packets).map(|n| shaper.arrive(Nanos(n * gap), PACKET)).collect()
    }

    #[test]
    fn nothing_is_changed_by_an_empty_impairment() {
        assert_eq!(fates(Impairment::default(), 3, 5), [0, 5, 10].map(|at| Fate::Leaves(Nanos(at))));
    }

    #[test]
    fn a_rate_spaces_packets_and_its_queue_overflows() {
        // 10 Mbit/s: a millisecond for each packet. Ten packets at once, a queue of four.
        let impairment = Impairment {
            rate: Some(BitRate(10_000_000)),
            queue: Some(Bytes(5_000)),
            delay: Nanos(500),
            ..Impairment::default()
        };
        let fates = fates(impairment, 10, 0);
        let left: Vec<_> = fates.iter().take(4).copied().collect();
        assert_eq!(left, [1, 2, 3, 4].map(|n| Fate::Leaves(Nanos(n * 1_000_000 + 500))));
        assert!(fates[4..].iter().all(|fate| *fate == Fate::Overflowed));
        let mut shaper = Shaper::new(impairment, 1);
        shaper.arrive(Nanos::ZERO, PACKET);
        // Long idle: no credit is saved up.
        assert_eq!(shaper.arrive(Nanos(9_000_000), PACKET), Fate::Leaves(Nanos(10_000_500)));
    }

    #[test]
    fn an_empty_queue_accepts_a_packet_that_is_larger() {
        let rate = Some(BitRate(10_000_000));
        let impairment = Impairment { rate, queue: Some(Bytes(100)), ..Impairment::default() };
        assert_eq!(fates(impairment, 2, 0), [Fate::Leaves(Nanos(1_000_000)), Fate::Overflowed]);
    }

    #[test]
    fn independent_losses_are_single_and_bursts_have_their_mean_length() {
        for burst in [None, Some(5.0)] {
            let impairment = Impairment { loss: Share(0.02), burst, ..Impairment::default() };
            let lost: Vec<bool> = fates(impairment, 400_000, 1).iter().map(|f| *f == Fate::Lost).collect();
            let count = lost.iter().filter(|lost| **lost).count() as f64;
            let bursts = lost.windows(2).filter(|two| !two[0] && two[1]).count() as f64;
            // Five standard deviations of 400,000 packets at most.
            assert!((count / 400_000.0 / 0.02 - 1.0).abs() < 0.12, "{burst:?}: {count}");
            let length = count / bursts;
            assert!((length / burst.unwrap_or(1.0) - 1.0).abs() < 0.1, "{burst:?}: {length}");
        }
    }

    #[test]
    fn jitter_is_even_around_the_delay_and_reordered_packets_are_not_delayed() {
        let jitter = Impairment { delay: Nanos(1_000), jitter: Nanos(400), ..Impairment::default() };
        let times = |impairment| -> Vec<u64> {
            let fates = fates(impairment, 10_000, 0).into_iter();
            fates.map(|fate| if let Fate::Leaves(at) = fate { at.0 } else { u64::MAX }).collect()
        };
        let delays = times(jitter);
        assert!(delays.iter().all(|at| (600..=1_400).contains(at)));
        let mean = delays.iter().sum::<u64>() as f64 / 10_000.0;
        assert!((mean - 1_000.0).abs() < 15.0, "{mean}");
        let reordered = times(Impairment { reorder: Share(0.1), jitter: Nanos::ZERO, ..jitter });
        let early = reordered.iter().filter(|at| **at == 0).count();
        assert!((850..1_150).contains(&early), "{early}");
        assert!(reordered.iter().all(|at| [0, 1_000].contains(at)));
    }
}
