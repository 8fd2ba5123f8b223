//! The relay: a process that moves frames between the two links of a wire, each direction by its [`Shaper`].

#![allow(unsafe_code, reason = "fork(2) and shared memory have no safe wrapper")]

use super::shaper::{Fate, Shaper};
use super::socket::LinkSocket;
use crate::agent::slice;
use linerate_contract::{Bytes, Nanos, clock};
use linerate_model::PacketCounts;
use linerate_model::path::Impairment;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::sys::timerfd::{ClockId as TimerClock, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{ForkResult, Pid, fork, setpgid};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs soon after its sleep; the kernel's slice is 3 ms.
const SLICE: Nanos = Nanos(100_000);
/// Frames of one link before the other has its turn, and before what is due is sent.
const BATCH: usize = 64;
/// A packet that leaves later than this after its time counts as late: the bound of `selftest --path`.
pub(super) const LATE: Nanos = Nanos(100_000);

/// Counts of both directions, shared with the relay's process.
#[derive(Debug)]
pub(super) struct Counters(*mut Shared);

/// The memory that both processes access.
struct Shared {
    /// In the order of [`PacketCounts`].
    ways: [[AtomicU64; 5]; 2],
    /// CPU time of the relay, in nanoseconds.
    cpu: AtomicU64,
}

impl Counters {
    fn new() -> Result<Self, String> {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, filled with zeroes, which are valid counts.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), size_of::<Shared>(), access, kind, -1, 0) };
        if page == libc::MAP_FAILED {
            return Err(format!("memory for the relay's counts: {}", std::io::Error::last_os_error()));
        }
        Ok(Self(page.cast()))
    }

    fn shared(&self) -> &Shared {
        // SAFETY: the mapping lives as long as this value, and is accessed by atomics only.
        unsafe { &*self.0 }
    }

    /// Both directions so far: to the server, to the client.
    pub(super) fn read(&self) -> [PacketCounts; 2] {
        self.shared().ways.each_ref().map(|of| {
            let [packets, lost, overflowed, overrun, late] =
                of.each_ref().map(|count| count.load(Ordering::Relaxed));
            PacketCounts { packets, lost, overflowed, overrun, late }
        })
    }

    /// CPU time of the relay so far.
    pub(super) fn cpu(&self) -> Nanos {
        Nanos(self.shared().cpu.load(Ordering::Relaxed))
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`; references to it borrow this value.
        unsafe { libc::munmap(self.0.cast(), size_of::<Shared>()) };
    }
}

/// Starts the relay of these two links. It ends with the lab's other processes.
pub(super) fn start(links: [LinkSocket; 2], ways: [Impairment; 2]) -> Result<Counters, String> {
    let counters = Counters::new()?;
    let timer = TimerFd::new(TimerClock::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC)
        .map_err(|e| format!("a timer for the relay of a path: {e}"))?;
    // SAFETY: the agent has one thread, so the child may do anything.
    match unsafe { fork() }.map_err(|e| format!("cannot start the relay of a path: {e}"))? {
        ForkResult::Child => {
            // Refusals of these only make it less exact, which its counts show.
            let _ = setpgid(Pid::from_raw(0), Pid::from_raw(0));
            slice::request(SLICE);
            real_time();
            Relay::new(links, ways, timer, &counters).run()
        }
        ForkResult::Parent { .. } => Ok(counters),
    }
}

/// As root, runs before ordinary processes, as a router's interrupts do; other users are refused.
fn real_time() {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameter outlives the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const lowest) };
}

struct Relay<'a> {
    links: [LinkSocket; 2],
    cpu: &'a AtomicU64,
    timer: TimerFd,
    /// When the timer ends.
    armed: Option<Nanos>,
    ways: [Way<'a>; 2],
}

/// A direction: from the link of the same index to the other one.
struct Way<'a> {
    shaper: Shaper,
    counts: &'a [AtomicU64; 5],
    /// By time, then in the order of arrival.
    waiting: BinaryHeap<Reverse<(Nanos, u64, Waiting)>>,
    arrived: u64,
    /// Buffers of packets that have left.
    spare: Vec<Vec<u8>>,
}

fn nanos(time: TimeSpec) -> u64 {
    time.num_nanoseconds() as u64
}

/// A packet, which takes no part in the order.
struct Waiting(Vec<u8>);

impl<'a> Relay<'a> {
    fn new(links: [LinkSocket; 2], ways: [Impairment; 2], timer: TimerFd, counters: &'a Counters) -> Self {
        let Shared { ways: [up, down], cpu } = counters.shared();
        let seed = clock::now().0;
        let way = |impairment, seed, counts| Way {
            shaper: Shaper::new(impairment, seed),
            counts,
            waiting: BinaryHeap::new(),
            arrived: 0,
            spare: Vec::new(),
        };
        Self {
            links,
            cpu,
            timer,
            armed: None,
            ways: [way(ways[0], seed, up), way(ways[1], seed ^ u64::MAX, down)],
        }
    }

    fn run(mut self) -> ! {
        loop {
            let mut is_busy = false;
            for (from, way) in self.ways.iter_mut().enumerate() {
                let [near, far] = &mut self.links;
                let (from, to) = if from == 0 { (near, &*far) } else { (far, &*near) };
                is_busy |= way.receive(from, to);
                way.send_due(to);
            }
            if !is_busy {
                let used = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(0, nanos);
                self.cpu.store(used, Ordering::Relaxed);
                self.wait();
            }
        }
    }

    /// Until a frame arrives or one is due.
    ///
    /// By a timer of its own: the timeout of poll(2) may be late by a thousandth.
    fn wait(&mut self) {
        let next = self.ways.iter().filter_map(|way| way.waiting.peek()).map(|Reverse((due, ..))| *due).min();
        if let Some(due) = next.filter(|due| self.armed != Some(*due)) {
            let at = Expiration::OneShot(TimeSpec::nanoseconds(due.0 as i64));
            // Fails only of an invalid time.
            let _ = self.timer.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME);
            self.armed = Some(due);
        }
        let [near, far] = self.links.each_ref().map(|link| PollFd::new(link.as_fd(), PollFlags::POLLIN));
        let mut fds = [near, far, PollFd::new(self.timer.as_fd(), PollFlags::POLLIN)];
        let awaited = if next.is_some() { &mut fds[..] } else { &mut fds[..2] };
        // A signal is no reason to stop; the loop looks again.
        let _ = poll(awaited, PollTimeout::NONE);
    }
}

impl Way<'_> {
    /// Takes what has arrived; true if there may be more.
    fn receive(&mut self, from: &mut LinkSocket, to: &LinkSocket) -> bool {
        let now = clock::now();
        let real = clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, nanos);
        let (mut frames, mut is_losing) = (0, false);
        while frames < BATCH
            && let Some(frame) = from.receive()
        {
            frames += 1;
            is_losing |= frame.is_losing;
            let arrival = now - Nanos(real).since(frame.at);
            self.count(0, 1);
            match self.shaper.arrive(arrival, Bytes(frame.length())) {
                Fate::Lost => self.count(1, 1),
                Fate::Overflowed => self.count(2, 1),
                Fate::Leaves(due) if due <= now && self.waiting.is_empty() => {
                    self.send(to, frame.bytes, due);
                }
                Fate::Leaves(due) => {
                    let mut buffer = self.spare.pop().unwrap_or_default();
                    buffer.clear();
                    buffer.extend_from_slice(frame.bytes);
                    self.arrived += 1;
                    self.waiting.push(Reverse((due, self.arrived, Waiting(buffer))));
                }
            }
        }
        if is_losing {
            self.count(3, from.overruns());
        }
        frames == BATCH
    }

    fn send_due(&mut self, to: &LinkSocket) {
        let now = clock::now();
        while let Some(Reverse((due, ..))) = self.waiting.peek()
            && *due <= now
            && let Some(Reverse((due, _, Waiting(buffer)))) = self.waiting.pop()
        {
            self.send(to, &buffer, due);
            self.spare.push(buffer);
        }
    }

    fn send(&self, to: &LinkSocket, frame: &[u8], due: Nanos) {
        if !to.send(frame) {
            self.count(3, 1);
        }
        if clock::now().since(due) > LATE {
            self.count(4, 1);
        }
    }

    fn count(&self, which: usize, by: u64) {
        self.counts[which].fetch_add(by, Ordering::Relaxed);
    }
}

impl PartialEq for Waiting {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}
