//! Waiting for sockets: until a point in time to the microsecond, or until something happens.
//!
//! `epoll_wait(2)` counts in milliseconds, and a normal thread's timers fire up to 50 us late on purpose
//! (timer slack, prctl(2)). `epoll_pwait2(2)`, since Linux 5.11, counts in nanoseconds, and the slack can be
//! set to 1 ns. The time to wake a sleeping CPU remains: a thread therefore polls instead of sleeping shortly
//! before a deadline, and adapts the length of that stretch to its machine. With `options.spin` it polls
//! before it sleeps, too.

#![allow(unsafe_code, reason = "nix has no epoll_pwait2")]

use crate::clock;
use crate::refusal::Refusal;
use linerate_contract::{Nanos, Spec};
use nix::sys::epoll::{Epoll, EpollEvent};

/// A thread sleeps no closer to a deadline than this: the longest wake-up from an idle CPU on most machines
/// (measured in docs/method.md). Half as long is often too short; twice as long only costs CPU.
const WAKE_UP: Nanos = Nanos(50_000);
/// The upper bound of that stretch on machines with slower wake-ups. Longer delays are caused by another
/// process on the CPU or another machine on the host; to end the sleep earlier would not help.
const LATEST_WAKE_UP: Nanos = Nanos(1_000_000);
/// The stretch shrinks by this part with each wait: one wait in a thousand is then late, and the effect of a
/// single late wake-up ends within seconds.
const DECAY: u64 = 4_096;

/// The longest batching delay, in microseconds: a longer one would be a think time.
const MAX_COALESCE_US: u64 = 1_000;
/// The longest spin, in microseconds: a wait that lasts longer is not made noticeably longer by a wake-up.
const MAX_SPIN_US: u64 = 1_000;
/// `options.spin`: a thread that never blocks.
const ALWAYS: Nanos = Nanos(u64::MAX);
/// After spins in vain, up to this many waits block at once: spinning then adds at most 1/64 of its length
/// to each wait. With 15 it would add four times that; with 255 a peer that becomes fast is noticed late.
const MOST_SKIPPED: u32 = 63;

/// Lets the calling thread's timers fire when they are due.
pub fn without_timer_slack() {
    // Refused only by sandboxes. Timers are then late by the default slack, and the histogram of delays shows
    // it.
    let _ = nix::sys::prctl::set_timerslack(1);
}

/// How a thread waits: whether it polls before it sleeps, and whether it batches events.
#[derive(Debug, Clone)]
pub struct Waiter {
    /// How long before a deadline sleeping ends: adapted to the observed wake-ups.
    wake_up: Nanos,
    /// How long a thread polls before it sleeps.
    spin: Nanos,
    /// Waits that will sleep at once, and how many did after the last spin in vain.
    skip: u32,
    skipped: u32,
    coalesce: Nanos,
}

impl Waiter {
    /// Reads `options.spin` (microseconds, or `always`) and `options.coalesce_us` (see
    /// [`Waiter::coalesced_until`]). Without `spin` a thread sleeps at once.
    ///
    /// # Errors
    /// A value is not a number, or longer than a millisecond; both are given.
    pub fn from_spec(spec: &Spec) -> Result<Self, Refusal> {
        Self::spinning(spec, Nanos::ZERO)
    }

    /// The same with another default of `spin`.
    ///
    /// # Errors
    /// As [`Waiter::from_spec`].
    pub fn spinning(spec: &Spec, usual: Nanos) -> Result<Self, Refusal> {
        let spin = match spec.options.get("spin").map(String::as_str) {
            Some("always") => ALWAYS,
            _ => spec.number("spin", 0..=MAX_SPIN_US)?.map_or(usual, |micros| Nanos(micros * 1_000)),
        };
        let coalesce = Nanos(spec.number("coalesce_us", 0..=MAX_COALESCE_US)?.unwrap_or(0) * 1_000);
        if coalesce > Nanos::ZERO && spin > Nanos::ZERO {
            let text = "\"options.spin\" and \"options.coalesce_us\" exclude each other: one takes an event \
                        as soon as possible, the other waits for more";
            return Err(Refusal::BadSpec(text.into()));
        }
        Ok(Self { wake_up: WAKE_UP, spin, skip: 0, skipped: 0, coalesce })
    }

    /// Whether events are batched.
    #[must_use]
    pub fn coalesces(&self) -> bool {
        self.coalesce > Nanos::ZERO
    }

    /// Returns the number of events that are pending or arrive until `deadline`, to the microsecond; `now` is
    /// a recent reading of the clock.
    #[inline]
    pub fn until(
        &mut self,
        epoll: &Epoll,
        events: &mut [EpollEvent],
        mut now: Nanos,
        deadline: Nanos,
    ) -> usize {
        if self.spin > Nanos::ZERO {
            let ready = self.spin(epoll, events, deadline.since(now));
            if ready > 0 {
                return ready;
            }
            now = clock::now();
        }
        let left = deadline.since(now);
        let sleep = left.since(self.wake_up);
        let ready = wait(epoll, events, sleep);
        if ready > 0 || left == Nanos::ZERO {
            return ready;
        }
        let late = if sleep > Nanos::ZERO { clock::now().since(now + sleep) } else { Nanos::ZERO };
        self.adapt(late);
        loop {
            let ready = wait(epoll, events, Nanos::ZERO);
            if ready > 0 || clock::now() >= deadline {
                return ready;
            }
        }
    }

    /// Returns the number of events that are pending or arrive within `timeout`, which may be exceeded by up
    /// to a millisecond and the time of `options.spin`.
    #[inline]
    pub fn within(&mut self, epoll: &Epoll, events: &mut [EpollEvent], timeout: Nanos) -> usize {
        if self.spin > Nanos::ZERO {
            let ready = self.spin(epoll, events, timeout);
            if ready > 0 || self.spin == ALWAYS {
                return ready;
            }
        }
        wait_millis(epoll, events, rounded_up(timeout))
    }

    /// Polls for up to `options.spin` and no longer than `timeout`: while the peer works on data that it just
    /// received, a wake-up of this thread would cost both ends more. After polling in vain the next waits do
    /// without it, at first one, then ever more, until it was of use again.
    fn spin(&mut self, epoll: &Epoll, events: &mut [EpollEvent], timeout: Nanos) -> usize {
        if self.skip > 0 {
            self.skip -= 1;
            return 0;
        }
        let mut end = None;
        loop {
            let ready = wait(epoll, events, Nanos::ZERO);
            if ready > 0 {
                self.skipped = 0;
                return ready;
            }
            let now = clock::now();
            if now >= *end.get_or_insert_with(|| now + self.spin.min(timeout)) {
                break;
            }
            if self.spin != ALWAYS {
                // The peer may share this CPU.
                std::thread::yield_now();
            }
        }
        if self.spin <= timeout {
            self.skipped = (2 * self.skipped + 1).min(MOST_SKIPPED);
            self.skip = self.skipped;
        }
        0
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

/// `epoll_wait(2)` counts in milliseconds: rounded up, so that it never returns just before the deadline.
fn rounded_up(time: Nanos) -> u16 {
    time.0.div_ceil(1_000_000).min(60_000) as u16
}

/// `epoll_wait(2)` without glibc's cancellation point, which costs more than the call's own arguments.
#[inline]
fn wait_millis(epoll: &Epoll, events: &mut [EpollEvent], millis: u16) -> usize {
    // SAFETY: `EpollEvent` is a transparent `epoll_event`, and the kernel writes at most `events.len()` of
    // them; the signal mask is null, and its size is then ignored.
    let ready = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait,
            std::os::fd::AsRawFd::as_raw_fd(&epoll.0),
            events.as_mut_ptr(),
            events.len() as libc::c_int,
            libc::c_int::from(millis),
            std::ptr::null::<libc::sigset_t>(),
            0_usize,
        )
    };
    // EINTR; nothing else is possible on its own descriptor and buffer.
    usize::try_from(ready).unwrap_or(0)
}

/// Waits for up to `time` without polling: returns the number of events.
#[inline]
pub fn wait(epoll: &Epoll, events: &mut [EpollEvent], time: Nanos) -> usize {
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
            wait_millis(epoll, events, (time.0 / 1_000_000).min(60_000) as u16)
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
        Waiter::from_spec(&spec)
    }

    fn waiters() -> [Waiter; 2] {
        ["0", "always"].map(|spin| with("spin", spin).unwrap())
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
    fn invalid_delays_are_refused_and_so_are_both_at_once() {
        for text in ["", "-1", "1001", "60us", "yes"] {
            assert!(with("coalesce_us", text).is_err(), "{text}");
            assert!(with("spin", text).is_err(), "{text}");
        }
        let mut spec = Spec::new(linerate_contract::Role::Client, "http", "rr");
        spec.options = [("spin", "50"), ("coalesce_us", "60")].map(|(k, v)| (k.into(), v.into())).into();
        assert!(Waiter::from_spec(&spec).is_err());
        spec.options.insert("spin".into(), "0".into());
        assert!(Waiter::from_spec(&spec).is_ok());
    }

    #[test]
    fn a_spec_without_spin_has_that_of_its_layer() {
        let mut spec = Spec::new(linerate_contract::Role::Client, "kcp", "stream");
        let of = |spec: &Spec| Waiter::spinning(spec, Nanos(50_000)).unwrap().spin;
        assert_eq!((Waiter::from_spec(&spec).unwrap().spin, of(&spec)), (Nanos::ZERO, Nanos(50_000)));
        spec.options.insert("spin".into(), "0".into());
        assert_eq!(of(&spec), Nanos::ZERO);
    }

    #[test]
    fn after_spins_in_vain_ever_more_waits_block_at_once() {
        let mut waiter = with("spin", "10").unwrap();
        let epoll = Epoll::new(EpollCreateFlags::empty()).unwrap();
        let mut events = [EpollEvent::empty(); 4];
        for all in [0, 1, 3, 7, 15, 31, 63, 63] {
            assert_eq!(waiter.skip, all);
            for left in (0..=all).rev() {
                assert_eq!(waiter.within(&epoll, &mut events, Nanos(50_000)), 0);
                assert!(left == 0 || waiter.skip == left - 1);
            }
        }
        waiter.skip = 0;
        let wake_up = EventFd::new().unwrap();
        epoll.add(&wake_up, EpollEvent::new(EpollFlags::EPOLLIN, 7)).unwrap();
        wake_up.write(1).unwrap();
        for _ in 0..3 {
            assert_eq!(waiter.within(&epoll, &mut events, ALWAYS), 1);
        }
        assert_eq!((waiter.skip, waiter.skipped), (0, 0));
    }

    #[test]
    fn a_deadline_within_the_spin_is_no_spin_in_vain() {
        let epoll = Epoll::new(EpollCreateFlags::empty()).unwrap();
        let mut events = [EpollEvent::empty(); 4];
        for spin in ["1000", "always"] {
            let mut waiter = with("spin", spin).unwrap();
            let now = clock::now();
            assert_eq!(waiter.within(&epoll, &mut events, Nanos(20_000)), 0);
            assert!(clock::now().since(now) >= Nanos(20_000));
            assert_eq!(waiter.skip, 0);
        }
    }

    #[test]
    fn waits_are_rounded_up() {
        for (nanos, millis) in [(0, 0), (1, 1), (u64::MAX, 60_000)] {
            assert_eq!(rounded_up(Nanos(nanos)), millis as u16);
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
