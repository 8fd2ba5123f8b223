//! Waiting for sockets: until a point in time to the microsecond, or until something happens.
//!
//! `epoll_wait(2)` counts in milliseconds, and a normal thread's timers fire up to 50 us late on purpose
//! (timer slack, prctl(2)). `epoll_pwait2(2)`, since Linux 5.11, counts in nanoseconds, and the slack can be
//! set to 1 ns. The time to wake a sleeping CPU remains: a thread therefore polls instead of sleeping shortly
//! before a deadline, and adapts the length of that stretch to its machine. With `options.spin` it polls
//! before it sleeps, too, or with `never` not at all.

#![allow(unsafe_code, reason = "nix has no epoll_pwait2")]

#[cfg(test)]
mod tests;

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

/// A look at the sockets and the clock that took longer was interrupted: another process had the CPU.
const LONGEST_POLL: Nanos = Nanos(5_000);

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
    /// How long before a deadline sleeping ends: adapted to the observed wake-ups. `None`: at the deadline.
    wake_up: Option<Nanos>,
    /// How long a thread polls before it sleeps.
    spin: Nanos,
    /// Waits that will sleep at once, and how many did after the last spin in vain.
    skip: u32,
    skipped: u32,
    coalesce: Nanos,
    /// Time spent polling: for a deadline, or before a sleep.
    polled: Nanos,
}

impl Waiter {
    /// Reads `options.spin` (microseconds, `always` or `never`) and `options.coalesce_us` (see
    /// [`Waiter::coalesced_until`]). Without `spin` a thread sleeps at once.
    ///
    /// # Errors
    /// A value is not a number, or longer than a millisecond; both are given.
    pub fn from_spec(spec: &Spec) -> Result<Self, Refusal> {
        Self::spinning(spec, Nanos::ZERO)
    }

    /// A waiter with another default of `spin`.
    ///
    /// # Errors
    /// As [`Waiter::from_spec`].
    pub fn spinning(spec: &Spec, usual: Nanos) -> Result<Self, Refusal> {
        let option = spec.options.get("spin").map(String::as_str);
        let spin = match option {
            Some("always") => ALWAYS,
            Some("never") => Nanos::ZERO,
            _ => spec.number("spin", 0..=MAX_SPIN_US)?.map_or(usual, |micros| Nanos(micros * 1_000)),
        };
        let coalesce = Nanos(spec.number("coalesce_us", 0..=MAX_COALESCE_US)?.unwrap_or(0) * 1_000);
        if coalesce > Nanos::ZERO && spin > Nanos::ZERO {
            let text = "\"options.spin\" and \"options.coalesce_us\" exclude each other: one takes an event \
                        as soon as possible, the other waits for more";
            return Err(Refusal::BadSpec(text.into()));
        }
        let wake_up = (option != Some("never")).then_some(WAKE_UP);
        Ok(Self { wake_up, spin, skip: 0, skipped: 0, coalesce, polled: Nanos::ZERO })
    }

    /// Whether events are batched.
    pub fn coalesces(&self) -> bool {
        self.coalesce > Nanos::ZERO
    }

    /// Returns the number of events that are pending or arrive until `deadline`, to the microsecond, or with
    /// `never` to a wake-up; `now` is a recent reading of the clock.
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
        let sleep = left.since(self.wake_up.unwrap_or_default());
        let ready = wait(epoll, events, sleep);
        if ready > 0 || left == Nanos::ZERO {
            return ready;
        }
        let woke = if sleep > Nanos::ZERO { clock::now() } else { now };
        self.adapt(woke.since(now + sleep));
        let mut last = woke;
        loop {
            let ready = wait(epoll, events, Nanos::ZERO);
            let now = clock::now();
            self.polled_since(last, now);
            if ready > 0 || now >= deadline {
                return ready;
            }
            last = now;
        }
    }

    #[inline]
    fn polled_since(&mut self, last: Nanos, now: Nanos) {
        self.polled += now.since(last).min(LONGEST_POLL);
    }

    /// How long the thread has polled since the last call.
    pub fn take_polled(&mut self) -> Nanos {
        std::mem::take(&mut self.polled)
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
        let (mut end, mut last) = (None, None);
        loop {
            let ready = wait(epoll, events, Nanos::ZERO);
            if ready > 0 {
                self.skipped = 0;
                return ready;
            }
            let now = clock::now();
            let before = last.replace(now).unwrap_or(now);
            self.polled_since(before, now);
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
    /// wake-up (docs/decisions/engine.md).
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
        self.wake_up = self.wake_up.map(|wake_up| {
            let decayed = Nanos(wake_up.0 - wake_up.0 / DECAY);
            decayed.max(late.min(LATEST_WAKE_UP)).max(WAKE_UP)
        });
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
