//! Sentences about rows that are no choice beside each other: values of a parameter, loads of their own,
//! references and limits.

use super::answer::{NAMES, Phrase, Sentence, against, brief, brief_value, said, share};
use super::groups::{Alternative, Group, Part};
use super::precision::Precision;
use crate::model::TableReport;
use crate::numbers::{Digits, Ends, longer, percent};
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
    let mut sentence = said("", &[baseline], format!(" has {}", brief_value(table, baseline)));
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
    let name = table.quantity().map(words::parts).map_or("", |(name, _)| name);
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
        let value = brief_value(table, member);
        let value = format!(" {}{rate}", value.trim_end_matches(name).trim_end());
        let before = if at == 0 { format!("{name}: ") } else { ", ".to_owned() };
        sentence.extend(said(before, &[member], value));
    }
    sentence.push(Phrase::Plain(if sentence.is_empty() { "Nothing was measured." } else { "." }.to_owned()));
    sentence
}

/// One competitor, with references and linerate's own beside it.
pub(super) fn alone(
    table: &TableReport,
    precision: &Precision,
    group: &Group<'_>,
    only: &Alternative<'_>,
) -> Sentence {
    let mut sentence = said("", &[only], format!(" has {}", brief_value(table, only)));
    let is_cost = table.quantity().is_some_and(words::is_cost);
    let mut beside = group
        .members
        .iter()
        .filter(|member| member.part != Part::Limit)
        .filter_map(|member| Some((member, share(precision, member)?)));
    let nothing = "; nothing to compare it with was measured.";
    match beside.next() {
        Some((member, share)) => {
            let whose = if member.is_own { "; linerate's own " } else { "; beside it " };
            let of = if is_cost { "against it" } else { "of it" };
            sentence.extend(said(whose, &[member], format!(" {} {of}.", brief(&share))));
        }
        None => sentence.push(Phrase::Plain(nothing.to_owned())),
    }
    sentence
}

/// References and limits, which nobody chooses between.
pub(super) fn marks(table: &TableReport, precision: &Precision, group: &Group<'_>) -> Vec<Sentence> {
    let those = |part: Part| group.members.iter().filter(move |m| m.part == part && m.entry.value.is_some());
    let reference = those(Part::Reference).filter_map(|member| {
        let share = share(precision, member)?;
        let baseline = &group.baseline()?.label;
        Some(said("For reference: ", &[member], format!(", {}.", against(table, &share, baseline))))
    });
    let own =
        group.members.iter().filter(|m| m.part == Part::Competitor && m.is_own && m.entry.value.is_some());
    let own = own.filter_map(|member| {
        let (share, baseline) = (share(precision, member)?, &group.baseline()?.label);
        Some(said("linerate's own: ", &[member], format!(", {}.", against(table, &share, baseline))))
    });
    let limited = || group.members.iter().filter_map(|m| Some((m, m.entry.vs_limit.as_ref()?)));
    let (above, below): (Vec<_>, Vec<_>) = limited().partition(|(_, limit)| limit.is_above());
    let best = below.into_iter().max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio)).map(|(member, limit)| {
        let share = match table.quantity().is_some_and(words::is_cost) {
            true => format!("{} against it", longer(limit.ratio, limit)),
            false => format!("{} of it", percent(limit.ratio, limit)),
        };
        said("Nearest to the limit: ", &[member], format!(", {share}."))
    });
    let doubtful: Vec<&Alternative<'_>> = above.into_iter().map(|(member, _)| member).collect();
    let doubt =
        (!doubtful.is_empty()).then(|| said("Above the limit, find the cause first: ", &doubtful, "."));
    reference.chain(own).chain(best).chain(doubt).collect()
}
