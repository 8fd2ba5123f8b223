//! The trials of a run and their order. No other module decides about the order.

mod builds;
mod only;
mod pairs;
mod probes;

pub(crate) use builds::origin;

use crate::error::Error;
use crate::measurement::{PlannedComparison, PlannedPair, PlannedSuite, Run, Sides};
use crate::stopping::{Need, has_control};
use crate::suite::{Form, Suite};
use crate::system::Registry;
use linerate_contract::nearest::nearest;
use only::{Only, Pattern};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeSet;
use std::time::Duration;

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

/// The chosen cells of the suites, in order; versions are unknown until [`crate::programs::resolve`].
///
/// # Errors
/// Suites that do not fit together, or a pattern that matches no cell.
pub fn suites(suites: &[Suite], registry: &Registry, choice: &Choice) -> Result<Vec<PlannedSuite>, Error> {
    let only = Only::new(&choice.only)?;
    let (mut planned, mut all) = (Vec::new(), Vec::new());
    for suite in suites.iter().filter(|suite| !choice.published || suite.has_published()) {
        let mut expanded = suite.expand(registry, choice.form())?;
        all.extend(expanded.cells.iter().map(|cell| (suite.name.clone(), cell.id.clone())));
        if let Some(rounds) = choice.rounds {
            expanded.rounds = rounds;
            expanded.precision = None;
        }
        let is_chosen = |id: &str| only.has(&suite.name, id);
        let has_chosen = expanded.cells.iter().any(|cell| is_chosen(&cell.id));
        match &choice.comparison {
            None => only.keep(&mut expanded),
            Some(comparison) => {
                // Its units end by its own rule.
                expanded.precision = None;
                builds::split(&mut expanded, registry, comparison, is_chosen)?;
            }
        }
        expanded.pairs = pairs::plan_pairs(&expanded, registry);
        if choice.probe {
            expanded.probes = probes::plan_probes(&expanded, registry);
        }
        if has_chosen {
            planned.push(expanded);
        }
    }
    if all.is_empty() && choice.published {
        let names: Vec<&str> = suites.iter().map(|suite| suite.name.as_str()).collect();
        return Err(Error::Input(format!(
            "--published: {} has no table that repeats a document's; without it there are others",
            names.join(", ")
        )));
    }
    if let Some(pattern) = only.first_without(&all) {
        return Err(Error::Input(no_such_cell(pattern, &all, suites, registry)?));
    }
    if let Some(comparison) = &choice.comparison {
        builds::check(&planned, registry, comparison)?;
    }
    // The first table is ready early: suites with the fewest systems to build come first.
    let is_first = |name: &str| suites.iter().any(|suite| suite.name == name && suite.file.first);
    planned.sort_by_key(|suite| (built_systems(suite, registry).len(), !is_first(&suite.name)));
    Ok(planned)
}

/// Why a pattern chooses nothing, and what to do.
fn no_such_cell(
    pattern: &Pattern<'_>,
    all: &[(String, String)],
    suites: &[Suite],
    registry: &Registry,
) -> Result<String, Error> {
    let mut complete = Vec::new();
    for suite in suites {
        let cells = suite.expand(registry, Form::Complete)?.cells;
        complete.extend(cells.into_iter().map(|cell| (suite.name.clone(), cell.id)));
    }
    let text = pattern.text;
    if pattern.is_in(&complete) {
        return Ok(format!(
            "--only {text}: no cell of this form has such an id; \
             without --quick and --published there is one"
        ));
    }
    let ids = all.iter().chain(&complete).map(|(_, id)| id.as_str());
    let next = nearest(text, ids)
        .map_or("`linerate list cells` shows them".to_owned(), |id| format!("nearest: {id:?}"));
    Ok(format!("--only {text}: no cell has such an id; {next}"))
}

/// The systems of a suite that linerate builds itself.
pub(crate) fn built_systems<'r>(suite: &PlannedSuite, registry: &'r Registry) -> BTreeSet<&'r str> {
    let systems = suite.cells.iter().flat_map(|cell| &cell.systems);
    let systems = systems.filter_map(|system| Some(registry.variant(&system.name, system.role).ok()?.system));
    systems.filter(|system| system.manifest.build.is_some()).map(|system| system.name.as_str()).collect()
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
