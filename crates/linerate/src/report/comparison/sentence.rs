//! The verdict as a sentence, and what a budget can find.

use super::made::{plain_percent, rough, signed, verdict as verdict_words};
use super::model::{ChangeReport, ComparedCell, ComparisonReport};
use crate::comparison::{detectable, fewest};
use crate::report::numbers::{counted, seconds};
use crate::stats::verdict::Verdict;
use crate::stopping::Prospect;
use std::collections::BTreeSet;
use std::time::Duration;

/// Such as "haproxy-tcp is 4.1 % slower with this change (3.2 to 5.0 %, 22 units, 70 s), in 1 of 6 cells; 5
/// within 1 %".
pub(super) fn sentence(comparison: &ComparisonReport) -> String {
    let cells = &comparison.cells;
    let of = |verdict: Verdict| cells.iter().filter(|cell| cell.verdict == verdict).collect::<Vec<_>>();
    let names: BTreeSet<&str> = cells.iter().map(|cell| cell.system.as_str()).collect();
    let names = Vec::from_iter(names).join(" and ");
    match comparison.conclusion {
        Verdict::Missing => {
            let reason = cells.iter().find_map(|cell| cell.detail.as_deref()).unwrap_or("no unit was made");
            format!("nothing could be measured: {reason}")
        }
        Verdict::Slower => {
            changed(comparison, &names, &of(Verdict::Slower), ["slower", "more"], Verdict::Slower)
        }
        Verdict::Faster => {
            changed(comparison, &names, &of(Verdict::Faster), ["faster", "less"], Verdict::Faster)
        }
        Verdict::CannotTell | Verdict::Failed => open(comparison, &names),
        Verdict::SmallDifference | Verdict::WithinMargin | Verdict::NotSlower => {
            let units: u32 = cells.iter().map(|cell| cell.units).sum();
            let time = seconds(comparison.seconds);
            let rest = rest(comparison, None);
            format!("no slowdown of {names} with this change: {rest} ({units} units, {time})")
        }
    }
}

/// The cell that changed most, by rate if its rate changed, else by CPU time.
fn changed(
    comparison: &ComparisonReport,
    names: &str,
    changed: &[&ComparedCell],
    [by_rate, by_cpu]: [&str; 2],
    verdict: Verdict,
) -> String {
    let change = |cell: &ComparedCell| -> Option<(bool, ChangeReport)> {
        let is_changed = |change: &&ChangeReport| change.verdict == verdict;
        let rate = cell.rate.as_ref().filter(is_changed).map(|change| (true, change.clone()));
        rate.or_else(|| Some((false, cell.cpu.as_ref().filter(is_changed)?.clone())))
    };
    let size = |cell: &&&ComparedCell| change(cell).map_or(0.0, |(_, change)| change.percent.abs());
    let most = changed.iter().max_by(|a, b| size(a).total_cmp(&size(b)));
    let Some((cell, (is_rate, change))) = most.and_then(|cell| Some((cell, change(cell)?))) else {
        return format!("{names} is {by_rate} with this change");
    };
    let percent = plain_percent(change.percent.abs(), change.ci95);
    let up_to = if changed.len() > 1 { "up to " } else { "" };
    let what = if is_rate {
        format!("is {up_to}{percent} % {by_rate}")
    } else {
        format!("needs {up_to}{percent} % {by_cpu} CPU time per operation")
    };
    let interval = change.ci95.map(|ends| {
        let [low, high] = ends.map(f64::abs);
        let (low, high) = (low.min(high), low.max(high));
        format!("{} to {} %, ", plain_percent(low, change.ci95), plain_percent(high, change.ci95))
    });
    let all = comparison.cells.len();
    let place = match (all, changed.len()) {
        (1, _) => String::new(),
        (_, 1) => format!(", in 1 of {all} cells, {}", cell.id),
        (_, n) => format!(", in {n} of {all} cells, most in {}", cell.id),
    };
    let rest = rest(comparison, Some(verdict));
    let rest = if rest.is_empty() { rest } else { format!("; {rest}") };
    format!(
        "{names} {what} with this change ({}{} units, {}){place}{rest}",
        interval.unwrap_or_default(),
        cell.units,
        seconds(cell.seconds)
    )
}

fn open(comparison: &ComparisonReport, names: &str) -> String {
    let is_open = |cell: &&ComparedCell| {
        matches!(cell.verdict, Verdict::CannotTell | Verdict::Failed | Verdict::Missing)
    };
    let open: Vec<&ComparedCell> = comparison.cells.iter().filter(is_open).collect();
    let reason = open.iter().find_map(|cell| cell.detail.clone()).or_else(|| {
        let change = open.first()?.rate.as_ref()?;
        Some(format!("{} changed by {}", open[0].id, signed(change)))
    });
    let smallest = comparison.smallest_detectable.map(|smallest| {
        let budget = seconds(comparison.budget_seconds);
        format!("; {budget} find a slowdown of {} %", rough(smallest))
    });
    format!(
        "cannot tell whether {names} is slower with this change: {} of {} without a verdict{}{}",
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
        let n = comparison.cells.iter().filter(|cell| cell.verdict == verdict).count();
        let words = verdict_words(verdict, comparison.margin);
        let words = if n > 1 { words.replacen("differs", "differ", 1) } else { words };
        (n > 0).then(|| format!("{n} {words}"))
    };
    let others = all.into_iter().filter(|verdict| Some(*verdict) != except);
    others.filter_map(count).collect::<Vec<_>>().join(", ")
}

/// The spread of a unit's log ratio that is assumed before there are units (docs/method.md).
const USUAL_SPREAD: f64 = 0.01;

/// What difference the budget can find.
#[must_use]
pub fn prospect(prospect: &Prospect) -> String {
    let Prospect { units, pairs, budget, unit, spread } = prospect;
    let time = |seconds: f64| humantime::format_duration(Duration::from_secs(seconds.ceil() as u64));
    let tests = 2 * pairs;
    let cells = if *pairs == 1 { "1 cell".to_owned() } else { format!("each of {pairs} cells") };
    let by = match spread {
        None => "if a unit's spread is 1 %, as usual".to_owned(),
        Some(spread) => format!("with a spread of {} % a unit so far", rough(*spread)),
    };
    let found = detectable(spread.unwrap_or(USUAL_SPREAD), *units, tests);
    match found {
        Some(found) => format!(
            "{} are {units:.0} units of {cells}: {by}, they find a slowdown of {} % in 9 of 10 runs",
            time(*budget),
            rough(found)
        ),
        None => {
            let fewest = fewest(tests);
            // A part of the budget is used already.
            let missing = (f64::from(fewest) - units).max(1.0);
            let enough = time(budget + 1.5 * missing * *pairs as f64 * unit);
            format!(
                "{} are about {units:.0} units of {cells} at the pace so far, and fewer than {fewest} show \
                 no difference: --budget {enough} is enough",
                time(*budget)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_that_is_too_short_gets_a_longer_one() {
        let budget = |seconds, units| Prospect { units, pairs: 1, budget: seconds, unit: 1.0, spread: None };
        let text = prospect(&budget(30.0, 4.0));
        let enough = text.split("--budget ").nth(1).unwrap().split(' ').next().unwrap();
        let enough = humantime::parse_duration(enough).unwrap().as_secs_f64();
        assert!((31.0..50.0).contains(&enough), "{text}");
        assert!(text.contains("about 4 units of 1 cell at the pace so far"), "{text}");
        assert!(prospect(&budget(30.0, 25.0)).contains("they find a slowdown of"));
    }
}
