//! Text that the programs and commands of a comparison write on stderr at their start: it may be the reason
//! of a difference, or say that there is none. Remarks of the lab about them are remarks of the comparison.

use super::Session;
use crate::arm::{Arm, BASE, HEAD};
use crate::error::Error;
use crate::lab::Written;
use crate::measurement::{PlannedCell, PlannedComparison, Subject, WrittenBySubject};
use crate::plan::Step;

impl Session {
    /// Keeps what the subjects wrote in a trial of a cell by itself.
    ///
    /// # Errors
    /// `run.json` cannot be written.
    pub(super) fn take_written(&mut self, step: &Step) -> Result<(), Error> {
        if !step.sides.is_one() {
            return Ok(());
        }
        let written = self.lab.written();
        self.keep_written(step.suite, step.sides.cell(), written)
    }

    /// Keeps what the subjects of a cell wrote, the first time.
    ///
    /// # Errors
    /// `run.json` cannot be written.
    pub(super) fn keep_written(
        &mut self,
        suite: usize,
        cell: usize,
        written: Vec<Written>,
    ) -> Result<(), Error> {
        let Some(comparison) = self.run.comparison.as_mut() else { return Ok(()) };
        let cell = &self.run.suites[suite].cells[cell];
        let count = |comparison: &PlannedComparison| comparison.written.len() + comparison.remarks.len();
        let known = count(comparison);
        for written in written {
            let Some(subject) = subject(comparison, cell, &written) else { continue };
            if written.is_of_lab {
                let remarks = written.lines.iter().map(|line| format!("{subject}: {line}"));
                let new = remarks.filter(|remark| !comparison.remarks.contains(remark)).collect::<Vec<_>>();
                comparison.remarks.extend(new);
            } else if comparison.written.iter().all(|known| known.subject != subject) {
                comparison.written.push(WrittenBySubject { subject, lines: written.lines });
            }
        }
        if count(comparison) > known { self.journal.plan(&self.run) } else { Ok(()) }
    }
}

/// The name of a server of the user's own, or of a variant with its build where that is a program of the
/// user's. `None` for other systems: their output at their start says nothing about the change.
fn subject(comparison: &PlannedComparison, cell: &PlannedCell, written: &Written) -> Option<String> {
    let Written { role, system, .. } = written;
    let is_it = |one: &&Subject| one.role() == Some(*role) && one.name() == system;
    if let Some(own) = comparison.subjects.iter().find(is_it) {
        return Some(own.name().to_owned());
    }
    let planned = cell.systems.iter().find(|planned| planned.role == *role && planned.name == *system)?;
    let build = [BASE, HEAD].into_iter().position(|build| build == planned.build)?;
    let arm = Arm::parse(comparison.subjects.get(build)?.text()).ok()?;
    let is_given = arm.program.is_some() || arm.git.is_some();
    is_given.then(|| format!("{system} ({})", planned.build))
}
