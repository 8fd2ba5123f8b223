//! Two builds of a system, by the units of their duets: what changed, and what is still open. Pure.
//!
//! Each pair of cells has two readings: its rate, and its CPU time per operation. All readings of a run are
//! one family: Holm's procedure (1979) bounds the probability of any false difference. Readings are looked at
//! again and again ([`crate::stats::sequential`]). In a gate, a slowdown is a suspect first, and a second
//! series of fresh units confirms it (docs/decisions/0020-compare.md).

mod series;
pub mod stored;

use crate::measurement::{ComparisonKind, Duet, Metric, PlannedPair, Run, Trial, pair_id};
use crate::stats::duet::{log_cpu_ratio, log_ratio};
use crate::stats::estimate::median;
use crate::stats::ratio::RatioEstimate;
use crate::stats::sequential;
use crate::stats::verdict::{Verdict, control_fails};
use crate::summary::{Comparison, DuetReport, rounded_unit};
use linerate_contract::Role;
pub use series::{Confirmation, Reading};
use series::{Looks, PairSeries, Rules};

/// The probability of a false difference anywhere in the run, before suspects are confirmed.
pub const ALPHA: f64 = 0.05;

/// What a run shows so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    pub pairs: Vec<JudgedPair>,
    /// The base in duet with itself: the ratio, its interval, and its units.
    pub control: Option<RatioEstimate>,
    /// The control differs from itself, so no pair has a verdict.
    pub is_void: bool,
    /// The standard deviation of a unit's log ratio, the median over the pairs.
    pub spread: Option<f64>,
    /// Readings of the family.
    pub tests: usize,
}

/// The two builds in one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedPair {
    pub suite: String,
    /// Ids of the two cells: head and base.
    pub cells: [String; 2],
    pub metric: Metric,
    /// Rate of head by that of base in each unit of which both sides succeeded, and the number of all units.
    pub ratios: Vec<f64>,
    pub tried: u32,
    /// Time of its units.
    pub seconds: f64,
    pub rate: Option<Reading>,
    /// Performance by CPU time per operation of all roles, or of the server alone where commands are
    /// compared: below 1, head needs more.
    pub cpu: Option<Reading>,
}

impl JudgedPair {
    #[must_use]
    pub fn id(&self) -> String {
        pair_id([&self.cells[0], &self.cells[1]])
    }

    /// Units of which both sides succeeded.
    #[must_use]
    pub fn units(&self) -> u32 {
        self.ratios.len() as u32
    }

    /// What the tables show of it, in place of the `fixed` comparison, whose interval is that of a number of
    /// units that is fixed beforehand. `None` without a unit. `verdict`: of a cell that failed, which has no
    /// other.
    #[must_use]
    pub fn in_table(&self, fixed: Comparison, verdict: Option<Verdict>) -> Option<Comparison> {
        let rate = self.rate?;
        let cost = |ratio: f64| 1.0 / ratio;
        let duet = DuetReport {
            contradicted_by: None,
            strangers: None,
            cpu_ratio: self.cpu.map(|cpu| cost(cpu.ratio)),
            cpu_ci95: self.cpu.and_then(|cpu| cpu.interval).map(|[low, high]| [cost(high), cost(low)]),
            cpu_verdict: self.cpu.map(|cpu| cpu.verdict),
            sharing: fixed.duet.and_then(|duet| duet.sharing),
        };
        Some(Comparison {
            with: fixed.with,
            ratio: rate.ratio,
            ci95: rate.interval.unwrap_or(rate.range),
            ci90: None,
            difference: None,
            p: None,
            q: None,
            smallest_detectable: None,
            n: self.units(),
            units: self.ratios.iter().copied().map(rounded_unit).collect(),
            verdict: verdict.unwrap_or(rate.verdict),
            duet: Some(duet),
        })
    }

    /// Further units would not change its verdict.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        let readings = || [self.rate.as_ref(), self.cpu.as_ref()].into_iter().flatten();
        let is_slower = readings().any(|reading| reading.verdict == Verdict::Slower);
        self.rate.is_some() && (is_slower || readings().all(|reading| reading.is_decided))
    }

    /// A slowdown waits for its second series.
    #[must_use]
    pub fn is_suspect(&self) -> bool {
        let readings = [self.rate.as_ref(), self.cpu.as_ref()];
        readings.into_iter().flatten().any(|reading| reading.confirmation == Some(Confirmation::Pending))
    }

    /// The verdict on the cell as a whole: slower where either reading is, and open where either is.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let of = |reading: &Option<Reading>| reading.as_ref().map(|reading| reading.verdict);
        match (of(&self.rate), of(&self.cpu)) {
            (None, _) => Verdict::CannotTell,
            (Some(rate), None) => rate,
            // A faster system may use more CPU time for it.
            (Some(Verdict::Faster), Some(Verdict::Slower)) => Verdict::Faster,
            (Some(rate), Some(cpu)) => rate.worse(cpu),
        }
    }
}

/// Judges the units of a comparison in the journal; `None` for a run that compares no builds.
#[must_use]
pub fn judge(run: &Run, trials: &[Trial], duets: &[Duet]) -> Option<Judgement> {
    judge_until(run, trials, duets, u32::MAX)
}

/// Judges the units up to `last`.
pub(crate) fn judge_until(run: &Run, trials: &[Trial], duets: &[Duet], last: u32) -> Option<Judgement> {
    let plan = run.comparison.as_ref()?;
    let until = |duet: &&Duet| duet.warmup || duet.unit <= last;
    let duets: Vec<&Duet> = duets.iter().filter(until).collect();
    let measured = || duets.iter().copied().filter(|duet| !duet.warmup && duet.probe.is_none());
    let planned = || run.suites.iter().flat_map(|suite| suite.pairs.iter().map(move |pair| (suite, pair)));
    let is_compared = |pair: &PlannedPair| pair.cells[0] != pair.cells[1] && pair.no_duet.is_none();
    let compared: Vec<_> = planned().filter(|(_, pair)| is_compared(pair)).collect();
    let tests = 2 * compared.len();
    let looks = Looks::of(run, trials, &duets);
    let units_of = |suite: &str, cells: &[String; 2]| {
        measured().filter(|duet| duet.suite == suite && duet.cells == *cells).collect::<Vec<_>>()
    };
    let (mut pairs, mut series) = (Vec::new(), Vec::new());
    for (suite, pair) in &compared {
        let tables = &suite.tables;
        let table = tables.iter().find(|table| table.cells.contains(&pair.cells[0]));
        let metric = table.map_or(Metric::OperationsPerSecond, |table| table.metric);
        let units = units_of(&suite.name, &pair.cells);
        let spins = suite.cells.iter().filter(|cell| pair.cells.contains(&cell.id));
        let spins = spins.flat_map(|cell| &cell.systems).any(|system| system.spins);
        // A command is a server, and the client is linerate's own.
        let role = plan.commands.as_ref().map(|_| Role::Server);
        let cpu = |duet: &Duet| log_cpu_ratio(duet, metric, role).filter(|_| !spins).map(|log| -log);
        series.push(PairSeries::of(&units, |duet| log_ratio(duet, metric)));
        series.push(PairSeries::of(&units, cpu));
        pairs.push(JudgedPair {
            suite: suite.name.clone(),
            cells: pair.cells.clone(),
            metric,
            ratios: units.iter().filter_map(|duet| log_ratio(duet, metric)).map(f64::exp).collect(),
            tried: units.len() as u32,
            seconds: units.iter().map(|duet| duet.time().as_secs_f64()).sum(),
            rate: None,
            cpu: None,
        });
    }
    let control = planned().find(|(_, pair)| pair.cells[0] == pair.cells[1]).and_then(|(suite, pair)| {
        let logs = units_of(&suite.name, &pair.cells);
        RatioEstimate::of(logs.into_iter().filter_map(|duet| log_ratio(duet, Metric::OperationsPerSecond)))
    });
    let is_void = control.and_then(|c| c.ci95).is_some_and(|ci95| control_fails(ci95, plan.margin));
    let spread = median(series.iter().step_by(2).filter_map(PairSeries::spread));
    let found = series::holm(&series, &looks, tests);
    let is_gate = plan.kind == ComparisonKind::Gate;
    let rules = Rules { bounds: looks.bounds(), margin: plan.margin, is_gate, is_void };
    let mut readings = series.iter().zip(found).map(|(series, found)| series.reading(&looks, found, &rules));
    for pair in &mut pairs {
        (pair.rate, pair.cpu) = (readings.next().flatten(), readings.next().flatten());
    }
    Some(Judgement { pairs, control, is_void, spread, tests })
}

impl Judgement {
    /// The smallest relative slowdown that `units` of each pair find in 90 % of runs; `None` without a
    /// spread, or where the units cannot show any difference.
    #[must_use]
    pub fn detectable(&self, units: f64) -> Option<f64> {
        detectable(self.spread?, units, self.tests)
    }
}

/// The smallest relative slowdown that `units` of each pair find in 90 % of runs, in a family of `tests`
/// readings; `None` where there are too few units for any.
#[must_use]
pub fn detectable(spread: f64, units: f64, tests: usize) -> Option<f64> {
    let alpha = ALPHA / tests.max(1) as f64;
    (units >= f64::from(sequential::fewest(alpha))).then(|| sequential::detectable(spread, units, alpha, 0.9))
}

/// The fewest units of each pair that can show a difference, in a family of `tests` readings.
#[must_use]
pub fn fewest(tests: usize) -> u32 {
    sequential::fewest(ALPHA / tests.max(1) as f64)
}
