//! Timers set, fired and cancelled: of every two, one fires after a millisecond; the other, of an hour, is
//! cancelled.

pub mod heap;

use heap::Timers;
use linerate_contract::{Done, Nanos, Recorder, Spec, clock};
use linerate_load::refusal::{Doing, Refusal};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::time::Duration;

/// The two delays of the contract.
const SOON: Nanos = Nanos(1_000_000);
const FAR: Nanos = Nanos(3_600_000_000_000);
/// The token of a timer that comes with a second one.
const PAIRED: u64 = 2;

/// Runs `spec` to its end, on one thread.
///
/// # Errors
/// An invalid spec, or a refused system call.
pub fn run(spec: &Spec) -> Result<Done, Refusal> {
    let Some(operations) = spec.operations.filter(|n| *n > 0 && spec.connections > 0) else {
        return Err(Refusal::BadSpec("\"operations\" and \"connections\" must be above 0".into()));
    };
    let alarm = Alarm::new()?;
    let (mut timers, mut latency) = (Timers::default(), Recorder::default());
    let (mut to_set, mut fired, mut cancelled) = (operations, 0_u64, 0_u64);
    let cpu = clock::process_cpu();
    let start_ns = clock::now();
    let mut now = start_ns;
    for _ in 0..operations.min(spec.connections.into()) {
        set(&mut timers, now, &mut to_set);
    }
    while let Some(due) = timers.next() {
        alarm.wait(due)?;
        now = clock::now();
        while let Some((due, token)) = timers.fire(now) {
            latency.record(now.since(due).0);
            fired += 1;
            if token == PAIRED {
                let far = timers.set(now + FAR, 0);
                cancelled += u64::from(timers.cancel(far));
            }
            set(&mut timers, now, &mut to_set);
        }
    }
    let end_ns = clock::now();
    Ok(Done {
        operations: fired + cancelled,
        start_ns,
        end_ns,
        latency: Some(latency.counts()),
        cpu_ns: clock::process_cpu().since(cpu),
        verified: fired + cancelled,
        ..Done::default()
    })
}

/// Sets a timer that fires, if one is left to set; its pair is set later, when it fires.
fn set(timers: &mut Timers, now: Nanos, to_set: &mut u64) {
    if *to_set > 0 {
        let pair = (*to_set).min(2);
        *to_set -= pair;
        timers.set(now + SOON, pair);
    }
}

/// Wakes an epoll loop at a given nanosecond. `epoll_wait(2)` counts in milliseconds, and the kernel's timer
/// slack of 50 us delays other waits, but not a timerfd (time(7)).
struct Alarm {
    timer: TimerFd,
    epoll: Epoll,
}

impl Alarm {
    fn new() -> Result<Self, Refusal> {
        let timer =
            TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)
                .doing("timerfd_create")?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing("epoll_create1")?;
        // Edge-triggered: then the number of expirations need not be read.
        epoll
            .add(&timer, EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, 0))
            .doing("epoll_ctl")?;
        Ok(Self { timer, epoll })
    }

    /// Sleeps until `due`.
    fn wait(&self, due: Nanos) -> Result<(), Refusal> {
        let due = TimeSpec::from_duration(Duration::from(due));
        self.timer
            .set(Expiration::OneShot(due), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
            .doing("timerfd_settime")?;
        let mut events = [EpollEvent::empty()];
        match self.epoll.wait(&mut events, EpollTimeout::NONE) {
            Ok(_) | Err(nix::Error::EINTR) => Ok(()),
            Err(errno) => unreachable!("epoll_wait on its own descriptor and buffer: {errno}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Role;

    #[test]
    fn half_of_the_timers_fire_and_never_early() {
        for (operations, connections) in [(1, 1), (7, 1), (200, 10), (5, 100)] {
            let mut spec = Spec::new(Role::Client, "none", "timers");
            (spec.operations, spec.connections) = (Some(operations), connections);
            let done = run(&spec).unwrap();
            assert_eq!(done.operations, operations);
            assert_eq!(done.latency.unwrap().total(), operations.div_ceil(2));
            let rounds = operations.div_ceil(2) / u64::from(connections);
            assert!(done.end_ns.since(done.start_ns).0 >= rounds * SOON.0);
        }
    }
}
