//! Journal to numbers and comparisons, cell by cell and table by table. Every journal has a summary.

mod alone;
mod cell;
mod compare;
mod comparison;
mod disturbance;
mod document;
mod flags;
mod journal;
mod marks;
pub mod pairs;
mod table;
mod tiers;

pub use alone::{Alone, SoloRatio};
pub use cell::{CellSummary, FailedTrial, OutcomeWord};
pub(crate) use compare::undisturbed;
pub use compare::{Comparisons, rounded_unit};
pub use comparison::{Comparison, DuetReport, RowValue};
pub use disturbance::{Disturbance, disturbed};
pub use document::{Confirmation, FindingReading, figure_ratio, readings};
pub use flags::{Flag, flags};
pub use journal::{SortedJournal, Units};
pub use marks::{AgainstTruth, ShareOf};
pub use table::{AgainstBest, Entry, TableSummary};
pub use tiers::{Contender, tiers};

use linerate_model::{Metric, PlannedSuite, Run, Sides};
use pairs::Judgement;

/// A metric, and the operations whose seconds it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantity {
    pub metric: Metric,
    /// Operations of a trial; `None`: they have no number, or cells have different ones.
    pub operations: Option<u64>,
}

/// The unit of a table's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableUnit {
    One(Quantity),
    /// Each row has its own: the table has several metrics.
    OfRow,
}

/// The cells of a suite, and its tables.
#[derive(Debug)]
pub struct SuiteSummary<'a> {
    pub cells: Vec<CellSummary<'a>>,
    pub tables: Vec<TableSummary<'a>>,
}

/// The numbers of a suite in the journal; `judgement`: of a run that is looked at while it is measured.
pub fn suite<'a>(
    run: &'a Run,
    index: usize,
    journal: &SortedJournal<'a>,
    judgement: Option<&Judgement>,
) -> SuiteSummary<'a> {
    let planned = &run.suites[index];
    let of_cell = |place: usize| {
        let metric = first_metric(planned, &planned.cells[place].id);
        CellSummary::from_units(planned, place, journal.units(index, Sides::One(place)), metric)
    };
    let cells: Vec<CellSummary<'a>> = (0..planned.cells.len()).map(of_cell).collect();
    let comparisons = Comparisons { suite: index, journal, judgement };
    let tables = planned.tables.iter().map(|t| table::table(t, &cells, &comparisons)).collect();
    SuiteSummary { cells, tables }
}

/// The metric of the first table that contains a cell.
fn first_metric(planned: &PlannedSuite, id: &String) -> Metric {
    planned.tables.iter().find(|table| table.cells.contains(id)).map_or(Metric::Seconds, |table| table.metric)
}
