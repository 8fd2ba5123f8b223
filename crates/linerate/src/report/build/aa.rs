//! The A/A control: the baseline against a second run of itself.

use super::cell::Cell;
use super::journal::{CellTrials, SortedTrials};
use crate::measurement::{AA, Metric, PlannedSuite};
use crate::report::model::Comparison;
use crate::stats::by_round::ByRound;
use crate::stats::compare::{Verdict, noise_floor, ratio, verdict};
use crate::stats::estimate::Estimate;

/// The baseline against its second run in each round, by every metric of the suite's tables.
pub(super) struct AaControl {
    aa: String,
    by_metric: Vec<(Metric, Estimate)>,
}

impl AaControl {
    pub(super) fn of(planned: &PlannedSuite, cells: &[Cell<'_>], journal: &SortedTrials<'_>) -> Self {
        let id = planned.aa.as_deref().unwrap_or_default();
        let pair = cells.iter().find(|cell| cell.planned.id == id).zip(journal.aa(&planned.name, id));
        let measured = |metric: Metric| {
            let (cell, aa) = pair?;
            Some((metric, ratio(&cell.values(metric), &aa_values(cell, aa, metric), metric.better())?))
        };
        let by_metric =
            planned.tables.iter().flat_map(|table| table.metrics()).filter(|metric| !metric.is_growth());
        let by_metric = by_metric.filter_map(measured).collect();
        Self { aa: format!("{id}{AA}"), by_metric }
    }

    pub(super) fn ratio(&self, metric: Metric) -> Option<Estimate> {
        self.by_metric.iter().find(|(of, _)| *of == metric).map(|(_, ratio)| *ratio)
    }

    /// 0 without an A/A control: verdicts are then by their intervals alone.
    pub(super) fn noise_floor(&self, metric: Metric) -> f64 {
        self.ratio(metric).map_or(0.0, |ratio| noise_floor(&ratio))
    }

    /// By its interval alone: its difference is the noise floor.
    pub(super) fn comparison(&self, metric: Metric) -> Option<Comparison> {
        let ratio = self.ratio(metric)?;
        Some(comparison(self.aa.clone(), &ratio, verdict(&ratio, 0.0)))
    }
}

fn aa_values(cell: &Cell<'_>, aa: &CellTrials<'_>, metric: Metric) -> ByRound {
    Cell::of(cell.planned, Some(aa), cell.metric).values(metric)
}

pub(super) fn comparison(with: String, ratio: &Estimate, verdict: Verdict) -> Comparison {
    Comparison { with, ratio: ratio.median, ci95: ratio.interval, n: ratio.n, verdict, duet: None }
}
