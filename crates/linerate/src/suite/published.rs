//! `suites/published/<suite>.toml`: the figures of the document whose tables a suite repeats.

use crate::error::Error;
use crate::measurement::{
    Claim, DerivedForm, DerivedRow, DerivedTable, DocumentUnit, FigurePlace, Finding, Metric, Published,
    PublishedFigure, PublishedTable,
};
use crate::toml_file;
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// A file as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedFile {
    /// The subject of the document, in a line.
    document: String,
    /// Where it is, or its program.
    #[serde(default)]
    source: Option<String>,
    /// Absent where the document has none.
    #[serde(default)]
    date: Option<String>,
    machine: String,
    /// The differences from the document in every table, and why.
    #[serde(default)]
    differences: Vec<String>,
    tables: Vec<Entry>,
    #[serde(default)]
    derived: Vec<Derived>,
    #[serde(default)]
    findings: Vec<Finding>,
}

/// In the names of figures: the row of a derived table.
const ROW: &str = "{row}";

/// The number that the document computes of two figures in each row.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Derived {
    title: String,
    form: DerivedForm,
    /// Titles: that of the first figure and, where it is another, that of the second.
    tables: Vec<String>,
    /// Rows of those tables, with `{row}` in place of the row here.
    first: String,
    second: String,
    #[serde(default)]
    names: Option<[String; 2]>,
    rows: Vec<String>,
}

/// A table of the document.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    title: String,
    /// The table of the suite that repeats it.
    table: String,
    /// Operations of each figure that is a time for all of them.
    #[serde(default)]
    operations: Option<u64>,
    metric: Metric,
    /// The document's own unit.
    unit: DocumentUnit,
    rows: Vec<Row>,
}

/// A figure. It has the cell that repeats it, or the reason why none does.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    row: String,
    #[serde(default)]
    cell: Option<String>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    value: Option<f64>,
    #[serde(default)]
    range: Option<[f64; 2]>,
    /// In place of a value.
    #[serde(default)]
    text: Option<String>,
    /// Percent of the document's baseline.
    #[serde(default)]
    percent: Option<f64>,
    /// In place of the table's.
    #[serde(default)]
    metric: Option<Metric>,
    #[serde(default)]
    unit: Option<DocumentUnit>,
}

impl PublishedFile {
    /// The file beside a suite's; `None` where the suite repeats no document.
    ///
    /// # Errors
    /// The file is not valid, or a figure has neither a cell nor a reason; with the place.
    pub(super) fn beside(suite: &Path) -> Result<Option<Self>, Error> {
        let name = suite.file_name().unwrap_or_default();
        let path = suite.with_file_name("published").join(name);
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
        let file: Self = toml_file::parse(&path, &text)?;
        for (table, row) in
            file.tables.iter().flat_map(|table| table.rows.iter().map(move |row| (table, row)))
        {
            let place = format!("{}: {}, {}", path.display(), table.title, row.row);
            if row.cell.is_some() == row.reason.is_some() {
                return Err(Error::Input(format!("{place}: expected either `cell` or `reason`")));
            }
            let (metric, unit) = (row.metric.unwrap_or(table.metric), row.unit.unwrap_or(table.unit));
            if (metric == Metric::Seconds) && table.operations.is_none() {
                return Err(Error::Input(format!("{place}: expected `operations` of its table")));
            }
            if !unit.is_of(metric) {
                return Err(Error::Input(format!("{place}: {} is no unit of its metric", unit.name())));
            }
            if row.value.is_none() && row.range.is_none() && row.text.is_none() {
                return Err(Error::Input(format!("{place}: expected `value`, `range` or `text`")));
            }
        }
        check_figures(&file.planned()).map_err(|e| Error::Input(format!("{}: {e}", path.display())))?;
        Ok(Some(file))
    }

    /// Whether a cell of this table repeats a figure; other tables have only reasons why none does.
    pub(super) fn is_repeated_by(&self, name: &str) -> bool {
        let tables = self.tables.iter().filter(|table| table.table == name);
        tables.flat_map(|table| &table.rows).any(|row| row.cell.is_some())
    }

    /// The document as `run.json` has it.
    pub(super) fn planned(&self) -> Published {
        Published {
            document: self.document.clone(),
            source: self.source.clone(),
            date: self.date.clone(),
            machine: self.machine.clone(),
            differences: self.differences.clone(),
            tables: self.tables.iter().map(Entry::planned).collect(),
            derived: self.derived.iter().map(Derived::planned).collect(),
            findings: self.findings.clone(),
        }
    }
}

impl Entry {
    fn planned(&self) -> PublishedTable {
        let figure = |row: &Row| PublishedFigure {
            row: row.row.clone(),
            cell: row.cell.clone(),
            reason: row.reason.clone(),
            value: row.value,
            range: row.range,
            text: row.text.clone(),
            percent: row.percent,
            metric: row.metric.unwrap_or(self.metric),
            unit: row.unit.unwrap_or(self.unit),
        };
        PublishedTable {
            title: self.title.clone(),
            table: self.table.clone(),
            operations: self.operations,
            figures: self.rows.iter().map(figure).collect(),
        }
    }
}

impl Derived {
    fn planned(&self) -> DerivedTable {
        let [first, second] = [self.tables.first(), self.tables.last()];
        let place = |table: Option<&String>, pattern: &str, row: &str| {
            [table.cloned().unwrap_or_default(), pattern.replace(ROW, row)]
        };
        let row = |row: &String| DerivedRow {
            row: row.clone(),
            figures: [place(first, &self.first, row), place(second, &self.second, row)],
        };
        DerivedTable {
            title: self.title.clone(),
            form: self.form,
            names: self.names.clone(),
            rows: self.rows.iter().map(row).collect(),
        }
    }
}

/// # Errors
/// A figure that is compared is none of the document, or is another quantity than the one beside it.
fn check_figures(published: &Published) -> Result<(), String> {
    let derived = published.derived.iter().flat_map(|table| &table.rows).map(|row| &row.figures[..]);
    for places in derived.chain(published.findings.iter().map(|finding| &finding.figures[..])) {
        let figure = |place: &FigurePlace| {
            published.figure(place).ok_or_else(|| format!("{}, {}: no such figure", place[0], place[1]))
        };
        let figures = places.iter().map(figure).collect::<Result<Vec<_>, _>>()?;
        if figures.windows(2).any(|pair| pair[0].metric != pair[1].metric) {
            return Err(format!("{:?} are of two quantities", places.concat()));
        }
    }
    for finding in &published.findings {
        let wanted = if finding.claim == Claim::Fails { 1 } else { 2 };
        let cells = finding.readings.iter().map(|reading| reading.cells.len());
        if std::iter::once(finding.figures.len()).chain(cells).any(|number| number != wanted) {
            return Err(format!("`{}`: expected {wanted} figures, and as many cells", finding.text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::measurement::Claim;
    use crate::suite::{Form, load_all};
    use crate::system::Registry;
    use linerate_analysis::judge::figure_ratio;
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    #[test]
    fn every_figure_of_the_five_documents_has_its_cell_or_the_reason_why_not() {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let registry = Registry::load(&home).unwrap();
        let mut counts = BTreeMap::new();
        for suite in load_all(&home).unwrap().iter().filter(|suite| suite.has_published()) {
            let whole = suite.expand(&registry, Form::Complete).unwrap();
            let alone = Form::PublishedQuick;
            let alone = suite.expand(&registry, alone).unwrap();
            let repeats = |name: &str| suite.published.as_ref().unwrap().is_repeated_by(name);
            assert!(alone.tables.iter().all(|table| repeats(&table.name)), "{}", suite.name);
            let file = suite.published.as_ref().unwrap();
            for entry in &file.tables {
                let table = whole.tables.iter().find(|table| table.name == entry.table);
                let table =
                    table.unwrap_or_else(|| panic!("{}: there is no table {}", suite.name, entry.table));
                let has_cells = entry.rows.iter().any(|row| row.cell.is_some());
                let is_alone = alone.tables.iter().any(|other| other.name == entry.table);
                assert!(is_alone || !has_cells, "{}", entry.table);
                for row in &entry.rows {
                    let place = format!("{}, {}: {}", suite.name, entry.title, row.row);
                    assert!(row.cell.is_some() || row.reason.is_some(), "{place}");
                    if let Some(cell) = &row.cell {
                        assert!(table.cells.contains(cell), "{place}: {} has no cell {cell}", entry.table);
                        let metric = row.metric.unwrap_or(entry.metric);
                        assert!(
                            table.metrics().any(|shown| shown == metric),
                            "{place}: {metric:?} is not shown"
                        );
                    }
                }
                *counts.entry(suite.name.clone()).or_insert(0) += entry.rows.len();
            }
        }
        // Counted in the documents: rows of their tables, and every value of a row with several.
        let counted =
            [("netstack", 12), ("proxy", 63), ("runtime", 136), ("transport", 17), ("websocket", 27)];
        let counted: Vec<(String, usize)> = counted.map(|(name, n)| (name.to_owned(), n)).into();
        assert_eq!(counts.into_iter().collect::<Vec<_>>(), counted);
    }

    #[test]
    fn the_published_tables_alone_have_all_cells_of_figures_and_fit_into_three_quarters_of_an_hour() {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let registry = Registry::load(&home).unwrap();
        let mut minutes = [0.0, 0.0];
        for suite in load_all(&home).unwrap().iter().filter(|suite| suite.has_published()) {
            for (form, minutes) in [Form::Published, Form::PublishedQuick].into_iter().zip(&mut minutes) {
                let alone = suite.expand(&registry, form).unwrap();
                assert!(alone.rounds >= 6, "{}: fewer have no interval of 95 %", suite.name);
                *minutes += alone.precision.map_or(0.0, |precision| precision.time.as_secs_f64()) / 60.0;
                let figures = alone.published.iter().flat_map(|file| &file.tables).flat_map(|t| &t.figures);
                let mut cells = figures.filter_map(|figure| figure.cell.as_ref());
                let has = |id: &String| alone.cells.iter().any(|cell| cell.id == *id);
                assert!(form == Form::PublishedQuick || cells.all(has), "{}", suite.name);
            }
        }
        // Pairs over the link of a LAN take four minutes, or one, besides.
        assert!(minutes[0] <= 41.0 && minutes[1] <= 11.0, "{minutes:?}");
    }

    #[test]
    fn the_quick_form_of_a_suite_has_rows_of_its_document() {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let registry = Registry::load(&home).unwrap();
        for suite in load_all(&home).unwrap() {
            let Some(file) = &suite.published else { continue };
            let quick = suite.expand(&registry, Form::Quick).unwrap();
            let figures = file.tables.iter().flat_map(|entry| &entry.rows);
            let cells = figures.filter_map(|row| row.cell.as_ref());
            let repeated: BTreeSet<&String> =
                cells.filter(|id| quick.cells.iter().any(|cell| cell.id == **id)).collect();
            assert!(repeated.len() >= 2, "{}: {repeated:?}", suite.name);
        }
    }

    /// Each finding is true of the document's own figures: only then can a run contradict it.
    #[test]
    fn every_finding_is_one_of_the_documents_figures_and_its_cells_are_in_the_suite() {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let registry = Registry::load(&home).unwrap();
        for suite in load_all(&home).unwrap() {
            let whole = suite.expand(&registry, Form::Complete).unwrap();
            let Some(published) = whole.published else { continue };
            assert!(published.findings.len() >= 5, "{}", suite.name);
            for finding in &published.findings {
                let figures: Vec<_> =
                    finding.figures.iter().map(|place| published.figure(place).unwrap()).collect();
                let is_true = match (finding.claim, &figures[..]) {
                    (Claim::Fails, [figure]) => figure.text.is_some(),
                    (Claim::Ahead, [a, b]) => figure_ratio([a, b]).unwrap() > 1.0,
                    (Claim::Between([low, high]), [a, b]) => {
                        (low..=high).contains(&figure_ratio([a, b]).unwrap())
                    }
                    _ => false,
                };
                assert!(is_true, "{}: {}", suite.name, finding.text);
                for cell in finding.readings.iter().flat_map(|reading| &reading.cells) {
                    let is_there = whole.cells.iter().any(|planned| planned.id == *cell);
                    assert!(is_there, "{}: {}: no cell {cell}", suite.name, finding.text);
                }
            }
        }
    }
}
