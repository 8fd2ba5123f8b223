use super::*;
use linerate_contract::{Layer, Workload};
use nix::sys::epoll::{EpollCreateFlags, EpollFlags};
use nix::sys::eventfd::EventFd;
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

fn with(option: &str, value: &str) -> Result<Waiter, Refusal> {
    let mut spec = Spec::new(linerate_contract::Role::Client, Layer::Http, Workload::Rr);
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
            let passed = clock::now().since(now);
            assert!(passed >= Nanos(span));
            // At most the stretch before the deadline, and the last look; all of it without sleep.
            let polled = waiter.take_polled();
            let never_sleeps = waiter.spin == ALWAYS;
            assert!(polled <= if never_sleeps { passed } else { LATEST_WAKE_UP + LONGEST_POLL });
            assert!(polled > Nanos::ZERO || !never_sleeps || span < 60_000);
        }
    }
}

#[test]
fn a_waiter_that_never_polls_sleeps_until_the_deadline() {
    let epoll = Epoll::new(EpollCreateFlags::empty()).unwrap();
    let mut events = [EpollEvent::empty(); 4];
    let mut waiter = with("spin", "never").unwrap();
    for _ in 0..5 {
        let now = clock::now();
        assert_eq!(waiter.until(&epoll, &mut events, now, now + Nanos(3_000_000)), 0);
        assert!(clock::now().since(now) >= Nanos(3_000_000));
        // One look at the sockets after it.
        assert!(waiter.take_polled() <= LONGEST_POLL);
    }
    assert_eq!(waiter.wake_up, None);
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
    // A thread that is stopped between the two events has one.
    assert!((0..5).any(|_| returns_two_events_together()));
}

fn returns_two_events_together() -> bool {
    let waiter = with("coalesce_us", "1000").unwrap();
    let epoll = Epoll::new(EpollCreateFlags::empty()).unwrap();
    let mut events = [EpollEvent::empty(); 4];
    let start = clock::now();
    let timers = [100, 200].map(|micros| {
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::empty()).unwrap();
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, micros)).unwrap();
        let due = Expiration::OneShot(TimeSpec::microseconds(micros as i64));
        timer.set(due, TimerSetTimeFlags::empty()).unwrap();
        timer
    });
    let now = clock::now();
    let far = now + Nanos(3_600_000_000_000);
    // A thread woken by the first event would not have the second.
    if waiter.coalesced_until(&epoll, &mut events, now, far) < timers.len() {
        return false;
    }
    assert!(clock::now().since(start) >= Nanos(200_000));
    // Pending events are returned at once; without events the wait ends at the deadline.
    assert_eq!(waiter.coalesced_until(&epoll, &mut events, now, far), timers.len());
    drop(timers);
    let now = clock::now();
    assert_eq!(waiter.coalesced_until(&epoll, &mut events, now, now + Nanos(3_000_000)), 0);
    assert!(clock::now().since(now) >= Nanos(3_000_000));
    true
}

#[test]
fn invalid_delays_are_refused_and_so_are_both_at_once() {
    for text in ["", "-1", "1001", "60us", "yes"] {
        assert!(with("coalesce_us", text).is_err(), "{text}");
        assert!(with("spin", text).is_err(), "{text}");
    }
    let mut spec = Spec::new(linerate_contract::Role::Client, Layer::Http, Workload::Rr);
    spec.options = [("spin", "50"), ("coalesce_us", "60")].map(|(k, v)| (k.into(), v.into())).into();
    assert!(Waiter::from_spec(&spec).is_err());
    spec.options.insert("spin".into(), "0".into());
    assert!(Waiter::from_spec(&spec).is_ok());
}

#[test]
fn a_spec_without_spin_has_that_of_its_layer() {
    let mut spec = Spec::new(linerate_contract::Role::Client, Layer::Kcp, Workload::Stream);
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
    assert_eq!(waiter.wake_up, Some(Nanos(300_000)));
    waiter.adapt(Nanos(3_600_000_000_000));
    assert_eq!(waiter.wake_up, Some(LATEST_WAKE_UP));
    for _ in 0..4 * DECAY {
        waiter.adapt(Nanos::ZERO);
    }
    assert_eq!(waiter.wake_up, Some(WAKE_UP));
}
