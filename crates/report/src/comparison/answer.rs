//! The answer of a comparison of servers: a headline, a table of quantities, one line of facts, and warnings.

use super::latency::{latency_margin, load_words, loads, margin, overload, queues, rate_words};
use super::made;
use super::model::{ComparedCell, ComparisonReport, NamedCommand};
use super::ranking::ranking;
use super::{requests, why};
use crate::layout::TextTable;
use crate::model::{Report, SoloRatio};
use crate::numbers::{
    Digits, Ends, bound, counted, difference, more, percent, percent_number, seconds, share, signed,
    signed_number, times_of,
};
use crate::words;
use linerate_analysis::judge::pairs::{Finding, Measure, OfferedLoad, SecondLoad};
use linerate_analysis::stats::verdict::Verdict;

/// From here on a ratio is told as a factor: "3.1 times as fast" is read faster than "210 % faster".
const FACTOR: f64 = 2.0;
/// An interval that excludes no smaller slowdown than this says nothing that a user would act on.
const EXCLUDED: f64 = 0.1;

/// The text that a reader sees first.
pub(crate) struct Answer {
    /// A sentence for each subject beside the baseline.
    pub(crate) headlines: Vec<(String, Verdict)>,
    pub(crate) table: TextTable,
    /// The verdict of each row of the table, for its colour.
    pub(crate) verdicts: Vec<Option<Verdict>>,
    /// A row for each of several requests.
    pub(crate) requests: Vec<TextTable>,
    /// Where the difference comes from.
    pub(crate) why: Vec<String>,
    /// The reasons in a sentence for each subject.
    pub(crate) reasons: Vec<String>,
    pub(crate) facts: String,
    /// Contradictions of trials alone, and lines that the servers wrote.
    pub(crate) doubts: Vec<String>,
}

impl Answer {
    /// Leaves out what has no room on a terminal or in a comment: all but the most frequent requests, and
    /// their tables where there are several servers beside the baseline.
    pub(crate) fn shorten(&mut self) {
        match &mut self.requests[..] {
            [one] => {
                let more = one.rows.len().saturating_sub(requests::FEW);
                one.rows.truncate(requests::FEW);
                one.notes.extend((more > 0).then(|| format!("and {more} more: report.html has all of them")));
            }
            _ => self.requests.clear(),
        }
    }
}

/// The answer of a comparison of servers; `None` of one of builds, which has a table for each suite.
pub(crate) fn answer(report: &Report) -> Option<Answer> {
    let comparison = report.comparison.as_ref()?;
    let base = comparison.commands.first()?;
    let headlines = comparison.cells.iter().map(|cell| (headline(cell, base, comparison), cell.verdict));
    let (table, verdicts) = match &comparison.cells[..] {
        [one] => quantities(one, base, comparison),
        several => ranking(several, base, comparison),
    };
    let (why, explained) = why::lines(comparison);
    Some(Answer {
        headlines: headlines.collect(),
        table,
        verdicts,
        requests: requests::tables(comparison),
        why,
        reasons: why::reasons(comparison),
        facts: facts(comparison) + &explained,
        doubts: doubts(comparison),
    })
}

/// The headlines as one sentence, for JSON and the first line of a comment.
pub(super) fn sentence(comparison: &ComparisonReport) -> String {
    let Some(base) = comparison.commands.first() else { return String::new() };
    let each = comparison.cells.iter().map(|cell| headline(cell, base, comparison));
    each.collect::<Vec<_>>().join("; ")
}

/// Such as "v2 is 7.8 % slower than v1; CPU per request +8.7 %".
fn headline(cell: &ComparedCell, base: &NamedCommand, comparison: &ComparisonReport) -> String {
    let (name, base) = (cell.id.as_str(), base.name.as_str());
    let Some(main) = cell.findings.main() else {
        let reason = cell.detail.as_deref().unwrap_or("no pair of runs succeeded");
        return format!("{name} could not be compared with {base}: {reason}");
    };
    let cpu = cell.findings.cpu();
    let changed = |finding: Option<&Finding>| finding.is_some_and(|found| found.verdict.is_difference());
    let first = match cell.verdict {
        Verdict::Failed | Verdict::Missing => {
            let reason = cell.detail.as_deref().unwrap_or("it failed");
            return format!("{name} could not be compared with {base}: {reason}");
        }
        Verdict::Slower | Verdict::Faster => match cell.findings.0.iter().find(|f| f.verdict == cell.verdict)
        {
            Some(found) => difference_words(cell, found, name, base),
            None => format!("{name} is {} than {base}", words::verdict_name(cell.verdict)),
        },
        Verdict::SmallDifference | Verdict::WithinMargin | Verdict::NotSlower => equal_words(cell, base),
        Verdict::CannotTell => undecided_words(cell, main, base),
    };
    let is_about_cpu = cell.verdict == Verdict::Slower && !changed(Some(main));
    let second = match cpu.filter(|_| changed(cpu) && !is_about_cpu) {
        Some(cpu) if cell.findings.0.iter().find(|f| f.verdict == cell.verdict) != Some(cpu) => {
            format!("; CPU per request {}", change_words(cpu))
        }
        _ => String::new(),
    };
    first + &second + &overload(cell, comparison)
}

/// A difference by one measure.
fn difference_words(cell: &ComparedCell, found: &Finding, name: &str, base: &str) -> String {
    let percent = || percent_number(found.percent().abs(), found.percent_ci95());
    let at = || {
        cell.load.as_ref().map_or_else(String::new, |load| format!(" at {}", load_words(load, base, name)))
    };
    let factor = Digits::OF_FACTORS.text(found.ratio.max(found.ratio.recip()), Ends::Unknown);
    match (found.measure, found.ratio) {
        (Measure::Rate, ratio) if ratio >= FACTOR => format!("{name} is {factor} times as fast as {base}"),
        (Measure::Rate, ratio) if ratio <= 1.0 / FACTOR => {
            format!("{base} is {factor} times as fast as {name}")
        }
        (Measure::Rate, ratio) => {
            format!("{name} is {} % {} than {base}", percent(), if ratio < 1.0 { "slower" } else { "faster" })
        }
        (Measure::Cpu, ratio) if ratio >= FACTOR => {
            format!("{name} needs {factor} times the CPU per request of {base}")
        }
        (Measure::Cpu, ratio) => {
            format!(
                "{name} needs {} % {} CPU per request than {base}",
                percent(),
                if ratio > 1.0 { "more" } else { "less" }
            )
        }
        (latency, ratio) => {
            let word = if ratio > 1.0 { "later" } else { "earlier" };
            let micros =
                found.difference.map_or_else(String::new, |found| format!(", {}", difference(&found)));
            format!(
                "{name} responds {word} than {base}{}: {} {}{micros}",
                at(),
                latency.name(),
                change_words(found)
            )
        }
    }
}

/// No difference that matters, and the slowdown that is excluded.
fn equal_words(cell: &ComparedCell, base: &str) -> String {
    let name = &cell.id;
    let excluded = excluded(cell).map_or_else(String::new, |(what, bound)| {
        format!("; {what} above {} is excluded", self::bound(bound))
    });
    format!("no difference between {name} and {base}{excluded}")
}

/// The interval contains no difference and one that matters.
fn undecided_words(cell: &ComparedCell, main: &Finding, base: &str) -> String {
    let name = &cell.id;
    match (&cell.detail, excluded(cell).filter(|(_, bound)| *bound <= EXCLUDED)) {
        (Some(reason), _) => format!("undecided whether {name} differs from {base}: {reason}"),
        (None, Some((what, bound))) => {
            format!(
                "no difference found between {name} and {base}; {what} above {} is excluded",
                self::bound(bound)
            )
        }
        (None, None) if main.ci95.is_none() => {
            format!(
                "undecided whether {name} differs from {base}: {} too few",
                pairs_of_runs(cell.units, true)
            )
        }
        (None, None) => {
            format!("undecided whether {name} differs from {base}: {} {}", main.measure.name(), signed(main))
        }
    }
}

/// The smallest slowdown, or rise of CPU time, that the interval of the deciding measure excludes.
fn excluded(cell: &ComparedCell) -> Option<(&'static str, f64)> {
    let by_cpu = cell.findings.cpu().filter(|cpu| cell.cpu_first && cpu.ci95.is_some());
    let by_rate = cell.findings.main().filter(|main| main.ci95.is_some())?;
    let of = |found: &Finding| {
        let [low, high] = found.ci95?;
        Some(if found.measure == Measure::Rate { 1.0 - low } else { high - 1.0 })
    };
    let (what, found) = match by_cpu {
        Some(cpu) if of(cpu) < of(by_rate) => ("a rise of CPU per request", cpu),
        _ if by_rate.measure == Measure::Rate => ("a slowdown", by_rate),
        _ => ("a rise of p50", by_rate),
    };
    of(found).map(|bound| (what, bound.max(0.0)))
}

/// `+8.7 %`, or `2.2x`.
pub(super) fn change_words(found: &Finding) -> String {
    if found.ratio >= FACTOR {
        return format!("{}x", Digits::OF_FACTORS.text(found.ratio, Ends::Unknown));
    }
    match found.ci95 {
        Some(_) => signed_number(found.percent(), found.percent_ci95()) + " %",
        None => few_digits(found.percent()),
    }
}

/// A change of too few pairs: one number is not worth more digits, but a hundredth of a rate is not none.
fn few_digits(percent: f64) -> String {
    let digits = match percent {
        ..=-99.9 => 3,
        ..=-99.0 => 1,
        _ if percent.abs() >= 10.0 => 0,
        _ => 1,
    };
    format!("{percent:+.digits$} %")
}

/// An interval whose ends differ by this factor says nothing, and its digits less.
const NOTHING: f64 = 100.0;

/// `(-9.0 to -6.2)`, or `(2.1x to 2.3x)`; words with too few pairs of runs.
pub(super) fn interval_words(found: &Finding) -> String {
    match found.ci95 {
        Some([low, high]) if high > NOTHING * low => "(too wide)".to_owned(),
        None if found.verdict.is_difference() => "(each window)".to_owned(),
        None => "(too few)".to_owned(),
        Some([low, high]) if found.ratio >= FACTOR => {
            let [low, high] = [low, high].map(|end| Digits::OF_FACTORS.text(end, Ends::Unknown));
            format!("({low}x to {high}x)")
        }
        Some(_) => {
            let ends = found.percent_ci95();
            let number = |end: f64| signed_number(end, ends);
            ends.map_or_else(String::new, |[low, high]| format!("({} to {})", number(low), number(high)))
        }
    }
}

/// A row for each quantity of two subjects.
fn quantities(
    cell: &ComparedCell,
    base: &NamedCommand,
    comparison: &ComparisonReport,
) -> (TextTable, Vec<Option<Verdict>>) {
    let shown = |found: &&Finding| ![Measure::Mean, Measure::P999].contains(&found.measure);
    let row = |found: &Finding, load: Option<&OfferedLoad>, margin: &str| {
        let [one, two] = value_words(cell, found);
        let words = words::finding(found, margin);
        vec![label(cell, found, load), one, two, change_words(found), interval_words(found), words]
    };
    let first_row = |found: &Finding| row(found, cell.load.as_ref(), &margin(cell, comparison));
    let found: Vec<&Finding> = cell.findings.0.iter().filter(shown).collect();
    let second =
        cell.second_load.iter().flat_map(|second| second.findings.0.iter().map(move |f| (second, f)));
    let second_row = |(second, found): (&SecondLoad, &Finding)| {
        let margin = match found.measure {
            Measure::Cpu => share(comparison.margin),
            _ => latency_margin(comparison),
        };
        row(found, Some(&second.load), &margin)
    };
    let memory = cell.memory_mib.map(|values| {
        let [one, two] = values.map(|mib| format!("{} MiB", Digits::OF_FACTORS.text(mib, Ends::Unknown)));
        let more = ((values[1] - values[0]) * 10.0).round() / 10.0 + 0.0;
        vec![
            "memory".to_owned(),
            one,
            two,
            if more == 0.0 { "0 MiB".to_owned() } else { format!("{more:+} MiB") },
            String::new(),
            String::new(),
        ]
    });
    let verdicts = found.iter().copied().chain(second.clone().map(|(_, found)| found));
    let verdicts = verdicts.map(|found| Some(found.verdict)).chain(memory.iter().map(|_| None)).collect();
    let headers = ["", &base.name, &cell.id, "change", "95 % interval", ""];
    let rows = found.into_iter().map(first_row).chain(second.map(second_row)).chain(memory);
    (TextTable::new("", headers).with_rows(rows), verdicts)
}

/// The name of a quantity, with its unit; of an open loop with its load.
pub(super) fn label(cell: &ComparedCell, found: &Finding, load: Option<&OfferedLoad>) -> String {
    let at = || load.map_or_else(String::new, |load| format!(" at {}", rate_words(load)));
    let unit = || cell.unit.map(|unit| words::unit(unit).replace("operations", "requests"));
    let is_bulk = cell.unit.is_some_and(|unit| unit.metric.is_bulk());
    match found.measure {
        Measure::Rate => unit().unwrap_or_else(|| "rate".to_owned()),
        Measure::Cpu if is_bulk => "CPU/MB".to_owned(),
        // Two words of a load beside it are too long for 80 columns.
        Measure::Cpu if load.is_some() => "CPU".to_owned() + &at(),
        Measure::Cpu => "CPU/request".to_owned(),
        latency => latency.name().to_owned() + &at(),
    }
}

/// The values of base and head.
pub(crate) fn value_words(cell: &ComparedCell, found: &Finding) -> [String; 2] {
    let Some(values) = found.values else { return Default::default() };
    match found.measure {
        Measure::Rate => values.map(|value| words::value(cell.unit, value, Ends::Unknown)),
        _ => times_of(values),
    }
}

fn pairs_of_runs(units: u32, are: bool) -> String {
    let verb = if units == 1 { "is" } else { "are" };
    counted(units, "pair") + " of runs" + &if are { format!(" {verb}") } else { String::new() }
}

/// Such as `9 pairs of runs, 12 s`; of a comparison without an answer also what its time can find.
fn facts(comparison: &ComparisonReport) -> String {
    let units: u32 = comparison.cells.iter().map(|cell| cell.units).sum();
    let is_open = comparison.cells.iter().any(|cell| cell.verdict == Verdict::CannotTell);
    let smallest = comparison.smallest_detectable.filter(|_| is_open).map_or_else(String::new, |smallest| {
        let budget = seconds(comparison.budget_seconds);
        format!("; {budget} can find a slowdown of about {}", share(smallest))
    });
    let loads = loads(comparison);
    format!("{}, {}{loads}{smallest}", pairs_of_runs(units, false), seconds(comparison.seconds))
}

/// Contradictions of trials alone, notes, and lines that the servers wrote.
fn doubts(comparison: &ComparisonReport) -> Vec<String> {
    let denied = comparison.cells.iter().filter_map(|cell| Some((cell, cell.denied_by?)));
    let denied = denied.filter_map(|(cell, SoloRatio { ratio, ci95, n })| {
        let main = cell.findings.main()?;
        let [ratio, _] = main.of_performance([ratio; 2]);
        let told = |ratio: f64, ends: Ends| match main.measure {
            Measure::Rate => format!("{} of", percent(ratio, ends)),
            _ => format!("{} against", more(ratio, ends)),
        };
        Some(format!(
            "warning: alone, {} has {} the baseline's {} (n={n}), and beside it {} it",
            cell.id,
            told(ratio, main.of_performance(ci95).into()),
            main.measure.name(),
            told(main.ratio, Ends::Unknown)
        ))
    });
    let second = comparison.cells.iter().filter_map(|cell| Some((cell, cell.second_load.as_ref()?)));
    let queues = second.flat_map(|(cell, second)| queues(&second.load, cell, comparison));
    let queues = queues.map(|text| format!("warning: {text}"));
    let notes = comparison.notes.join("; ");
    let notes = (!notes.is_empty()).then(|| format!("note: {notes}"));
    let failed = comparison.starts.iter().filter_map(made::failed);
    let base = comparison.commands.first().map_or("", |one| one.name.as_str());
    let one_sided = comparison.cells.iter().flat_map(|cell| requests::one_sided(cell, base));
    denied
        .chain(queues)
        .chain(one_sided)
        .chain(failed)
        .chain(notes)
        .chain(comparison.written.iter().cloned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::few_digits;

    #[test]
    fn what_is_left_of_a_rate_is_not_told_as_nothing() {
        let found = [-3.25, -59.4, -99.58, -99.961].map(few_digits);
        assert_eq!(found, ["-3.2 %", "-59 %", "-99.6 %", "-99.961 %"]);
    }
}
