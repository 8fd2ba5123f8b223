//! Two builds of a system, by the units of their duets: what changed, and what is still open. Pure.
//!
//! Each pair of cells has two readings: its rate, and its CPU time per operation. Where a role is saturated
//! the second is first, and decides (docs/decisions/0047-cpu-first.md). An open loop has its latencies in
//! place of the rate (docs/decisions/0041-latency.md). All readings of a run are one family: Holm's procedure
//! (1979) bounds the probability of any false difference. Readings are looked at again and again
//! ([`crate::stats::sequential`]), and a large difference needs three units ([`crate::stats::early`]). In a
//! gate, a slowdown is a suspect first, and a second series of fresh units confirms it
//! (docs/decisions/0020-compare.md).

mod leading;
mod series;
pub mod stored;

use crate::stats::cost::Per;
use crate::stats::difference::LatencyDifference;
use crate::stats::duet::{latencies, log_cpu_ratio, log_cpu_ratio_of, log_ratio, log_ratio_of};
use crate::stats::early;
use crate::stats::estimate::median;
use crate::stats::ratio::RatioEstimate;
use crate::stats::sequential;
use crate::stats::verdict::{Verdict, control_fails};
use crate::summary::{Alone, CellSummary, Comparison, DuetReport, SoloRatio, SortedJournal, rounded_unit};
use leading::{Leading, few_trials};
use linerate_contract::Role;
use linerate_model::{
    ComparisonKind, DecidingPercentile, Duet, LatencyMargin, Metric, PlannedComparison, PlannedPair,
    PlannedSuite, Run, SideWindow, Trial, pair_id,
};
pub use series::{Confirmation, Reading};
use series::{Looks, PairSeries, Rules};

/// The probability of a false difference anywhere in the run, before suspects are confirmed.
pub const ALPHA: f64 = 0.05;

/// What open loops are compared by.
const LATENCIES: [Metric; 5] =
    [Metric::P50Latency, Metric::P90Latency, Metric::MeanLatency, Metric::P99Latency, Metric::P999Latency];

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
    /// The latencies of an open loop, which has no `rate`.
    pub latency: Vec<LatencyReading>,
    /// Performance by CPU time per operation of the subject, or of all roles where the kernel does its work:
    /// below 1, head needs more.
    pub cpu: Option<Reading>,
    /// The roles whose CPU time it is; empty: all.
    pub cpu_of: Vec<Role>,
    /// The same CPU time of head and base in their trials alone, in microseconds per operation or megabyte.
    pub cpu_alone: [Option<Alone>; 2],
    /// The ratio of one or two trials alone; more are compared like those of any cell.
    pub alone: Option<SoloRatio>,
    /// A role used a CPU all the time in the trials alone: the CPU time is the first reading.
    pub is_cpu_first: bool,
    /// The client did, so that equal rates show nothing about the subject.
    pub client_is_limit: bool,
    /// The CPU time decides, and the rate hints at no slowdown that matters.
    pub is_by_cpu: bool,
}

/// A latency of an open loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyReading {
    pub metric: Metric,
    /// Head and base in microseconds: that of base in its trials alone, and that by the ratio.
    pub us: [f64; 2],
    pub reading: Reading,
    /// How much longer it is in head, by the ratio; `None`: too few units.
    pub difference: Option<LatencyDifference>,
    /// A pair is open while this is. The others count only where they are certain to be slower: within
    /// minutes the mean and the percentiles of rare operations seldom are.
    pub decides: bool,
}

impl LatencyReading {
    /// `base`: its latency, by which the ratio becomes microseconds.
    fn from_base(metric: Metric, base: f64, reading: Reading, decides: bool) -> Self {
        let difference =
            reading.interval.and_then(|ci95| LatencyDifference::from_ratio(reading.ratio, ci95, base));
        Self { metric, us: [base / reading.ratio, base], reading, difference, decides }
    }
}

/// A cell by its trials alone; `None` where it is not planned.
fn alone<'a>(
    suite: &'a PlannedSuite,
    id: &str,
    journal: &SortedJournal<'a>,
    metric: Metric,
) -> Option<CellSummary<'a>> {
    let planned = suite.cells.iter().find(|cell| cell.id == id)?;
    Some(CellSummary::from_trials(planned, journal.cell(&suite.name, id), metric))
}

impl JudgedPair {
    pub fn id(&self) -> String {
        pair_id([&self.cells[0], &self.cells[1]])
    }

    /// Units of which both sides succeeded.
    pub fn units(&self) -> u32 {
        self.ratios.len() as u32
    }

    /// What the tables show of it, in place of the `fixed` comparison, whose interval is that of a number of
    /// units that is fixed beforehand. `None` without a unit. `verdict`: of a cell that failed, which has no
    /// other.
    pub fn in_table(&self, fixed: Comparison, verdict: Option<Verdict>) -> Option<Comparison> {
        let main = self.main().next()?;
        let cost = |ratio: f64| 1.0 / ratio;
        let interval = main.interval;
        // A ratio of latencies is none of a table of rates.
        let is_by_metric = self.latency.is_empty() || LATENCIES.contains(&self.metric);
        let denies = |alone: &SoloRatio| interval.is_some_and(|ci95| alone.denies(main.ratio, ci95));
        let denied = fixed.denied_by().or(self.alone).filter(denies);
        let difference = self.latency.first().map_or(main.difference, |latency| latency.difference);
        let duet = DuetReport {
            doubted_by: denied,
            cpu_of: self.cpu_of.clone(),
            with_cpu_us: self.cpu_alone[1].map(|alone| alone.value).filter(|_| self.cpu.is_some()),
            cpu_ratio: self.cpu.map(|cpu| cost(cpu.ratio)),
            cpu_ci95: self.cpu.and_then(|cpu| cpu.interval).map(|[low, high]| [cost(high), cost(low)]),
            cpu_verdict: self.cpu.map(|cpu| cpu.verdict),
            cpu_first: self.is_cpu_first,
            sharing: fixed.duet.and_then(|duet| duet.sharing),
            ..DuetReport::default()
        };
        Some(Comparison {
            with: fixed.with,
            with_value: fixed.with_value.filter(|_| is_by_metric),
            ratio: main.ratio,
            ci95: interval.unwrap_or(main.range),
            ci95_is_range: interval.is_none(),
            ci90: None,
            difference,
            p: None,
            q: None,
            smallest_detectable: None,
            n: self.units(),
            units: self.ratios.iter().copied().map(rounded_unit).collect(),
            verdict: verdict.unwrap_or(main.verdict),
            autocorrelation: fixed.autocorrelation,
            client_is_limit: self.client_is_limit && main.verdict == Verdict::CannotTell,
            duet: Some(duet),
        })
    }

    /// Further units would not change its verdict.
    pub fn is_decided(&self) -> bool {
        // Where latencies were asked for, more CPU time alone is no answer.
        let deciding = || self.main().chain(self.cpu.iter().filter(|_| !self.is_paced()));
        let is_slower = deciding().any(|reading| reading.verdict == Verdict::Slower);
        let is_done = match self.cpu.filter(|_| self.is_by_cpu) {
            Some(cpu) => cpu.is_decided,
            None => deciding().all(|reading| reading.is_decided),
        };
        let is_faster = self.main_verdict() == Some(Verdict::Faster);
        self.is_read() && (is_slower || (is_done || is_faster) && !self.is_suspect())
    }

    /// Open loops, whose latencies are asked for. CPU time at a fixed rate contains wake-ups, and has three
    /// times the spread: it counts where it is certain to be more.
    fn is_paced(&self) -> bool {
        !self.latency.is_empty()
    }

    /// It has a rate, or a latency.
    pub fn is_read(&self) -> bool {
        self.main().next().is_some()
    }

    /// All readings.
    pub fn readings(&self) -> impl Iterator<Item = &Reading> {
        self.rate.iter().chain(self.latency.iter().map(|latency| &latency.reading)).chain(&self.cpu)
    }

    /// The rate, or the latencies that decide.
    fn main(&self) -> impl Iterator<Item = &Reading> {
        let deciding = self.latency.iter().filter(|latency| latency.decides);
        self.rate.iter().chain(deciding.map(|latency| &latency.reading))
    }

    /// The verdict on the rate, or on the latencies together.
    pub fn main_verdict(&self) -> Option<Verdict> {
        let is_slower = self.latency.iter().any(|latency| latency.reading.verdict == Verdict::Slower);
        let main = self.main().map(|reading| reading.verdict).reduce(Verdict::worse);
        if is_slower { Some(Verdict::Slower) } else { main }
    }

    /// A slowdown waits for its second series.
    pub fn is_suspect(&self) -> bool {
        self.readings().any(|reading| reading.confirmation == Some(Confirmation::Pending))
    }

    /// The verdict on the cell as a whole: slower where either reading is, and open where either is. A rate
    /// that is open leaves nothing open where the CPU time decides.
    pub fn verdict(&self) -> Verdict {
        let cpu = self.cpu.map(|reading| reading.verdict);
        match (self.main_verdict(), cpu.filter(|cpu| !self.is_paced() || *cpu == Verdict::Slower)) {
            (None, _) => Verdict::CannotTell,
            (Some(main), None) => main,
            // A faster system may use more CPU time for it, or as much.
            (Some(Verdict::Faster), _) => Verdict::Faster,
            (Some(Verdict::CannotTell), Some(cpu)) if self.is_by_cpu && !self.is_suspect() => cpu,
            (Some(main), Some(cpu)) if self.is_by_cpu => cpu.worse(main),
            (Some(main), Some(cpu)) => main.worse(cpu),
        }
    }
}

/// Judges the units of a comparison in the journal; `None` for a run that compares no builds.
pub fn judge(run: &Run, trials: &[Trial], duets: &[Duet]) -> Option<Judgement> {
    judge_until(run, trials, duets, u32::MAX)
}

/// Judges the units up to `last`.
pub(crate) fn judge_until(run: &Run, trials: &[Trial], duets: &[Duet], last: u32) -> Option<Judgement> {
    let plan = run.policy().verdict()?;
    let until = |duet: &&Duet| duet.warmup || duet.unit <= last;
    let duets: Vec<&Duet> = duets.iter().filter(until).collect();
    let measured = || duets.iter().copied().filter(|duet| !duet.warmup && duet.probe.is_none());
    let planned = || run.suites.iter().flat_map(|suite| suite.pairs.iter().map(move |pair| (suite, pair)));
    let is_compared = |pair: &PlannedPair| pair.cells[0] != pair.cells[1] && pair.no_duet.is_none();
    let compared: Vec<_> = planned().filter(|(_, pair)| is_compared(pair)).collect();
    let looks = Looks::from_run(run, trials, &duets);
    let journal = SortedJournal::sort(run, trials, &[]);
    let units_of = |suite: &str, cells: &[String; 2]| {
        measured().filter(|duet| duet.suite == suite && duet.cells == *cells).collect::<Vec<_>>()
    };
    let (mut pairs, mut series, mut spreads) = (Vec::new(), Vec::new(), Vec::new());
    for (suite, pair) in &compared {
        let tables = &suite.tables;
        let table = tables.iter().find(|table| table.cells.contains(&pair.cells[0]));
        let metric = table.map_or(Metric::OperationsPerSecond, |table| table.metric);
        let units = units_of(&suite.name, &pair.cells);
        let alone = pair.cells.each_ref().map(|id| alone(suite, id, &journal, metric));
        let leading = Leading::find(alone.each_ref().map(Option::as_ref), plan);
        let has_cpu = |roles: &[Role]| units.iter().any(|duet| log_cpu_ratio(duet, metric, roles).is_some());
        // The CPU time of a server elsewhere is not known, and that of the client says nothing about it.
        let is_known = plan.role().is_some() || has_cpu(&leading.subject);
        let roles = if is_known { leading.subject.as_slice() } else { &[] };
        let spins = suite.cells.iter().filter(|cell| pair.cells.contains(&cell.id));
        let mut spins = spins.flat_map(|cell| &cell.systems).filter(|system| system.spins);
        let spins = spins.any(|system| roles.is_empty() || roles.contains(&system.role));
        let cpu = |sides: &[SideWindow; 2]| {
            log_cpu_ratio_of(sides, metric, roles).filter(|_| !spins).map(|log| -log)
        };
        let main = match is_paced(suite, pair) {
            true => LATENCIES.map(|metric| PairSeries::of_latency(&units, metric)).into(),
            false => vec![PairSeries::from_units(&units, |sides| log_ratio_of(sides, metric))],
        };
        spreads.extend(main[0].spread());
        series.extend(main);
        series.push(PairSeries::from_units(&units, cpu));
        pairs.push(JudgedPair {
            suite: suite.name.clone(),
            cells: pair.cells.clone(),
            metric,
            ratios: units.iter().filter_map(|duet| log_ratio(duet, metric)).map(f64::exp).collect(),
            tried: units.len() as u32,
            seconds: units.iter().map(|duet| duet.time().as_secs_f64()).sum(),
            rate: None,
            latency: Vec::new(),
            cpu: None,
            cpu_of: roles.to_vec(),
            alone: few_trials(alone.each_ref().map(Option::as_ref), &units, metric),
            cpu_alone: alone.map(|cell| cell?.cost(Per::from_metric(metric), roles).map(Alone::from)),
            is_cpu_first: leading.is_cpu_first(),
            // At a fixed rate the client waits for the time of a request, often with its CPU.
            client_is_limit: leading.client_is_limit && !is_paced(suite, pair),
            is_by_cpu: false,
        });
    }
    let tests = series.len();
    let control = planned().find(|(_, pair)| pair.cells[0] == pair.cells[1]).and_then(|(suite, pair)| {
        let logs = units_of(&suite.name, &pair.cells);
        let (metric, margin) = match (is_paced(suite, pair), plan.latency_margin) {
            (false, _) => (Metric::OperationsPerSecond, plan.margin),
            (true, LatencyMargin::Share(margin)) => (Metric::P50Latency, margin),
            (true, LatencyMargin::Microseconds(_)) => (Metric::P50Latency, plan.margin),
        };
        Some((RatioEstimate::from_logs(logs.into_iter().filter_map(|duet| log_ratio(duet, metric)))?, margin))
    });
    let is_void = control
        .and_then(|(control, margin)| Some((control.ci95?, margin)))
        .is_some_and(|(ci95, margin)| control_fails(ci95, margin));
    let spread = median(spreads);
    let found = series::holm(&series, &looks, tests);
    let is_gate = plan.kind == ComparisonKind::Gate;
    let PlannedComparison { margin, latency_margin, .. } = *plan;
    let (bounds, bounds_of_equals) = (looks.bounds(0.05), looks.bounds(0.1));
    let early_alpha = early::alpha(tests);
    let rules = Rules { bounds, bounds_of_equals, early_alpha, margin, latency_margin, is_gate, is_void };
    let mut readings = series.iter().zip(found).map(|(series, found)| series.reading(&looks, found, &rules));
    for (pair, (suite, planned)) in pairs.iter_mut().zip(&compared) {
        if is_paced(suite, planned) {
            let units = units_of(&suite.name, &planned.cells);
            let base = alone(suite, &planned.cells[1], &journal, Metric::P50Latency);
            // The value that the table has, else that of the units.
            let of_base = |metric: Metric| {
                let alone = base.as_ref().and_then(|base| median(base.values(metric).into_values()));
                alone.or_else(|| median(units.iter().filter_map(|duet| Some(latencies(duet, metric)?[1]))))
            };
            let all = LATENCIES.map(|metric| (metric, readings.next().flatten()));
            let read = |(metric, reading): (Metric, Option<Reading>)| {
                let decides = match metric {
                    Metric::P50Latency => true,
                    Metric::P90Latency => plan.percentile == DecidingPercentile::P90,
                    _ => false,
                };
                Some(LatencyReading::from_base(metric, of_base(metric)?, reading?, decides))
            };
            pair.latency = all.into_iter().filter_map(read).collect();
        } else {
            let limited = |rate: Reading| if pair.client_is_limit { rate.limited() } else { rate };
            pair.rate = readings.next().flatten().map(limited);
        }
        pair.cpu = readings.next().flatten();
        let hints_at_none = pair.rate.is_some_and(|rate| rate.ratio >= 1.0 - margin);
        pair.is_cpu_first &= pair.rate.is_some() && pair.cpu.is_some();
        pair.is_by_cpu = pair.is_cpu_first && hints_at_none;
    }
    Some(Judgement { pairs, control: control.map(|(control, _)| control), is_void, spread, tests })
}

/// Whether a pair is one of open loops that alternate.
fn is_paced(suite: &PlannedSuite, pair: &PlannedPair) -> bool {
    suite.cells.iter().any(|cell| cell.id == pair.cells[0] && cell.is_paced_in_turns())
}

impl Judgement {
    /// The smallest relative slowdown that `units` of each pair find in 90 % of runs; `None` without a
    /// spread, or where the units cannot show any difference.
    pub fn detectable(&self, units: f64) -> Option<f64> {
        detectable(self.spread?, units, self.tests)
    }
}

/// The smallest relative slowdown that `units` of each pair find in 90 % of runs, in a family of `tests`
/// readings; `None` where there are too few units for any.
pub fn detectable(spread: f64, units: f64, tests: usize) -> Option<f64> {
    let alpha = ALPHA / tests.max(1) as f64;
    (units >= f64::from(sequential::fewest(alpha))).then(|| sequential::detectable(spread, units, alpha, 0.9))
}

/// The fewest units of each pair that can show a difference, in a family of `tests` readings.
pub fn fewest(tests: usize) -> u32 {
    sequential::fewest(ALPHA / tests.max(1) as f64)
}

#[cfg(test)]
mod tests;
