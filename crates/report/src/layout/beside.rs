//! Sentences about rows that are no choice beside each other: values of a parameter, loads of their own,
//! references and limits.

use super::answer::{NAMES, Phrase, Sentence, brief, name, said, share};
use super::groups::{Alternative, Group, Part};
use super::precision::Precision;
use crate::model::TableReport;
use crate::numbers::{Digits, Ends};
use crate::words;
use linerate_model::Metric;

/// One system with several values of a parameter, which nobody chooses between: how the result follows it.
pub(super) fn by_parameter(
    table: &TableReport,
    precision: &Precision,
    group: &Group<'_>,
) -> Option<Sentence> {
    let baseline =
        group.baseline().filter(|member| group.is_of_a_parameter && member.entry.value.is_some())?;
    let rows = group.members.iter().filter(|member| member.part == Part::Competitor && !member.is_apart);
    let steps: Vec<(&Alternative<'_>, String)> =
        rows.filter_map(|member| Some((member, share(precision, member)?))).collect();
    if table.control_fails() || rows_in_doubt(group) {
        return None;
    }
    // The last ones are the farthest from the baseline.
    let shown = &steps[steps.len().saturating_sub(NAMES)..];
    let mut sentence = said("", &[baseline], format!(" has {}", precision.briefly_told(baseline.entry)));
    for (at, (member, share)) in shown.iter().enumerate() {
        let before = if at == 0 { "; beside it " } else { ", " };
        let is_range = member.entry.vs_baseline.as_ref().is_some_and(|found| found.ci95_is_range);
        let open = if member.is_open() || is_range { " (undecided)" } else { "" };
        sentence.extend(said(before, &[member], format!(" {}{open}", brief(share))));
    }
    sentence.push(Phrase::Plain(".".to_owned()));
    (!shown.is_empty()).then_some(sentence)
}

/// Data of a row deny each other.
fn rows_in_doubt(group: &Group<'_>) -> bool {
    group.members.iter().any(Alternative::is_in_doubt)
}

/// Each row under a share of its own capacity, so that none is compared: what it has at which rate.
pub(super) fn by_own_load(table: &TableReport, group: &Group<'_>) -> Sentence {
    let measured = group.members.iter().filter(|member| member.entry.value.is_some());
    let precision = Precision::for_table(table);
    let name = name(table);
    let mut sentence: Sentence = Vec::new();
    for (at, member) in measured.take(NAMES).enumerate() {
        let rate = table.cells.iter().find(|entry| {
            let is_rate = entry.metric.is_some_and(|of| of.metric == Metric::OperationsPerSecond);
            is_rate && entry.id == member.cell.id
        });
        let rate = rate.and_then(|entry| entry.value);
        let rate = rate.map_or_else(String::new, |rate| {
            format!(" at {}/s", Digits::OF_VALUES.text(rate, Ends::Unknown))
        });
        let value = precision.briefly_told(member.entry);
        let value = format!(" {}{rate}", value.trim_end_matches(name).trim_end());
        let before = if at == 0 { format!("{name}: ") } else { ", ".to_owned() };
        sentence.extend(said(before, &[member], value));
    }
    sentence.push(Phrase::Plain(if sentence.is_empty() { "Nothing was measured." } else { "." }.to_owned()));
    sentence
}

/// One competitor, and the first reference or system of linerate's own beside it.
pub(super) fn alone(
    table: &TableReport,
    precision: &Precision,
    group: &Group<'_>,
    only: &Alternative<'_>,
) -> Sentence {
    let mut sentence = said("", &[only], format!(" has {}", precision.briefly_told(only.entry)));
    let is_cost = table.quantity().is_some_and(words::is_cost);
    let mut beside = group
        .members
        .iter()
        .filter(|member| member.part != Part::Limit)
        .filter_map(|member| Some((member, share(precision, member)?)));
    let nothing = "; nothing to compare it with was measured.";
    let Some((member, share)) = beside.next() else {
        sentence.push(Phrase::Plain(nothing.to_owned()));
        return sentence;
    };
    let whose = if member.is_own { "; linerate's own " } else { "; for reference " };
    let of = match brief(&share).ends_with('x') {
        true => "that",
        false if is_cost => "against it",
        false => "of it",
    };
    sentence.extend(said(whose, &[member], format!(" {} {of}.", brief(&share))));
    sentence
}

/// Rows that did less than the work of their limit.
pub(super) fn above_the_limit(group: &Group<'_>) -> Vec<Sentence> {
    let is_above = |m: &&Alternative<'_>| m.entry.vs_limit.as_ref().is_some_and(|limit| limit.is_above());
    let those: Vec<&Alternative<'_>> = group.members.iter().filter(is_above).collect();
    if those.is_empty() {
        return Vec::new();
    }
    vec![said("Above the limit, find the cause first: ", &those, ".")]
}
