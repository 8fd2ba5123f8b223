//! CPU time that others used while a run was measured.

use super::journal::SortedJournal;
use crate::stats::bound::{DISTURBED, disturbance};
use crate::stats::outliers::{STEAL, stolen};
use linerate_model::{Measurement, Sides, Unit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A run is disturbed where more than this share of its units are: single ones occur on every virtual
/// machine, and an interval contains them.
const FEW: f64 = 0.1;

/// CPU time that others used in a disturbed run: more than a tenth of its pairs were beside other processes
/// that used more than 10 %, or lost more than 5 % to other guests of the hypervisor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Disturbance {
    /// The share that processes of neither side used: the mean over the disturbed units.
    pub strangers: f64,
    /// The share that the hypervisor gave to other guests: the same mean.
    pub stolen: f64,
    /// Disturbed pairs without the controls, or those alone where there is nothing else; of a run without
    /// duets, cells.
    pub disturbed: usize,
    /// All of which the shares are known.
    pub of: usize,
    /// The counts are of cells, by their solo trials.
    pub is_of_cells: bool,
}

/// `None` for a quiet run, and where nothing is known.
pub fn disturbed(journal: &SortedJournal<'_>) -> Option<Disturbance> {
    // A control is none of the pairs that were asked for, unless nothing else was.
    let pairs = |is_control: bool| {
        let is_meant = move |unit: &&Unit| {
            let is_it = matches!(unit.sides, Sides::Two([one, other]) if (one == other) == is_control);
            is_it && !unit.warmup
        };
        journal.all().filter(is_meant).filter_map(shares).collect::<Vec<[f64; 2]>>()
    };
    let units = Some(pairs(false)).filter(|found| !found.is_empty()).unwrap_or_else(|| pairs(true));
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

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{PlannedSuite, Run, Sharing, Together};

    /// Disturbed pairs and all of them, of units of these cells, the busy ones first.
    fn counted(busy: &[[usize; 2]], quiet: &[[usize; 2]]) -> Option<(usize, usize)> {
        let busy = busy.iter().map(|sides| (sides, 0.4));
        let all = busy.chain(quiet.iter().map(|sides| (sides, 0.0))).zip(0..);
        let unit = |((sides, strangers), number): ((&[usize; 2], f64), u32)| {
            let together = Together { strangers: Some(strangers), ..Together::new(Sharing::Together) };
            Unit { number, ..Unit::new(Sides::Two(*sides), together.into()) }
        };
        let units: Vec<Unit> = all.map(unit).collect();
        let run = Run { suites: vec![PlannedSuite::default()], ..Run::default() };
        disturbed(&SortedJournal::sort(&run, &units)).map(|found| (found.disturbed, found.of))
    }

    #[test]
    fn controls_are_not_counted_among_the_pairs_that_were_disturbed() {
        let (pair, control) = ([1, 0], [0, 0]);
        assert_eq!(counted(&[pair], &[pair, control, control]), Some((1, 2)));
        assert_eq!(counted(&[control], &[pair, pair]), None);
        assert_eq!(counted(&[control], &[control]), Some((1, 2)), "nothing else was measured");
    }
}
