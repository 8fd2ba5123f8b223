//! `linerate load --sweep`: latency against the rate.

use super::operations::Operations;
use super::write_result;
use crate::error::Error;
use crate::interrupt;
use crate::output::{self, warn};
use crate::report::load_sweep::{self, Step, SweepResult};
use crate::stats::estimate::{Estimate, FEWEST_ROUNDS};
use crate::stats::highest_rate::{HighestRate, LatencyBound, RateSearch};
use linerate_contract::{Done, Nanos, Spec};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Shares of the capacity: denser where latency rises, and beyond it.
const SHARES: [f64; 14] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0, 1.1, 1.2];
/// The time of each step, unless the user says otherwise: 14 of them in half a minute.
pub(super) const STEP: Duration = Duration::from_secs(2);
/// Before the capacity is measured, unless the user says otherwise.
const WARM_UP: Duration = Duration::from_secs(1);

/// Measures the curve, and searches for the highest rate within `bound`; prints and writes both.
///
/// # Errors
/// Nothing could be measured, or a file cannot be written.
pub(super) fn sweep(
    load: &Operations<'_>,
    spec: &Spec,
    bound: Option<LatencyBound>,
) -> Result<ExitCode, Error> {
    let interrupted = interrupt::watch();
    let runner = Runner { load, interrupted: &interrupted };
    let closed = Spec { rate: None, ..spec.clone() };
    let warm_up = Spec { duration_ns: Some(load.warmup.unwrap_or(WARM_UP).into()), ..closed.clone() };
    runner.run(&warm_up, "warm-up ")?;
    let Some(done) = runner.run(&closed, "capacity ")? else { return Err(Error::Interrupted) };
    if done.operations == 0 {
        let failed = done.errors.total();
        return Err(Error::NothingMeasured(format!("no request succeeded, and {failed} failed")));
    }
    let capacity = done.operations as f64 / done.end_ns.since(done.start_ns).as_secs_f64();
    let mut steps = Vec::new();
    for share in SHARES {
        let spec = Spec { rate: Some(capacity * share), ..spec.clone() };
        let place = format!("{:.0} % of {capacity:.0}/s ", share * 100.0);
        let Some(done) = runner.run(&spec, &place)? else { break };
        steps.push(Step { share, spec, done });
    }
    let highest = match bound {
        Some(bound) if !interrupted.load(Ordering::Relaxed) => {
            Some((bound, runner.highest(spec, bound, capacity, &steps)?))
        }
        _ => None,
    };
    let result = SweepResult { target: load.target, words: load.words, capacity, steps: &steps, highest };
    if [load.result.json.as_deref(), load.csv].iter().all(|path| *path != Some(Path::new("-"))) {
        warn(output::print(&load_sweep::text(&result, load.style)));
    }
    if let Some(path) = load.result.json.as_deref() {
        write_result(path, &load_sweep::json(&result));
    }
    if let Some(path) = load.csv {
        write_result(path, &load_sweep::csv(&result));
    }
    if interrupted.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(ExitCode::SUCCESS) }
}

struct Runner<'a> {
    load: &'a Operations<'a>,
    interrupted: &'a AtomicBool,
}

impl Runner<'_> {
    /// `None` after Ctrl-C.
    fn run(&self, spec: &Spec, place: &str) -> Result<Option<Done>, Error> {
        let spec = Spec { sample_ns: self.load.is_live().then_some(super::LIVE), ..spec.clone() };
        let (done, _) = self.load.load(&spec, self.interrupted, place)?;
        Ok((!self.interrupted.load(Ordering::Relaxed)).then_some(done))
    }

    /// Begins at the last step before the first one that is above the bound.
    fn highest(
        &self,
        spec: &Spec,
        bound: LatencyBound,
        capacity: f64,
        steps: &[Step],
    ) -> Result<HighestRate, Error> {
        let is_within = |step: &&Step| bound.found_in(&step.done).is_some_and(|found| found <= bound.most);
        let guess = steps.iter().take_while(is_within).last().map_or(SHARES[0], |step| step.share);
        let [first, .., last] = SHARES;
        let mut search = RateSearch::new(guess * capacity, [first * capacity, last * capacity]);
        while let Some(rate) = search.rate() {
            let spec = Spec { rate: Some(rate), ..spec.clone() };
            let mut found = Vec::new();
            for trial in 1..=FEWEST_ROUNDS {
                let place = format!("{rate:.0}/s, {trial} of {FEWEST_ROUNDS} ");
                let Some(done) = self.run(&spec, &place)? else { return Ok(search.found()) };
                // What fails has no latency, and is not within a bound.
                let is_good = done.errors.total() == 0 && done.operations > 0;
                let value = bound.found_in(&done).filter(|_| is_good).unwrap_or(Nanos(u64::MAX));
                found.push(value.as_micros_f64());
            }
            let Some(Estimate { interval, .. }) = Estimate::from_values(found) else { break };
            search.record(interval, bound.most.as_micros_f64());
        }
        Ok(search.found())
    }
}
