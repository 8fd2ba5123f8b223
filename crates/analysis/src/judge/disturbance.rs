//! CPU time that others used while a run was measured.

use super::journal::SortedJournal;
use crate::stats::bound::{DISTURBED, disturbance};
use crate::stats::outliers::{STEAL, stolen};
use linerate_model::{Measurement, Sides, Unit};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A run is disturbed where more than this share of its units are: single ones occur on every virtual
/// machine, and an interval contains them.
const FEW: f64 = 0.1;

/// CPU time that others used in a disturbed run: more than a tenth of its units were beside other processes
/// that used more than 10 %, or lost more than 5 % to other guests of the hypervisor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Disturbance {
    /// The share that processes of neither side used: the mean over the disturbed units.
    pub strangers: f64,
    /// The share that the hypervisor gave to other guests: the same mean.
    pub stolen: f64,
    /// Disturbed units; of a run without duets, cells.
    pub disturbed: usize,
    /// All of which the shares are known.
    pub of: usize,
    /// The counts are of cells, by their solo trials.
    pub is_of_cells: bool,
}

/// `None` for a quiet run, and where nothing is known.
pub fn disturbed(journal: &SortedJournal<'_>) -> Option<Disturbance> {
    let measured =
        journal.all().filter(|unit| !unit.warmup && matches!(unit.sides, Sides::One(_) | Sides::Two(_)));
    let units: Vec<[f64; 2]> = measured.filter_map(shares).collect();
    let is_of_cells = units.is_empty();
    let all = if is_of_cells { by_cell(journal) } else { units };
    let is_disturbed = |[strangers, stolen]: &&[f64; 2]| *strangers > DISTURBED || *stolen > STEAL;
    let found: Vec<&[f64; 2]> = all.iter().filter(is_disturbed).collect();
    let mean = |index: usize| found.iter().map(|shares| shares[index]).sum::<f64>() / found.len() as f64;
    (found.len() as f64 > FEW * all.len() as f64).then(|| Disturbance {
        strangers: mean(0),
        stolen: mean(1),
        disturbed: found.len(),
        of: all.len(),
        is_of_cells,
    })
}

fn shares(unit: &Unit) -> Option<[f64; 2]> {
    let both = unit.together()?;
    (both.strangers.is_some() || both.stolen.is_some())
        .then(|| [both.strangers, both.stolen].map(Option::unwrap_or_default))
}

/// A solo trial may be too short for the kernel's ticks, so those of a cell count together.
fn by_cell(journal: &SortedJournal<'_>) -> Vec<[f64; 2]> {
    let mut cells = BTreeMap::<_, Vec<&Measurement>>::new();
    for trial in journal.all().filter(|unit| !unit.warmup) {
        let cell = cells.entry((trial.suite, trial.sides)).or_default();
        cell.extend(trial.measurement().filter(|measurement| !measurement.cpus.is_empty()));
    }
    let known = cells.into_values().filter(|trials| !trials.is_empty());
    known
        .map(|trials| {
            let strangers = disturbance(trials.iter().copied()).unwrap_or(0.0);
            [strangers, stolen(trials.iter().copied()).unwrap_or(0.0)]
        })
        .collect()
}
