//! A client: threads that share nothing, started together and merged afterwards.

use crate::engine::{Engine, Workload};
use crate::layer::Layer;
use crate::meter::Meter;
use crate::process::{Signals, spawn, together};
use crate::refusal::{Doing, Refusal};
use crate::sample;
use crate::schedule::Schedule;
use crate::tcp_info::delayed_acks;
use crate::waiter::Waiter;
use linerate_contract::{Done, Nanos, Spec};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::sync::Arc;

/// Runs `spec` with this layer and workload.
///
/// # Errors
/// A spec that lacks something, or a kernel that refuses.
pub fn run<L: Layer, W: Workload<L>>(spec: &Spec) -> Result<Done, Refusal> {
    check(spec)?;
    let signals = Signals::claim()?;
    let layer = L::new(spec, W::PERSISTENT)?;
    // A thread without a connection would have nothing to do.
    let threads = spec.threads.min(spec.connections);
    let stops = (0..threads)
        .map(|_| {
            EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).doing("eventfd").map(Arc::new)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let samplers = sample::samplers(spec.sample_ns, threads)?;
    let engines = (0..threads)
        .zip(samplers)
        .map(|(t, sampler)| {
            let connections = share(spec.connections.into(), threads, t) as u32;
            let budget = spec.operations.map(|all| match W::FINISHES {
                // Each connection has its own.
                true => all / u64::from(spec.connections) * u64::from(connections),
                false => share(all, threads, t),
            });
            Engine::<L, W>::new(
                layer.clone(),
                Meter::new(spec, budget)?,
                connections,
                Schedule::new(spec, t, threads)?,
                Waiter::spinning(spec, L::SPIN)?,
                sampler,
                stops[t as usize].clone(),
            )
        })
        .collect::<Result<Vec<_>, _>>()?;
    // Not joined: it sleeps until a signal comes, or until the process is gone.
    spawn(move || {
        signals.wait();
        for stop in &stops {
            // Fails only when the counter is full; the engine is then notified already.
            let _ = stop.write(1);
        }
    })?;
    // Set-up is over in every thread before the first operation of any.
    let runs = engines.into_iter().map(|engine| move || engine.run()).collect();
    let before = delayed_acks();
    let done = together(runs).map(merge)?;
    let delayed = before.zip(delayed_acks()).map(|(before, after)| after.saturating_sub(before));
    Ok(Done { delayed_acks: delayed.filter(|count| *count > 0), ..done })
}

fn check(spec: &Spec) -> Result<(), Refusal> {
    let wrong = |what: &str| Err(Refusal::BadSpec(what.into()));
    if spec.connections == 0 {
        wrong("\"connections\" must be at least 1")
    } else if spec.threads == 0 {
        wrong("\"threads\" must be at least 1")
    } else if spec.operations.is_none() && spec.duration_ns.is_none() {
        wrong("a client needs \"operations\" or \"duration_ns\"")
    } else if spec.sample_ns == Some(Nanos::ZERO) {
        wrong("\"sample_ns\" must be above 0")
    } else if spec.timeout_ns == Nanos::ZERO {
        wrong("\"timeout_ns\" must be above 0")
    } else if spec.alternation.is_some() && !spec.workload.is_of_round_trips() {
        Err(Refusal::Unsupported(format!("\"alternation\" of workload {:?}", spec.workload)))
    } else {
        spec.alternation.map_or(Ok(()), |turns| turns.check()).map_err(Refusal::BadSpec)
    }
}

/// Part `index` of `all` in `parts` that differ by at most one.
fn share(all: u64, parts: u32, index: u32) -> u64 {
    let (parts, index) = (u64::from(parts), u64::from(index));
    all / parts + u64::from(index < all % parts)
}

fn merge(accounts: Vec<(Meter, Nanos)>) -> Done {
    let cpu = accounts.iter().fold(Nanos::ZERO, |sum, a| sum + a.1);
    let (sum, _) = accounts
        .into_iter()
        .reduce(|(mut sum, zero), (meter, _)| {
            sum.merge(&meter);
            (sum, zero)
        })
        .expect("there is at least one thread");
    sum.done(cpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_differ_by_one_at_most() {
        for (all, parts) in [(10, 3), (1, 4), (0, 2), (100_000, 7)] {
            let shares: Vec<_> = (0..parts).map(|i| share(all, parts, i)).collect();
            assert_eq!(shares.iter().sum::<u64>(), all);
            assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
    }
}
