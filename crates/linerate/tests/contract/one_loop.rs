//! Client and server in one event loop, in every program that lists it in its `ends`, and in no other.

use super::cases::{WINDOW, cases};
use super::common::program::{Program, spec_of};
use super::{Promise, right};
use linerate_contract::{Choice, Describe, Ends, Layer, Spec, Workload};
use std::collections::BTreeMap;
use std::path::Path;

/// Checks every exchange of the layers and workloads that the program describes.
pub(crate) fn promises(
    program: &Path,
    options: &BTreeMap<String, String>,
    described: &Describe,
) -> Vec<Promise> {
    let is_declared = described.ends.iter().any(|ends| ends == Ends::OneLoop.word());
    let is_described =
        |spec: &Spec| described.layers.contains(&spec.layer) && described.workloads.contains(&spec.workload);
    let mut all = Vec::new();
    for (name, mut spec) in exchanges().into_iter().filter(|(_, spec)| is_described(spec)) {
        spec.options.extend(options.clone());
        // A runtime may have one thread only.
        for (threads, may_refuse) in [(1, !is_declared), (2, true)] {
            spec.threads = threads;
            let kept = run(program, &spec, is_declared, may_refuse);
            all.push((format!("{name} in one loop, threads: {threads}"), kept));
        }
    }
    all
}

/// By count; and those of operations also for a time.
fn exchanges() -> Vec<(String, Spec)> {
    let all = [(Layer::Tcp, Workload::Rr), (Layer::Tcp, Workload::Stream), (Layer::Http, Workload::Rr)];
    let all = all.into_iter().flat_map(|(layer, workload)| cases(layer, workload));
    all.flat_map(|(name, mut spec, _)| {
        spec.choose(Ends::OneLoop);
        let mut timed = spec.clone();
        (timed.duration_ns, timed.operations) = (Some(WINDOW), None);
        let timed = spec.operations.map(|_| (format!("{name}, by time"), timed));
        [Some((name, spec)), timed].into_iter().flatten()
    })
    .collect()
}

fn run(program: &Path, spec: &Spec, is_declared: bool, may_refuse: bool) -> Result<(), String> {
    let spec = spec_of(spec.clone());
    match Program::start(program, &spec)?.done()? {
        Some(done) if is_declared => right(&spec, &done),
        Some(done) => Err(format!("it is not in its `ends`: {done:?}")),
        None if may_refuse => Ok(()),
        None => Err("it is in its `ends`, and not supported".into()),
    }
}
