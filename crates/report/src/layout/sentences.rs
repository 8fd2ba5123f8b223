//! The comparisons of a table as sentences.

use crate::model::{Comparison, SuiteReport, TableCell, TableReport};
use crate::numbers::{Ends, counted, longer, measured, percent, sentence, shows_bias};
use crate::words;

/// Up to this number, all comparisons become sentences.
const FEW: usize = 6;

/// The comparisons of a table as sentences; in a large table the best and the worst of each column.
pub(crate) fn sentences(suite: &SuiteReport, table: &TableReport) -> Vec<String> {
    let compared: Vec<(&str, &Comparison)> =
        table.main_cells().filter_map(|cell| Some((cell.id.as_str(), cell.vs_baseline.as_ref()?))).collect();
    let chosen: Vec<&(&str, &Comparison)> = if compared.len() <= FEW {
        compared.iter().collect()
    } else {
        let of_column = |column: &String| {
            let here = compared.iter().filter(|(id, _)| is_in_column(suite, table, id, column));
            best_and_worst(here.collect())
        };
        table.column_values.iter().flat_map(of_column).collect()
    };
    let is_cost = table.quantity().is_some_and(words::is_cost);
    let best_of = table.best_of.iter().map(|result| {
        let metric = words::metric(result.metric);
        let found = sentence(&result.id, &result.vs_best, words::is_cost(result.metric));
        format!("best of the competitors, {metric}: {found}")
    });
    let scaling = table.main_cells().filter_map(|cell| {
        let found = cell.scaling.as_ref()?;
        Some(format!("scaling: {}", sentence(&cell.id, found, is_cost)))
    });
    let sentences = chosen.into_iter().map(|(id, comparison)| sentence(id, comparison, is_cost));
    sentences
        .chain(scaling)
        .chain(best_of)
        .chain(table.aa.as_ref().map(|control| aa(table, control)))
        .collect()
}

/// Contradictions between trials alone and the ratios of the rows, by the first metric, in words: a row has
/// one number.
pub(crate) fn warnings(table: &TableReport) -> Vec<String> {
    let warning = |entry: &TableCell| {
        let found = entry.vs_baseline.as_ref()?;
        let alone = found.denied_by()?;
        let end = if found.is_in_doubt() { "no verdict" } else { "the row shows the pairs" };
        let is_cost = table.quantity().is_some_and(words::is_cost);
        let share = |ratio: f64, ends: Ends| if is_cost { longer(ratio, ends) } else { percent(ratio, ends) };
        Some(format!(
            "warning: {} has {} {} {} in {} alone, and {} in pairs: {end}",
            entry.id,
            share(alone.ratio, alone.ci95.into()),
            if is_cost { "against" } else { "of" },
            found.with,
            counted(alone.n, "trial"),
            share(found.ratio, found.into()),
        ))
    };
    table.main_cells().filter_map(warning).collect()
}

fn aa(table: &TableReport, control: &Comparison) -> String {
    let end = match table.smallest_bias {
        _ if table.control_fails() => "; the verdicts of this table's duets are withdrawn".to_owned(),
        Some(bias) => format!("; {}", shows_bias(bias)),
        None => String::new(),
    };
    let is_cost = table.quantity().is_some_and(words::is_cost);
    format!("A/A: {}{end}", measured(&control.with, control, is_cost))
}

fn is_in_column(suite: &SuiteReport, table: &TableReport, id: &str, column: &str) -> bool {
    suite.cells.iter().any(|cell| cell.id == id && cell.axes.get(&table.columns) == Some(column))
}

fn best_and_worst<'a>(
    mut compared: Vec<&'a (&'a str, &'a Comparison)>,
) -> Vec<&'a (&'a str, &'a Comparison)> {
    compared.sort_by(|a, b| b.1.ratio.total_cmp(&a.1.ratio));
    if compared.len() > 2 {
        compared.drain(1..compared.len() - 1);
    }
    compared
}
