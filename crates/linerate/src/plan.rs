//! The cells of a run, its trials, and their order. No other module decides about the order.

mod builds;
mod only;
mod pairs;
mod probes;
mod suites;

pub(crate) use builds::origin;
pub(crate) use suites::built_systems;
pub use suites::suites;

use crate::arm::{BASE, HEAD};
use crate::axes::Axes;
use crate::measurement::{
    DEFAULT_BUILD, Metric, PlannedCell, PlannedComparison, PlannedLoad, PlannedPair, PlannedRate,
    PlannedSuite, PlannedSystem, PlannedTable, Run, Sharing, Sides, Subject, default_verify, default_warmup,
};
use crate::parameters::Parameters;
use crate::path::Shape;
use crate::stopping::{Need, has_control};
use crate::suite::Form;
use crate::system::VERIFIER;
use linerate_contract::{Role, Workload};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeSet;
use std::time::Duration;

/// The name of the suite and of its table.
const NAME: &str = "commands";
const AXIS: &str = "command";
const COLUMN: &str = "load";

/// The most units of each pair in a round. The interval of a ratio narrows faster with fresh units than with
/// longer ones; the value of a cell needs no such precision.
pub const UNITS_PER_ROUND: u32 = 2;

/// Units of each pair in a round, unless the suite has a number.
///
/// A comparison of builds has one in each round: after each, the pair may be decided. So have the quick form
/// and the one with the documents' tables alone, whose time goes to the wide ratios.
fn units_in(run: &Run, suite: &PlannedSuite) -> u32 {
    let is_short = run.policy().is_sequential() || run.published || run.quick;
    if is_short { 1 } else { suite.units.unwrap_or(UNITS_PER_ROUND).min(UNITS_PER_ROUND) }
}

/// Solo trials of each cell in a comparison: for values and bottlenecks, not for the ratio.
const SOLO_ROUNDS: u32 = 3;
/// A budget up to this one has time for one of each.
const SHORT: Duration = Duration::from_secs(60);

/// Solo trials of each cell in this comparison.
fn solo_rounds(run: &Run) -> u32 {
    let is_short = run.budget.is_some_and(|budget| budget <= SHORT.into());
    if is_short { 1 } else { SOLO_ROUNDS }
}

/// Whether a run has this trial or unit in a round.
fn is_due_in(round: u32, step: &Step, run: &Run, suite: &PlannedSuite) -> bool {
    // A pair that is compared by solo trials needs those of both cells.
    let is_in_duets_alone = || {
        let id = &suite.cells[step.sides.cell()].id;
        let is_present = |pair: &&PlannedPair| present(suite, pair).is_some();
        let mut pairs =
            suite.pairs.iter().filter(|pair| pair.cells.contains(id)).filter(is_present).peekable();
        pairs.peek().is_some() && pairs.all(|pair| pair.no_duet.is_none())
    };
    match (run.policy().is_sequential(), step.sides) {
        (true, Sides::One(_)) => round <= solo_rounds(run),
        (true, Sides::Two([cell, other])) if other == cell => has_control(round),
        (true, Sides::Probed(..)) => has_control(round),
        (false, Sides::One(_)) => suite.solos.is_none_or(|solos| round <= solos || !is_in_duets_alone()),
        (_, Sides::Two(_) | Sides::AtRate(_) | Sides::Probed(..)) => true,
    }
}

/// One unit to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Index into [`Run::suites`].
    pub suite: usize,
    pub sides: Sides,
    /// 1-based, warm-up rounds counted on their own.
    pub round: u32,
    /// The number under which it is journaled: of a cell alone the round, of a pair the unit.
    pub number: u32,
    pub warmup: bool,
}

impl Step {
    /// The first one of these cells.
    pub fn new(suite: usize, sides: Sides) -> Self {
        Self { suite, sides, round: 1, number: 1, warmup: false }
    }
}

/// The choices of a user that affect the plan.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Names of suites, or `all`.
    pub suites: Vec<String>,
    pub quick: bool,
    /// Only the tables that repeat a document's.
    pub published: bool,
    /// All tables and rows; [`Self::only`] chooses among these, too.
    pub complete: bool,
    pub rounds: Option<u32>,
    pub only: Vec<String>,
    pub probe: bool,
    /// Two builds in each chosen cell.
    pub comparison: Option<PlannedComparison>,
}

impl Choice {
    /// Whether cells are chosen among all: also of two builds, and where they are named.
    pub fn is_complete(&self) -> bool {
        self.complete || self.comparison.is_some() || !self.only.is_empty()
    }

    fn form(&self) -> Form {
        match (self.published, self.quick) {
            (true, false) => Form::Published,
            (true, true) => Form::PublishedQuick,
            (false, true) => Form::Quick,
            (false, false) if self.is_complete() => Form::Complete,
            (false, false) => Form::Full,
        }
    }
}

/// The suite of a comparison of servers: one table, a cell for each, each compared with the first.
pub(crate) fn suite_of_servers((subjects, load): (&[Subject], &PlannedLoad)) -> PlannedSuite {
    let builds = std::iter::once(BASE).chain(std::iter::repeat(HEAD));
    let words = described(subjects, load);
    let cells: Vec<PlannedCell> =
        subjects.iter().zip(builds).map(|(subject, build)| cell(subject, build, load, &words)).collect();
    let ids: Vec<String> = cells.iter().map(|cell| cell.id.clone()).collect();
    // The first pair is the control: the baseline with itself.
    let pairs = ids.iter().map(|id| PlannedPair { cells: [id.clone(), ids[0].clone()], no_duet: None });
    PlannedSuite {
        name: NAME.into(),
        question: "Which of these servers is faster?".into(),
        // As many as its budget has time for.
        rounds: 1,
        // The first units decide how a pair shares the CPUs; they are the warm-up.
        warmup_rounds: 0,
        tables: vec![PlannedTable {
            name: NAME.into(),
            title: match load.rate {
                None => format!("{words}: requests per second"),
                Some(_) => format!("{words}: half of the requests end within"),
            },
            metric: load.rate.map_or(Metric::OperationsPerSecond, |_| Metric::P50Latency),
            rows: AXIS.into(),
            columns: COLUMN.into(),
            row_values: ids.clone(),
            column_values: vec![words],
            cells: ids.clone(),
            baseline: Axes(vec![(AXIS.into(), ids[0].clone())]),
            notes: notes(subjects, load),
            ..PlannedTable::default()
        }],
        pairs: pairs.collect(),
        cells,
        ..PlannedSuite::default()
    }
}

fn notes(subjects: &[Subject], load: &PlannedLoad) -> Vec<String> {
    let mut notes = Vec::new();
    let elsewhere = || subjects.iter().filter_map(Subject::address);
    let hosts = elsewhere().filter_map(|address| Some(address.watched_on.as_ref()?.to_string()));
    let hosts: BTreeSet<String> = hosts.collect();
    if !hosts.is_empty() {
        let hosts = Vec::from_iter(hosts).join(", ");
        notes.push(format!(
            "the servers' CPU time is that of the processes that listen on their ports ({hosts}), read \
             before and after each client; their memory is not known"
        ));
    } else if elsewhere().next().is_some() {
        notes.push("the servers' CPU time and memory are not known: linerate did not start them".to_owned());
    }
    for address in elsewhere().filter(|address| !address.further.is_empty()) {
        let all = std::iter::once(&address.address).chain(&address.further);
        let all = all.map(ToString::to_string).collect::<Vec<_>>().join(", ");
        notes.push(format!("{}: connections go in turn to {all}", address.name));
    }
    // The client compares every byte of an echo.
    let note = match (load.has_tls(), load.size.is_some()) {
        (true, true) => Some("certificates are not verified"),
        (true, false) => Some("certificates are not verified, and responses are not compared"),
        (false, _) => load.streams.map(|_| "responses are not compared"),
    };
    notes.extend(note.map(str::to_owned));
    notes
}

/// The load in words, such as `GET /, 16 connections`.
fn described(subjects: &[Subject], load: &PlannedLoad) -> String {
    let have_own_paths = subjects.iter().any(|subject| subject.address().is_some());
    let asked = match (load.size, &load.requests[..]) {
        (Some(size), _) => format!("{} echo of {size} bytes", load.layer),
        (None, [one]) if load.are_calls => format!("gRPC {}", one.path.trim_start_matches('/')),
        (None, [one]) if have_own_paths => one.method.clone(),
        (None, [one]) => format!("{} {}", one.method, one.path),
        (None, several) => format!("{} different requests", several.len()),
    };
    let rate = match load.rate {
        None => String::new(),
        Some(PlannedRate::PerSecond(rate)) => format!(", {rate}/s"),
        Some(PlannedRate::Share(share)) => format!(", {} % of its capacity", share * 100.0),
    };
    let streams = load.streams.map_or_else(String::new, |streams| format!(" x {streams} streams"));
    format!("{asked}, {} connections{streams}{rate}", load.connections)
}

fn cell(subject: &Subject, build: &str, load: &PlannedLoad, words: &str) -> PlannedCell {
    let system = |role, name: &str, build: &str| PlannedSystem {
        role,
        name: name.into(),
        build: build.into(),
        ..PlannedSystem::default()
    };
    let server = subject.is_started_here().then(|| system(Role::Server, subject.name(), build));
    let client = system(Role::Client, VERIFIER, DEFAULT_BUILD);
    PlannedCell {
        id: subject.name().to_owned(),
        axes: Axes(vec![(AXIS.into(), subject.name().to_owned()), (COLUMN.into(), words.to_owned())]),
        layer: load.layer,
        workload: Workload::Rr,
        path: Shape::Loopback.into(),
        parameters: Parameters {
            seconds: Some(1),
            size: load.size,
            connections: Some(load.connections.into()),
            threads: Some(load.threads.into()),
            rate: load.rate.map(|rate| rate.per_second(None).unwrap_or(0)),
            ..Parameters::default()
        },
        verify: default_verify(),
        warmup: default_warmup(),
        pairs: load.rate.map(|_| Sharing::Alternating),
        systems: std::iter::once(client).chain(server).collect(),
        ..PlannedCell::default()
    }
}

/// Every trial of the run in order.
pub fn order(run: &Run) -> Vec<Step> {
    (0..run.suites.len()).flat_map(|suite| order_of(run, suite)).collect()
}

/// Every trial of a suite in order; a pure function of seed and suite, so a resumed run goes on in the same
/// order.
///
/// Warm-up rounds are first. Each odd round is a fresh shuffle of all cells, each even round the one before
/// it backwards: a steady drift of the machine then weighs the same on every cell.
pub fn order_of(run: &Run, index: usize) -> Vec<Step> {
    let suite = &run.suites[index];
    let mut random = Pcg64Mcg::seed_from_u64(run.seed.wrapping_add(index as u64));
    let rounds = (1..=suite.warmup_rounds).map(|r| (r, true)).chain((1..=suite.rounds).map(|r| (r, false)));
    let mut steps = if run.policy().is_sequential() { warm_units(suite, index) } else { Vec::new() };
    let mut last: Option<Vec<Step>> = None;
    for (round, warmup) in rounds {
        let all = match last.take() {
            Some(mut all) => {
                all.reverse();
                all
            }
            None => {
                let mut all: Vec<Step> = alone(suite, index).chain(duets(suite, index)).collect();
                all.shuffle(&mut random);
                last = Some(all.clone());
                all
            }
        };
        let units = units_in(run, suite);
        let before = (round - 1) * units;
        let is_due = |step: &Step| match warmup {
            true => step.sides.is_one(),
            false => step.number <= units && is_due_in(round, step, run, suite),
        };
        let mut due: Vec<Step> = all.into_iter().filter(is_due).collect();
        if steps.iter().all(|step| step.warmup && !step.sides.is_one()) {
            // Each cell has been alone before its pairs are measured: that decides how these share the CPUs.
            due.sort_by_key(|step| !step.sides.is_one());
        }
        steps.extend(due.into_iter().map(|step| {
            let number = if step.sides.is_one() { round } else { before + step.number };
            Step { round, number, warmup, ..step }
        }));
    }
    steps
}

/// A unit of each pair of a comparison: it decides how the pair shares the CPUs. A control has the sharing of
/// its baseline's pairs, and open loops have their own.
fn warm_units(suite: &PlannedSuite, index: usize) -> Vec<Step> {
    let first = duets(suite, index)
        .filter(|step| step.number == 1 && matches!(step.sides, Sides::Two([a, b]) if a != b));
    let first = first.filter(|step| !suite.cells[step.sides.cell()].is_paced_in_turns());
    first.map(|step| Step { warmup: true, ..step }).collect()
}

/// The first solo trial of each cell that can be tried.
fn alone(suite: &PlannedSuite, index: usize) -> impl Iterator<Item = Step> {
    let present = (0..suite.cells.len()).filter(|cell| suite.cells[*cell].absent.is_none());
    present.map(move |cell| Step::new(index, Sides::One(cell)))
}

/// The units of the first round: of each pair that can be measured in duet, and of each probe.
fn duets(suite: &PlannedSuite, index: usize) -> impl Iterator<Item = Step> {
    let pairs = suite.pairs.iter().filter(|pair| pair.no_duet.is_none());
    let pairs = pairs.filter_map(|pair| present(suite, pair)).map(Sides::Two);
    let probes = suite.probes.iter().filter(|probe| probe.no_probe.is_none());
    let probes = probes.filter_map(|probe| Some(Sides::Probed(index_of(suite, &probe.cell)?, probe.role)));
    let steps = pairs.chain(probes).map(move |sides| Step::new(index, sides));
    steps.flat_map(|step| (1..=UNITS_PER_ROUND).map(move |number| Step { number, ..step }))
}

/// The places of a pair's cells, if both can be tried.
fn present(suite: &PlannedSuite, pair: &PlannedPair) -> Option<[usize; 2]> {
    Some([index_of(suite, &pair.cells[0])?, index_of(suite, &pair.cells[1])?])
}

/// The place of a cell that can be tried.
fn index_of(suite: &PlannedSuite, id: &str) -> Option<usize> {
    suite.place(id).filter(|place| suite.cells[*place].absent.is_none())
}

/// The steps that a suite needs when `made` units of pairs of the run are made, in random order.
pub fn further(run: &Run, index: usize, needs: &[Need], made: usize) -> Vec<Step> {
    let suite = &run.suites[index];
    let is_present = |cell: usize| suite.cells[cell].absent.is_none();
    let needs = needs.iter().filter(|need| is_present(need.sides.cell()));
    let needs = needs.filter(|need| need.sides.beside().is_none_or(is_present));
    let mut steps: Vec<Step> = needs
        .map(|Need { sides, number }| Step {
            round: if sides.is_one() { *number } else { suite.rounds + 1 },
            number: *number,
            ..Step::new(index, *sides)
        })
        .collect();
    steps.shuffle(&mut Pcg64Mcg::seed_from_u64(run.seed.wrapping_add(index as u64) ^ (made as u64) << 32));
    if run.policy().is_sequential() {
        // All pairs get a unit before any gets the next one.
        steps.sort_by_key(|step| step.number);
    }
    steps
}
