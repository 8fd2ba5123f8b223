//! The cells that a user chooses of the suites.

use super::only::{Only, Pattern};
use super::{Choice, builds, pairs, probes};
use crate::error::Error;
use crate::measurement::PlannedSuite;
use crate::suite::{Form, Suite};
use crate::system::Registry;
use linerate_contract::nearest::nearest;
use std::collections::BTreeSet;

/// The chosen cells of the suites, in order; versions are unknown until [`crate::programs::resolve`].
///
/// # Errors
/// Suites that do not fit together, or a pattern that matches no cell.
pub fn suites(suites: &[Suite], registry: &Registry, choice: &Choice) -> Result<Vec<PlannedSuite>, Error> {
    let only = Only::new(&choice.only)?;
    let (mut planned, mut all) = (Vec::new(), Vec::new());
    for suite in suites.iter().filter(|suite| !choice.published || suite.has_published()) {
        let mut expanded = suite.expand(registry, choice.form())?;
        all.extend(expanded.cells.iter().map(|cell| (suite.name.clone(), cell.id.clone())));
        if let Some(rounds) = choice.rounds {
            expanded.rounds = rounds;
            expanded.precision = None;
        }
        let is_chosen = |id: &str| only.has(&suite.name, id);
        let has_chosen = expanded.cells.iter().any(|cell| is_chosen(&cell.id));
        match &choice.comparison {
            None => only.keep(&mut expanded),
            Some(comparison) => {
                // Its units end by its own rule.
                expanded.precision = None;
                builds::split(&mut expanded, registry, comparison, is_chosen)?;
            }
        }
        expanded.pairs = pairs::plan_pairs(&expanded, registry);
        if choice.probe {
            expanded.probes = probes::plan_probes(&expanded, registry);
        }
        if has_chosen {
            planned.push(expanded);
        }
    }
    if all.is_empty() && choice.published {
        let names: Vec<&str> = suites.iter().map(|suite| suite.name.as_str()).collect();
        return Err(Error::Input(format!(
            "--published: {} has no table that repeats a document's; without it there are others",
            names.join(", ")
        )));
    }
    if let Some(pattern) = only.first_without(&all) {
        return Err(Error::Input(no_such_cell(pattern, &all, suites, registry)?));
    }
    if let Some(comparison) = &choice.comparison {
        builds::check(&planned, registry, comparison)?;
    }
    // The first table is ready early: suites with the fewest systems to build come first.
    let is_first = |name: &str| suites.iter().any(|suite| suite.name == name && suite.file.first);
    planned.sort_by_key(|suite| (built_systems(suite, registry).len(), !is_first(&suite.name)));
    Ok(planned)
}

/// Why a pattern chooses nothing, and what to do.
fn no_such_cell(
    pattern: &Pattern<'_>,
    all: &[(String, String)],
    suites: &[Suite],
    registry: &Registry,
) -> Result<String, Error> {
    let mut complete = Vec::new();
    for suite in suites {
        let cells = suite.expand(registry, Form::Complete)?.cells;
        complete.extend(cells.into_iter().map(|cell| (suite.name.clone(), cell.id)));
    }
    let text = pattern.text;
    if pattern.is_in(&complete) {
        return Ok(format!(
            "--only {text}: no cell of this form has such an id; \
             without --quick and --published there is one"
        ));
    }
    let ids = all.iter().chain(&complete).map(|(_, id)| id.as_str());
    let next = nearest(text, ids)
        .map_or("`linerate list cells` shows them".to_owned(), |id| format!("nearest: {id:?}"));
    Ok(format!("--only {text}: no cell has such an id; {next}"))
}

/// The systems of a suite that linerate builds itself.
pub(crate) fn built_systems<'r>(suite: &PlannedSuite, registry: &'r Registry) -> BTreeSet<&'r str> {
    let systems = suite.cells.iter().flat_map(|cell| &cell.systems);
    let systems = systems.filter_map(|system| Some(registry.variant(&system.name, system.role).ok()?.system));
    systems.filter(|system| system.manifest.build.is_some()).map(|system| system.name.as_str()).collect()
}
