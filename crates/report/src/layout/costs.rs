//! The headline of a table whose baseline has nothing in place of what is compared: what each costs.

use super::answer::{Phrase, Sentence, share};
use super::groups::Alternative;
use super::precision::Precision;
use crate::model::TableReport;
use crate::numbers::{brief_percent_of, longer_by};
use crate::words;

/// More names than these make no headline.
const COSTS: usize = 4;
/// From here on a cost would be rounded to nothing.
const NO_COST: f64 = 0.995;
const FREE: &str = "nothing";

/// The cost of each system beside nothing in its place, with its ways of running together:
/// `iptables costs 17 % of direct's speed, haproxy 21 % (http-reuse) to 58 % (tcp)`.
pub(super) fn costs(
    table: &TableReport,
    precision: &Precision,
    ranked: &[&Alternative<'_>],
    nothing: &str,
) -> Sentence {
    let is_cost = table.quantity().is_some_and(words::is_cost);
    let cost = |member: &Alternative<'_>| {
        let found = member.entry.vs_baseline.as_ref()?;
        let longer = found.difference.as_ref().filter(|_| is_cost).map(|found| longer_by(found.us));
        let share = share(precision, member).filter(|_| is_cost);
        let share = share.map(|share| share.split(" (").next().unwrap_or_default().to_owned());
        Some(match (longer, share) {
            (Some(longer), Some(share)) => format!("{longer} ({share})"),
            (None, Some(share)) => share,
            _ if found.ratio > NO_COST => FREE.to_owned(),
            _ => brief_percent_of(1.0 - found.ratio),
        })
    };
    let families = families(ranked);
    let (mut phrases, mut is_size_said) = (Vec::new(), false);
    for (at, family) in families.iter().take(COSTS).enumerate() {
        let verb = match at {
            0 if is_cost => " adds ",
            0 => " costs ",
            _ => " ",
        };
        let (first, last) = (family.members[0], family.members[family.members.len() - 1]);
        let ends = [first, last].map(|member| cost(member).unwrap_or_default());
        let way = |member: &Alternative<'_>| match member.label[family.name.len()..].trim_matches('-') {
            "" => String::new(),
            way => format!(" ({way})"),
        };
        let is_free = ends[1] == FREE;
        let range = match ends {
            [from, to] if from == to => from,
            [from, to] => format!("{from}{} to {to}{}", way(first), way(last)),
        };
        let is_size = !is_cost && !is_free && !is_size_said;
        is_size_said |= is_size;
        let of = if is_size { format!(" of the speed of {nothing}") } else { String::new() };
        phrases.push(Phrase::Plain(if at == 0 { "" } else { ", " }.to_owned()));
        phrases.push(Phrase::Name(family.name.clone()));
        phrases.push(Phrase::Plain(format!("{verb}{range}{of}")));
    }
    let is_told = |last: &&Alternative<'_>| {
        let members = families.iter().take(COSTS).flat_map(|family| &family.members);
        members.into_iter().any(|member| member.cell.id == last.cell.id)
    };
    if let Some(last) = ranked.last().filter(|last| !is_told(last)) {
        phrases.push(Phrase::Plain("; the most: ".to_owned()));
        phrases.push(Phrase::Name(last.label.clone()));
        phrases.push(Phrase::Plain(format!(" {}", cost(last).unwrap_or_default())));
    }
    phrases.push(Phrase::Plain(".".to_owned()));
    phrases
}

/// Ways of running one system.
struct Family<'m, 'a> {
    name: String,
    /// The best first.
    members: Vec<&'m Alternative<'a>>,
}

/// Names with the same first word are one family, in the order of their best.
fn families<'m, 'a>(ranked: &[&'m Alternative<'a>]) -> Vec<Family<'m, 'a>> {
    let word = |member: &Alternative<'_>| {
        let word = member.label.split('-').next().unwrap_or_default();
        let is_word = word.chars().all(char::is_alphanumeric);
        if is_word { word.to_owned() } else { member.label.clone() }
    };
    let mut families: Vec<Family<'m, 'a>> = Vec::new();
    for member in ranked {
        let name = word(member);
        match families.iter_mut().find(|family| family.name == name) {
            Some(family) => family.members.push(member),
            None => families.push(Family { name, members: vec![member] }),
        }
    }
    for family in &mut families {
        if let [only] = family.members[..] {
            family.name.clone_from(&only.label);
        }
    }
    families
}
