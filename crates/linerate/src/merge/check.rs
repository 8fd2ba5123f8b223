//! Whether two runs can be in one report.

use super::Source;
use crate::error::Error;
use crate::measurement::{Host, PlannedSuite, PlannedTable};
use serde::Serialize;
use serde_json::Value;

/// # Errors
/// The runs are of one host and have a cell in common, their hosts are two machines of one name, or a suite
/// is not the same in both.
pub(super) fn fit(earlier: &Source, source: &Source) -> Result<(), Error> {
    let [a, b] = [earlier, source].map(|source| source.folder.display());
    if earlier.host == source.host && machine(&earlier.run.host) != machine(&source.run.host) {
        let name = &source.host;
        return Err(Error::Input(format!(
            "{a} and {b} are of two machines or kernels with the name `{name}`: give one of them another \
             name, such as `{name}-2={b}`"
        )));
    }
    for suite in &source.run.suites {
        let Some(other) = earlier.run.suites.iter().find(|other| other.name == suite.name) else { continue };
        if let Some(difference) = difference(other, suite) {
            return Err(Error::Input(format!(
                "{a} and {b}: the suite `{}` is not the same in both: {difference}; measure both with the \
                 same version of the suite, and both with or without --quick",
                suite.name
            )));
        }
        let is_there = |id: &String| other.cells.iter().any(|cell| cell.id == *id);
        let same = suite.cells.iter().map(|cell| &cell.id).find(|id| is_there(id));
        if let Some(cell) = same.filter(|_| earlier.host == source.host) {
            return Err(Error::Input(format!(
                "{a} and {b} are both of the host `{}` and have both measured `{cell}` of `{}`: give only \
                 one of them, or, if these are two machines, name one: `NAME={b}`",
                source.host, suite.name
            )));
        }
    }
    Ok(())
}

fn machine(host: &Host) -> (&str, &str, u32) {
    (&host.kernel, &host.cpu_model, host.cpus)
}

/// The first difference of cells and tables that are in both: a run may have a part of a suite.
fn difference(a: &PlannedSuite, b: &PlannedSuite) -> Option<String> {
    let cell = b.cells.iter().find_map(|cell| {
        let other = a.cells.iter().find(|other| other.id == cell.id)?;
        let keys = differing_keys(&other.definition(), &cell.definition())?;
        Some(format!("`{}` has other {keys}", cell.id))
    });
    let table = || {
        b.tables.iter().find_map(|table| {
            let other = a.tables.iter().find(|other| other.name == table.name)?;
            let keys = differing_keys(&definition(other), &definition(table))?;
            Some(format!("the table `{}` has other {keys}", table.name))
        })
    };
    cell.or_else(table)
}

/// A table without what depends on the cells of a run.
fn definition(table: &PlannedTable) -> PlannedTable {
    let none = Vec::new;
    PlannedTable {
        cells: none(),
        row_values: none(),
        column_values: none(),
        notes: none(),
        title: String::new(),
        ..table.clone()
    }
}

/// The keys whose values differ, as run.json has them; `None` if nothing differs.
fn differing_keys(a: &impl Serialize, b: &impl Serialize) -> Option<String> {
    let [a, b] = [serde_json::to_value(a), serde_json::to_value(b)]
        .map(|value| value.expect("plans have string keys only"));
    let (Value::Object(a), Value::Object(b)) = (a, b) else { return None };
    let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
    let differing: Vec<&str> = keys.filter(|key| a.get(*key) != b.get(*key)).map(String::as_str).collect();
    (!differing.is_empty()).then(|| differing.join(", "))
}
