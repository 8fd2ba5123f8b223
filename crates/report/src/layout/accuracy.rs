//! Who reports the truth, in sentences.

use super::answer::{Sentence, said};
use super::groups::{Alternative, Group};
use linerate_analysis::stats::accuracy::Accuracy;

/// Who reports what is wrong or undecided.
pub(super) fn accuracies(group: &Group<'_>) -> Vec<Sentence> {
    [(Accuracy::Wrong, "wrong"), (Accuracy::CannotTell, "undecided")]
        .into_iter()
        .filter(|(accuracy, _)| group.members.iter().any(|m| is_so(m, *accuracy)))
        .map(|(found, word)| accuracy(group, found, word))
        .collect()
}

fn is_so(member: &Alternative<'_>, accuracy: Accuracy) -> bool {
    member.entry.vs_truth.as_ref().is_some_and(|truth| truth.accuracy == accuracy)
}

/// `Reports that are right: native.`
pub(super) fn accuracy(group: &Group<'_>, found: Accuracy, word: &str) -> Sentence {
    let those: Vec<&Alternative<'_>> = group.members.iter().filter(|m| is_so(m, found)).collect();
    let none = if those.is_empty() { "none" } else { "" };
    said(format!("Reports that are {word}: {none}"), &those, ".")
}
