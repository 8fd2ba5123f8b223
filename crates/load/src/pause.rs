//! Waiting for sockets until a point in time, to the microsecond.
//!
//! `epoll_wait(2)` counts in milliseconds, and a normal thread's timers fire up to 50 us late on purpose (timer slack,
//! prctl(2)). `epoll_pwait2(2)`, of Linux 5.11, counts in nanoseconds, and the slack can be taken away. What is left is the
//! time to wake a sleeping CPU; the last stretch before a deadline is therefore spent looking and not sleeping.

#![allow(unsafe_code, reason = "nix has no epoll_pwait2")]

use crate::clock;
use linerate_contract::Nanos;
use nix::sys::epoll::{Epoll, EpollEvent, EpollTimeout};

/// Slept no closer to a deadline than this: what a wake-up from an idle CPU takes at most on most machines
/// (docs/method.md has the measurement). Half of it is often slept through; twice costs CPU for nothing.
const WAKE_UP: Nanos = Nanos(50_000);

/// Lets the calling thread's timers fire when they are due.
pub fn without_timer_slack() {
    // Refused only by sandboxes; timers are then as late as anybody's, and the histogram of delays shows it.
    let _ = nix::sys::prctl::set_timerslack(1);
}

/// Events that are there, or come until `deadline`; `now` is a recent reading of the clock.
#[inline]
pub fn until(epoll: &Epoll, events: &mut [EpollEvent], now: Nanos, deadline: Nanos) -> usize {
    let left = deadline.since(now);
    let sleep = left.since(WAKE_UP);
    let ready = wait(epoll, events, sleep);
    if ready > 0 || left == Nanos::ZERO {
        return ready;
    }
    loop {
        let ready = wait(epoll, events, Nanos::ZERO);
        if ready > 0 || clock::now() >= deadline {
            return ready;
        }
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

    #[test]
    fn a_pause_lasts_until_its_deadline_and_not_shorter() {
        let epoll = Epoll::new(EpollCreateFlags::empty()).unwrap();
        let mut events = [EpollEvent::empty(); 4];
        for span in [0, 1_000, 60_000, 3_000_000] {
            let now = clock::now();
            assert_eq!(until(&epoll, &mut events, now, now + Nanos(span)), 0);
            assert!(clock::now().since(now) >= Nanos(span));
        }
    }

    #[test]
    fn an_event_ends_it_early() {
        let epoll = Epoll::new(EpollCreateFlags::empty()).unwrap();
        let bell = EventFd::new().unwrap();
        epoll.add(&bell, EpollEvent::new(EpollFlags::EPOLLIN, 7)).unwrap();
        bell.write(1).unwrap();
        let mut events = [EpollEvent::empty(); 4];
        let now = clock::now();
        assert_eq!(until(&epoll, &mut events, now, now + Nanos(3_600_000_000_000)), 1);
        assert_eq!(events[0].data(), 7);
    }
}
