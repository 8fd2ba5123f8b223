//! What the programs and commands of a comparison write on stderr at their start: it may be the reason of a
//! difference, or say that there is none.

use super::{Event, Session};
use crate::arm::{Arm, BASE, HEAD};
use crate::error::Error;
use crate::journal;
use crate::lab::Written;
use crate::measurement::{PlannedCell, PlannedComparison, WrittenBySubject};
use crate::plan::Step;
use linerate_contract::Role;

impl Session {
    /// Keeps what the subjects wrote in a trial of a cell by itself, the first time.
    ///
    /// # Errors
    /// `run.json` cannot be written.
    pub(super) fn take_written(&mut self, step: &Step, on: &mut dyn FnMut(Event)) -> Result<(), Error> {
        let Some(comparison) = self.run.comparison.as_mut().filter(|_| step.against.is_none()) else {
            return Ok(());
        };
        let cell = &self.run.suites[step.suite].cells[step.cell];
        let known = comparison.written.len();
        for written in self.lab.written() {
            let is_new = |name: &String| comparison.written.iter().all(|known| known.subject != *name);
            if let Some(subject) = subject(comparison, cell, &written).filter(is_new) {
                comparison.written.push(WrittenBySubject { subject, lines: written.lines });
            }
        }
        let new = comparison.written[known..].to_vec();
        if !new.is_empty() {
            journal::write_run(&self.folder, &self.run)?;
        }
        new.into_iter().map(Event::Written).for_each(on);
        Ok(())
    }
}

/// The name of a command, or of a variant with its build where that is a program of the user's. `None` for
/// other systems: their output at their start says nothing about the change.
fn subject(comparison: &PlannedComparison, cell: &PlannedCell, written: &Written) -> Option<String> {
    let Written { role, system, .. } = written;
    if let Some(commands) = &comparison.commands {
        return commands.named(system).filter(|_| *role == Role::Server).map(|one| one.name.clone());
    }
    let planned = cell.systems.iter().find(|planned| planned.role == *role && planned.name == *system)?;
    let arm = match planned.build.as_str() {
        BASE => &comparison.base,
        HEAD => &comparison.head,
        _ => return None,
    };
    let arm = Arm::parse(&arm.arm).ok()?;
    let is_given = arm.program.is_some() || arm.git.is_some();
    is_given.then(|| format!("{system} ({})", planned.build))
}
