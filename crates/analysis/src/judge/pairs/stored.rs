//! Two stored runs, cell by cell. Runs at different times differ by more than the intervals within either, so
//! the cells whose systems did not change show by how much (an empirical null, Efron 2004).

use crate::stats::estimate::{Estimate, median};
use crate::stats::metric::Value;
use crate::stats::verdict::{Verdict, direction};
use linerate_model::Better;
use linerate_model::Stored;
use linerate_model::{Run, Sides, Unit};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Cells with the same systems in both runs that are needed for a spread between runs.
const FEWEST_CONTROLS: usize = 8;
/// Below this difference, runs at different times decide little.
pub const INTERLEAVE: f64 = 0.15;

/// The comparison of two stored runs.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredComparison {
    pub runs: [String; 2],
    pub cells: Vec<StoredCell>,
    /// Why differences are no more than an indication; empty if nothing speaks against them.
    pub doubts: Vec<String>,
    /// Cells whose systems are the same in both, and the spread of their log ratios between the runs.
    pub controls: usize,
    pub spread: Option<f64>,
}

/// A cell of both runs.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredCell {
    pub suite: String,
    pub id: String,
    /// Performance of the second run over the first; less what the controls changed on average.
    pub ratio: f64,
    /// 95 %, with the spread between runs; `None` without enough controls.
    pub interval: Option<[f64; 2]>,
    pub verdict: Verdict,
    /// Systems of the cell have other versions or settings in the second run.
    pub is_changed: bool,
}

/// Compares the cells that both runs have.
pub fn compare(one: &Stored, two: &Stored) -> StoredComparison {
    let mut raw: Vec<Raw> = Vec::new();
    for (index, suite) in one.run.suites.iter().enumerate() {
        let Some(other) = two.run.suites.iter().position(|other| other.name == suite.name) else { continue };
        for (place, cell) in suite.cells.iter().enumerate() {
            let Some(theirs) = two.run.suites[other].place(&cell.id) else { continue };
            raw.extend(Raw::compare([(one, index, place), (two, other, theirs)]));
        }
    }
    let controls: Vec<f64> = raw.iter().filter(|cell| !cell.is_changed).map(|cell| cell.log).collect();
    let center = median(controls.iter().copied()).unwrap_or(0.0);
    let has_controls = controls.len() >= FEWEST_CONTROLS;
    let deviations = controls.iter().map(|log| (log - center).abs());
    // 1.4826: of a normal distribution, the standard deviation over the median deviation.
    let spread = median(deviations).filter(|_| has_controls).map(|deviation| 1.4826 * deviation);
    let freedom = controls.len().saturating_sub(1).max(1) as f64;
    let quantile = StudentsT::new(0.0, 1.0, freedom).map_or(f64::NAN, |t| t.inverse_cdf(0.975));
    let cells = raw.iter().map(|cell| {
        let log = cell.log - center;
        let interval = spread.map(|spread| {
            let width = quantile * spread.hypot(cell.error);
            [(log - width).exp(), (log + width).exp()]
        });
        StoredCell {
            suite: cell.suite.clone(),
            id: cell.id.clone(),
            ratio: log.exp(),
            interval,
            verdict: interval.map_or(Verdict::CannotTell, direction),
            is_changed: cell.is_changed,
        }
    });
    let mut doubts = doubts(&one.run, &two.run);
    if !has_controls {
        doubts.push(format!(
            "{} cells have the same systems in both, and the spread between runs needs {FEWEST_CONTROLS}",
            controls.len()
        ));
    }
    StoredComparison {
        runs: [one.run.id.clone(), two.run.id.clone()],
        cells: cells.collect(),
        doubts,
        controls: controls.len(),
        spread,
    }
}

/// Hosts, suites and windows that differ.
fn doubts(one: &Run, two: &Run) -> Vec<String> {
    let mut doubts = Vec::new();
    let mut differ = |what: &str, a: String, b: String| {
        if a != b {
            doubts.push(format!("{what}: {a} and {b}"));
        }
    };
    differ("CPU", one.host.cpu_model.clone(), two.host.cpu_model.clone());
    differ("number of CPUs", one.host.cpus.to_string(), two.host.cpus.to_string());
    differ("kernel", one.host.kernel.clone(), two.host.kernel.clone());
    differ("linerate", one.linerate.clone(), two.linerate.clone());
    let form = |run: &Run| if run.quick { "quick" } else { "full" }.to_owned();
    differ("form", form(one), form(two));
    doubts
}

struct Raw {
    suite: String,
    id: String,
    /// Log ratio of performance, the second run over the first.
    log: f64,
    /// The standard error of the ratio from within the runs.
    error: f64,
    is_changed: bool,
}

impl Raw {
    /// A cell of both runs, by the indices of its suite and of itself; `None` where either run has no number,
    /// or the cells are not the same question.
    fn compare(runs: [(&Stored, usize, usize); 2]) -> Option<Self> {
        let [(suite, cell), (_, theirs)] = runs.map(|(stored, suite, cell)| {
            let suite = &stored.run.suites[suite];
            (suite, &suite.cells[cell])
        });
        let is_same = (&cell.parameters, &cell.options) == (&theirs.parameters, &theirs.options);
        let metric = suite.tables.iter().find(|table| table.cells.contains(&cell.id))?.metric;
        if !is_same || metric.is_growth() {
            return None;
        }
        let estimates = runs.map(|(stored, suite, cell)| {
            let is_of_cell =
                |unit: &&Unit| (unit.suite, unit.sides, unit.warmup) == (suite, Sides::One(cell), false);
            let units = stored.journal.units.iter().filter(is_of_cell);
            Estimate::from_values(units.filter_map(|unit| metric.value(unit.measurement()?)))
        });
        let [one, two] = estimates;
        let (one, two) = (one?, two?);
        let log = (two.median / one.median).ln();
        let error = |estimate: &Estimate| (estimate.interval[1] / estimate.interval[0]).ln() / 3.92;
        let log = if metric.better() == Better::Higher { log } else { -log };
        Some(Self {
            suite: suite.name.clone(),
            id: cell.id.clone(),
            log,
            error: error(&one).hypot(error(&two)),
            is_changed: cell.systems != theirs.systems,
        })
        .filter(|cell| cell.log.is_finite() && cell.error.is_finite())
    }
}
