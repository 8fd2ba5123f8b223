//! Rows of a table that have no order, and why, in sentences.

use super::answer::{Sentence, said};
use super::beside::above_the_limit;
use super::groups::{Alternative, Group, Part};
use crate::model::OutcomeWord;
use crate::words;
use linerate_analysis::stats::verdict::Verdict;

/// Duets and trials alone deny each other, or other processes used the CPUs.
pub(super) const IN_DOUBT: &str = "Without a verdict (see the warnings below the table): ";

/// The sentences about what has no order, and about rows above their limit. What else the rows show, such as
/// references, is left to the rows.
pub(super) fn unsure(group: &Group<'_>) -> Vec<Sentence> {
    unsure_beside(group, &[])
}

/// As [`unsure`], after a sentence that says of some rows that their order is undecided.
pub(super) fn unsure_beside(group: &Group<'_>, told: &[&Alternative<'_>]) -> Vec<Sentence> {
    unknown(group, told).into_iter().chain(lossy(group)).chain(above_the_limit(group)).collect()
}

/// Competitors with this verdict.
fn with<'g, 'a>(group: &'g Group<'a>, verdict: Verdict) -> Vec<&'g Alternative<'a>> {
    let is_it = |m: &&Alternative<'_>| {
        m.entry.value.is_some() && m.part != Part::Baseline && !m.is_apart && m.has(verdict)
    };
    group.members.iter().filter(is_it).collect()
}

/// Rows that differ from the baseline by less than the margin, as sentences.
pub(super) fn equal(group: &Group<'_>) -> Vec<Sentence> {
    let Some(baseline) = group.baseline() else { return Vec::new() };
    let verdicts = [
        (Verdict::SmallDifference, "Differ from ", " by less than 3 %: "),
        (Verdict::WithinMargin, "Within 3 % of ", ": "),
    ];
    let those = verdicts.map(|(verdict, what, colon)| {
        let those = with(group, verdict);
        (!those.is_empty()).then(|| [said(what, &[baseline], colon), said("", &those, ".")].concat())
    });
    those.into_iter().flatten().collect()
}

/// Rows that have no order against the baseline, as sentences.
pub(super) fn unknown(group: &Group<'_>, told: &[&Alternative<'_>]) -> Vec<Sentence> {
    let Some(baseline) = group.baseline() else { return Vec::new() };
    let mut sentences = Vec::new();
    let is_short = |m: &&Alternative<'_>| m.entry.vs_baseline.as_ref().is_some_and(|c| c.ci95_is_range);
    let (short, open): (Vec<_>, Vec<_>) = with(group, Verdict::CannotTell).into_iter().partition(is_short);
    if !short.is_empty() {
        sentences.push(said("Too few rounds for a verdict: ", &short, "."));
    }
    let (doubted, open): (Vec<_>, Vec<_>) = open.into_iter().partition(|m| m.is_in_doubt());
    let is_limited = |m: &&Alternative<'_>| m.entry.vs_baseline.as_ref().is_some_and(|c| c.client_is_limit);
    let (limited, open): (Vec<_>, Vec<_>) = open.into_iter().partition(is_limited);
    // Those that the sentence before has not named; if it named all, the reason alone.
    let undecided = |those: &[&Alternative<'_>], join: &str, why: &str| {
        let is_new = |m: &&&Alternative<'_>| told.iter().all(|other| other.cell.id != m.cell.id);
        let new: Vec<&Alternative<'_>> = those.iter().filter(is_new).copied().collect();
        let (first, rest) = why.split_at(why.len().min(1));
        match new.is_empty() && !why.is_empty() {
            true => said(format!("{}{rest}.", first.to_uppercase()), &[], ""),
            false => {
                let names = if new.is_empty() { those } else { &new };
                let end = if why.is_empty() { ".".to_owned() } else { format!("{join}{why}.") };
                [said("Undecided: ", names, " against "), said("", &[baseline], end)].concat()
            }
        }
    };
    if !limited.is_empty() {
        sentences.push(undecided(&limited, ", because ", "the client was the limit: see the CPU time"));
    }
    if !doubted.is_empty() {
        sentences.push(said(IN_DOUBT, &doubted, "."));
    }
    if !open.is_empty() {
        let smallest = open.iter().filter_map(|m| m.entry.vs_baseline.as_ref()?.smallest_detectable);
        let found = smallest.max_by(f64::total_cmp).map(words::detectable).unwrap_or_default();
        sentences.push(undecided(&open, "; ", &found));
    }
    sentences
}

/// Rows that are not ranked because they lost data, as a sentence.
pub(super) fn lossy(group: &Group<'_>) -> Option<Sentence> {
    let those: Vec<&Alternative<'_>> = group.ranked().into_iter().filter(|member| member.loses()).collect();
    (!those.is_empty()).then(|| said("Without a place, since more than 1 % was lost: ", &those, "."))
}

/// Cells without a number.
pub(super) fn absent(group: &Group<'_>) -> Vec<Sentence> {
    let without: Vec<&Alternative<'_>> =
        group.members.iter().filter(|m| m.cell.outcome != OutcomeWord::Ok).collect();
    if without.is_empty() {
        return Vec::new();
    }
    vec![said("Without a number: ", &without, " (the reason is below the tables).")]
}
