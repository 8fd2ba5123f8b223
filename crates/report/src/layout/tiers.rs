//! Tiers in place of ranks: cells whose intervals overlap have no order that the run shows.

use super::groups::{Alternative, Part};
use crate::model::{Comparison, TableReport};

/// Sets the tier of each member that has one; builds have verdicts alone. Of what has a verdict, a tier is a
/// best cell and all whose intervals overlap with its interval; the best of the others begins the next. A
/// cell that is not decided is in the tier whose best cell it overlaps with, and in none if it overlaps with
/// several: a wide interval would make one tier of them. Limits and references are no choice,
/// and what loses data has no place. Intervals need six units, and duets a baseline that equals itself.
pub(super) fn tiers(table: &TableReport, members: &mut [Alternative<'_>]) {
    if table.is_of_builds() {
        return;
    }
    let withdrawn = table.control_fails();
    let is_withdrawn = |c: &Comparison| withdrawn && c.duet.is_some();
    let is_sound = |c: &&Comparison| !(c.ci95_is_range || c.is_in_doubt() || is_withdrawn(c));
    let interval = |member: &Alternative<'_>| {
        member.entry.value?;
        match member.part {
            _ if member.loses() => None,
            Part::Limit | Part::Reference => None,
            Part::Baseline => Some([1.0, 1.0]),
            Part::Competitor => {
                member.entry.vs_baseline.as_ref().filter(is_sound).map(|comparison| comparison.ci95)
            }
        }
    };
    let mut order: Vec<(usize, f64, [f64; 2])> = members
        .iter()
        .enumerate()
        .filter_map(|(at, member)| Some((at, member.ratio()?, interval(member)?)))
        .collect();
    // A baseline alone is first among none.
    if order.len() < 2 {
        return;
    }
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (open, decided): (Vec<_>, Vec<_>) = order.into_iter().partition(|(at, ..)| members[*at].is_open());
    // The interval of the best cell of each tier.
    let mut best: Vec<[f64; 2]> = Vec::new();
    for (at, _, [low, high]) in decided {
        if best.last().is_none_or(|[lowest, _]| high < *lowest) {
            best.push([low, high]);
        }
        members[at].tier = Some(best.len());
    }
    for (at, _, [low, high]) in open {
        let overlaps = |[lowest, highest]: &[f64; 2]| low <= *highest && *lowest <= high;
        let mut of_those = (0..best.len()).filter(|tier| overlaps(&best[*tier]));
        let only = of_those.next().filter(|_| of_those.next().is_none());
        members[at].tier = only.map(|tier| tier + 1);
    }
}
