//! A server that is slower since its responses wait, and not since it computes: what shows it, and words.

use super::model::ComparedCell;
use crate::model::CellReport;
use crate::numbers::time;
use linerate_analysis::judge::pairs::{JudgedPair, Measure};
use linerate_analysis::stats::bound::Bottleneck;
use linerate_analysis::stats::verdict::Verdict;
use linerate_analysis::why::CountDifference;
use linerate_model::{Count, Metric};

/// A response that takes this many times as long without a busy CPU is a wait.
const LONGER: f64 = 1.5;
/// A server that uses less of one CPU than this is not bound by it.
const BUSY: f64 = 0.3;
/// A server that uses more of one CPU than this is not idle, whatever bound its trial alone.
const NOT_IDLE: f64 = 0.8;
/// The next step of the user.
const WAITS_FOR: &str = "look for a sleep, a lock that is held, or a service behind the server";
const ONE_WRITE: &str = "it writes them in small pieces: set TCP_NODELAY, or write each at once";

/// The mean time of a response of base and head, where head waits without a busy CPU in its closed loop.
/// Beside other processes a server may wait for a CPU.
pub(crate) fn waits(
    pair: &JudgedPair,
    [head, base]: [&CellReport; 2],
    is_disturbed: bool,
) -> Option<[f64; 2]> {
    let means = [base.latency_us.as_ref()?.mean, head.latency_us.as_ref()?.mean];
    let value = |measure| pair.findings.by(measure).and_then(|found| Some(found.values?[1]));
    let rate = value(Measure::Rate).filter(|_| head.unit.metric == Metric::OperationsPerSecond);
    let used = rate.zip(value(Measure::Cpu)).map(|(rate, us)| rate * us / 1e6);
    let bound_by = head.bound_by.filter(|_| !is_disturbed);
    (!pair.is_paced && is_idle(used, bound_by) && means[1] >= LONGER * means[0]).then_some(means)
}

/// Whether no CPU is busy all the time, by the CPUs that the server uses in the units and by what bound its
/// trial alone.
fn is_idle(used: Option<f64>, bound_by: Option<Bottleneck>) -> bool {
    // Beside other processes it is not known what bound a trial.
    let most = if bound_by == Some(Bottleneck::Waiting) { NOT_IDLE } else { BUSY };
    used.map_or(bound_by == Some(Bottleneck::Waiting), |used| used < most)
}

/// Such as "v2 waits: a response takes 10.6 ms, 26 µs of it CPU time, and CPUs are idle (baseline: 29 µs)",
/// and the next step. Delayed acknowledgements are a cause by themselves.
pub(crate) fn waiting(cell: &ComparedCell) -> Option<(String, &'static str)> {
    if cell.waits_for_acks && cell.verdict == Verdict::Slower {
        let words = format!("{}: most responses wait 40 ms for a delayed acknowledgement", cell.id);
        return Some((words, ONE_WRITE));
    }
    let [base, head] = cell.waits_us.filter(|_| cell.verdict == Verdict::Slower)?;
    let meanwhile =
        cell.why.iter().filter_map(|why| why.explanation.as_ref()).flat_map(|found| &found.counts);
    let is_delayed = |found: &CountDifference| found.count == Count::DelayedAcks && found.difference > 0.0;
    if cell.counts.iter().chain(meanwhile).any(is_delayed) {
        return None;
    }
    let cpu = cell.findings.cpu().and_then(|cpu| Some(time(cpu.values?[1])));
    let cpu = cpu.map_or_else(String::new, |cpu| format!(", {cpu} of it CPU time,"));
    let (id, takes, before) = (&cell.id, time(head), time(base));
    let words = format!("{id} waits: a response takes {takes}{cpu} and CPUs are idle (baseline: {before})");
    Some((words, WAITS_FOR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_whose_cpu_is_in_use_is_not_idle_whatever_bound_its_trial_alone() {
        let waiting = Some(Bottleneck::Waiting);
        // A trial beside a compiler said that it waits; its units used 1.25 CPUs.
        assert!(!is_idle(Some(1.25), waiting));
        assert!(!is_idle(Some(0.5), Some(Bottleneck::Unknown)));
        assert!(is_idle(Some(0.5), waiting));
        assert!(is_idle(Some(0.02), None));
        assert!(is_idle(None, waiting) && !is_idle(None, None));
    }
}
