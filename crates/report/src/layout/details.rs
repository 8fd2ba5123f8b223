//! Details of each cell, of its trials alone: value, CPU cost, latency, bottleneck, failed operations, flags.

use super::{TextTable, cells_of, path, transport};
use crate::model::{
    CellReport, CpuCost, OutcomeWord, Sensitivity, ShareOf, SuiteReport, TableReport, UsageReport,
};
use crate::numbers::{Digits, Ends, TimeUnit, brief_percent, count, longer, percent, plain, with_interval};
use crate::words;
use linerate_analysis::stats::cost::Consumer;
use linerate_analysis::stats::latency::Latency;
use linerate_contract::Role;
use std::collections::BTreeSet;

/// Amount of detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Medians alone, to fit a terminal.
    Brief,
    /// With intervals and latencies.
    Full,
}

pub(super) struct Column<'a> {
    pub(super) header: String,
    pub(super) text: Box<dyn Fn(&CellReport) -> String + 'a>,
}

impl<'a> Column<'a> {
    pub(super) fn new(header: impl Into<String>, text: impl Fn(&CellReport) -> String + 'a) -> Self {
        Self { header: header.into(), text: Box::new(text) }
    }

    pub(super) fn has_text(&self, cells: &[&CellReport]) -> bool {
        cells.iter().any(|cell| !(self.text)(cell).is_empty())
    }
}

/// Details of a table's measured cells, without those that an earlier table shows.
pub(crate) fn details(suite: &SuiteReport, table: &TableReport, depth: Depth) -> TextTable {
    let earlier: BTreeSet<&str> = suite
        .tables
        .iter()
        .take_while(|other| other.name != table.name)
        .flat_map(|other| other.cells.iter().map(|cell| cell.id.as_str()))
        .collect();
    let is_new = |cell: &&CellReport| cell.outcome == OutcomeWord::Ok && !earlier.contains(cell.id.as_str());
    let cells: Vec<&CellReport> = cells_of(suite, table).filter(is_new).collect();
    let columns: Vec<Column<'_>> =
        columns(&cells, depth).into_iter().filter(|c| c.has_text(&cells)).collect();
    let row = |cell: &&CellReport| columns.iter().map(|column| (column.text)(cell)).collect();
    TextTable::new("Each cell by its trials alone", columns.iter().map(|column| column.header.as_str()))
        .with_rows(cells.iter().map(row))
}

/// All details of one cell, by name.
pub(crate) fn facts_of(cell: &CellReport) -> Vec<(String, String)> {
    let named =
        |column: Column<'_>| (column.header.replace('\n', " ").replace("- ", ""), (column.text)(cell));
    columns(&[cell], Depth::Full).into_iter().map(named).filter(|(_, text)| !text.is_empty()).collect()
}

fn columns<'a>(cells: &[&CellReport], depth: Depth) -> Vec<Column<'a>> {
    let mut columns = vec![
        Column::new("cell", |cell| cell.id.clone()),
        Column::new("n", |cell| cell.n.to_string()),
        Column::new("alone", alone(cells)),
        share("of limit", depth, |cell| cell.vs_limit.as_ref()),
        share("of\nreference", depth, |cell| cell.vs_reference.as_ref()),
    ];
    let unit = if cells.iter().flat_map(|c| c.cpu.values()).any(|cost| cost.us_per_mb.is_some()) {
        "µs/MB"
    } else {
        "µs/op"
    };
    let consumers: BTreeSet<Consumer> = cells.iter().flat_map(|cell| cell.cpu.keys().copied()).collect();
    for consumer in consumers {
        let separator = if depth == Depth::Full { " CPU " } else { "\n" };
        columns.push(Column::new(format!("{consumer}{separator}{unit}"), move |cell| {
            cell.cpu.get(&consumer).map_or(String::new(), |c| cost(c, depth))
        }));
    }
    columns.extend(transport::columns(cells, depth));
    columns.extend(path::columns(depth));
    columns.extend([
        usage("descriptors", |h| format!("{} to {}", h.descriptors_before, h.descriptors_after)),
        usage("memory MiB", |h| format!("{} to {}", plain(h.memory_mib_before), plain(h.memory_mib_after))),
    ]);
    let bound = Column::new("bound by", |cell| cell.bound_by.map(words::bound).unwrap_or_default());
    let probed = Column::new("sensitivity", sensitivities);
    if depth == Depth::Brief {
        let notes = |cell: &CellReport| {
            let parts = [errors(cell), words::flags(&cell.flags)];
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
        };
        columns.extend([bound, probed, Column::new("failed operations, flags", notes)]);
        return columns;
    }
    type Percentile = fn(&Latency) -> f64;
    let percentiles: [(&str, Percentile); 7] = [
        ("mean", |l| l.mean),
        ("min", |l| l.min),
        ("p50", |l| l.p50),
        ("p90", |l| l.p90),
        ("p99", |l| l.p99),
        ("p99.9", |l| l.p999),
        ("max", |l| l.max),
    ];
    // A row is read from the one to the other.
    let latencies = cells.iter().filter_map(|cell| cell.latency_us.as_ref());
    let unit = TimeUnit::fitting(latencies.flat_map(|latency| percentiles.map(|(_, of)| of(latency))));
    for (name, of) in percentiles {
        let text = move |latency: &Latency| plain(unit.of_micros(of(latency)));
        let text = move |cell: &CellReport| cell.latency_us.as_ref().map_or_else(String::new, text);
        columns.push(Column::new(format!("{name} {}", unit.name()), text));
    }
    columns.extend([
        bound,
        probed,
        Column::new("TLS of the client", |cell| cell.tls.clone().unwrap_or_default()),
        Column::new("failed operations", errors),
        Column::new("flags", |cell| words::flags(&cell.flags)),
    ]);
    columns
}

fn share<'a>(header: &str, depth: Depth, of: fn(&CellReport) -> Option<&ShareOf>) -> Column<'a> {
    let text = move |cell: &CellReport, share: &ShareOf| match depth {
        _ if words::is_cost(cell.unit) => longer(share.ratio, share),
        Depth::Brief => brief_percent(share.ratio),
        Depth::Full => percent(share.ratio, share),
    };
    Column::new(header, move |cell| of(cell).map_or(String::new(), |share| text(cell, share)))
}

fn usage<'a>(what: &str, text: fn(&UsageReport) -> String) -> Column<'a> {
    Column::new(format!("server\n{what}"), move |cell| cell.usage.as_ref().map_or(String::new(), text))
}

/// The largest first, each with its interval; a line for each role.
fn sensitivities(cell: &CellReport) -> String {
    let mut roles: Vec<(&Role, &Sensitivity)> = cell.sensitivity.iter().collect();
    roles.sort_by(|a, b| b.1.value.total_cmp(&a.1.value));
    let text = |(role, found): &(&Role, &Sensitivity)| match found.ci95 {
        Some([low, high]) => format!("{role} {:.2} ({low:.2} to {high:.2})", found.value),
        None => format!("{role} {:.2}, n={}", found.value, found.n),
    };
    roles.iter().map(text).collect::<Vec<_>>().join(",\n")
}

/// The value of the trials alone, which the row of a cell with a ratio has not: `0.53 (n=3, 0.51 to 0.55)`.
fn alone(cells: &[&CellReport]) -> impl Fn(&CellReport) -> String + use<> {
    let is_time = |cell: &&&CellReport| cell.unit.metric.is_latency();
    let unit = TimeUnit::fitting(cells.iter().filter(is_time).filter_map(|cell| Some(cell.alone?.value)));
    move |cell| {
        let Some(alone) = cell.alone else { return String::new() };
        let ends = alone.range.map_or(alone.ci95.into(), |range| Ends::RangeOf(alone.n, range));
        let text = |in_unit: fn(TimeUnit, f64) -> f64| {
            Digits::OF_VALUES.text(in_unit(unit, alone.value), ends.map(|end| in_unit(unit, end)))
        };
        if is_time(&&cell) { text(TimeUnit::of_micros) + " " + unit.name() } else { text(|_, value| value) }
    }
}

fn cost(cost: &CpuCost, depth: Depth) -> String {
    match (cost.micros(), cost.ci95) {
        (Some(micros), Some(interval)) if depth == Depth::Full => with_interval(micros, interval),
        (Some(micros), _) => plain(micros),
        (None, _) => String::new(),
    }
}

fn errors(cell: &CellReport) -> String {
    let errors = &cell.errors.0;
    if errors.is_empty() {
        return String::new();
    }
    let kinds: Vec<String> =
        errors.iter().map(|(kind, times)| format!("{} {}", kind.name(), count(*times))).collect();
    let tried = errors.values().fold(cell.operations, |sum, times| sum.saturating_add(*times));
    format!("{} of {}", kinds.join(", "), count(tried))
}
