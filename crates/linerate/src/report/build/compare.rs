//! The comparison of two cells: from their duets where the run has them, else from their solo trials by
//! round.

use super::cell::Cell;
use super::journal::SortedJournal;
use crate::measurement::Metric;
use crate::report::model::{CellReport, Comparison, DuetReport, SensitivityReport};
use crate::stats::compare::log_ratios;
use crate::stats::duet::{log_cpu_ratio, log_ratio};
use crate::stats::estimate::FEWEST_ROUNDS;
use crate::stats::ratio::RatioEstimate;
use crate::stats::sensitivity::Sensitivity;
use crate::stats::verdict::{MARGIN, lies_beyond, verdict};
use linerate_contract::Role;

/// Differences of an A/A control up to this are tolerated: a third of the margin of 3 % that users care
/// about.
const CONTROL_TOLERANCE: f64 = 0.01;

/// The comparisons of a suite.
pub(super) struct Comparisons<'a> {
    pub(super) suite: &'a str,
    pub(super) journal: &'a SortedJournal<'a>,
}

impl Comparisons<'_> {
    /// `cell` against `other`; `None` without a common round or unit.
    ///
    /// Where the duets contradict the solo trials (docs/method.md), the ratio is that of the solo trials, and
    /// the duets give the CPU cost.
    pub(super) fn of(&self, cell: &Cell<'_>, other: &Cell<'_>, metric: Metric) -> Option<Comparison> {
        let with = &other.planned.id;
        let logs = log_ratios(&cell.values(metric), &other.values(metric), metric.better()).collect();
        let alone = Ratio::of(logs).filter(|_| !metric.is_growth());
        let together = self.by_duet(&cell.planned.id, with, metric);
        match (together, alone) {
            (Some(together), Some(alone)) if together.contradicts(&alone) => {
                let duet = together.duet.map(|duet| DuetReport { has_rate: false, ..duet });
                Some(Ratio { duet, ..alone }.report(with))
            }
            (together, alone) => Some(together.or(alone)?.report(with)),
        }
    }

    /// The cell in duet with itself; `None` without a unit.
    pub(super) fn control(&self, id: &str, metric: Metric) -> Option<Comparison> {
        Some(self.by_duet(id, id, metric)?.report(id))
    }

    /// Adds what the probes of the cell's roles found.
    pub(super) fn probed(&self, cell: &Cell<'_>, report: CellReport) -> CellReport {
        let of_role = |role: Role| {
            let units = self.journal.probe(self.suite, &cell.planned.id, role);
            let Sensitivity { value, ci95, n } = Sensitivity::of(units, cell.metric)?;
            Some((role.to_string(), SensitivityReport { value, ci95, n }))
        };
        let roles = cell.planned.systems.iter().map(|system| system.role);
        CellReport { sensitivity: roles.filter_map(of_role).collect(), ..report }
    }

    fn by_duet(&self, id: &str, other: &str, metric: Metric) -> Option<Ratio> {
        let units = || self.journal.duets(self.suite, [id, other]);
        let ratio = Ratio::of(units().filter_map(|duet| log_ratio(duet, metric)).collect())?;
        let cpu = RatioEstimate::of(units().filter_map(|duet| log_cpu_ratio(duet, metric, None)));
        let duet = DuetReport {
            has_rate: true,
            sharing: units().next().map(|duet| duet.sharing),
            cpu_ratio: cpu.map(|cpu| cpu.ratio),
            cpu_ci95: cpu.and_then(|cpu| cpu.ci95),
        };
        Some(Ratio { duet: Some(duet), ..ratio })
    }
}

struct Ratio {
    estimate: RatioEstimate,
    units: Vec<f64>,
    duet: Option<DuetReport>,
}

impl Ratio {
    fn of(logs: Vec<f64>) -> Option<Self> {
        // Shorter than all digits of a binary number, and finer than any plot.
        let unit = |log: &f64| (log.exp() * 1e5).round() / 1e5;
        let units = logs.iter().filter(|log| log.is_finite()).map(unit).filter(|unit| unit.is_finite());
        Some(Self { units: units.collect(), estimate: RatioEstimate::of(logs)?, duet: None })
    }

    fn contradicts(&self, alone: &Self) -> bool {
        let [a, b] = [self, alone].map(|ratio| ratio.estimate.ci95.unwrap_or(ratio.estimate.range));
        alone.estimate.n >= FEWEST_ROUNDS && (a[1] < b[0] || b[1] < a[0])
    }

    fn report(self, with: &str) -> Comparison {
        let RatioEstimate { ratio, range, ci95, ci90, p, n, detectable } = self.estimate;
        Comparison {
            with: with.to_owned(),
            ratio,
            ci95: ci95.unwrap_or(range),
            ci90,
            p,
            q: None,
            smallest_detectable: detectable,
            n,
            units: self.units,
            verdict: verdict(&self.estimate, MARGIN),
            duet: self.duet,
        }
    }
}

/// True if a baseline in duet with itself differs from itself, so that its duets decide nothing.
pub(crate) fn control_fails(aa: &Comparison) -> bool {
    aa.n >= FEWEST_ROUNDS && lies_beyond(aa.ci95, CONTROL_TOLERANCE)
}
