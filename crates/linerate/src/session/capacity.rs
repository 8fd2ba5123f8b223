//! The capacity of a baseline, where the rate of open loops is a share of it.

use super::Session;
use crate::error::Error;
use crate::measurement::{Metric, PlannedRate, PlannedSuite};
use crate::plan::Step;
use crate::progress::note;
use crate::trial::{self, Context};

impl Session {
    /// Measures each baseline once in a closed loop, and sets the rates of its pair.
    ///
    /// # Errors
    /// The user stopped the run, or the lab is lost.
    pub(super) fn find_capacities(&mut self, suite: usize, planned: &mut PlannedSuite) -> Result<(), Error> {
        let rate = self.run.comparison.as_ref().and_then(|comparison| comparison.rate);
        let Some(rate @ PlannedRate::Share(_)) = rate else { return Ok(()) };
        let place = |id: &String| planned.cells.iter().position(|cell| cell.id == *id);
        let pairs = planned.pairs.iter().filter(|pair| pair.cells[0] != pair.cells[1]);
        let pairs = pairs.filter_map(|pair| Some((place(&pair.cells[0])?, place(&pair.cells[1])?)));
        let cpus = self.lab.cpus();
        for (head, base) in pairs.collect::<Vec<_>>() {
            let cell = &planned.cells[base];
            if !cell.is_paced_in_turns() || cell.capacity.is_some() || cell.absent.is_some() {
                continue;
            }
            let (registry, hosts) = (&self.registry, &self.run.hosts[..]);
            let context = Context { registry, programs: &self.programs, cpus: &cpus, hosts };
            let mut closed = planned.clone();
            (closed.cells[base].parameters.rate, closed.cells[base].pairs) = (None, None);
            let step = Step {
                suite,
                cell: base,
                against: None,
                probe: None,
                id: cell.id.clone(),
                round: 1,
                unit: 1,
                warmup: true,
            };
            let trial = trial::run(self.lab.as_mut(), context, &closed, &step)?;
            let value = |measurement| Metric::OperationsPerSecond.value(measurement);
            let capacity = trial.measurement.as_ref().and_then(value);
            note(&match capacity {
                Some(capacity) => format!("{}: {capacity:.0}/s in a closed loop", cell.id),
                None => format!("{}: its capacity could not be measured", cell.id),
            });
            for index in [base, head] {
                let cell = &mut planned.cells[index];
                cell.capacity = capacity;
                match rate.per_second(capacity) {
                    Some(rate) => cell.parameters.rate = Some(rate),
                    None => cell.absent = Some(trial.outcome.clone()),
                }
            }
        }
        Ok(())
    }
}
