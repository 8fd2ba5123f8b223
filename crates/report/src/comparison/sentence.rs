//! The verdict as a sentence, and what a budget can find.

use super::latency::{margin, overload};

use super::model::{ComparedCell, ComparisonReport};
use crate::numbers::{counted, percent_number, seconds, share, signed, whole_seconds};
use crate::words;
use linerate_analysis::judge::pairs::{Finding, Measure, detectable, fewest};
use linerate_analysis::stats::early;
use linerate_analysis::stats::verdict::Verdict;
use linerate_analysis::stopping::Prospect;
use std::collections::{BTreeMap, BTreeSet};

/// Such as "haproxy-tcp is 4.1 % slower with this change (3.2 to 5.0 %, 22 pairs, 70 s), in 1 of 6 cells; 5
/// within 1 %".
pub(super) fn sentence(comparison: &ComparisonReport) -> String {
    let cells = &comparison.cells;
    let of = |verdict: Verdict| cells.iter().filter(|cell| cell.verdict == verdict).collect::<Vec<_>>();
    let names: BTreeSet<&str> = cells.iter().map(|cell| cell.system.as_str()).collect();
    let names = Vec::from_iter(names).join(" and ");
    match comparison.conclusion {
        Verdict::Missing => {
            let reason = cells.iter().find_map(|cell| cell.detail.as_deref()).unwrap_or("no pair was made");
            format!("nothing could be measured: {reason}")
        }
        Verdict::Slower => {
            let words = ["slower", "later", "more"];
            changed(comparison, &names, &of(Verdict::Slower), words, Verdict::Slower)
        }
        Verdict::Faster => {
            let words = ["faster", "earlier", "less"];
            changed(comparison, &names, &of(Verdict::Faster), words, Verdict::Faster)
        }
        Verdict::CannotTell | Verdict::Failed => open(comparison, &names),
        Verdict::SmallDifference | Verdict::WithinMargin | Verdict::NotSlower => {
            let units: u32 = cells.iter().map(|cell| cell.units).sum();
            let time = seconds(comparison.seconds);
            let rest = rest(comparison, None);
            format!("no slowdown of {names} with this change: {rest} ({units} pairs, {time})")
        }
    }
}

/// The cell that changed most, by its first reading that changed.
fn changed(
    comparison: &ComparisonReport,
    names: &str,
    changed: &[&ComparedCell],
    [by_rate, by_latency, by_cpu]: [&str; 3],
    verdict: Verdict,
) -> String {
    let size = |cell: &&&ComparedCell| first_change(cell, verdict).map_or(0.0, |found| found.percent().abs());
    let most = changed.iter().max_by(|a, b| size(a).total_cmp(&size(b)));
    let Some((cell, change)) = most.and_then(|cell| Some((cell, first_change(cell, verdict)?))) else {
        return format!("{names} is {by_rate} with this change");
    };
    let ci95 = change.percent_ci95();
    let percent = percent_number(change.percent().abs(), ci95);
    let up_to = if changed.len() > 1 { "up to " } else { "" };
    let second = second(cell, change.measure);
    let what = match change.measure {
        Measure::Rate => format!("is {up_to}{percent} % {by_rate}"),
        Measure::Cpu => format!("needs {up_to}{percent} % {by_cpu} CPU time per operation"),
        latency => format!("responds {up_to}{percent} % {by_latency} at {}", latency.name()),
    };
    let interval = ci95.map(|ends| {
        let [low, high] = ends.map(f64::abs);
        let (low, high) = (low.min(high), low.max(high));
        format!("{} to {} %, ", percent_number(low, ci95), percent_number(high, ci95))
    });
    let all = comparison.cells.len();
    let place = match (all, changed.len()) {
        (1, _) => String::new(),
        (_, 1) => format!(", in 1 of {all} cells, {}", cell.id),
        (_, n) => format!(", in {n} of {all} cells, most in {}", cell.id),
    };
    let rest = rest(comparison, Some(verdict));
    let rest = if rest.is_empty() { rest } else { format!("; {rest}") };
    let overload = overload(cell, comparison);
    format!(
        "{names} {what} with this change ({}{} pairs, {}){place}{second}{rest}{overload}",
        interval.unwrap_or_default(),
        cell.units,
        seconds(cell.seconds)
    )
}

/// The first finding with this verdict.
fn first_change(cell: &ComparedCell, verdict: Verdict) -> Option<&Finding> {
    let first = cell.findings.cpu().filter(|_| cell.cpu_first);
    first.into_iter().chain(&cell.findings.0).find(|found| found.verdict == verdict)
}

/// The other finding, where a role was saturated.
fn second(cell: &ComparedCell, first: Measure) -> String {
    let by = |measure: Measure| cell.findings.by(measure).filter(|_| cell.cpu_first);
    match (first, by(Measure::Rate), by(Measure::Cpu)) {
        (Measure::Cpu, Some(rate), _) => format!("; rate {}", signed(rate)),
        (Measure::Rate, _, Some(cpu)) => format!("; CPU time {}", signed(cpu)),
        _ => String::new(),
    }
}

fn open(comparison: &ComparisonReport, names: &str) -> String {
    let is_open = |cell: &&ComparedCell| {
        matches!(cell.verdict, Verdict::CannotTell | Verdict::Failed | Verdict::Missing)
    };
    let open: Vec<&ComparedCell> = comparison.cells.iter().filter(is_open).collect();
    let reason = open.iter().find_map(|cell| cell.detail.clone()).or_else(|| {
        let cell = open.first()?;
        Some(match cell.findings.cpu().filter(|_| cell.cpu_first) {
            Some(cpu) => format!("the CPU time of {} changed by {}", cell.id, signed(cpu)),
            None => format!("{} changed by {}", cell.id, signed(cell.findings.main()?)),
        })
    });
    let smallest = comparison.smallest_detectable.map(|smallest| {
        let budget = seconds(comparison.budget_seconds);
        format!("; {budget} find a slowdown of {}", share(smallest))
    });
    format!(
        "undecided whether {names} is slower with this change: {} of {} without a verdict{}{}",
        open.len(),
        counted(comparison.cells.len() as u64, "cell"),
        reason.map_or_else(String::new, |reason| format!(" ({reason})")),
        smallest.unwrap_or_default()
    )
}

/// The other cells: `5 within 1 %, 1 failed`.
fn rest(comparison: &ComparisonReport, except: Option<Verdict>) -> String {
    let all = [
        Verdict::Slower,
        Verdict::Faster,
        Verdict::SmallDifference,
        Verdict::WithinMargin,
        Verdict::NotSlower,
        Verdict::CannotTell,
        Verdict::Failed,
        Verdict::Missing,
    ];
    let count = |verdict: Verdict| {
        let mut words = BTreeMap::<String, u32>::new();
        for cell in comparison.cells.iter().filter(|cell| cell.verdict == verdict) {
            *words.entry(words::verdict(verdict, &margin(cell, comparison))).or_default() += 1;
        }
        let text = |(words, n): (String, u32)| {
            let words = if n > 1 { words.replacen("differs", "differ", 1) } else { words };
            format!("{n} {words}")
        };
        words.into_iter().map(text).collect::<Vec<_>>()
    };
    let others = all.into_iter().filter(|verdict| Some(*verdict) != except);
    others.flat_map(count).collect::<Vec<_>>().join(", ")
}

/// Units that a longer budget has time for beyond what it needs: some fail.
const SPARE_UNITS: f64 = 1.0;
/// The spread of a unit's log ratio that is assumed before there are units (docs/method.md).
const USUAL_SPREAD: f64 = 0.01;

/// The difference that the budget can find, as a sentence. The units of a longer one may take a third longer,
/// and a few may fail.
pub fn prospect(prospect: &Prospect) -> String {
    let Prospect { units, pairs, tests, budget, unit, spread } = prospect;
    let time = whole_seconds(*budget);
    let each = if *pairs == 1 { String::new() } else { format!(" in each of {pairs} cells") };
    let spread = spread.unwrap_or(USUAL_SPREAD);
    if let Some(found) = detectable(spread, *units, *tests) {
        return format!("{time} can find a slowdown of about {}{each}", share(found));
    }
    let enough = |wanted: u32| {
        let missing = f64::from(wanted) - units;
        let in_round = *pairs as f64 * unit;
        whole_seconds(budget + (missing + units / 3.0 + missing / 3.0 + SPARE_UNITS) * in_round)
    };
    match early::detectable(spread, *units, *tests) {
        Some(found) => format!(
            "{time} can find a difference of about {}{each}; smaller ones need --budget {}",
            share(found),
            enough(fewest(*tests))
        ),
        None => format!("{time} is too short for any difference: --budget {}", enough(early::FEWEST_UNITS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units that take 1.3 s in place of 1, after what is done before the first one.
    #[test]
    fn a_budget_that_is_too_short_gets_a_longer_one_that_suffices_also_at_a_slower_pace() {
        let (unit, before) = (1.0, 3.0);
        let budget = |seconds: f64, pace: f64| Prospect {
            units: (seconds - before) / pace,
            pairs: 1,
            tests: 2,
            budget: seconds,
            unit,
            spread: None,
        };
        for (seconds, wanted) in [(4.0, early::FEWEST_UNITS), (7.0, fewest(2)), (9.0, fewest(2))] {
            let text = prospect(&budget(seconds, unit));
            let enough = text.split("--budget ").nth(1).unwrap();
            let enough = humantime::parse_duration(enough).unwrap().as_secs_f64();
            let units = budget(enough, 1.3 * unit).units;
            assert!(units >= f64::from(wanted), "{text}: {units}");
            assert!(enough < 25.0, "{text}");
        }
        assert!(prospect(&budget(7.0, 1.0)).contains("can find a difference of"));
        assert!(prospect(&budget(30.0, 1.0)).contains("can find a slowdown of"));
    }
}
