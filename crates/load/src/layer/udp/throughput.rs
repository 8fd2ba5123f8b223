//! The highest rate with a loss of at most `options.search` percent: trials for [`Search`], and a final one.

use super::client::measure;
use crate::process::Stop;
use crate::refusal::Refusal;
use crate::search::Search;
use linerate_contract::{Done, Nanos, Spec};

/// The first rate of a search, and its bounds, in datagrams per second: every path here carries more than a
/// hundred.
const FIRST: f64 = 50_000.0;
const LOWEST: f64 = 100.0;
const HIGHEST: f64 = 5e7;
/// A trial has a hundredth of the time, the final one a quarter: a search takes 40 to 80 trials.
const TRIAL: u64 = 100;
const FINAL: u64 = 4;
/// The shortest trial: shorter ones would fit into the socket's buffer and lose nothing at any rate.
const SHORTEST: Nanos = Nanos(20_000_000);
/// A sender that leaves a larger share unsent did not reach the rate.
const UNSENT: f64 = 0.01;
/// If the final trial loses too much, it is repeated with the rate times this factor, up to this often.
const LOWER: f64 = 0.95;
const MAX_LOWER: u32 = 20;

/// The tolerated share of loss, if the spec requests a search.
pub(super) fn tolerance(spec: &Spec) -> Result<Option<f64>, Refusal> {
    let Some(text) = spec.options.get("search").filter(|_| spec.bytes.is_none()) else { return Ok(None) };
    let percent = text.parse().ok().filter(|percent: &f64| (0.0..100.0).contains(percent));
    let percent = percent.ok_or_else(|| {
        Refusal::BadSpec(format!("\"options.search\" must be percent of loss, 0 to below 100, not {text:?}"))
    })?;
    Ok(Some(percent / 100.0))
}

/// Searches, and returns the final trial at the rate found; on a path without throughput, the last trial.
pub(super) fn run(spec: &Spec, tolerance: f64, stop: &Stop) -> Result<Done, Refusal> {
    let all = spec.duration_ns.ok_or_else(|| Refusal::BadSpec("a search needs \"duration_ns\"".into()))?;
    let at = |rate: f64, time: Nanos| {
        let time = time.0.max(SHORTEST.0);
        measure(&Spec { rate: Some(rate), duration_ns: Some(Nanos(time)), ..spec.clone() }, stop)
    };
    let mut search = Search::new(FIRST, LOWEST, HIGHEST);
    let found = loop {
        let done = at(search.rate(), Nanos(all.0 / TRIAL))?;
        if done.errors.total() > 0 || stop.is_asked() {
            return Ok(done);
        }
        if let Some(found) = search.record(passes(&done, tolerance)) {
            break found;
        }
    };
    let mut rate = found.unwrap_or(LOWEST);
    let mut done = at(rate, Nanos(all.0 / FINAL))?;
    for _ in 0..MAX_LOWER {
        if passes(&done, tolerance) || done.errors.total() > 0 || stop.is_asked() {
            break;
        }
        rate *= LOWER;
        done = at(rate, Nanos(all.0 / FINAL))?;
    }
    Ok(done)
}

/// Everything that was due was sent, and the loss is tolerated.
fn passes(done: &Done, tolerance: f64) -> bool {
    let (Some(datagrams), Some(schedule)) = (&done.datagrams, &done.schedule) else { return false };
    let due = datagrams.sent + schedule.unsent;
    datagrams.sent > 0
        && schedule.unsent as f64 <= due as f64 * UNSENT
        && datagrams.lost as f64 <= datagrams.sent as f64 * tolerance
}
