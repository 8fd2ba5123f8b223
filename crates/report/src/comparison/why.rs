//! Where a difference comes from: the lines below the table, and the sentence.

use super::hints::{call_words, hints};
use super::model::{ComparedCell, ComparisonReport, Reason, WhyReport};
use super::name::named;
use super::waits::waiting;
use crate::model::Report;
use crate::numbers::share;
use linerate_analysis::why::{CostDifference, CountDifference, Explanation, FunctionDifference, explain};
use linerate_model::{Count, PairProfile, Profile};

/// The operation that costs are for, but of a bulk transfer.
pub(super) const REQUEST: &str = "request";
/// Functions on the terminal, in the sentence and on the page.
const LINES: usize = 3;
const IN_SENTENCE: usize = 4;
/// Counts in the line of counts, and hints below it.
const COUNTS: usize = 2;
/// A smaller part of the difference is none that is explained.
const LEAST_TOLD: f64 = 0.005;
const HINTS: usize = 2;
/// The longest line with its indentation in a terminal of 80 columns.
const WIDTH: usize = 78;

/// The report with what its profiles show.
#[must_use]
pub fn with_profile(mut report: Report, profile: Profile) -> Report {
    for pair in profile.pairs {
        let [id, baseline] = pair.cells.clone();
        let is_own = |cell: &&mut ComparedCell| cell.is_of(&pair.suite, &id);
        let suite = report.suites.iter_mut().find(|suite| suite.name == pair.suite);
        match (&mut report.comparison, suite) {
            (Some(comparison), _) => {
                let Some(cell) = comparison.cells.iter_mut().find(is_own) else { continue };
                let is_certain = cell.findings.cpu().is_some_and(|found| found.verdict.is_difference());
                cell.why = Some(WhyReport::new(pair, REQUEST, is_certain));
                cell.hints = hints_of(cell);
            }
            (None, Some(suite)) => {
                let is_bulk = suite.cells.iter().any(|cell| cell.id == id && cell.unit.metric.is_bulk());
                let why = WhyReport::new(pair, if is_bulk { "write" } else { REQUEST }, false);
                let found = why.explanation.as_ref();
                let hints = hints(found.map_or(&[][..], |found| &found.counts), found, why.operation);
                suite.reasons.push(Reason { id, baseline, why, hints });
            }
            (None, None) => {}
        }
    }
    report
}

impl WhyReport {
    /// `is_certain`: the units show that the CPU time differs, whatever the profile shows.
    fn new(profile: PairProfile, operation: &'static str, is_certain: bool) -> Self {
        let explanation = explain(&profile);
        let sentence = match &explanation {
            Some(found) => sentence(found, operation, is_certain),
            None if profile.lacking.is_empty() => "too few samples".to_owned(),
            None => profile.lacking.join("; "),
        };
        Self { sentence, operation, explanation, profile }
    }
}

/// Lines for a terminal: at most three for one subject, one for each of several. What the functions are of
/// the whole difference is at the end of theirs where it has room, and else for the line of facts.
pub(super) fn lines(comparison: &ComparisonReport) -> (Vec<String>, String) {
    match &comparison.cells[..] {
        [one] => of_one(one),
        _ => (reasons(comparison), String::new()),
    }
}

/// A sentence for each subject that was profiled, with the counts that differ.
pub(super) fn reasons(comparison: &ComparisonReport) -> Vec<String> {
    let of_cell = |cell: &ComparedCell| {
        if let Some((words, next_step)) = waiting(cell) {
            return Some(format!("why {words}; {next_step}"));
        }
        let sentence = cell.why.iter().map(|why| why.sentence.clone());
        let mut parts: Vec<String> = sentence.chain(count_parts(cell)).collect();
        // Without a function, what was counted is the reason.
        if !has_functions(cell) && parts.len() > 1 {
            parts.rotate_left(1);
        }
        parts.extend(hints_of(cell));
        (!parts.is_empty()).then(|| format!("why {}: {}", cell.id, parts.join("; ")))
    };
    comparison.cells.iter().filter_map(of_cell).collect()
}

fn of_one(cell: &ComparedCell) -> (Vec<String>, String) {
    let mut counts = count_parts(cell);
    counts.truncate(COUNTS);
    if let Some((words, next_step)) = waiting(cell) {
        let mut lines = vec![format!("why  {words}"), format!("     {next_step}")];
        lines
            .extend((cell.waits_for_acks && !counts.is_empty()).then(|| format!("     {}", joined(&counts))));
        return (lines, String::new());
    }
    let mut functions = of_functions(cell, LINES - usize::from(!counts.is_empty()));
    let mut explained = explained(cell, functions.len());
    if let Some(last) = functions.last_mut()
        && last.chars().count() + explained.chars().count() <= WIDTH
    {
        last.push_str(&std::mem::take(&mut explained));
    }
    let mut lines = arranged(functions, &joined(&counts), has_functions(cell));
    let lacking =
        cell.why.iter().filter(|why| why.explanation.is_some()).flat_map(|why| &why.profile.lacking);
    lines.extend(lacking.map(|what| format!("without: {what}")));
    lines.extend(hints_of(cell).into_iter().take(HINTS).map(|hint| format!("hint {hint}")));
    (lines, explained)
}

/// Such as `write(2) 1.00 -> 2.00, TCP segments 2.00 -> 3.00 per request`.
fn joined(counts: &[String]) -> String {
    let of_request = format!(" per {REQUEST}");
    let bare: Option<Vec<&str>> = counts.iter().map(|one| one.strip_suffix(&of_request)).collect();
    match bare.filter(|bare| !bare.is_empty()) {
        Some(bare) => bare.join(", ") + &of_request,
        None => counts.join("; "),
    }
}

/// Lines of functions and one of the counts, which are the reason where no function is.
fn arranged(mut functions: Vec<String>, counts: &str, has_functions: bool) -> Vec<String> {
    if counts.is_empty() {
        return functions;
    }
    if has_functions {
        functions.push(format!("     {counts}"));
    } else {
        functions.iter_mut().for_each(|line| *line = line.replacen("why", "   ", 1));
        functions.insert(0, format!("why  {counts}"));
    }
    functions
}

/// True if a function needs more or less CPU time for certain.
fn has_functions(cell: &ComparedCell) -> bool {
    let found = cell.why.as_ref().and_then(|why| why.explanation.as_ref());
    found.is_some_and(|found| !found.functions.is_empty())
}

/// True where a reason is wanted: the pair differs, or was profiled.
fn is_asked(cell: &ComparedCell) -> bool {
    cell.why.is_some() || cell.verdict.is_difference()
}

fn hints_of(cell: &ComparedCell) -> Vec<String> {
    if waiting(cell).is_some() {
        return Vec::new();
    }
    let found = cell.why.as_ref().and_then(|why| why.explanation.as_ref());
    if is_asked(cell) { hints(&cell.counts, found, REQUEST) } else { Vec::new() }
}

/// System calls that differ, and what the kernel counts; without what a hint says.
fn count_parts(cell: &ComparedCell) -> Vec<String> {
    // What a thread waits depends on how the load comes.
    let is_told = |found: &&CountDifference| {
        ![Count::VoluntarySwitches, Count::InvoluntarySwitches].contains(&found.count)
    };
    let calls = cell.why.iter().filter_map(|why| why.explanation.as_ref()).flat_map(|found| &found.calls);
    let calls = calls.take(COUNTS).map(|call| call_words(call, REQUEST));
    // Few units are too few for certain counts, and the windows of calls are enough.
    let meanwhile =
        cell.why.iter().filter_map(|why| why.explanation.as_ref()).flat_map(|found| &found.counts);
    let known: Vec<Count> = cell.counts.iter().map(|found| found.count).collect();
    let meanwhile = meanwhile.filter(|found| !known.contains(&found.count));
    let counts = cell.counts.iter().chain(meanwhile).filter(is_told);
    let (mut calls, mut counts) = (calls, counts.map(count_words));
    // The first of each is on the line; a second call is not in place of a count.
    let first = calls.next().into_iter().chain(counts.next());
    let parts: Vec<String> = first.chain(calls).chain(counts).collect();
    if is_asked(cell) { parts } else { Vec::new() }
}

/// Such as `segments 2.00 -> 3.00 per request`.
pub(crate) fn count_words(found: &CountDifference) -> String {
    let [base, head] = found.per_operation;
    let digits = if found.count == Count::Bytes { 0 } else { 2 };
    format!("{} {base:.digits$} -> {head:.digits$} per request", count_name(found.count))
}

pub(crate) fn count_name(count: Count) -> &'static str {
    match count {
        Count::Segments => "TCP segments",
        Count::Retransmissions => "retransmissions",
        Count::DelayedAcks => "delayed ACKs",
        Count::Datagrams => "datagrams",
        Count::Bytes => "IP bytes",
        Count::VoluntarySwitches => "waits of a thread",
        Count::InvoluntarySwitches => "involuntary context switches",
        Count::MinorFaults => "page faults",
        Count::MajorFaults => "page faults from disk",
    }
}

/// A line for each of the first functions, `most` at most.
fn of_functions(cell: &ComparedCell, most: usize) -> Vec<String> {
    let Some(why) = &cell.why else { return Vec::new() };
    let Some(found) = why.explanation.as_ref().filter(|found| !found.functions.is_empty()) else {
        return vec![format!("why  {}", why.sentence)];
    };
    let shown = &found.functions[..found.functions.len().min(most)];
    let names: Vec<String> = shown.iter().map(named).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let line = |(at, (function, name)): (usize, (&FunctionDifference, &String))| {
        let word = if at == 0 { "why" } else { "" };
        let end = if at == 0 { " µs/request" } else { "" };
        let [base, head] = values(&function.cost);
        let change = change(&function.cost);
        format!("{word:<3}  {change:>6} µs  {name:<width$}  {base} -> {head}{end}")
    };
    shown.iter().zip(&names).enumerate().map(line).collect()
}

/// Such as "CPU per request +1.6 µs in the profile: +0.9 json.Marshal, +0.5 mallocgc (91 % explained)".
fn sentence(found: &Explanation, operation: &str, is_certain: bool) -> String {
    let whole = format!("CPU per {operation} {} µs in the profile", change(&found.cpu));
    if found.functions.is_empty() {
        return match found.explained {
            Some(_) => format!("{whole}: not explained, no function alone differs for certain"),
            None if is_certain => format!(
                "no function is certain: the profile has CPU per {operation} {}; repeat it on a quiet \
                 machine",
                change_words(&found.cpu)
            ),
            None => "no function needs more or less CPU for certain: what differs is not CPU time, or is \
                     spread over many functions"
                .to_owned(),
        };
    }
    let parts = found.functions.iter().take(IN_SENTENCE);
    let parts = parts.map(|function| format!("{} {}", change(&function.cost), named(function)));
    let parts = parts.collect::<Vec<_>>().join(", ");
    let more = match found.functions.len().saturating_sub(IN_SENTENCE) {
        0 => String::new(),
        more => format!("with {more} more "),
    };
    match found.explained {
        // More than the whole is as certain as the whole is.
        Some(part) => format!("{whole}: {parts} ({more}{} explained)", share(part.clamp(0.0, 1.0))),
        // The whole of the profile is not certain, and may have the other sign than that of the units.
        None => format!("µs of CPU per {operation}: {parts}"),
    }
}

/// The share of the functions in the whole, of which `shown` have a line.
fn explained(cell: &ComparedCell, shown: usize) -> String {
    let found = cell.why.as_ref().and_then(|why| why.explanation.as_ref());
    let told = found.and_then(|found| Some((found, found.explained?.clamp(0.0, 1.0))));
    let Some((found, part)) = told.filter(|(_, part)| *part >= LEAST_TOLD) else { return String::new() };
    match found.functions.len().saturating_sub(shown) {
        0 if shown == 1 => format!("; {} explained", share(part)),
        0 => format!("; together {} explained", share(part)),
        // Those are in the report.
        more => format!("; with {more} more {} explained", share(part)),
    }
}

fn digits(cost: &CostDifference) -> usize {
    if cost.difference_us.abs() >= 1.0 { 1 } else { 2 }
}

pub(super) fn change(cost: &CostDifference) -> String {
    format!("{:+.1$}", cost.difference_us, digits(cost))
}

/// The costs of the baseline and of the other.
pub(crate) fn values(cost: &CostDifference) -> [String; 2] {
    cost.us.map(|us| format!("{us:.0$}", digits(cost)))
}

/// The difference and its interval.
pub(crate) fn change_words(cost: &CostDifference) -> String {
    let [low, high] = cost.ci95;
    let digits = digits(cost);
    format!("{} µs ({low:+.digits$} to {high:+.digits$})", change(cost))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(base: f64, head: f64) -> CostDifference {
        let difference_us = head - base;
        CostDifference { us: [base, head], difference_us, ci95: [difference_us - 0.1, difference_us + 0.1] }
    }

    fn found(functions: &[(&str, f64, f64)], explained: Option<f64>) -> Explanation {
        let functions = functions.iter().map(|(name, base, head)| FunctionDifference {
            name: (*name).to_owned(),
            caller: None,
            callee: None,
            cost: cost(*base, *head),
            self_us: [*base, *head],
            total_us: [*base, *head],
        });
        Explanation {
            rounds: 9,
            cpu: cost(18.9, 20.5),
            functions: functions.collect(),
            explained,
            calls: Vec::new(),
            counts: Vec::new(),
            causes: Vec::new(),
            lacking: Vec::new(),
        }
    }

    #[test]
    fn the_sentence_has_the_parts_and_what_they_explain() {
        let parts = [("encoding/json.Marshal", 0.0, 0.9), ("runtime.mallocgc", 1.1, 1.6)];
        assert_eq!(
            sentence(&found(&parts, Some(0.91)), REQUEST, true),
            "CPU per request +1.6 µs in the profile: +0.90 encoding/json.Marshal, +0.50 runtime.mallocgc \
             (91 % explained)"
        );
        let uncertain = sentence(&found(&parts[..1], None), REQUEST, true);
        assert_eq!(uncertain, "µs of CPU per request: +0.90 encoding/json.Marshal");
        assert!(sentence(&found(&[], Some(0.0)), "write", false).contains("not explained"));
        assert!(sentence(&found(&[], None), REQUEST, false).contains("not CPU time"));
        let noisy = sentence(&found(&[], None), REQUEST, true);
        assert!(noisy.starts_with("no function is certain: the profile has CPU per request"), "{noisy}");
        assert!(noisy.contains("+1.6 µs (+1.5 to +1.7); repeat"), "{noisy}");
    }

    #[test]
    fn a_count_is_the_reason_where_no_function_is() {
        let of = |lines: &[&str], has_functions| {
            let lines = lines.iter().map(|line| (*line).to_owned()).collect();
            arranged(lines, "write(2) 1.00 -> 2.00 per request", has_functions)
        };
        let nothing = of(&["why  no function needs more"], false);
        assert_eq!(nothing, ["why  write(2) 1.00 -> 2.00 per request", "     no function needs more"]);
        let named = of(&["why  +0.9 µs  json.Marshal", "     +0.5 µs  mallocgc"], true);
        assert_eq!(named[2], "     write(2) 1.00 -> 2.00 per request");
    }

    #[test]
    fn counts_of_a_request_say_so_once() {
        let counts = ["write(2) 1.00 -> 2.00 per request", "segments 2.00 -> 3.00 per request"];
        let counts = counts.map(str::to_owned);
        assert_eq!(joined(&counts), "write(2) 1.00 -> 2.00, segments 2.00 -> 3.00 per request");
        assert_eq!((joined(&counts[..1]), joined(&[])), (counts[0].clone(), String::new()));
    }

    #[test]
    fn a_count_is_told_for_a_request() {
        let found = |count, base, head: f64| CountDifference {
            count,
            per_operation: [base, head],
            difference: head - base,
            ci95: [head - base; 2],
        };
        assert_eq!(count_words(&found(Count::Bytes, 210.4, 350.6)), "IP bytes 210 -> 351 per request");
        assert_eq!(count_words(&found(Count::Segments, 2.0, 3.0)), "TCP segments 2.00 -> 3.00 per request");
    }

    #[test]
    fn a_change_has_its_interval() {
        assert_eq!(change_words(&cost(0.0, 2.0)), "+2.0 µs (+1.9 to +2.1)");
    }
}
