//! The highest rate of which no more is lost than `options.search` percent: trials for [`Search`], and one that is told.

use super::client::measure;
use crate::process::Stop;
use crate::refusal::Refusal;
use crate::search::Search;
use linerate_contract::{Done, Nanos, Spec};

/// Where the search begins, and the rates between which it stays: a hundred a second is less than anything here carries.
const FIRST: f64 = 50_000.0;
const LOWEST: f64 = 100.0;
const HIGHEST: f64 = 5e7;
/// A trial has this part of the time, and the one that is told a quarter: a search takes 40 to 80 of them.
const TRIAL: u64 = 100;
const TOLD: u64 = 4;
/// Shorter trials would fit into the socket's buffer, and lose nothing at any rate.
const SHORTEST: Nanos = Nanos(20_000_000);
/// A sender that leaves more than this undone did not send at that rate.
const UNSENT: f64 = 0.01;
/// The rate that was found is lowered by so much if the longer trial loses more, up to so many times.
const LOWER: f64 = 0.95;
const MOST_LOWER: u32 = 20;

/// What the spec asks for, if it asks for a search.
pub(super) fn tolerance(spec: &Spec) -> Result<Option<f64>, Refusal> {
    let Some(text) = spec.options.get("search").filter(|_| spec.bytes.is_none()) else { return Ok(None) };
    let percent = text.parse().ok().filter(|percent: &f64| (0.0..100.0).contains(percent));
    let percent = percent.ok_or_else(|| {
        Refusal::BadSpec(format!("\"options.search\" must be percent of loss, 0 to below 100, not {text:?}"))
    })?;
    Ok(Some(percent / 100.0))
}

/// Searches, and tells the longer trial at the rate that was found; of a path that carries nothing, the last one.
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
        if let Some(found) = search.tell(holds(&done, tolerance)) {
            break found;
        }
    };
    let mut rate = found.unwrap_or(LOWEST);
    let mut done = at(rate, Nanos(all.0 / TOLD))?;
    for _ in 0..MOST_LOWER {
        if holds(&done, tolerance) || done.errors.total() > 0 || stop.is_asked() {
            break;
        }
        rate *= LOWER;
        done = at(rate, Nanos(all.0 / TOLD))?;
    }
    Ok(done)
}

/// All that was due was sent, and no more was lost than is tolerated.
fn holds(done: &Done, tolerance: f64) -> bool {
    let (Some(datagrams), Some(schedule)) = (&done.datagrams, &done.schedule) else { return false };
    let due = datagrams.sent + schedule.unsent;
    datagrams.sent > 0
        && schedule.unsent as f64 <= due as f64 * UNSENT
        && datagrams.lost as f64 <= datagrams.sent as f64 * tolerance
}
