//! Tables whose true values are known: `truth = { tolerance = 0.1, values = { p99-latency = "90ms" } }`.

use super::file::Table;
use crate::measurement::Truth;
use std::collections::BTreeMap;

/// The truth of a table; `None` for a table that compares its cells with a baseline.
///
/// # Errors
/// A table with both or with neither, a metric that it does not show or that is no latency, or a time that
/// cannot be read; with the key.
pub(super) fn truth(table: &Table) -> Result<Option<Truth>, String> {
    let Some(entry) = &table.truth else {
        let has_baseline = !table.baseline.is_empty();
        return has_baseline.then_some(None).ok_or("baseline: a table needs one, or a `truth`".to_owned());
    };
    let others = [&table.limit, &table.reference, &table.scaling];
    let compares = !table.baseline.is_empty() || others.iter().any(|other| other.is_some());
    if compares || table.best_of.is_some() {
        return Err("truth: its cells are compared with the truth, and so with no other cell".to_owned());
    }
    if !(entry.tolerance > 0.0 && entry.tolerance < 1.0) {
        return Err("truth.tolerance: expected a share such as 0.1".to_owned());
    }
    let mut values = BTreeMap::new();
    for (metric, text) in &entry.values {
        if !(*metric == table.metric || table.also.contains(metric)) || !metric.is_latency() {
            return Err("truth.values: expected latencies that the table shows".to_owned());
        }
        let time = humantime::parse_duration(text).ok().filter(|time| !time.is_zero());
        let time =
            time.ok_or_else(|| format!("truth.values: `{text}` is not a time above 0, such as \"90ms\""))?;
        values.insert(*metric, time.into());
    }
    Ok(Some(Truth { tolerance: entry.tolerance, values }))
}
