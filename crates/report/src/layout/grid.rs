//! A table as a grid: rows and columns by axes; in each grid cell a number, its percentage of the baseline,
//! and notes.

use super::groups::compared_axes;
use super::precision::Precision;
use super::{cells_of, further_metrics, groups, named, unit, value};
use crate::model::{CellReport, Comparison, Flag, OutcomeWord, SuiteReport, TableCell, TableReport};
use crate::numbers::{count, plain};
use crate::words::{self, NOT_MEASURED, outcome_name};
use linerate_analysis::stats::accuracy::Accuracy;
use linerate_analysis::stats::estimate::FEWEST_ROUNDS;
use linerate_analysis::stats::verdict::{FALSE_DISCOVERY, Verdict};
use linerate_model::{BUILD_AXIS, Better};
use std::collections::BTreeSet;

#[derive(Debug)]
pub(crate) struct Grid<'a> {
    pub(crate) title: &'a str,
    /// Unit, direction, baseline of the percentages, and number of rounds.
    pub(crate) caption: String,
    /// Names of the axes, for the corner.
    pub(crate) corner: String,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<GridRow>,
    pub(crate) notes: &'a [String],
}

#[derive(Debug)]
pub(crate) struct GridRow {
    pub(crate) label: String,
    /// One for each column; `None` where the suite has no such cell.
    pub(crate) cells: Vec<Option<GridCell>>,
}

/// One row and column of a grid.
#[derive(Debug)]
pub(crate) struct GridCell {
    /// `2.13 (2.10 to 2.19)`, or the outcome where there is no number.
    pub(crate) number: String,
    /// Percentage of the baseline: `73 % (71 to 75) ▼`.
    pub(crate) share: Option<String>,
    /// The difference of latencies in microseconds: `+0.42 µs (0.36 to 0.48)`.
    pub(crate) difference: Option<String>,
    /// CPU time per operation, as a percentage of the baseline's: `CPU 102 % (101 to 103)`.
    pub(crate) cpu: Option<String>,
    /// The CPU time is above the performance.
    is_cpu_first: bool,
    pub(crate) verdict: Option<Verdict>,
    /// The error of a value whose truth is known: `error -95.6 % (-96.1 to -95.0) of 90,000: wrong`.
    pub(crate) error: Option<String>,
    pub(crate) accuracy: Option<Accuracy>,
    /// Failed operations, the generator as the bottleneck, a different number of rounds.
    pub(crate) notes_of_cell: Vec<String>,
    pub(crate) is_ok: bool,
}

impl GridCell {
    /// All text, line by line.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &String> {
        let (first, last) = if self.is_cpu_first { (&self.cpu, &None) } else { (&None, &self.cpu) };
        std::iter::once(&self.number)
            .chain(first)
            .chain(&self.share)
            .chain(&self.difference)
            .chain(last)
            .chain(&self.error)
            .chain(&self.notes_of_cell)
    }
}

/// The sign of a verdict.
pub(crate) fn mark(comparison: &Comparison) -> &'static str {
    let is_light = comparison.q.is_some_and(|q| q > FALSE_DISCOVERY);
    match comparison.verdict {
        _ if comparison.ci95_is_range => "?",
        Verdict::Faster if is_light => "△",
        Verdict::Slower if is_light => "▽",
        verdict => sign(verdict),
    }
}

/// CPU time in relation to the baseline's, with the sign of its own verdict, if it has one.
pub(crate) fn with_cpu_mark(share: String, comparison: &Comparison) -> String {
    let verdict = comparison.duet.as_ref().and_then(|duet| duet.cpu_verdict);
    verdict.map_or(share.clone(), |verdict| format!("{share} {}", sign(verdict)))
}

fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "▲",
        Verdict::Slower => "▼",
        Verdict::SmallDifference => "≠",
        Verdict::WithinMargin | Verdict::NotSlower => "≈",
        Verdict::CannotTell | Verdict::Failed | Verdict::Missing => "?",
    }
}

/// Lays a table out, its rows in the order of its groups.
pub(crate) fn grid<'a>(suite: &'a SuiteReport, table: &'a TableReport) -> Grid<'a> {
    let turned = turned(suite, table);
    let shown = turned.as_ref().unwrap_or(table);
    let axes = RowAxes::for_table(suite, shown);
    let groups = groups(suite, table);
    let (usual, precision) = (usual_rounds(table), Precision::for_groups(table, &groups));
    let columns =
        in_order(&shown.column_values, cells_of(suite, table).map(|cell| value(cell, &shown.columns)));
    let mut rows: Vec<(RowKey, GridRow)> = Vec::new();
    for entry in &table.cells {
        let Some(cell) = suite.cells.iter().find(|cell| cell.id == entry.id) else { continue };
        let column = columns.iter().position(|c| *c == value(cell, &shown.columns)).unwrap_or(0);
        let grid_cell = grid_cell(cell, entry, usual, &precision);
        let key = axes.key(cell, entry, column, &rows, &precision);
        let at = rows.iter().position(|(other, _)| *other == key).unwrap_or_else(|| {
            let cells = columns.iter().map(|_| None).collect();
            rows.push((key.clone(), GridRow { label: key.label(), cells }));
            rows.len() - 1
        });
        rows[at].1.cells[column] = Some(grid_cell);
    }
    let members = groups.iter().flat_map(|group| &group.members);
    let order = in_order(&[], members.map(|member| value(member.cell, &shown.rows)));
    rows.sort_by_key(|(key, _)| order.iter().position(|value| *value == key.value));
    Grid {
        title: &table.title,
        caption: caption(suite, table, usual, &precision),
        corner: format!("{} \\ {}", shown.rows, shown.columns),
        columns: columns.iter().map(|value| named::short(value)).collect(),
        rows: rows.into_iter().map(|(_, row)| row).collect(),
        notes: &table.notes,
    }
}

/// The table with rows and columns exchanged, where what is compared is in more columns than there are rows:
/// competitors are rows, and sorted. `None` where they are rows already.
fn turned(suite: &SuiteReport, table: &TableReport) -> Option<TableReport> {
    let number =
        |axis: &str| cells_of(suite, table).map(|cell| value(cell, axis)).collect::<BTreeSet<String>>().len();
    let compared = compared_axes(suite, table);
    // Builds are columns.
    let is_in_columns = compared.contains(&table.columns) && !compared.contains(&table.rows);
    let is_in_columns = is_in_columns && table.columns != BUILD_AXIS;
    (is_in_columns && number(&table.columns) > number(&table.rows)).then(|| TableReport {
        rows: table.columns.clone(),
        columns: table.rows.clone(),
        row_values: table.column_values.clone(),
        column_values: table.row_values.clone(),
        ..table.clone()
    })
}

/// Identifies a row: a value of the row axis, and values of further axes where one value is not unique.
#[derive(Debug, Clone, PartialEq)]
struct RowKey {
    value: String,
    /// The table has no other value of the row axis.
    is_only_value: bool,
    /// Values of further axes, and the metric where there are several.
    further: Vec<String>,
}

impl RowKey {
    fn label(&self) -> String {
        let is_shown = !self.is_only_value || self.further.is_empty();
        let value = is_shown.then(|| named::short(&self.value));
        value.into_iter().chain(self.further.iter().cloned()).collect::<Vec<_>>().join(", ")
    }
}

struct RowAxes<'a> {
    rows: &'a str,
    has_one_value: bool,
    has_several_metrics: bool,
    /// Axes that distinguish cells of the same row and column.
    further: Vec<&'a str>,
}

impl<'a> RowAxes<'a> {
    fn for_table(suite: &'a SuiteReport, table: &'a TableReport) -> Self {
        let cells: Vec<&CellReport> = cells_of(suite, table).collect();
        let place = |cell: &CellReport| (value(cell, &table.rows), value(cell, &table.columns));
        let mut further: Vec<&str> = Vec::new();
        for (i, cell) in cells.iter().enumerate() {
            for other in cells[..i].iter().filter(|other| place(other) == place(cell)) {
                let differing =
                    cell.axes.0.iter().filter(|(axis, v)| other.axes.get(axis).is_some_and(|o| o != v));
                for (axis, _) in differing {
                    if !further.contains(&axis.as_str()) {
                        further.push(axis);
                    }
                }
            }
        }
        let mut values = cells.iter().map(|cell| value(cell, &table.rows));
        let first = values.next();
        let has_one_value = further.is_empty() && values.all(|value| Some(value) == first);
        let has_several_metrics = !further_metrics(table).is_empty();
        Self { rows: &table.rows, has_one_value, has_several_metrics, further }
    }

    /// The row of a cell; with its id where all axes together are not unique.
    fn key(
        &self,
        cell: &CellReport,
        entry: &TableCell,
        column: usize,
        rows: &[(RowKey, GridRow)],
        precision: &Precision,
    ) -> RowKey {
        let named = |axis: &&str| cell.axes.get(axis).map(|value| format!("{axis} {}", named::short(value)));
        let metric = entry.metric.filter(|_| self.has_several_metrics).map(|metric| precision.name(metric));
        let mut key = RowKey {
            value: value(cell, self.rows),
            is_only_value: self.has_one_value && metric.is_some(),
            further: self.further.iter().filter_map(named).chain(metric).collect(),
        };
        if rows.iter().any(|(other, row)| *other == key && row.cells[column].is_some()) {
            key.further.push(cell.id.clone());
        }
        key
    }
}

/// The values that occur: those in the suite's order first, then the others in order of occurrence.
fn in_order(ordered: &[String], occurring: impl Iterator<Item = String>) -> Vec<String> {
    let occurring: Vec<String> = occurring.collect();
    let mut seen = BTreeSet::new();
    let known = ordered.iter().filter(|value| occurring.contains(value)).cloned().collect::<Vec<_>>();
    known.into_iter().chain(occurring).filter(|value| seen.insert(value.clone())).collect()
}

/// The most common number of trials alone, of rows whose values they are; `None` if there is none.
pub(crate) fn usual_rounds(table: &TableReport) -> Option<u32> {
    let of_trials = || table.cells.iter().filter(|cell| !cell.is_by_ratio());
    let measured = || of_trials().filter_map(|cell| Some(cell.alone.filter(|_| cell.value.is_some())?.n));
    measured().max_by_key(|n| (measured().filter(|other| other == n).count(), *n))
}

fn grid_cell(cell: &CellReport, entry: &TableCell, usual: Option<u32>, precision: &Precision) -> GridCell {
    let number = match precision.value(entry) {
        Some(number) => number,
        _ if cell.outcome == OutcomeWord::Ok => "no value".to_owned(),
        _ if cell.flags.contains(&Flag::NotMeasured) => NOT_MEASURED.to_owned(),
        _ => outcome_name(cell.outcome).to_owned(),
    };
    let difference = entry.vs_baseline.as_ref().and_then(|c| c.difference.as_ref());
    GridCell {
        number,
        share: entry
            .vs_baseline
            .as_ref()
            .map(|c| format!("{} {}", precision.share(entry.metric, c), mark(c))),
        difference: difference.map(|found| precision.difference(entry.metric, found)),
        cpu: entry
            .vs_baseline
            .as_ref()
            .and_then(|c| Some(with_cpu_mark(format!("CPU {}", Precision::cpu_share(c)?), c))),
        is_cpu_first: entry.vs_baseline.as_ref().is_some_and(|c| c.is_cpu_first()),
        verdict: entry.vs_baseline.as_ref().map(|c| c.verdict),
        error: entry.vs_truth.as_ref().map(|found| precision.error(entry.metric, found)),
        accuracy: entry.vs_truth.as_ref().map(|found| found.accuracy),
        notes_of_cell: notes(cell, entry, usual).iter().map(Note::text).collect(),
        is_ok: entry.value.is_some(),
    }
}

/// A note that a reader must see beside a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Note {
    FailedOperations(u64),
    /// Percent of the datagrams.
    Lost(f64),
    BoundByGenerator,
    /// Another number of rounds than that of the table.
    Rounds(u32),
}

impl Note {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::FailedOperations(_) => format!("{} operations", self.brief()),
            _ => self.brief(),
        }
    }

    /// Without words that the header of a table implies.
    pub(crate) fn brief(&self) -> String {
        match self {
            Self::FailedOperations(failed) => format!("{} failed", count(*failed)),
            Self::Lost(percent) => format!("{} % lost", plain(*percent)),
            Self::BoundByGenerator => "bound by generator".to_owned(),
            Self::Rounds(n) => format!("n={n}"),
        }
    }
}

/// The notes of a measured cell.
pub(crate) fn notes(cell: &CellReport, entry: &TableCell, usual: Option<u32>) -> Vec<Note> {
    let failed: u64 = cell.errors.0.values().fold(0, |sum, count| sum.saturating_add(*count));
    let lost = cell.datagrams.as_ref().map_or(0.0, |datagrams| datagrams.lost_percent);
    let is_measured = entry.value.is_some();
    let n = entry.alone.map_or(0, |alone| alone.n);
    let is_told = entry.is_by_ratio() || Precision::has_trials(entry);
    let note = |is_so: bool, note: Note| (is_measured && is_so).then_some(note);
    [
        note(failed > 0, Note::FailedOperations(failed)),
        note(lost > 0.0, Note::Lost(lost)),
        note(cell.flags.contains(&Flag::BoundByGenerator), Note::BoundByGenerator),
        note(!is_told && Some(n) != usual, Note::Rounds(n)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Such as `, of 6 to 26 pairs`: of how many pairs the ratios of a table are.
pub(crate) fn of_pairs(table: &TableReport) -> String {
    let n = || table.cells.iter().filter_map(|cell| Some(cell.vs_baseline.as_ref()?.n));
    match (n().min(), n().max()) {
        (Some(1), Some(1)) => ", of one pair".to_owned(),
        (Some(least), Some(most)) if least == most => format!(", of {most} pairs"),
        (Some(least), Some(most)) => format!(", of {least} to {most} pairs"),
        _ => String::new(),
    }
}

fn caption(suite: &SuiteReport, table: &TableReport, usual: Option<u32>, precision: &Precision) -> String {
    let has_several = !further_metrics(table).is_empty();
    let better = match table.better {
        _ if table.truth_tolerance.is_some() => "true values are best",
        _ if has_several => "of latencies lower, of rates higher is better",
        Better::Higher => "higher is better",
        Better::Lower => "lower is better",
    };
    let named = |what: &str, with: fn(&TableCell) -> Option<&String>| {
        common_axes(suite, table, with).map_or(String::new(), |axes| format!("; {what} {axes}"))
    };
    let share = [
        named(
            if precision.has_changes() { "compared with" } else { "percent of the performance of" },
            |cell| Some(&cell.vs_baseline.as_ref()?.with),
        ),
        named("limit:", |cell| Some(&cell.vs_limit.as_ref()?.with)),
        named("reference:", |cell| Some(&cell.vs_reference.as_ref()?.with)),
    ]
    .concat();
    let tolerance = table.truth_tolerance.map(|share| format!("; right within {} %", plain(share * 100.0)));
    let share = share + tolerance.as_deref().unwrap_or_default();
    let unit = if has_several { words::table_unit(table.unit) } else { unit(table) };
    let how = match usual {
        None => return format!("in {unit}, {better}; nothing was measured"),
        Some(n) if table.cells.iter().any(TableCell::is_by_ratio) => format!(
            "in {unit}, {better}; baseline: {}; other rows: that value times their ratio{}",
            words::of_trials(n),
            of_pairs(table)
        ),
        Some(n) if n < FEWEST_ROUNDS => format!("median and range in {unit}, {better}; n={n}"),
        Some(n) => format!("median and 95 % interval in {unit}, {better}; n={n}"),
    };
    // Verdicts may be by the units of duets, of which there are more.
    let units = table.cells.iter().filter_map(|cell| cell.vs_baseline.as_ref()).map(|found| found.n).max();
    let has_few = units.or(usual).is_none_or(|n| n < FEWEST_ROUNDS) && !table.is_sequential;
    format!("{how}{share}{}", if has_few { "; too few for a verdict" } else { "" })
}

/// The axis values that all cells compared with share and no compared cell has: `path direct`.
fn common_axes(
    suite: &SuiteReport,
    table: &TableReport,
    with: fn(&TableCell) -> Option<&String>,
) -> Option<String> {
    let cell = |id: &String| suite.cells.iter().find(|cell| cell.id == *id);
    let pairs: Vec<(&CellReport, &CellReport)> =
        table.cells.iter().filter_map(|entry| Some((cell(&entry.id)?, cell(with(entry)?)?))).collect();
    let (_, first) = pairs.first()?;
    let differs = |axis: &String, value: &String| {
        pairs
            .iter()
            .all(|(cell, with)| with.axes.get(axis) == Some(value) && cell.axes.get(axis) != Some(value))
    };
    let common = named::named(first.axes.0.iter().filter(|(axis, value)| differs(axis, value)));
    Some(if common.is_empty() { "another row".to_owned() } else { common })
}
