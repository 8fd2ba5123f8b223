//! Progress while a client runs. Threads share nothing here either: each sends a copy of what it has counted, now and
//! then and only if asked to; one thread beside them adds the copies up and prints them.

use crate::meter::Meter;
use crate::process::emit;
use linerate_contract::{Bytes, Event, Nanos, Recorder, Sample};
use std::sync::mpsc::{Receiver, Sender, channel};

/// What one thread has counted since its window opened.
#[derive(Debug)]
struct Snapshot {
    thread: usize,
    at: Nanos,
    totals: (u64, u64, u64),
    latency: Recorder,
}

/// A thread's end.
#[derive(Debug)]
pub struct Sampler {
    thread: usize,
    every: Nanos,
    next: Nanos,
    out: Sender<Snapshot>,
}

/// A sampler for each thread, or none for any.
#[must_use]
pub fn samplers(every: Option<Nanos>, threads: u32) -> Vec<Option<Sampler>> {
    let Some(every) = every else { return (0..threads).map(|_| None).collect() };
    let (out, snapshots) = channel();
    // Not joined: it ends with the last sampler, or with the process.
    std::thread::spawn(move || collect(&snapshots, threads as usize));
    let sampler = |thread| Sampler { thread: thread as usize, every, next: Nanos::ZERO, out: out.clone() };
    (0..threads).map(|thread| Some(sampler(thread))).collect()
}

impl Sampler {
    /// When the next one is due.
    #[inline]
    #[must_use]
    pub fn next(&self) -> Nanos {
        self.next
    }

    /// Sends a copy if it is time for one; the first is due one interval after the window opened.
    #[inline]
    pub fn look(&mut self, now: Nanos, meter: &Meter) {
        if now >= self.next {
            self.take(now, meter);
        }
    }

    #[cold]
    fn take(&mut self, now: Nanos, meter: &Meter) {
        let at = now.since(meter.started());
        if self.next > Nanos::ZERO {
            let snapshot = Snapshot {
                thread: self.thread,
                at,
                totals: meter.totals(),
                latency: meter.latency().clone(),
            };
            // The collector is gone only when the process is going.
            let _ = self.out.send(snapshot);
        }
        self.next = meter.started() + Nanos((at.0 / self.every.0 + 1) * self.every.0);
    }
}

/// Prints a sample each time that the first thread has sent its copy.
fn collect(snapshots: &Receiver<Snapshot>, threads: usize) {
    let mut latest: Vec<Option<Snapshot>> = (0..threads).map(|_| None).collect();
    let mut before = (0, 0, 0);
    while let Ok(snapshot) = snapshots.recv() {
        let (thread, at) = (snapshot.thread, snapshot.at);
        latest[thread] = Some(snapshot);
        if thread != 0 {
            continue;
        }
        let mut sum = (0, 0, 0);
        let mut latency = Recorder::default();
        for one in latest.iter().flatten() {
            sum = (sum.0 + one.totals.0, sum.1 + one.totals.1, sum.2 + one.totals.2);
            latency.merge(&one.latency);
        }
        emit(&Event::Sample(Sample {
            at_ns: at,
            operations: sum.0 - before.0,
            bytes: Bytes(sum.1 - before.1),
            failed: sum.2 - before.2,
            latency: Some(latency.counts()),
            lost: None,
            rtt_us: None,
        }));
        before = sum;
    }
}
