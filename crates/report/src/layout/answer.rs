//! The answer of a table in sentences, made from its verdicts.

use super::accuracy;
use super::beside::{above_the_limit, alone, by_own_load, by_parameter};
use super::costs::costs;
use super::groups::{Alternative, Group, Part, groups};
use super::precision::Precision;
use super::undecided::{IN_DOUBT, absent, equal, lossy, unknown, unsure, unsure_beside};
use crate::model::{Quantity, SuiteReport, TableReport};
use crate::numbers::{Ends, TimeUnit, longer, percent_range};
use crate::words;
use linerate_analysis::stats::estimate::FEWEST_ROUNDS;

/// A sentence in parts, so that formats can mark the names of cells.
pub(crate) type Sentence = Vec<Phrase>;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Phrase {
    Plain(String),
    Name(String),
}

/// The answer for one group of a table.
#[derive(Debug)]
pub(crate) struct GroupAnswer {
    /// Such as `server nginx`; empty if the table has one group.
    pub(crate) label: String,
    /// The answer to the suite's question.
    pub(crate) lead: Sentence,
    /// Who follows, who is last, what is not known.
    pub(crate) rest: Vec<Sentence>,
}

/// More names than these become a number.
pub(super) const NAMES: usize = 4;

/// The answers of a table, a group each. A comparison of builds has its verdict above all tables.
pub(crate) fn answers(suite: &SuiteReport, table: &TableReport) -> Vec<GroupAnswer> {
    if table.is_sequential {
        return Vec::new();
    }
    groups(suite, table).iter().map(|group| answer(table, group)).collect()
}

/// Where an answer belongs: the table, where the suite has several, and the group.
pub(crate) fn place(suite: &SuiteReport, table: &TableReport, answer: &GroupAnswer) -> String {
    let table = Some(table.name.as_str()).filter(|_| suite.tables.len() > 1);
    let label = Some(answer.label.as_str()).filter(|label| !label.is_empty());
    table.into_iter().chain(label).collect::<Vec<_>>().join(", ")
}

/// Metrics of a table after the first.
pub(crate) fn further_metrics(table: &TableReport) -> Vec<Quantity> {
    let mut metrics = Vec::new();
    for metric in table.cells.iter().filter_map(|cell| cell.metric) {
        if Some(metric) != table.quantity() && !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    metrics
}

/// The unit of the table's first metric.
pub(crate) fn unit(table: &TableReport) -> String {
    Precision::for_table(table).unit()
}

pub(crate) fn answer(table: &TableReport, group: &Group<'_>) -> GroupAnswer {
    let said_of =
        |lead: Sentence, rest: Vec<Sentence>| GroupAnswer { label: group.label.clone(), lead, rest };
    if table.truth_tolerance.is_some() {
        return said_of(accuracy::right(group), accuracy::others(group));
    }
    if group.is_of_the_generator() {
        let why = "Says nothing about the servers: the load generator was the limit of every row.";
        return said_of(said(why, &[], ""), absent(group));
    }
    if table.is_of_own_load() {
        let why = said("Not ranked: each row has a load of its own, a share of its capacity.", &[], "");
        return said_of(by_own_load(table, group), [why].into_iter().chain(absent(group)).collect());
    }
    let precision = Precision::for_table(table);
    let measured: Vec<&Alternative<'_>> = group.members.iter().filter(|m| m.entry.value.is_some()).collect();
    let ranked = group.ranked();
    let Some(best) = ranked.first() else {
        return said_of(unranked(&precision, &measured), absent(group));
    };
    if let Some(lead) = by_parameter(table, &precision, group) {
        return said_of(lead, unsure(group));
    }
    let nothing = group.nothing();
    if ranked.len() == 1 && nothing.is_none() {
        let ratio = group.baseline().zip(share(&precision, best));
        let ratio =
            ratio.map(|(with, share)| format!(", {}", against(table, brief(&share), &named_baseline(with))));
        let Some(ratio) = ratio else {
            return said_of(alone(table, &precision, group, best), above_the_limit(group));
        };
        let lead = said("", &[best], format!(" has {}{ratio}.", precision.briefly_told(best.entry)));
        return said_of(lead, above_the_limit(group));
    }
    let placed: Vec<&Alternative<'_>> = ranked.iter().filter(|m| m.is_placed(table)).copied().collect();
    let (lead, rest) = match nothing {
        Some(nothing) if !placed.is_empty() => {
            let has = format!(" alone: {}.", precision.told(nothing.entry));
            let rest = std::iter::once(said("", &[nothing], has)).chain(unsure(group));
            (costs(table, &precision, &placed, &nothing.label), rest.collect())
        }
        None if ranked.iter().any(|member| member.tier.is_some()) => {
            by_tiers(table, &precision, group, &ranked)
        }
        _ => without_tiers(table, &precision, group, &ranked),
    };
    said_of(lead, rest)
}

/// Why there is no order.
fn without_tiers(
    table: &TableReport,
    precision: &Precision,
    group: &Group<'_>,
    ranked: &[&Alternative<'_>],
) -> (Sentence, Vec<Sentence>) {
    let lossy = lossy(group);
    let kept: Vec<&Alternative<'_>> = ranked.iter().filter(|member| !member.loses()).copied().collect();
    if let (Some(lossy), [only]) = (&lossy, &kept[..]) {
        let has = format!(" lost less than 1 %: {}.", precision.told(only.entry));
        return (said("Only ", &[only], has), vec![lossy.clone()]);
    }
    let mut comparisons = ranked.iter().filter_map(|member| member.entry.vs_baseline.as_ref());
    let has_rounds = comparisons.any(|comparison| !comparison.ci95_is_range);
    let doubted: Vec<&Alternative<'_>> = ranked.iter().filter(|m| m.is_in_doubt()).copied().collect();
    let in_doubt = (!doubted.is_empty()).then(|| said(IN_DOUBT, &doubted, "."));
    let why = match (strangers(group), lossy.clone().filter(|_| has_rounds).or(in_doubt)) {
        _ if table.control_fails() => "The A/A check failed, so this table has no verdicts.".to_owned(),
        (Some(share), _) => format!(
            "No verdict: other processes used {:.0} % of the CPU time in too many pairs. Run it \
             again on a quiet machine.",
            share * 100.0
        ),
        (None, Some(reason)) => return (reason, Vec::new()),
        (None, None) if has_rounds => {
            let mut known = equal(group).into_iter().chain(unknown(group, &[]));
            let first = known.next().unwrap_or_else(|| said("No order.", &[], ""));
            return (first, known.collect());
        }
        (None, None) => format!("Too few rounds for a verdict (fewer than {FEWEST_ROUNDS})."),
    };
    (said(why, &[], ""), lossy.into_iter().collect())
}

/// The CPU time that other processes used, where that withholds ratios: the most of the group.
fn strangers(group: &Group<'_>) -> Option<f64> {
    let ratios = group.members.iter().filter_map(|member| member.entry.vs_baseline.as_ref());
    ratios.filter_map(|ratio| ratio.duet.as_ref()?.strangers).max_by(f64::total_cmp)
}

/// Who is first and who is last, and what has no order.
fn by_tiers(
    table: &TableReport,
    precision: &Precision,
    group: &Group<'_>,
    ranked: &[&Alternative<'_>],
) -> (Sentence, Vec<Sentence>) {
    // What has a verdict begins a tier.
    let (open, decided): (Vec<&Alternative<'_>>, Vec<_>) = ranked.iter().partition(|member| member.is_open());
    let mut tiers: Vec<Vec<&Alternative<'_>>> = Vec::new();
    for (member, tier) in decided.into_iter().chain(open).filter_map(|m| Some((m, m.tier?))) {
        if tier > tiers.len() {
            tiers.push(Vec::new());
        }
        tiers[tier - 1].push(member);
    }
    // In the order of the rows.
    let place = |member: &Alternative<'_>| ranked.iter().position(|other| other.cell.id == member.cell.id);
    tiers.iter_mut().for_each(|tier| tier.sort_by_key(|member| place(member)));
    let baseline = group.baseline().map_or_else(|| "the baseline".to_owned(), named_baseline);
    let baseline = baseline.as_str();
    let best_are_open =
        tiers[0].len() > 1 && tiers[0].iter().all(|member| member.is_open() || member.part == Part::Baseline);
    let lead = match tiers[0][..] {
        [only] => {
            let ratio =
                share(precision, only).map(|share| format!(", {}", against(table, brief(&share), baseline)));
            let ratio = ratio.filter(|_| only.part != Part::Baseline).unwrap_or_default();
            let is = if tiers.len() == 1 { "has".into() } else { words::best_by(table.quantity()) + ":" };
            // Its name is in the words before it.
            let value = precision.briefly_told(only.entry);
            let name = name(table);
            let value = if tiers.len() == 1 { &value } else { value.trim_end_matches(name).trim_end() };
            said("", &[only], format!(" {is} {value}{ratio}."))
        }
        // The intervals overlap with that of the best, and may overlap with those of the next tier.
        _ => {
            let which = match tiers.len() {
                1 => "No order, the intervals overlap: ",
                _ if best_are_open => "First, their order is undecided: ",
                _ => "Tied for first: ",
            };
            said(which, &tiers[0], ".")
        }
    };
    let mut rest: Vec<Sentence> = Vec::new();
    // Ratios alone are no size.
    let size = group.baseline().filter(|member| tiers[0].len() > 1 && member.entry.value.is_some());
    rest.extend(size.map(|with| {
        let others: Vec<_> = tiers[0].iter().filter(|m| m.part != Part::Baseline).copied().collect();
        let who = match (others.len() == tiers[0].len(), others.len()) {
            (true, _) => "they",
            (false, 1) => "the other",
            (false, _) => "the others",
        };
        let has = format!(" has {}, {who} ", precision.briefly_told(with.entry));
        said("", &[with], has + &spread(table, precision, &others, "that") + ".")
    }));
    rest.extend(tiers[1..].last().map(|last| {
        let word = if ranked.len() == 2 { "Next: " } else { "Last: " };
        // Beside the baseline, a ratio would seem to be that of both.
        let is_beside = last.iter().any(|member| member.part == Part::Baseline) && last.len() > 1;
        let share = if is_beside { String::new() } else { spread(table, precision, last, baseline) };
        said(word, last, if share.is_empty() { ".".to_owned() } else { format!(", {share}.") })
    }));
    // Where some of them are equal, the lead does not say which are undecided.
    rest.extend(unsure_beside(group, if best_are_open { &tiers[0] } else { &[] }));
    (lead, rest)
}

/// As rows are told beside it.
fn named_baseline(member: &Alternative<'_>) -> String {
    if member.is_own { format!("linerate's own {}", member.label) } else { member.label.clone() }
}

/// Without its interval: a headline has none.
pub(super) fn brief(share: &str) -> &str {
    share.split(" (").next().unwrap_or_default()
}

/// The name of the table's first metric; empty where its unit says it.
pub(super) fn name(table: &TableReport) -> &'static str {
    table.quantity().map_or("", |quantity| words::parts(quantity, TimeUnit::Micros).0)
}

/// `82 % (79 to 86) of direct`; a latency is `2.2x (2.1 to 2.3) that of direct`.
fn against(table: &TableReport, share: &str, baseline: &str) -> String {
    match table.quantity().filter(|quantity| words::is_cost(*quantity)) {
        Some(_) if share.contains('x') => format!("{share} that of {baseline}"),
        Some(_) => format!("{share} against {baseline}"),
        None if brief(share).ends_with('x') => format!("{share} that of {baseline}"),
        None => format!("{share} of {baseline}"),
    }
}

/// The ratios of some members: `82 % (79 to 86) of direct`, or `82 to 84 % of direct`.
fn spread(
    table: &TableReport,
    precision: &Precision,
    members: &[&Alternative<'_>],
    baseline: &str,
) -> String {
    let is_cost = table.quantity().is_some_and(words::is_cost);
    match members {
        [only] if only.part == Part::Baseline => "the baseline".to_owned(),
        [only] => share(precision, only).map_or(String::new(), |share| against(table, &share, baseline)),
        _ => {
            let ratios = members.iter().filter_map(|member| member.ratio());
            let (low, high) = (ratios.clone().fold(f64::INFINITY, f64::min), ratios.fold(0.0, f64::max));
            if is_cost {
                let [from, to] = [high, low].map(|ratio| longer(ratio, Ends::Unknown));
                let both = if from == to { from } else { format!("{from} to {to}") };
                return format!("{both} against {baseline}");
            }
            against(table, &percent_range(low, high), baseline)
        }
    }
}

pub(super) fn share(precision: &Precision, member: &Alternative<'_>) -> Option<String> {
    Some(precision.share(member.entry.metric, member.entry.vs_baseline.as_ref()?))
}

fn unranked(precision: &Precision, measured: &[&Alternative<'_>]) -> Sentence {
    let Some(first) = measured.first() else {
        return said("Nothing was measured.", &[], "");
    };
    let none = if measured.len() > 1 { "No comparison was measured. " } else { "" };
    said(none, &[first], format!(" has {}.", precision.told(first.entry)))
}

/// A sentence, or a part of one, about some members.
pub(super) fn said(
    before: impl Into<String>,
    members: &[&Alternative<'_>],
    after: impl Into<String>,
) -> Sentence {
    let listed = if members.len() > NAMES { &members[..NAMES - 1] } else { members };
    let more = members.len() - listed.len();
    let mut phrases = vec![Phrase::Plain(before.into())];
    for (i, member) in listed.iter().enumerate() {
        if i > 0 {
            let is_last = i + 1 == listed.len() && more == 0;
            phrases.push(Phrase::Plain(if is_last { " and " } else { ", " }.to_owned()));
        }
        phrases.push(Phrase::Name(member.label.clone()));
    }
    if more > 0 {
        phrases.push(Phrase::Plain(format!(" and {more} more")));
    }
    phrases.push(Phrase::Plain(after.into()));
    phrases
}
