//! Who reports the truth, in sentences.

use super::answer::{Sentence, said};
use super::groups::{Alternative, Group};
use crate::words;
use linerate_analysis::stats::accuracy::Accuracy;

const ALL: [Accuracy; 3] = [Accuracy::Right, Accuracy::Wrong, Accuracy::CannotTell];

/// Who reports what is right.
pub(super) fn right(group: &Group<'_>) -> Sentence {
    let those = with(group, Accuracy::Right, false);
    let none = if those.is_empty() { "none" } else { "" };
    said(format!("Reports that are right: {none}"), &those, ".")
}

/// Who reports what is wrong or undecided, and what linerate's own report, which are no choice.
pub(super) fn others(group: &Group<'_>) -> Vec<Sentence> {
    let of_others = ALL.into_iter().skip(1).map(|accuracy| {
        let (those, word) = (with(group, accuracy, false), words::accuracy(accuracy));
        (!those.is_empty()).then(|| said(format!("Reports that are {word}: "), &those, "."))
    });
    let own = ALL.into_iter().map(|accuracy| {
        let (those, word) = (with(group, accuracy, true), words::accuracy(accuracy));
        (!those.is_empty()).then(|| said(format!("linerate's own, {word}: "), &those, "."))
    });
    of_others.chain(own).flatten().collect()
}

fn with<'g, 'a>(group: &'g Group<'a>, accuracy: Accuracy, is_own: bool) -> Vec<&'g Alternative<'a>> {
    let is_so = |member: &&Alternative<'_>| {
        let truth = member.entry.vs_truth.as_ref();
        (member.is_own && member.is_apart) == is_own && truth.is_some_and(|truth| truth.accuracy == accuracy)
    };
    group.members.iter().filter(is_so).collect()
}
