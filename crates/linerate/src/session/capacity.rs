//! The capacity of a cell, where the rate of open loops is a share of it.

use super::Session;
use crate::axes::Axes;
use crate::error::Error;
use crate::measurement::{Metric, Outcome, PlannedCell, PlannedRate, PlannedSuite, Sides};
use crate::output::note;
use crate::parameters::Parameters;
use crate::plan::Step;
use crate::stats::metric::Value;
use crate::trial::{self, Context};

impl Session {
    /// Measures closed loops once, and sets the rates that are shares of theirs: those of a comparison by the
    /// baseline's, those of a `load` by the row's own.
    ///
    /// # Errors
    /// The user stopped the run, or the lab is lost.
    pub(super) fn find_capacities(&mut self, suite: usize, planned: &mut PlannedSuite) -> Result<(), Error> {
        for cell in 0..planned.cells.len() {
            if planned.cells[cell].parameters.load.is_none() || !is_open(&planned.cells[cell]) {
                continue;
            }
            let found = self.capacity(suite, planned, cell)?;
            let row = row(&planned.cells[cell]);
            for other in planned.cells.iter_mut().filter(|other| is_open(other) && self::row(other) == row) {
                let share = other.parameters.load.map(|percent| PlannedRate::Share(percent as f64 / 100.0));
                set(other, share, &found);
            }
        }
        let rate = self.run.policy().verdict().and_then(|comparison| comparison.rate);
        let Some(rate @ PlannedRate::Share(_)) = rate else { return Ok(()) };
        let pairs = planned.pairs.iter().filter_map(|pair| planned.places(pair));
        let pairs = pairs.filter(|[head, base]| head != base);
        for [head, base] in pairs.collect::<Vec<_>>() {
            if !planned.cells[base].is_paced_in_turns() || !is_open(&planned.cells[base]) {
                continue;
            }
            let found = match self.run.learned.capacity {
                Some(learned) => Ok(learned),
                None => self.capacity(suite, planned, base)?,
            };
            [base, head].into_iter().for_each(|index| set(&mut planned.cells[index], Some(rate), &found));
        }
        Ok(())
    }

    /// The rate of the cell in a closed loop, or the outcome of the trial that did not show it.
    fn capacity(
        &mut self,
        suite: usize,
        planned: &PlannedSuite,
        cell: usize,
    ) -> Result<Result<f64, Outcome>, Error> {
        let mut closed = planned.clone();
        let id = closed.cells[cell].id.clone();
        let parameters = Parameters { rate: None, load: None, ..closed.cells[cell].parameters };
        (closed.cells[cell].parameters, closed.cells[cell].pairs) = (parameters, None);
        let step = Step { warmup: true, ..Step::new(suite, Sides::One(cell)) };
        self.progress.stage(planned, &format!("measuring the capacity of {id}"));
        let cpus = self.lab.cpus();
        let (registry, programs, servers) = (&self.registry, &self.programs, self.servers.as_ref());
        let context = Context { registry, programs, cpus: &cpus, hosts: &self.run.hosts, servers };
        let trial = trial::run(self.lab.as_mut(), context, &closed, &step)?;
        let capacity = trial.measurement().and_then(|found| Metric::OperationsPerSecond.value(found));
        if capacity.is_none() {
            note(&format!("{id}: its capacity could not be measured"));
        }
        Ok(capacity.ok_or(trial.outcome))
    }
}

/// The rate of the cell is still to be found.
fn is_open(cell: &PlannedCell) -> bool {
    cell.capacity.is_none() && cell.absent.is_none()
}

/// The common part of cells whose load alone differs.
fn row(cell: &PlannedCell) -> PlannedCell {
    let parameters = Parameters { load: None, ..cell.parameters };
    PlannedCell { id: String::new(), axes: Axes::default(), parameters, ..cell.clone() }
}

fn set(cell: &mut PlannedCell, share: Option<PlannedRate>, found: &Result<f64, Outcome>) {
    cell.capacity = found.as_ref().ok().copied();
    match share.and_then(|share| share.per_second(cell.capacity)) {
        Some(rate) => cell.parameters.rate = Some(rate),
        None => cell.absent = found.as_ref().err().cloned(),
    }
}
