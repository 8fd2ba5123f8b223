//! The tier of each row of a table.

use super::groups::{Alternative, Part};
use crate::model::{Comparison, TableReport};
use linerate_analysis::judge::{self, Contender};

/// Sets the tier of each member that has one; builds have verdicts alone. Limits and references are no
/// choice, and what loses data has no place. Intervals need six units, and duets a baseline that equals
/// itself.
pub(super) fn tiers(table: &TableReport, members: &mut [Alternative<'_>]) {
    if table.is_sequential || table.is_of_own_load() {
        return;
    }
    let interval = |member: &Alternative<'_>| {
        member.entry.value?;
        match member.part {
            _ if member.loses() || member.is_apart => None,
            Part::Limit | Part::Reference => None,
            Part::Baseline => Some([1.0, 1.0]),
            Part::Competitor => {
                let found = member.entry.vs_baseline.as_ref();
                found.filter(|found| is_sound(table, found)).map(|found| found.ci95)
            }
        }
    };
    let contender = |member: &Alternative<'_>| {
        let (ratio, interval) = (member.ratio()?, interval(member)?);
        Some(Contender { ratio, interval, is_open: member.is_open() })
    };
    let contenders: Vec<Option<Contender>> = members.iter().map(contender).collect();
    members.iter_mut().zip(judge::tiers(&contenders)).for_each(|(member, tier)| member.tier = tier);
}

/// Whether a ratio gives its row a place: it has an interval, and nothing withdraws it.
pub(super) fn is_sound(table: &TableReport, found: &Comparison) -> bool {
    let is_withdrawn = table.control_fails() && found.duet.is_some();
    !(found.ci95_is_range || found.is_in_doubt() || is_withdrawn)
}
