//! Waiting for sockets until a point in time, to the microsecond.
//!
//! `epoll_wait(2)` counts in milliseconds, and a normal thread's timers fire up to 50 us late on purpose
//! (timer slack, prctl(2)). `epoll_pwait2(2)`, since Linux 5.11, counts in nanoseconds, and the slack can be
//! set to 1 ns. The time to wake a sleeping CPU remains: a thread therefore polls instead of sleeping shortly
//! before a deadline, and adapts the length of that stretch to its machine.

#![allow(unsafe_code, reason = "nix has no epoll_pwait2")]

use crate::clock;
use crate::refusal::Refusal;
use linerate_contract::{Nanos, Spec};
use nix::sys::epoll::{Epoll, EpollEvent, EpollTimeout};

/// A thread sleeps no closer to a deadline than this: the longest wake-up from an idle CPU on most machines
/// (measured in docs/method.md). Half as long is often too short; twice as long only costs CPU.
const WAKE_UP: Nanos = Nanos(50_000);
/// The upper bound of that stretch on machines with slower wake-ups. Longer delays are caused by another
/// process on the CPU or another machine on the host; to end the sleep earlier would not help.
const LATEST_WAKE_UP: Nanos = Nanos(1_000_000);
/// How long a thread spins before it blocks: about the time that the peer needs for 64 KiB, half of the data
/// in flight. With KCP this tripled the rate and halved the CPU time per byte (docs/decisions, 0013).
const SPIN: Nanos = Nanos(50_000);
/// The stretch shrinks by this part with each wait: one wait in a thousand is then late, and the effect of a
/// single late wake-up ends within seconds.
const DECAY: u64 = 4_096;

/// The longest batching delay, in microseconds: a longer one would be a think time.
const MAX_COALESCE_US: u64 = 1_000;

/// Lets the calling thread's timers fire when they are due.
pub fn without_timer_slack() {
    // Refused only by sandboxes. Timers are then late by the default slack, and the histogram of delays shows
    // it.
    let _ = nix::sys::prctl::set_timerslack(1);
}

/// How a thread waits: sleep and then poll, always poll, or batch events.
#[derive(Debug, Clone)]
pub struct Waiter {
    /// How long before a deadline sleeping ends: adapted to the observed wake-ups.
    wake_up: Nanos,
    busy: bool,
    coalesce: Nanos,
}

impl Waiter {
    /// Reads `options.busy` (`yes`: the thread never sleeps, so no deadline or event waits for a CPU to wake)
    /// and `options.coalesce_us` (see [`Waiter::coalesced_until`]).
    ///
    /// # Errors
    /// `options.coalesce_us` is not a number, or longer than a millisecond.
    pub fn of(spec: &Spec) -> Result<Self, Refusal> {
        let coalesce = spec.number("coalesce_us", 0..=MAX_COALESCE_US)?;
        Ok(Self {
            wake_up: WAKE_UP,
            busy: spec.options.get("busy").is_some_and(|busy| busy == "yes"),
            coalesce: Nanos(coalesce.unwrap_or(0) * 1_000),
        })
    }

    /// Whether events are batched.
    #[must_use]
    pub fn coalesces(&self) -> bool {
        self.coalesce > Nanos::ZERO
    }

    /// Returns the number of events that are pending or arrive until `deadline`; `now` is a recent reading of
    /// the clock.
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
            self.adapt(late);
        }
        loop {
            let ready = wait(epoll, events, Nanos::ZERO);
            if ready > 0 || clock::now() >= deadline {
                return ready;
            }
        }
    }

    /// As [`Waiter::until`], but spins for up to [`SPIN`] before it blocks: while the peer works on data that
    /// it just received, a wake-up of this thread would cost both ends more than the spinning.
    #[inline]
    pub fn spin_then_until(
        &mut self,
        epoll: &Epoll,
        events: &mut [EpollEvent],
        now: Nanos,
        deadline: Nanos,
    ) -> usize {
        let end = deadline.min(now + SPIN);
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

    /// Returns pending events. If there are none, sleeps for `options.coalesce_us` and returns the events of
    /// that time, or else the first ones until `deadline`. Like interrupt coalescing of network cards
    /// (ethtool(8), `--coalesce`): an event is seen later by up to that time, and several events cost one
    /// wake-up (docs/decisions, 0014).
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
    fn adapt(&mut self, late: Nanos) {
        let decayed = Nanos(self.wake_up.0 - self.wake_up.0 / DECAY);
        self.wake_up = decayed.max(late.min(LATEST_WAKE_UP)).max(WAKE_UP);
    }
}

#[inline]
fn wait(epoll: &Epoll, events: &mut [EpollEvent], time: Nanos) -> usize {
    let span = libc::timespec {
        tv_sec: (time.0 / 1_000_000_000) as libc::time_t,
        tv_nsec: (time.0 % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `EpollEvent` is a transparent `epoll_event`, the kernel writes at most `events.len()` of them,
    // and the time span and the null signal mask (whose size is then ignored) outlive the call.
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
        // Before 5.11. Rounded down: the caller polls until the deadline.
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

    fn with(option: &str, value: &str) -> Result<Waiter, Refusal> {
        let mut spec = Spec::new(linerate_contract::Role::Client, "http", "rr");
        spec.options.insert(option.into(), value.into());
        Waiter::of(&spec)
    }

    fn waiters() -> [Waiter; 2] {
        ["no", "yes"].map(|busy| with("busy", busy).unwrap())
    }

    #[test]
    fn a_wait_without_events_ends_at_its_deadline_and_not_before() {
        let epoll = Epoll::new(EpollCreateFlags::empty()).unwrap();
        let mut events = [EpollEvent::empty(); 4];
        for mut waiter in waiters() {
            for span in [0, 1_000, 60_000, 3_000_000] {
                let now = clock::now();
                assert_eq!(waiter.until(&epoll, &mut events, now, now + Nanos(span)), 0);
                assert!(clock::now().since(now) >= Nanos(span));
            }
        }
    }

    #[test]
    fn an_event_ends_a_wait_early() {
        let epoll = Epoll::new(EpollCreateFlags::empty()).unwrap();
        let wake_up = EventFd::new().unwrap();
        epoll.add(&wake_up, EpollEvent::new(EpollFlags::EPOLLIN, 7)).unwrap();
        wake_up.write(1).unwrap();
        let mut events = [EpollEvent::empty(); 4];
        for mut waiter in waiters() {
            let now = clock::now();
            assert_eq!(waiter.until(&epoll, &mut events, now, now + Nanos(3_600_000_000_000)), 1);
            assert_eq!(events[0].data(), 7);
        }
    }

    #[test]
    fn events_within_the_batching_delay_are_returned_together() {
        let waiter = with("coalesce_us", "1000").unwrap();
        let epoll = Epoll::new(EpollCreateFlags::empty()).unwrap();
        let mut events = [EpollEvent::empty(); 4];
        let timers = [100, 200].map(|micros| {
            let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::empty()).unwrap();
            epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, micros)).unwrap();
            let due = Expiration::OneShot(TimeSpec::microseconds(micros as i64));
            timer.set(due, TimerSetTimeFlags::empty()).unwrap();
            timer
        });
        let now = clock::now();
        let far = now + Nanos(3_600_000_000_000);
        // A thread woken by the first event would not have the second, unless the machine stopped for that
        // long.
        assert_eq!(waiter.coalesced_until(&epoll, &mut events, now, far), timers.len());
        assert!(clock::now().since(now) >= Nanos(200_000));
        // Pending events are returned at once; without events the wait ends at the deadline.
        assert_eq!(waiter.coalesced_until(&epoll, &mut events, now, far), timers.len());
        drop(timers);
        let now = clock::now();
        assert_eq!(waiter.coalesced_until(&epoll, &mut events, now, now + Nanos(3_000_000)), 0);
        assert!(clock::now().since(now) >= Nanos(3_000_000));
    }

    #[test]
    fn an_invalid_batching_delay_is_refused() {
        for text in ["", "-1", "1001", "60us"] {
            assert!(with("coalesce_us", text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_polling_stretch_adapts_to_late_wake_ups_and_recovers() {
        let [mut waiter, _] = waiters();
        waiter.adapt(Nanos(300_000));
        assert_eq!(waiter.wake_up, Nanos(300_000));
        waiter.adapt(Nanos(3_600_000_000_000));
        assert_eq!(waiter.wake_up, LATEST_WAKE_UP);
        for _ in 0..4 * DECAY {
            waiter.adapt(Nanos::ZERO);
        }
        assert_eq!(waiter.wake_up, WAKE_UP);
    }
}
