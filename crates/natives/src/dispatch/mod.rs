//! Handlers posted to a [`queue`] and run: the cost of an event loop without I/O.
//!
//! The load engine's own loop has no such queue: its work is known in advance. It is a lower bound for the
//! cost of those in libraries.

pub mod queue;

use linerate_contract::{Done, ErrorKind, Nanos, Shape, Spec, clock};
use linerate_load::Refusal;
use linerate_load::process::{spawn_scoped, together};
use queue::{Hub, Queue};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Handlers posted before each run of the shape `interleaved` (sdk/CONTRACT.md).
const INTERLEAVE: u64 = 100;
/// The unmeasured pass has a tenth of the handlers (sdk/CONTRACT.md).
const WARM_UP: u64 = 10;

/// Runs `spec` to its end.
///
/// # Errors
/// An invalid spec.
pub fn run(spec: &Spec) -> Result<Done, Refusal> {
    measure(spec, |shape, operations, threads, posted| match shape {
        Shape::Single => Ok(single(operations)),
        Shape::Threads | Shape::Run => several(operations, threads, posted),
        Shape::Interleaved => Ok(interleaved(operations)),
        Shape::Concurrent => concurrent(operations, threads),
    })
}

/// Runs the unmeasured pass and the window, and checks the counter. `pass` posts and runs the handlers; it
/// returns how many have run, and calls its last argument between the two where the window of a shape starts
/// there. With a duration, passes follow one another until the time is over; [`Shape::Run`] has one.
///
/// # Errors
/// An invalid spec.
pub fn measure(
    spec: &Spec,
    pass: impl Fn(Shape, u64, u32, &mut dyn FnMut()) -> Result<u64, Refusal>,
) -> Result<Done, Refusal> {
    let shape = spec.shape()?;
    let threads = spec.threads;
    let Some(operations) = spec.operations.filter(|n| *n > 0 && threads > 0) else {
        return Err(Refusal::BadSpec("\"operations\" and \"threads\" must be above 0".into()));
    };
    pass(shape, (operations / WARM_UP).max(1), threads, &mut || ())?;
    let (mut cpu, mut start_ns) = (clock::process_cpu(), clock::now());
    let mut done = Done::default();
    // Without a duration the time is over after the first pass.
    let until = start_ns + spec.duration_ns.filter(|_| shape != Shape::Run).unwrap_or(Nanos::ZERO);
    while done.end_ns < until {
        let ran = pass(shape, operations, threads, &mut || {
            if shape == Shape::Run {
                (cpu, start_ns) = (clock::process_cpu(), clock::now());
            }
        })?;
        done.end_ns = clock::now();
        done.operations += ran.min(operations);
        done.verified += ran;
        done.errors.add(ErrorKind::Failed, operations.abs_diff(ran));
    }
    (done.start_ns, done.cpu_ns) = (start_ns, clock::process_cpu().since(cpu));
    Ok(done)
}

fn single(operations: u64) -> u64 {
    let counter = counter();
    let mut queue = Queue::new(Arc::default());
    post_unshared(&mut queue, counter, operations);
    queue.run();
    counter.load(Relaxed)
}

fn interleaved(operations: u64) -> u64 {
    let counter = counter();
    let mut queue = Queue::new(Arc::default());
    let mut left = operations;
    while left > 0 {
        let batch = left.min(INTERLEAVE);
        post_unshared(&mut queue, counter, batch);
        queue.run();
        left -= batch;
    }
    counter.load(Relaxed)
}

fn several(operations: u64, threads: u32, posted: &mut dyn FnMut()) -> Result<u64, Refusal> {
    let (hub, counter) = (Arc::new(Hub::default()), counter());
    let mut queue = Queue::new(hub.clone());
    post_shared(&mut queue, counter, operations);
    queue.hand_over();
    posted();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            spawn_scoped(scope, || Queue::new(hub.clone()).run())?;
        }
        Ok::<_, Refusal>(())
    })?;
    Ok(counter.load(Relaxed))
}

fn concurrent(operations: u64, threads: u32) -> Result<u64, Refusal> {
    let (hub, counter, all) = (Arc::new(Hub::default()), counter(), u64::from(threads));
    let work = |index: u64| {
        let mut queue = Queue::new(hub.clone());
        let share = operations / all + u64::from(index < operations % all);
        move || {
            post_shared(&mut queue, counter, share);
            queue.run();
        }
    };
    together((0..all).map(work).collect())?;
    Ok(counter.load(Relaxed))
}

/// A counter that is never freed: a handler then contains only its address.
pub fn counter() -> &'static AtomicU64 {
    Box::leak(Box::default())
}

fn post_shared(queue: &mut Queue, counter: &'static AtomicU64, count: u64) {
    for _ in 0..count {
        queue.post(move |_| {
            counter.fetch_add(1, Relaxed);
        });
    }
}

/// As [`post_shared`], for handlers of one thread: a plain addition, without a locked instruction.
fn post_unshared(queue: &mut Queue, counter: &'static AtomicU64, count: u64) {
    for _ in 0..count {
        queue.post(move |_| counter.store(counter.load(Relaxed) + 1, Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Layer, Role, Workload};

    #[test]
    fn every_shape_runs_every_handler() {
        for shape in ["single", "threads", "run", "interleaved", "concurrent"] {
            for threads in [1, 3] {
                let mut spec = Spec::new(Role::Client, Layer::None, Workload::Dispatch);
                (spec.operations, spec.threads) = (Some(10_007), threads);
                spec.options.insert("shape".into(), shape.into());
                let done = run(&spec).unwrap();
                assert_eq!(
                    (done.operations, done.verified, done.errors.total()),
                    (10_007, 10_007, 0),
                    "{shape}"
                );
            }
        }
    }

    #[test]
    fn passes_follow_one_another_until_the_time_is_over() {
        for (shape, duration) in [("interleaved", 20_000_000), ("concurrent", 20_000_000), ("single", 1)] {
            let mut spec = Spec::new(Role::Client, Layer::None, Workload::Dispatch);
            (spec.operations, spec.threads, spec.duration_ns) = (Some(1_000), 2, Some(Nanos(duration)));
            spec.options.insert("shape".into(), shape.into());
            // A machine that stands still has time for one pass only.
            let is_right = || {
                let done = run(&spec).unwrap();
                assert_eq!((done.operations % 1_000, done.errors.total()), (0, 0), "{shape}");
                assert!(done.end_ns >= done.start_ns + Nanos(duration));
                (done.operations, done.operations > 1_000) == (done.verified, duration > 1)
            };
            assert!((0..5).any(|_| is_right()), "{shape}");
        }
    }

    #[test]
    fn the_window_of_run_starts_when_all_handlers_are_posted() {
        let mut spec = Spec::new(Role::Client, Layer::None, Workload::Dispatch);
        spec.operations = Some(10);
        let starts = |shape: &str| {
            let mut spec = spec.clone();
            spec.options.insert("shape".into(), shape.into());
            let posted_at = std::cell::Cell::new(Nanos::ZERO);
            let done = measure(&spec, |_, operations, _, posted| {
                posted_at.set(clock::now());
                posted();
                Ok(operations)
            });
            done.unwrap().start_ns >= posted_at.get()
        };
        assert_eq!((starts("run"), starts("threads")), (true, false));
    }

    #[test]
    fn a_handler_that_did_not_run_is_an_error() {
        let mut spec = Spec::new(Role::Client, Layer::None, Workload::Dispatch);
        spec.operations = Some(10);
        spec.options.insert("shape".into(), "single".into());
        let done = measure(&spec, |_, operations, _, _| Ok(operations - 1)).unwrap();
        assert_eq!((done.operations, done.errors.total()), (9, 1));
    }
}
