//! `dispatch`: the runtime without a network. A posted handler is a spawned task, the only entry of tokio's
//! queue.

use linerate_contract::program::Refusal;
use linerate_contract::{Done, ErrorKind, Nanos, Shape, Spec, clock};
use linerate_sdk::server::runtime;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// From the contract: handlers posted before each run of `interleaved`, and the part of the warm-up pass.
const INTERLEAVE: u64 = 100;
const WARM_UP: u64 = 10;

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

fn operations(spec: &Spec) -> Result<u64, Refusal> {
    spec.operations
        .filter(|n| *n > 0)
        .ok_or_else(|| Refusal::BadSpec("\"operations\" must be above 0".into()))
}
