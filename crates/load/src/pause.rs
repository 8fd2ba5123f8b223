//! Waiting for sockets until a point in time, to the microsecond.
//!
//! `epoll_wait(2)` counts in milliseconds, and a normal thread's timers fire up to 50 us late on purpose (timer slack,
//! prctl(2)). `epoll_pwait2(2)`, of Linux 5.11, counts in nanoseconds, and the slack can be taken away. What is left is the
//! time to wake a sleeping CPU; the last stretch before a deadline is therefore spent looking and not sleeping, and a thread
//! learns how long that has to be on its machine.

#![allow(unsafe_code, reason = "nix has no epoll_pwait2")]

use crate::refusal::Refusal;
use crate::{clock, option};
use linerate_contract::{Nanos, Spec};
use nix::sys::epoll::{Epoll, EpollEvent, EpollTimeout};

/// Slept no closer to a deadline than this: what a wake-up from an idle CPU takes at most on most machines
/// (docs/method.md has the measurement). Half of it is often slept through; twice costs CPU for nothing.
const WAKE_UP: Nanos = Nanos(50_000);
/// What a machine that wakes later than most may add to that. Later still is another process on the CPU, or another machine on the
/// host's, and no earlier end of the sleep would help.
const LATEST_WAKE_UP: Nanos = Nanos(1_000_000);
/// How long an eager thread looks before it sleeps: about what its peer takes for the 64 KiB that are the other half of what is in
/// flight. With KCP it made the rate three times as high and CPU for each byte half as much (docs/decisions/0013-spin-then-block.md).
const LOOK: Nanos = Nanos(50_000);
/// What was learned of late wake-ups is forgotten by this part with each pause: one in a thousand is then late, and a single bad
/// moment is over within seconds.
const FORGETTING: u64 = 4_096;

/// An answer may wait so long for company, and no longer: more would be a think time.
const LONGEST_COALESCE_US: u64 = 1_000;

/// Lets the calling thread's timers fire when they are due.
pub fn without_timer_slack() {
    // Refused only by sandboxes; timers are then as late as anybody's, and the histogram of delays shows it.
    let _ = nix::sys::prctl::set_timerslack(1);
}

/// How a thread waits: what it has learned of this machine's wake-ups, or never asleep, or not for each event by itself.
#[derive(Debug, Clone)]
pub struct Pause {
    wake_up: Nanos,
    busy: bool,
    coalesce: Nanos,
}

impl Pause {
    /// As `options.busy` of the spec says. `yes`: the thread takes its CPU whole and looks all the time, so that neither a deadline
    /// nor an event waits for a CPU to wake. And as `options.coalesce_us` says: [`Pause::coalesced_until`].
    ///
    /// # Errors
    /// `options.coalesce_us` is no number, or longer than a millisecond.
    pub fn of(spec: &Spec) -> Result<Self, Refusal> {
        let coalesce = option::number(spec, "coalesce_us", 0..=LONGEST_COALESCE_US, "")?;
        Ok(Self {
            wake_up: WAKE_UP,
            busy: spec.options.get("busy").is_some_and(|busy| busy == "yes"),
            coalesce: Nanos(coalesce.unwrap_or(0) * 1_000),
        })
    }

    /// Whether events are taken in company.
    #[must_use]
    pub fn coalesces(&self) -> bool {
        self.coalesce > Nanos::ZERO
    }

    /// Events that are there, or come until `deadline`; `now` is a recent reading of the clock.
    #[inline]
    pub fn until(&mut self, epoll: &Epoll, events: &mut [EpollEvent], now: Nanos, deadline: Nanos) -> usize {
        let left = deadline.since(now);
        let sleep = if self.busy { Nanos::ZERO } else { left.since(self.wake_up) };
        let ready = wait(epoll, events, sleep);
        if ready > 0 || left == Nanos::ZERO {
            return ready;
        }
        if !self.busy {
            let late = if sleep > Nanos::ZERO { clock::now().since(now + sleep) } else { Nanos::ZERO };
            self.learn(late);
        }
        loop {
            let ready = wait(epoll, events, Nanos::ZERO);
            if ready > 0 || clock::now() >= deadline {
                return ready;
            }
        }
    }

    /// As [`Pause::until`], but looks for a while before it sleeps: for a peer that works on what it was just sent, to wake this thread
    /// would cost both more than the looking.
    #[inline]
    pub fn eagerly_until(
        &mut self,
        epoll: &Epoll,
        events: &mut [EpollEvent],
        now: Nanos,
        deadline: Nanos,
    ) -> usize {
        let end = deadline.min(now + LOOK);
        loop {
            let ready = wait(epoll, events, Nanos::ZERO);
            let now = clock::now();
            if ready > 0 {
                return ready;
            } else if now >= end {
                return self.until(epoll, events, now, deadline);
            }
            // The peer may share this CPU.
            std::thread::yield_now();
        }
    }

    /// Events that are there; if there are none, those that have come together while the thread slept for `options.coalesce_us`, or the
    /// first to come until `deadline`. What network cards do with interrupts (ethtool(8), `--coalesce`): an event may be seen so much
    /// later, and of several only the first pays for a wake-up (docs/decisions/0014-batched-responses.md).
    #[inline]
    pub fn coalesced_until(
        &self,
        epoll: &Epoll,
        events: &mut [EpollEvent],
        now: Nanos,
        deadline: Nanos,
    ) -> usize {
        let ready = wait(epoll, events, Nanos::ZERO);
        if ready > 0 {
            return ready;
        }
        let sleep = self.coalesce.min(deadline.since(now));
        std::thread::sleep(sleep.into());
        wait(epoll, events, deadline.since(now + sleep))
    }

    #[inline]
    fn learn(&mut self, late: Nanos) {
        let forgotten = Nanos(self.wake_up.0 - self.wake_up.0 / FORGETTING);
        self.wake_up = forgotten.max(late.min(LATEST_WAKE_UP)).max(WAKE_UP);
    }
}

#[inline]
fn wait(epoll: &Epoll, events: &mut [EpollEvent], time: Nanos) -> usize {
    let span = libc::timespec {
        tv_sec: (time.0 / 1_000_000_000) as libc::time_t,
        tv_nsec: (time.0 % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `EpollEvent` is a transparent `epoll_event`, the kernel writes at most `events.len()` of them, and the
    // time span and the null signal mask (whose size is then not looked at) outlive the call.
    let ready = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            std::os::fd::AsRawFd::as_raw_fd(&epoll.0),
            events.as_mut_ptr(),
            events.len() as libc::c_int,
            &raw const span,
            std::ptr::null::<libc::sigset_t>(),
            0_usize,
        )
    };
    match usize::try_from(ready) {
        Ok(ready) => ready,
        // Before 5.11. Rounded down: the caller looks again until the time has come.
        Err(_) if nix::Error::last() == nix::Error::ENOSYS => {
            let millis = (time.0 / 1_000_000).min(60_000) as u16;
            epoll.wait(events, EpollTimeout::from(millis)).unwrap_or(0)
        }
        Err(_) => 0, // EINTR; nothing else is possible on its own descriptor and buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::epoll::{EpollCreateFlags, EpollFlags};
    use nix::sys::eventfd::EventFd;
    use nix::sys::time::{TimeSpec, TimeValLike};
    use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

    fn with(option: &str, value: &str) -> Result<Pause, Refusal> {
        let mut spec = Spec::new(linerate_contract::Role::Client, "http", "rr");
        spec.options.insert(option.into(), value.into());
        Pause::of(&spec)
    }

    fn pauses() -> [Pause; 2] {
        ["no", "yes"].map(|busy| with("busy", busy).unwrap())
    }

    #[test]
    fn a_pause_lasts_until_its_deadline_and_not_shorter() {
        let epoll = Epoll::new(EpollCreateFlags::empty()).unwrap();
        let mut events = [EpollEvent::empty(); 4];
        for mut pause in pauses() {
            for span in [0, 1_000, 60_000, 3_000_000] {
                let now = clock::now();
                assert_eq!(pause.until(&epoll, &mut events, now, now + Nanos(span)), 0);
                assert!(clock::now().since(now) >= Nanos(span));
            }
        }
    }

    #[test]
    fn an_event_ends_it_early() {
        let epoll = Epoll::new(EpollCreateFlags::empty()).unwrap();
        let bell = EventFd::new().unwrap();
        epoll.add(&bell, EpollEvent::new(EpollFlags::EPOLLIN, 7)).unwrap();
        bell.write(1).unwrap();
        let mut events = [EpollEvent::empty(); 4];
        for mut pause in pauses() {
            let now = clock::now();
            assert_eq!(pause.until(&epoll, &mut events, now, now + Nanos(3_600_000_000_000)), 1);
            assert_eq!(events[0].data(), 7);
        }
    }

    #[test]
    fn events_come_together_to_whoever_waits_for_company() {
        let pause = with("coalesce_us", "1000").unwrap();
        let epoll = Epoll::new(EpollCreateFlags::empty()).unwrap();
        let mut events = [EpollEvent::empty(); 4];
        let bells = [100, 200].map(|micros| {
            let bell = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::empty()).unwrap();
            epoll.add(&bell, EpollEvent::new(EpollFlags::EPOLLIN, micros)).unwrap();
            let due = Expiration::OneShot(TimeSpec::microseconds(micros as i64));
            bell.set(due, TimerSetTimeFlags::empty()).unwrap();
            bell
        });
        let now = clock::now();
        let far = now + Nanos(3_600_000_000_000);
        // Nobody who slept until the first came would have the second, but on a machine that stands still for that long.
        assert_eq!(pause.coalesced_until(&epoll, &mut events, now, far), bells.len());
        assert!(clock::now().since(now) >= Nanos(200_000));
        // What is there is taken at once, and what never comes ends at the deadline.
        assert_eq!(pause.coalesced_until(&epoll, &mut events, now, far), bells.len());
        drop(bells);
        let now = clock::now();
        assert_eq!(pause.coalesced_until(&epoll, &mut events, now, now + Nanos(3_000_000)), 0);
        assert!(clock::now().since(now) >= Nanos(3_000_000));
    }

    #[test]
    fn a_span_that_is_none_is_refused() {
        for text in ["", "-1", "1001", "60us"] {
            assert!(with("coalesce_us", text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_machine_that_wakes_late_is_learned_and_forgotten() {
        let [mut pause, _] = pauses();
        pause.learn(Nanos(300_000));
        assert_eq!(pause.wake_up, Nanos(300_000));
        pause.learn(Nanos(3_600_000_000_000));
        assert_eq!(pause.wake_up, LATEST_WAKE_UP);
        for _ in 0..4 * FORGETTING {
            pause.learn(Nanos::ZERO);
        }
        assert_eq!(pause.wake_up, WAKE_UP);
    }
}
