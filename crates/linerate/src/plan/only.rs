//! `--only`: the cells that a user names by patterns.

use crate::error::Error;
use crate::measurement::PlannedSuite;
use globset::{Glob, GlobMatcher};

/// Patterns of ids; a cell that one of them matches is chosen, without patterns every cell.
pub(super) struct Only<'p>(Vec<Pattern<'p>>);

pub(super) struct Pattern<'p> {
    pub(super) text: &'p str,
    glob: GlobMatcher,
}

impl Pattern<'_> {
    /// The pattern matches `id`, or `suite:id`.
    fn matches(&self, suite: &str, id: &str) -> bool {
        self.glob.is_match(id) || self.glob.is_match(format!("{suite}:{id}"))
    }

    /// Whether it matches one of these cells (suite and id).
    pub(super) fn is_in(&self, cells: &[(String, String)]) -> bool {
        cells.iter().any(|(suite, id)| self.matches(suite, id))
    }
}

impl<'p> Only<'p> {
    /// # Errors
    /// A pattern that is no glob.
    pub(super) fn new(patterns: &'p [String]) -> Result<Self, Error> {
        let compile = |text: &'p String| {
            let glob = Glob::new(text).map_err(|e| Error::Input(format!("--only {text}: {e}")))?;
            Ok(Pattern { text, glob: glob.compile_matcher() })
        };
        patterns.iter().map(compile).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn has(&self, suite: &str, id: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|pattern| pattern.matches(suite, id))
    }

    /// The first pattern that matches none of these cells.
    pub(super) fn first_without(&self, cells: &[(String, String)]) -> Option<&Pattern<'p>> {
        self.0.iter().find(|pattern| !pattern.is_in(cells))
    }

    /// Drops the cells that are not chosen, but for those that the rest is compared with.
    pub(super) fn keep(&self, suite: &mut PlannedSuite) {
        if self.0.is_empty() {
            return;
        }
        let is_chosen = |id: &&String| self.has(&suite.name, id);
        let chosen: Vec<String> = suite.cells.iter().map(|c| &c.id).filter(is_chosen).cloned().collect();
        let mut kept: Vec<String> = Vec::new();
        for table in &suite.tables {
            for cell in
                suite.cells.iter().filter(|cell| table.cells.contains(&cell.id) && chosen.contains(&cell.id))
            {
                let baseline = cell.axes.with(&table.baseline);
                let needed = suite.cells.iter().filter(|c| c.axes == baseline && table.cells.contains(&c.id));
                kept.extend(needed.map(|c| c.id.clone()).chain([cell.id.clone()]));
            }
        }
        suite.cells.retain(|cell| kept.contains(&cell.id));
        for table in &mut suite.tables {
            table.cells.retain(|id| kept.contains(id));
            let used = |axis: &str, value: &String| {
                let in_table = suite.cells.iter().filter(|c| table.cells.contains(&c.id));
                in_table.into_iter().any(|c| c.axes.get(axis) == Some(value))
            };
            let (rows, columns) = (table.rows.clone(), table.columns.clone());
            table.row_values = table.row_values.iter().filter(|v| used(&rows, v)).cloned().collect();
            table.column_values = table.column_values.iter().filter(|v| used(&columns, v)).cloned().collect();
        }
        // A table that has only baselines of other tables left is removed.
        suite.tables.retain(|table| table.cells.iter().any(|id| chosen.contains(id)));
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::Choice;
    use crate::suite;
    use crate::system::Registry;
    use std::path::Path;

    #[test]
    fn an_id_that_only_the_complete_form_has_is_refused_with_what_to_leave_out() {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let registry = Registry::load(&home).unwrap();
        let chosen = suite::choose(suite::load_all(&home).unwrap(), &["proxy".to_owned()]).unwrap();
        let plan = |quick, only: &[&str]| {
            let only = only.iter().map(|&pattern| pattern.to_owned()).collect();
            crate::plan::suites(&chosen, &registry, &Choice { quick, only, ..Choice::default() })
        };
        let only = ["nginx/haproxy-tcp", "load/50/haproxy-http"];
        let error = plan(true, &only).unwrap_err().to_string();
        assert!(error.contains("load/50/haproxy-http") && error.contains("without --quick"), "{error}");
        assert!(plan(false, &only).is_ok());
    }
}
