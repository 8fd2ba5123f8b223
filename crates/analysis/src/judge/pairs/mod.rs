//! Two builds of a system, by the units of their duets: what changed, and what is still open. Pure.
//!
//! Each pair of cells has two findings: its rate, and its CPU time per operation. Where a role is saturated
//! the second is first, and decides (docs/decisions/cpu-time.md). An open loop has its latencies in
//! place of the rate (docs/decisions/latency.md). All findings of a run are one family: Holm's procedure
//! (1979) bounds the probability of any false difference. Findings are looked at again and again
//! ([`crate::stats::sequential`]), and a large difference needs three units ([`crate::stats::early`]). In a
//! gate, a slowdown is a suspect first, and a second series of fresh units confirms it
//! (docs/decisions/comparisons.md).

mod finding;
mod leading;
mod load;
mod pair;
mod requests;
mod second;
mod series;
pub mod stored;

pub use finding::{Confirmation, Finding, Findings, Measure};
pub use pair::{FailedUnit, JudgedPair, Obstacle, OfferedLoad};
pub use requests::{RequestFinding, by_request};
pub use second::SecondLoad;

use super::{Alone, CellSummary, SortedJournal};
use crate::stats::cost::Per;
use crate::stats::duet::{latencies, log_cpu_ratio, log_cpu_ratio_of, log_ratio, log_ratio_of};
use crate::stats::estimate::median;
use crate::stats::ratio::RatioEstimate;
use crate::stats::sequential;
use crate::stats::verdict::control_fails;
use leading::{Leading, few_trials};
use linerate_contract::Role;
use linerate_model::{
    Better, LatencyMargin, Metric, Outcome, PlannedComparison, PlannedPair, PlannedSuite, Run, SideWindow,
    Sides, Unit,
};
use series::{Crossing, Looks, PairSeries, Rules};

/// The probability of a false difference anywhere in the run, before suspects are confirmed.
pub const ALPHA: f64 = 0.05;

/// All findings of a run so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    pub pairs: Vec<JudgedPair>,
    /// The base in duet with itself: the ratio, its interval, and its units.
    pub control: Option<RatioEstimate>,
    /// The control differs from itself, so no pair has a verdict.
    pub is_void: bool,
    /// The standard deviation of a unit's log ratio, the median over the pairs.
    pub spread: Option<f64>,
    /// Findings of the family.
    pub tests: usize,
}

/// Judges the units of a comparison in the journal; `None` for a run that compares no builds.
pub fn judge(run: &Run, units: &[Unit]) -> Option<Judgement> {
    judge_until(run, units, u32::MAX)
}

/// Judges the units of pairs up to `last`.
pub(crate) fn judge_until(run: &Run, units: &[Unit], last: u32) -> Option<Judgement> {
    let plan = run.policy().verdict()?;
    let is_until = |unit: &&Unit| unit.warmup || unit.sides.is_one() || unit.number <= last;
    let units: Vec<&Unit> = units.iter().filter(is_until).collect();
    let journal = SortedJournal::sort(run, units.iter().copied());
    let pairs: Vec<Place<'_>> =
        run.suites.iter().enumerate().flat_map(|(index, suite)| Place::pairs(index, suite)).collect();
    let compared = pairs.iter().filter(|place| !place.is_control() && place.pair.no_duet.is_none());
    let compared: Vec<Compared<'_>> = compared.map(|place| Compared::new(*place, plan, &journal)).collect();
    let control = pairs.iter().find(|place| place.is_control());
    let control = control.and_then(|place| Control::new(*place, &place.units(&journal), plan));
    let is_void = control.as_ref().is_some_and(Control::fails);
    let series: Vec<&PairSeries> =
        compared.iter().flat_map(|pair| &pair.series).map(|(_, one)| one).collect();
    let tests = series.len();
    let looks = Looks::from_run(run, &units);
    let rules = Rules::new(plan, &looks, tests, is_void);
    let mut crossings = series::holm(&series, &looks, tests).into_iter();
    let mut second_loads = second::judge(&compared, &journal, &looks, &rules).into_iter();
    let spread = median(compared.iter().filter_map(|pair| pair.series[0].1.spread()).collect::<Vec<_>>());
    let judged = |pair: Compared<'_>| {
        let of_pair = crossings.by_ref().take(pair.series.len()).collect::<Vec<_>>();
        let second_load = second_loads.next().flatten();
        let pair = pair.judged(plan, &looks, &of_pair, &rules);
        let second_load = second_load.map(|second| second.beside(pair.findings.rate()));
        JudgedPair { second_load, ..pair }
    };
    let pairs = compared.into_iter().map(judged).collect();
    Some(Judgement { pairs, control: control.map(|control| control.estimate), is_void, spread, tests })
}

/// A pair of the plan, with the indices of its suite and of its cells.
#[derive(Clone, Copy)]
struct Place<'a> {
    index: usize,
    suite: &'a PlannedSuite,
    pair: &'a PlannedPair,
    cells: [usize; 2],
}

impl<'a> Place<'a> {
    fn pairs(index: usize, suite: &'a PlannedSuite) -> impl Iterator<Item = Self> {
        let place = move |pair| Some(Self { index, suite, pair, cells: suite.places(pair)? });
        suite.pairs.iter().filter_map(place)
    }

    fn is_control(&self) -> bool {
        self.cells[0] == self.cells[1]
    }

    /// The measured units of the place.
    fn units(&self, journal: &SortedJournal<'a>) -> Vec<&'a Unit> {
        journal.measured(self.index, Sides::Two(self.cells)).collect()
    }

    /// Open loops that alternate.
    fn is_paced(&self) -> bool {
        self.suite.cells[self.cells[0]].is_paced_in_turns()
    }
}

/// The base in duet with itself.
struct Control {
    estimate: RatioEstimate,
    margin: f64,
}

impl Control {
    fn new(place: Place<'_>, units: &[&Unit], plan: &PlannedComparison) -> Option<Self> {
        let (metric, margin) = match (place.is_paced(), plan.latency_margin) {
            (false, _) => (Metric::OperationsPerSecond, plan.margin),
            (true, LatencyMargin::Share(margin)) => (Metric::P50Latency, margin),
            (true, LatencyMargin::Microseconds(_)) => (Metric::P50Latency, plan.margin),
        };
        let logs = units.iter().filter_map(|unit| log_ratio(unit, metric));
        Some(Self { estimate: RatioEstimate::from_logs(logs)?, margin })
    }

    fn fails(&self) -> bool {
        self.estimate.ci95.is_some_and(|ci95| control_fails(ci95, self.margin))
    }
}

/// A pair, and its units by each measure.
struct Compared<'a> {
    place: Place<'a>,
    metric: Metric,
    units: Vec<&'a Unit>,
    /// Head and base in their trials alone.
    alone: [CellSummary<'a>; 2],
    leading: Leading,
    /// The roles whose CPU time is compared; empty: all.
    cpu_of: Vec<Role>,
    series: Vec<(Measure, PairSeries)>,
}

impl<'a> Compared<'a> {
    fn new(place: Place<'a>, plan: &PlannedComparison, journal: &SortedJournal<'a>) -> Self {
        let Place { index, suite, pair, cells } = place;
        let table = suite.tables.iter().find(|table| table.cells.contains(&pair.cells[0]));
        let metric = table.map_or(Metric::OperationsPerSecond, |table| table.metric);
        let units = place.units(journal);
        let alone = cells
            .map(|cell| CellSummary::from_units(suite, cell, journal.units(index, Sides::One(cell)), metric));
        let leading = Leading::find(alone.each_ref(), plan);
        let has_cpu = |roles: &[Role]| units.iter().any(|unit| log_cpu_ratio(unit, metric, roles).is_some());
        // The CPU time of a server elsewhere is not known, and that of the client says nothing about it.
        let is_known = plan.role().is_some() || has_cpu(&leading.subject);
        let cpu_of = if is_known { leading.subject.clone() } else { Vec::new() };
        let spins = alone
            .iter()
            .flat_map(|cell| &cell.planned.systems)
            .any(|system| system.spins && (cpu_of.is_empty() || cpu_of.contains(&system.role)));
        let cpu = |sides: &[SideWindow; 2]| {
            log_cpu_ratio_of(sides, metric, &cpu_of).filter(|_| !spins).map(|log| -log)
        };
        let mut series = Vec::new();
        if place.is_paced() {
            let latency =
                |measure: Measure| Some((measure, PairSeries::of_latency(&units, measure.latency()?)));
            series.extend(Measure::LATENCIES.into_iter().filter_map(latency));
        } else {
            series.push((Measure::Rate, PairSeries::from_units(&units, |sides| log_ratio_of(sides, metric))));
        }
        series.push((Measure::Cpu, PairSeries::from_units(&units, cpu)));
        Self { place, metric, units, alone, leading, cpu_of, series }
    }

    fn judged(
        self,
        plan: &PlannedComparison,
        looks: &Looks,
        crossings: &[Option<Crossing>],
        rules: &Rules,
    ) -> JudgedPair {
        let of_measure = self.series.iter().zip(crossings);
        let findings = of_measure.filter_map(|((measure, series), crossing)| {
            self.with_values(series.finding(*measure, looks, *crossing, rules)?)
        });
        let findings = Findings(findings.collect());
        let (rate, cpu) = (findings.rate(), findings.cpu());
        let is_cpu_first = self.leading.is_cpu_first() && rate.is_some() && cpu.is_some();
        let hints_at_none = rate.is_some_and(|rate| rate.ratio >= 1.0 - plan.margin);
        let [head, base] = &self.alone;
        let ratios = self.units.iter().filter_map(|unit| log_ratio(unit, self.metric));
        let ratios: Vec<f64> = ratios.map(f64::exp).collect();
        JudgedPair {
            suite: self.place.index,
            places: self.place.cells,
            metric: self.metric,
            tried: self.units.len() as u32,
            // The sum of no numbers is -0.0.
            seconds: self.units.iter().map(|unit| unit.time().as_secs_f64()).fold(0.0, |all, one| all + one),
            cpu_alone: [head, base].map(|cell| self.cpu_alone(cell)),
            alone: few_trials([head, base], &self.units, self.metric),
            is_cpu_first,
            client_is_limit: self.client_is_limit(),
            is_by_cpu: is_cpu_first && hints_at_none,
            is_paced: self.place.is_paced(),
            load: head
                .planned
                .parameters
                .rate
                .filter(|_| self.place.is_paced())
                .map(|per_second| load::offered(per_second, plan.rate, head.planned.capacity, &self.units)),
            second_load: None,
            obstacle: self.obstacle(ratios.len(), rules.is_void),
            cpu_of: self.cpu_of,
            ratios,
            findings,
        }
    }

    /// At a fixed rate the client waits for the time of a request, often with its CPU.
    fn client_is_limit(&self) -> bool {
        self.leading.client_is_limit && !self.place.is_paced()
    }

    fn cpu_alone(&self, cell: &CellSummary<'_>) -> Option<Alone> {
        cell.cost(Per::from_metric(self.metric), &self.cpu_of).map(Alone::from)
    }

    /// A finding with the value of base. `None` for a latency that base has nowhere.
    fn with_values(&self, found: Finding) -> Option<Finding> {
        let base = &self.alone[1];
        let by = |metric: Metric| median(base.values(metric).into_values());
        match (found.measure, found.measure.latency()) {
            (_, Some(metric)) => {
                // A trial alone is one, and may have stalls that the ratio of the units has not.
                let of_units = median(self.units.iter().filter_map(|unit| Some(latencies(unit, metric)?[1])));
                Some(found.with_base(of_units.or_else(|| by(metric))?, |ratio| ratio))
            }
            (Measure::Cpu, _) => {
                Some(self.cpu_alone(base).map_or(found, |alone| found.with_base(alone.value, |ratio| ratio)))
            }
            _ => {
                let scale =
                    |rate: f64| if self.metric.better() == Better::Higher { rate } else { rate.recip() };
                let found = if self.client_is_limit() { found.limited() } else { found };
                Some(by(self.metric).map_or(found, |base| found.with_base(base, scale)))
            }
        }
    }

    /// Why the findings have no say: a cell that failed alone, units that failed, or the control.
    fn obstacle(&self, good: usize, is_void: bool) -> Option<Obstacle> {
        if let Some(side) = self.alone.iter().position(|cell| !cell.is_ok()) {
            return Some(Obstacle::Lost { side, outcome: self.alone[side].outcome });
        }
        if !self.units.is_empty() && good * 10 < self.units.len() * 9 {
            let mut failed = self.units.iter().filter(|unit| matches!(unit.outcome, Outcome::Failed { .. }));
            let last = failed.next_back();
            return Some(Obstacle::Units {
                failed: (self.units.len() - good) as u32,
                last: last.and_then(|unit| {
                    Some(FailedUnit { outcome: unit.outcome.clone(), sharing: unit.together()?.sharing })
                }),
            });
        }
        is_void.then_some(Obstacle::Control)
    }
}

impl Judgement {
    /// The pairs of a suite, by its index.
    pub fn pairs_of(&self, suite: usize) -> impl Iterator<Item = &JudgedPair> {
        self.pairs.iter().filter(move |pair| pair.suite == suite)
    }

    /// The smallest relative slowdown that `units` of each pair find in 90 % of runs; `None` without a
    /// spread, or where the units cannot show any difference.
    pub fn detectable(&self, units: f64) -> Option<f64> {
        detectable(self.spread?, units, self.tests)
    }
}

/// The smallest relative slowdown that `units` of each pair find in 90 % of runs, in a family of `tests`
/// findings; `None` where there are too few units for any.
pub fn detectable(spread: f64, units: f64, tests: usize) -> Option<f64> {
    let alpha = ALPHA / tests.max(1) as f64;
    (units >= f64::from(sequential::fewest(alpha))).then(|| sequential::detectable(spread, units, alpha, 0.9))
}

/// The fewest units of each pair that can show a difference, in a family of `tests` findings.
pub fn fewest(tests: usize) -> u32 {
    sequential::fewest(ALPHA / tests.max(1) as f64)
}

#[cfg(test)]
mod tests;
