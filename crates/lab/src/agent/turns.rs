//! Turns of two labs on the same CPUs: all processes of one are stopped while those of the other run.
//!
//! Both agents follow the same schedule on `CLOCK_MONOTONIC` and exchange no messages.

use crate::protocol::Turns;
use linerate_contract::{Nanos, clock};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The schedule of one side, and the times in which its processes ran.
pub(super) struct TurnTaking {
    schedule: Schedule,
    /// Since when its processes run; `None` while they are stopped.
    since: Option<Nanos>,
    ran: Vec<[Nanos; 2]>,
}

impl TurnTaking {
    pub(super) fn new(turns: &Turns) -> Self {
        Self { schedule: Schedule::new(turns), since: Some(clock::now()), ran: Vec::new() }
    }

    /// When the schedule has to be looked at again.
    pub(super) fn next(&self) -> Nanos {
        self.schedule.end
    }

    /// Stops or continues the processes as the schedule requires now.
    pub(super) fn follow(&mut self) {
        let is_own = self.schedule.is_own(clock::now());
        match self.since {
            None if is_own => {
                // Read before: what continues may take this CPU at once.
                self.since = Some(clock::now());
                signal_all(Signal::SIGCONT);
            }
            Some(since) if !is_own => {
                signal_all(Signal::SIGSTOP);
                self.ran.push([since, clock::now()]);
                self.since = None;
            }
            _ => {}
        }
    }

    /// A process that is started in the other side's turn has to wait as well.
    pub(super) fn has_started_one(&self) {
        if self.since.is_none() {
            signal_all(Signal::SIGSTOP);
        }
    }

    /// The share of this window in which the processes ran.
    pub(super) fn share(&self, window: [Nanos; 2]) -> f64 {
        let running = self.since.map(|since| [since, Nanos(u64::MAX)]);
        let time: u64 = self.ran.iter().copied().chain(running).map(|turn| overlap(turn, window)).sum();
        time as f64 / window[1].since(window[0]).0.max(1) as f64
    }
}

impl Drop for TurnTaking {
    fn drop(&mut self) {
        if self.since.is_none() {
            signal_all(Signal::SIGCONT);
        }
    }
}

/// Which side's turn it is. Of each two slots either side has one, in an order that is drawn anew.
struct Schedule {
    length: Nanos,
    is_second: bool,
    random: Pcg64Mcg,
    /// The side of the slot after this one, if it is drawn already.
    other: Option<bool>,
    /// The end of the slot.
    end: Nanos,
    own: bool,
}

impl Schedule {
    fn new(turns: &Turns) -> Self {
        let random = Pcg64Mcg::seed_from_u64(turns.seed);
        // Before the first slot both sides run.
        Self {
            length: turns.length,
            is_second: turns.second,
            random,
            other: None,
            end: turns.start,
            own: true,
        }
    }

    fn is_own(&mut self, now: Nanos) -> bool {
        while self.end <= now {
            let second = self.other.take().unwrap_or_else(|| {
                let second: bool = self.random.random();
                self.other = Some(!second);
                second
            });
            self.own = second == self.is_second;
            self.end += self.length;
        }
        self.own
    }
}

fn overlap([a, b]: [Nanos; 2], [start, end]: [Nanos; 2]) -> u64 {
    b.min(end).since(a.max(start)).0
}

/// Every process of the lab but the agent. The kernel delivers it to all at once, so none can fork away.
fn signal_all(signal: Signal) {
    // Outside of a private pid namespace this would stop the user's session.
    assert_eq!(nix::unistd::getpid(), Pid::from_raw(1), "the agent is pid 1");
    let _ = kill(Pid::from_raw(-1), signal);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(seed: u64) -> [Schedule; 2] {
        [false, true]
            .map(|second| Schedule::new(&Turns { start: Nanos(100), length: Nanos(10), seed, second }))
    }

    #[test]
    fn exactly_one_side_runs_in_each_slot_and_each_has_one_of_two() {
        let [mut a, mut b] = sides(7);
        assert!(a.is_own(Nanos(99)) && b.is_own(Nanos(99)), "both run before the first slot");
        let slots: Vec<bool> = (0..200)
            .map(|slot| {
                let at = Nanos(100 + 10 * slot + slot % 10);
                let own = a.is_own(at);
                assert_ne!(own, b.is_own(at));
                own
            })
            .collect();
        assert!(slots.chunks(2).all(|pair| pair[0] != pair[1]));
        let first = slots.chunks(2).filter(|pair| pair[0]).count();
        assert!((20..80).contains(&first), "the order is drawn: {first} of 100");
    }

    #[test]
    fn slots_that_were_missed_are_skipped() {
        let ([mut a, _], [mut b, _]) = (sides(3), sides(3));
        let stepwise: Vec<bool> = (0..50).map(|slot| a.is_own(Nanos(100 + 10 * slot))).collect();
        assert_eq!(b.is_own(Nanos(100 + 490)), stepwise[49]);
        assert_eq!(b.end, Nanos(600));
    }

    #[test]
    fn the_share_counts_only_what_lies_in_the_window() {
        let schedule = sides(1).into_iter().next().unwrap();
        let ran = vec![[Nanos(0), Nanos(20)], [Nanos(40), Nanos(60)]];
        let turns = std::mem::ManuallyDrop::new(TurnTaking { schedule, since: None, ran });
        assert_eq!(turns.share([Nanos(10), Nanos(50)]), 0.5);
        assert_eq!(turns.share([Nanos(60), Nanos(90)]), 0.0);
        assert_eq!(turns.share([Nanos(40), Nanos(60)]), 1.0);
    }
}
