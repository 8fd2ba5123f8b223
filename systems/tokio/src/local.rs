//! `dispatch` and `timers`: the runtime without a network. A posted handler is a spawned task, the only entry
//! of tokio's queue.

use linerate_contract::program::Refusal;
use linerate_contract::tally::Tally;
use linerate_contract::{Done, ErrorKind, Nanos, Recorder, Shape, Spec, Window, clock};
use linerate_sdk::server::runtime;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

/// From the contract: handlers posted before each run of `interleaved`, and the part of the warm-up pass.
const INTERLEAVE: u64 = 100;
const WARM_UP: u64 = 10;
/// From the contract: due times.
const SOON: Duration = Duration::from_millis(1);
const FAR: Duration = Duration::from_secs(3600);

pub fn dispatch(spec: &Spec) -> Result<Done, Refusal> {
    let shape = spec.shape()?;
    let operations = operations(spec)?;
    let threads = u64::from(spec.threads);
    if shape == Shape::Run && threads > 1 {
        return Err(Refusal::Unsupported("all tasks spawned before a worker runs one".into()));
    }
    let posters = if shape == Shape::Concurrent { threads } else { 1 };
    let batch = if shape == Shape::Interleaved { INTERLEAVE } else { u64::MAX };
    runtime(spec)?.block_on(async move {
        pass((operations / WARM_UP).max(1), posters, batch).await;
        let (start_ns, mut cpu) = (clock::now(), clock::process_cpu());
        let mut done = Done { start_ns, ..Done::default() };
        // Without a duration the time is over after the first pass.
        let until = start_ns + spec.duration_ns.filter(|_| shape != Shape::Run).unwrap_or(Nanos::ZERO);
        while done.end_ns < until {
            let ran = pass(operations, posters, batch).await;
            done.end_ns = clock::now();
            done.operations += ran;
            done.errors.add(ErrorKind::Failed, operations.abs_diff(ran));
        }
        if shape == Shape::Run {
            (done.start_ns, cpu) = *COUNTER.posted.lock().expect("a panic aborts the process");
        }
        done.cpu_ns = clock::process_cpu().since(cpu);
        done.verified = done.operations;
        Ok(done)
    })
}

/// `posters` tasks spawn `operations` tasks, at most `batch` before those have run. Returns the number of
/// tasks that ran.
async fn pass(operations: u64, posters: u64, batch: u64) -> u64 {
    let (mut set, counter) = (JoinSet::new(), &COUNTER);
    counter.count.store(0, Relaxed);
    for index in 0..posters {
        let share = operations / posters + u64::from(index < operations % posters);
        // Posted inside the runtime, where each worker has its own queue.
        set.spawn(async move {
            let mut posted = 0;
            while posted < share {
                let count = batch.min(share - posted);
                posted += count;
                let expected = if batch == u64::MAX { operations } else { posted };
                for _ in 0..count {
                    tokio::spawn(async move { counter.add(expected) });
                }
                if batch == u64::MAX {
                    *counter.posted.lock().expect("a panic aborts the process") =
                        (clock::now(), clock::process_cpu());
                }
                if expected < operations {
                    counter.reached.notified().await;
                }
            }
        });
    }
    while let Some(outcome) = set.join_next().await {
        outcome.expect("a panic aborts the process");
    }
    counter.reached.notified().await;
    counter.count.load(Relaxed)
}

/// The counter of the current pass. Static, since a shared one would cost a reference count per handler,
/// which the handlers of other systems do not have.
static COUNTER: Counter = Counter {
    count: AtomicU64::new(0),
    reached: Notify::const_new(),
    posted: Mutex::new((Nanos::ZERO, Nanos::ZERO)),
};

struct Counter {
    count: AtomicU64,
    reached: Notify,
    /// The clock and the CPU time when all tasks had been spawned.
    posted: Mutex<(Nanos, Nanos)>,
}

impl Counter {
    fn add(&self, expected: u64) {
        if self.count.fetch_add(1, Relaxed) + 1 == expected {
            self.reached.notify_one();
        }
    }
}

pub fn timers(spec: &Spec) -> Result<Done, Refusal> {
    let operations = operations(spec)?;
    let slots = u64::from(spec.connections).min(operations);
    runtime(spec)?.block_on(async move {
        let (window, mut set) = (Arc::new(Window::open(spec)), JoinSet::new());
        for index in 0..slots {
            let share = operations / slots + u64::from(index < operations % slots);
            set.spawn(slot(share, window.clone()));
        }
        let (mut latency, mut sum) = (Recorder::default(), Tally::default());
        while let Some(outcome) = set.join_next().await {
            let (late, tally) = outcome.expect("a panic aborts the process");
            late.iter().for_each(|nanos| latency.record(nanos.0));
            sum.merge(&tally);
        }
        Ok(Done { latency: Some(latency.counts()), ..window.done(&sum, |operations, _| operations) })
    })
}

/// `count` timers, one after the other, or until the time is over. Returns how late each fired, and the
/// counts.
async fn slot(count: u64, window: Arc<Window>) -> (Vec<Nanos>, Tally) {
    let (mut late, mut tally) = (Vec::with_capacity(count.div_ceil(2) as usize), window.tally());
    for index in 0..count {
        let began = clock::now();
        if window.is_over(began) {
            break;
        }
        if index % 2 == 0 {
            let due = began + Nanos::from(SOON);
            sleep_until(Instant::now() + SOON).await;
            let now = clock::now();
            if tally.ended(now) {
                late.push(now.since(due));
            }
        } else {
            // A timer is set by the first poll, and cancelled by the drop.
            tokio::select! {
                biased;
                () = sleep(FAR) => {}
                () = std::future::ready(()) => {}
            }
            tally.ended(clock::now());
        }
    }
    (late, tally)
}

fn operations(spec: &Spec) -> Result<u64, Refusal> {
    spec.operations
        .filter(|n| *n > 0)
        .ok_or_else(|| Refusal::BadSpec("\"operations\" must be above 0".into()))
}
