//! Tiers in place of ranks: cells whose intervals overlap have no order that the run shows.

use super::groups::{Alternative, Part};
use crate::report::model::{Comparison, TableReport};
use crate::stats::estimate::FEWEST_ROUNDS;

/// Sets the tier of each member that has one; builds have verdicts alone. A tier is a best cell and all whose
/// intervals overlap with its interval; the best of the others begins the next. Limits and references are no
/// choice, and what loses data has no place. Intervals need six units, and duets a baseline that equals
/// itself.
pub(super) fn tiers(table: &TableReport, members: &mut [Alternative<'_>]) {
    if table.is_of_builds() {
        return;
    }
    let withdrawn = table.control_fails();
    let is_sound =
        |c: &&Comparison| c.n >= FEWEST_ROUNDS && !(withdrawn && c.duet.is_some()) && !c.is_in_doubt();
    let interval = |member: &Alternative<'_>| {
        member.entry.median?;
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
    let (mut tier, mut lowest) = (0, f64::INFINITY);
    for (at, _, [low, high]) in order {
        if high < lowest {
            (tier, lowest) = (tier + 1, low);
        }
        members[at].tier = Some(tier);
    }
}
