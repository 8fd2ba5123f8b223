//! Where a difference of CPU time comes from: functions of two servers under the same load, by samples of
//! both in alternating windows.
//!
//! Each sample belongs to one function, so the parts add up to the whole. It is the outermost function that
//! one side alone has, with all that it calls, unless that is system calls for the most part; else one that
//! costs the other side little; else the innermost one, or the system call.

mod calls;
mod causes;
mod counts;
mod label;

use crate::stats::multiplicity::q_values;
pub use calls::CallDifference;
pub use causes::Cause;
pub use counts::{CountDifference, counts};
use label::Labels;
use linerate_model::{PairProfile, ProfileWindow};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::collections::{BTreeMap, BTreeSet};

/// A function below this share of a request's CPU time is not named.
const LEAST: f64 = 0.01;
/// The most of the named functions that have no cause, as a share. A pair of equal servers names one as
/// rarely, since all of its findings would be such.
const MOST_FALSE: f64 = 0.01;
/// Beside a named function, three groups of the kernel's time are told by their intervals alone.
const BESIDE: f64 = 1.0;
const ALPHA: f64 = 0.05;
/// A launch's first windows are left out where a request costs this many times as much as in the launch's
/// others: code is compiled yet, and memory is new.
const YOUNG: f64 = 1.25;
/// Rounds that are kept in any case: of fewer, no function would be certain.
const LEAST_KEPT: usize = 6;
/// Fewer windows of each side show no spread.
const LEAST_ROUNDS: usize = 3;

/// The differences between a server and its baseline. CPU time is in microseconds for an operation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// Windows of each side.
    pub rounds: u32,
    /// All CPU time of the servers, in windows without samples where there are such.
    pub cpu: CostDifference,
    /// Functions whose difference is certain, the largest first; after them what the kernel needs more beside
    /// them.
    pub functions: Vec<FunctionDifference>,
    /// The part of the whole difference that they are; absent where the whole is not certain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explained: Option<f64>,
    /// System calls that differ for certain, the largest difference first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallDifference>,
    /// Counts of the kernel that were made meanwhile and differs for certain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<CountDifference>,
    /// Known causes whose cost differs for certain, the largest first. They overlap with the functions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<CauseDifference>,
    /// Sources that are lacking, and how to get them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lacking: Vec<String>,
}

/// The cost of a known cause, such as a collector, with all that it calls.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CauseDifference {
    pub cause: Cause,
    #[serde(flatten)]
    pub cost: CostDifference,
}

/// A function whose cost differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FunctionDifference {
    /// As the program has it; a system call is `write(2)`.
    pub name: String,
    /// The function that calls it for most of its time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// A function that one side alone has and that this one, of a script, calls. The cost is that of both,
    /// since the compiler of scripts may have put the code between them into this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callee: Option<String>,
    /// The function's part of the difference.
    #[serde(flatten)]
    pub cost: CostDifference,
    /// The function itself without what it calls, of the baseline and of the other.
    pub self_us: [f64; 2],
    /// With all that it calls.
    pub total_us: [f64; 2],
}

/// A cost of the baseline and of the other, and the difference with its 95 % interval over the windows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CostDifference {
    pub us: [f64; 2],
    pub difference_us: f64,
    pub ci95: [f64; 2],
}

impl CostDifference {
    fn is_certain(&self) -> bool {
        self.ci95[0] > 0.0 || self.ci95[1] < 0.0
    }
}

/// Explains the difference of a pair; `None` with too few windows, or without samples.
pub fn explain(pair: &PairProfile) -> Option<Explanation> {
    let complete = pair.rounds.iter().filter(|sides| sides.iter().all(ProfileWindow::is_complete));
    let rounds = without_young(complete.collect());
    if rounds.len() < LEAST_ROUNDS || rounds.iter().all(|sides| sides[0].stacks.is_empty()) {
        return None;
    }
    let of_cpu: Vec<[f64; 2]> =
        rounds.iter().map(|sides| [1, 0].map(|at| sides[at].us_per_operation())).collect();
    let (cpu, _) = difference(&of_cpu)?;
    let whole = cpu.us[0].max(cpu.us[1]);
    let inclusive = costs(&rounds, |stack| pair.stacks[stack as usize].iter().copied().collect());
    let in_calls = costs(&rounds, |stack| label::callers_in_system_call(pair, stack));
    let times = [1, 0].map(|side| times(&rounds, side));
    let labels = Labels::new(pair, &mean_costs(&inclusive), &mean_costs(&in_calls), cpu.us, &times);
    let parts = costs(&rounds, |stack| BTreeSet::from([labels.of_stack(stack)]));
    let leaves = costs(&rounds, |stack| pair.stacks[stack as usize].last().copied().into_iter().collect());
    let (leaves, inclusive) = (mean_costs(&leaves), mean_costs(&inclusive));
    let launches: Vec<u32> = rounds.iter().map(|sides| sides[0].launch).collect();
    let name = |label| labels.name(label).to_owned();
    let mut functions: Vec<FunctionDifference> = certain(&parts, whole, &launches, MOST_FALSE)
        .into_iter()
        .filter(|(label, cost)| {
            let name = labels.name(*label);
            label::late(name).is_none() && !calls::is_of_the_load(name, cost.us)
        })
        .map(|(label, cost)| FunctionDifference {
            name: name(label),
            caller: labels.caller(label, &times[usize::from(cost.difference_us > 0.0)]).map(name),
            callee: labels.callee(label).map(name),
            cost,
            self_us: leaves.get(&label).copied().unwrap_or(cost.us),
            total_us: inclusive.get(&label).copied().unwrap_or(cost.us),
        })
        .collect();
    if !functions.is_empty() {
        let rest = costs(&rounds, |stack| rest_of(labels.name(labels.of_stack(stack)), &functions));
        let rest = certain(&rest, whole, &launches, BESIDE);
        functions.extend(rest.into_iter().map(|(name, cost)| {
            let (self_us, total_us) = (cost.us, cost.us);
            FunctionDifference { name: name.to_owned(), caller: None, callee: None, cost, self_us, total_us }
        }));
    }
    let of_stacks: Vec<BTreeSet<Cause>> =
        pair.stacks.iter().map(|frames| causes::of_stack(pair, frames)).collect();
    let causes = costs(&rounds, |stack| of_stacks[stack as usize].clone());
    let causes = certain(&causes, whole, &launches, MOST_FALSE).into_iter();
    let sum: f64 = functions.iter().map(|function| function.cost.difference_us).sum();
    let is_difference = cpu.is_certain() && cpu.difference_us.abs() >= LEAST * whole;
    Some(Explanation {
        rounds: rounds.len() as u32,
        cpu,
        explained: is_difference.then_some(sum / cpu.difference_us),
        functions,
        calls: calls::differences(&pair.calls),
        counts: counts::of_calls(&pair.calls),
        causes: causes.map(|(cause, cost)| CauseDifference { cause, cost }).collect(),
        lacking: pair.lacking.clone(),
    })
}

/// The rounds without those at the beginning of each launch in which one side was not warm.
fn without_young(rounds: Vec<&[ProfileWindow; 2]>) -> Vec<&[ProfileWindow; 2]> {
    let mut spare = rounds.len().saturating_sub(LEAST_KEPT);
    let of_launches = rounds.chunk_by(|one, next| one[0].launch == next[0].launch);
    let warm = of_launches.flat_map(|launch| {
        let most = [0, 1].map(|side| {
            let mut us: Vec<f64> = launch.iter().map(|sides| sides[side].us_per_operation()).collect();
            us.sort_by(f64::total_cmp);
            YOUNG * us[us.len() / 2]
        });
        let is_young = |sides: &&&[ProfileWindow; 2]| {
            sides.iter().zip(most).any(|(side, most)| side.us_per_operation() > most)
        };
        let young = launch.iter().take(spare).take_while(is_young).count();
        spare -= young;
        &launch[young..]
    });
    warm.copied().collect()
}

/// The group of the kernel's time to which what has this label counts, if it is none of the functions: a
/// slower program is woken at other times, and each system call costs a little more.
fn rest_of(label: &str, functions: &[FunctionDifference]) -> BTreeSet<&'static str> {
    let group = match label {
        label if functions.iter().any(|function| function.name == label) => None,
        label if label.ends_with("(2)") => Some("other system calls"),
        label => label::late(label),
    };
    group.into_iter().collect()
}

/// Functions whose cost differs for certain and in each launch, the largest difference first.
fn certain<T: Copy + Ord>(
    costs: &BTreeMap<T, Vec<[f64; 2]>>,
    whole: f64,
    launches: &[u32],
    most_false: f64,
) -> Vec<(T, CostDifference)> {
    let family: Vec<(T, &Vec<[f64; 2]>, CostDifference, f64)> = costs
        .iter()
        .filter_map(|(what, of_rounds)| {
            let (found, p) = difference(of_rounds)?;
            (found.us[0].max(found.us[1]) >= LEAST * whole).then_some((*what, of_rounds, found, p))
        })
        .collect();
    let q = q_values(&family.iter().map(|(.., p)| *p).collect::<Vec<_>>());
    let is_named = |(of_rounds, found, q): (&[[f64; 2]], &CostDifference, f64)| {
        q <= most_false
            && found.is_certain()
            && found.difference_us.abs() >= LEAST * whole
            && is_of_all_launches(of_rounds, launches)
    };
    let mut named: Vec<(T, CostDifference)> = family
        .into_iter()
        .zip(q)
        .filter(|((_, of_rounds, found, _), q)| is_named((of_rounds, found, *q)))
        .map(|((what, _, cost, _), _)| (what, cost))
        .collect();
    named.sort_by(|(_, a), (_, b)| b.difference_us.abs().total_cmp(&a.difference_us.abs()));
    named
}

/// Microseconds for an operation in each round, of the baseline and of the other, by what a stack counts for.
fn costs<T: Ord>(
    rounds: &[&[ProfileWindow; 2]],
    counts_for: impl Fn(u32) -> BTreeSet<T>,
) -> BTreeMap<T, Vec<[f64; 2]>> {
    let mut all = BTreeMap::new();
    for (round, sides) in rounds.iter().enumerate() {
        for (at, side) in [&sides[1], &sides[0]].into_iter().enumerate() {
            let scale = side.scale();
            for (stack, time) in &side.stacks {
                for what in counts_for(*stack) {
                    let of = all.entry(what).or_insert_with(|| vec![[0.0; 2]; rounds.len()]);
                    of[round][at] += time.0 as f64 * scale / 1e3 / side.operations as f64;
                }
            }
        }
    }
    all
}

/// The time of each stack of a side, in microseconds.
fn times(rounds: &[&[ProfileWindow; 2]], side: usize) -> BTreeMap<u32, f64> {
    let mut all = BTreeMap::new();
    for (stack, time) in rounds.iter().flat_map(|sides| &sides[side].stacks) {
        *all.entry(*stack).or_default() += time.0 as f64 / 1e3;
    }
    all
}

fn mean_costs(costs: &BTreeMap<u32, Vec<[f64; 2]>>) -> BTreeMap<u32, [f64; 2]> {
    costs
        .iter()
        .map(|(what, of_rounds)| (*what, [0, 1].map(|at| mean(of_rounds.iter().map(|us| us[at])))))
        .collect()
}

/// The difference over rounds by Student's t, and the p value of none. Differences of rounds are paired: what
/// changes with time is in both sides.
fn difference(of_rounds: &[[f64; 2]]) -> Option<(CostDifference, f64)> {
    let n = of_rounds.len() as f64;
    let each = || of_rounds.iter().map(|[base, head]| head - base);
    let middle = mean(each());
    let variance = each().map(|one| (one - middle).powi(2)).sum::<f64>() / (n - 1.0);
    let error = (variance / n).sqrt();
    let student = StudentsT::new(0.0, 1.0, n - 1.0).ok()?;
    let half = student.inverse_cdf(1.0 - ALPHA / 2.0) * error;
    let p = match (error > 0.0, middle == 0.0) {
        (true, _) => 2.0 * student.cdf(-middle.abs() / error),
        (false, true) => 1.0,
        (false, false) => 0.0,
    };
    let us = [0, 1].map(|at| mean(of_rounds.iter().map(|us| us[at])));
    Some((CostDifference { us, difference_us: middle, ci95: [middle - half, middle + half] }, p))
}

/// True if each launch has the sign of all: addresses and seeds of one pair of processes are no cause.
fn is_of_all_launches(of_rounds: &[[f64; 2]], launches: &[u32]) -> bool {
    let mut sums = BTreeMap::<u32, f64>::new();
    for ([base, head], launch) in of_rounds.iter().zip(launches) {
        *sums.entry(*launch).or_default() += head - base;
    }
    sums.values().all(|sum| *sum > 0.0) || sums.values().all(|sum| *sum < 0.0)
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len() as f64;
    values.sum::<f64>() / n
}

#[cfg(test)]
mod tests;
