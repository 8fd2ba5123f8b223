//! `dispatch` without a queue: a plain loop over prepared function pointers.

use crate::dispatch::{counter, measure};
use linerate_contract::{Done, Shape, Spec};
use linerate_load::Refusal;
use linerate_load::process::spawn_scoped;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

type Handler = fn(&AtomicU64);

/// Runs `spec` to its end.
///
/// # Errors
/// A spec that lacks something.
pub(super) fn run(spec: &Spec) -> Result<Done, Refusal> {
    let shared = matches!(spec.shape()?, Shape::Threads | Shape::Run | Shape::Concurrent);
    let handler: Handler = if shared {
        |counter| {
            counter.fetch_add(1, Relaxed);
        }
    } else {
        |counter| counter.store(counter.load(Relaxed) + 1, Relaxed)
    };
    // black_box: otherwise the compiler could replace all calls by one addition.
    let handlers = black_box(vec![handler; spec.operations.unwrap_or(0) as usize]);
    measure(spec, |_, operations, threads, posted| {
        posted();
        let counter = counter();
        let handlers = &handlers[..operations as usize];
        let threads = if shared { threads as usize } else { 1 };
        std::thread::scope(|scope| {
            let mut parts = handlers.chunks(handlers.len().div_ceil(threads));
            let own = parts.next().unwrap_or_default();
            for part in parts {
                spawn_scoped(scope, move || part.iter().for_each(|handler| handler(counter)))?;
            }
            own.iter().for_each(|handler| handler(counter));
            Ok::<_, Refusal>(())
        })?;
        Ok(counter.load(Relaxed))
    })
}
