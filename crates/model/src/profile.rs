//! The functions of servers: samples of the sides of pairs, from units of their own that decide nothing.
//! `profile.json` in the folder of a run contains a [`Profile`].

use crate::Count;
use linerate_contract::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The format of `profile.json`.
pub const PROFILE_SCHEMA: &str = "linerate.profile/1";

/// All profiles of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// [`PROFILE_SCHEMA`].
    pub schema: String,
    pub pairs: Vec<PairProfile>,
}

impl Default for Profile {
    fn default() -> Self {
        Self { schema: PROFILE_SCHEMA.to_owned(), pairs: Vec::new() }
    }
}

/// The profiles of two cells under the same load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PairProfile {
    pub suite: String,
    /// The cell and its baseline.
    pub cells: [String; 2],
    /// Functions, by their index in `stacks`. A name of the kernel's begins with `[k] `.
    pub names: Vec<String>,
    /// Each stack that was sampled, the outermost function first.
    pub stacks: Vec<Vec<u32>>,
    /// One window of each side, in the order of `cells`.
    pub rounds: Vec<[ProfileWindow; 2]>,
    /// System calls of each side in further windows, in the order of `cells`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<[CallWindow; 2]>,
    /// Sources that are lacking, and how to get them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacking: Vec<String>,
}

/// A window of one side.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProfileWindow {
    /// The launch of the processes, from 0: rounds of one launch have the same processes.
    pub launch: u32,
    pub operations: u64,
    /// CPU time of the server's processes.
    pub cpu: Nanos,
    /// Sampled CPU time by the index of the stack.
    pub stacks: BTreeMap<u32, Nanos>,
    /// A window beside it without samples, which take CPU time themselves; absent in the
    /// published runs of 2026-11-29, `example` and `why`, which are from before there were such windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsampled: Option<Spent>,
}

/// Operations, and the CPU time that a server spent on them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    pub operations: u64,
    pub cpu: Nanos,
}

impl Spent {
    fn per_operation(self) -> f64 {
        self.cpu.0 as f64 / self.operations.max(1) as f64
    }
}

/// The system calls of one side in a window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallWindow {
    pub operations: u64,
    /// By name, such as `write(2)`; `read(2) with EAGAIN` is the part that would have had to wait.
    pub calls: BTreeMap<String, u64>,
    /// The kernel's counts meanwhile.
    #[serde(default)]
    pub counts: BTreeMap<Count, u64>,
}

/// The samples of a server in one window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackSample {
    /// Functions, by their index in `stacks`.
    pub names: Vec<String>,
    pub stacks: Vec<SampledStack>,
    /// System calls by name, where they were recorded.
    #[serde(default)]
    pub calls: BTreeMap<String, u64>,
    /// Samples for which there was no room.
    #[serde(default)]
    pub lost: u64,
    /// Sources that are lacking, and how to get them.
    #[serde(default)]
    pub lacking: Vec<String>,
}

/// A stack and the CPU time that its samples stand for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledStack {
    /// Indices of names, the outermost function first.
    pub frames: Vec<u32>,
    pub time: Nanos,
}

impl Profile {
    /// False where an index is that of nothing: the file may come from someone else.
    pub fn is_sound(&self) -> bool {
        self.pairs.iter().all(|pair| {
            let (names, stacks) = (pair.names.len(), pair.stacks.len());
            let mut indices = pair.rounds.iter().flatten().flat_map(|window| window.stacks.keys());
            pair.stacks.iter().flatten().all(|name| (*name as usize) < names)
                && indices.all(|stack| (*stack as usize) < stacks)
        })
    }
}

impl ProfileWindow {
    /// True if the costs of an operation are known.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.operations > 0
            && self.unsampled.is_none_or(|beside| beside.operations > 0 && self.cpu > Nanos::ZERO)
    }

    /// Microseconds of CPU time of an operation, without what samples cost where that is known. Its stacks
    /// add up to it.
    #[must_use]
    pub fn us_per_operation(&self) -> f64 {
        let sampled = || self.stacks.values().map(|time| time.0).sum::<u64>() as f64 * self.scale();
        let all = if self.unsampled.is_some() { sampled() } else { self.cpu.0 as f64 };
        all / 1e3 / self.operations.max(1) as f64
    }

    /// The factor from the time of samples to the time without what they cost: an operation's CPU time in the
    /// window beside it by that in this one. Both have one length, and the same error at their ends.
    #[must_use]
    pub fn scale(&self) -> f64 {
        let own = Spent { operations: self.operations, cpu: self.cpu };
        self.unsampled
            .map_or(1.0, |beside| beside.per_operation() / own.per_operation().max(f64::MIN_POSITIVE))
    }
}

impl PairProfile {
    /// Adds a window of each side with samples, and the one beside it without.
    pub fn add(&mut self, launch: u32, sides: [(Spent, &StackSample, Option<Spent>); 2]) {
        let mut names: BTreeMap<String, u32> = self.names.drain(..).zip(0..).collect();
        let mut stacks: BTreeMap<Vec<u32>, u32> = self.stacks.drain(..).zip(0..).collect();
        let round = sides.map(|(Spent { operations, cpu }, sample, unsampled)| {
            let stacks_of_window = BTreeMap::new();
            let mut window = ProfileWindow { launch, operations, cpu, stacks: stacks_of_window, unsampled };
            let own: Vec<u32> = sample.names.iter().map(|name| index(&mut names, name.clone())).collect();
            for stack in &sample.stacks {
                let frames = stack.frames.iter().filter_map(|frame| own.get(*frame as usize).copied());
                *window.stacks.entry(index(&mut stacks, frames.collect())).or_default() += stack.time;
            }
            self.lack(&sample.lacking);
            window
        });
        (self.names, self.stacks) = (in_order(names), in_order(stacks));
        self.rounds.push(round);
    }

    /// Adds the system calls of a window of each side, unless some were lost.
    pub fn add_calls(&mut self, sides: [CallWindow; 2], samples: [&StackSample; 2]) {
        samples.iter().for_each(|sample| self.lack(&sample.lacking));
        if samples.iter().all(|sample| sample.lost == 0 && !sample.calls.is_empty()) {
            self.calls.push(sides);
        }
    }

    /// Adds what is missing.
    pub fn lack(&mut self, what: &[String]) {
        for one in what {
            if !self.lacking.contains(one) {
                self.lacking.push(one.clone());
            }
        }
    }

    /// Keeps the stacks with the most time; of the others the innermost function alone.
    pub fn shorten(&mut self, most: usize) {
        let mut times = vec![0; self.stacks.len()];
        for (stack, time) in self.rounds.iter().flatten().flat_map(|window| &window.stacks) {
            times[*stack as usize] += time.0;
        }
        let mut order: Vec<usize> = (0..times.len()).collect();
        order.sort_by_key(|stack| std::cmp::Reverse(times[*stack]));
        let rest: Vec<usize> = order.into_iter().skip(most).collect();
        for stack in rest {
            let frames = &mut self.stacks[stack];
            frames.drain(..frames.len().saturating_sub(1));
        }
        self.unite();
    }

    /// Gives equal stacks one index.
    fn unite(&mut self) {
        let mut stacks = BTreeMap::new();
        let of: Vec<u32> = self.stacks.drain(..).map(|frames| index(&mut stacks, frames)).collect();
        for window in self.rounds.iter_mut().flatten() {
            for (stack, time) in std::mem::take(&mut window.stacks) {
                *window.stacks.entry(of[stack as usize]).or_default() += time;
            }
        }
        self.stacks = in_order(stacks);
    }
}

fn index<T: Ord>(known: &mut BTreeMap<T, u32>, what: T) -> u32 {
    let next = known.len() as u32;
    *known.entry(what).or_insert(next)
}

fn in_order<T>(known: BTreeMap<T, u32>) -> Vec<T> {
    let mut list: Vec<(T, u32)> = known.into_iter().collect();
    list.sort_by_key(|(_, index)| *index);
    list.into_iter().map(|(what, _)| what).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(stacks: &[(&[&str], u64)]) -> StackSample {
        let mut names = BTreeMap::new();
        let stack = |(frames, time): &(&[&str], u64)| SampledStack {
            frames: frames.iter().map(|name| index(&mut names, (*name).to_owned())).collect(),
            time: Nanos(*time),
        };
        let stacks = stacks.iter().map(stack).collect();
        StackSample {
            names: in_order(names),
            stacks,
            lacking: vec!["the kernel".into()],
            ..StackSample::default()
        }
    }

    #[test]
    fn windows_with_indices_of_their_own_have_those_of_the_pair() {
        let (one, two) = (sample(&[(&["main", "a"], 5)]), sample(&[(&["b"], 1), (&["main", "a"], 7)]));
        let spent = |cpu| Spent { operations: 10, cpu: Nanos(cpu) };
        let mut pair = PairProfile::default();
        pair.add(0, [(spent(5), &one, None), (spent(8), &two, None)]);
        pair.add(0, [(spent(8), &two, None), (spent(5), &one, None)]);
        assert_eq!((pair.names.len(), pair.stacks.len(), pair.lacking.len()), (3, 2, 1));
        let times: Vec<Vec<u64>> =
            pair.rounds.iter().flatten().map(|w| w.stacks.values().map(|t| t.0).collect()).collect();
        assert_eq!(times, [vec![5], vec![7, 1], vec![7, 1], vec![5]]);
    }

    #[test]
    fn a_stack_has_no_part_of_what_samples_cost() {
        let sample = sample(&[(&["a"], 30), (&["b"], 90)]);
        let (spent, beside) =
            (Spent { operations: 10, cpu: Nanos(130) }, Spent { operations: 20, cpu: Nanos(200) });
        let mut pair = PairProfile::default();
        pair.add(0, [(spent, &sample, Some(beside)), (spent, &sample, None)]);
        let [with, without] = &pair.rounds[0];
        assert!((with.scale() - 10.0 / 13.0).abs() < 1e-9);
        let us = 12e-3 * with.scale();
        assert!((with.us_per_operation() - us).abs() < 1e-9, "the stacks add up to it");
        assert!((without.us_per_operation() - 13e-3).abs() < 1e-9 && (without.scale() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_left_out_of_a_large_profile_keeps_its_innermost_function() {
        let many = sample(&[(&["main", "a"], 9), (&["main", "b", "x"], 2), (&["main", "c", "x"], 1)]);
        let mut pair = PairProfile::default();
        let spent = Spent { operations: 1, cpu: Nanos(12) };
        pair.add(0, [(spent, &many, None), (spent, &many, None)]);
        pair.shorten(1);
        let innermost = |stack: &Vec<u32>| &*pair.names[*stack.last().unwrap() as usize];
        assert_eq!(pair.stacks.iter().map(innermost).collect::<Vec<_>>(), ["a", "x"]);
        assert_eq!(pair.rounds[0][0].stacks.values().map(|t| t.0).collect::<Vec<_>>(), [9, 3]);
    }
}
