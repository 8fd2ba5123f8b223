//! Names in a suite file: unknown ones are refused with the nearest known one, and with their line.

use super::file::{Table, Variants};
use super::path::{self, IMPAIRMENTS};
use crate::parameters::Parameters;
use crate::system::template;
use linerate_contract::nearest::suggestion;
use linerate_contract::options::CONTRACT_OPTIONS;
use std::collections::BTreeSet;

/// Checks that every parameter, axis and option of the table has an effect.
///
/// A parameter or an axis of numbers must be one of [`Parameters`], or a template that decides what is
/// measured must use it. An axis of words that only `id` uses is a label.
///
/// # Errors
/// The key, and the nearest known name.
pub(super) fn check(table: &Table, axes: &[(String, Vec<String>)]) -> Result<(), String> {
    let used = used_names(table)?;
    let of_paths = || IMPAIRMENTS.iter().copied().chain(["routers"]);
    let is_known = |name: &str| Parameters::NAMES.contains(&name) || used.contains(name);
    let has_effect = |name: &str| is_known(name) || of_paths().any(|known| known == name);
    let known = || Parameters::NAMES.iter().copied().chain(used.iter().map(String::as_str)).chain(of_paths());
    for (key, name) in parameter_names(table) {
        if !is_known(name) {
            return Err(format!(
                "{key}.{name}: `{name}` is neither a parameter nor used by a template; {}",
                suggestion(name, known())
            ));
        }
    }
    for (name, values) in axes {
        if !has_effect(name) && values.iter().all(|value| value.parse::<u64>().is_ok()) {
            return Err(format!(
                "axes.{name}: `{name}` is neither a parameter nor used by roles, layer, parameters \
                 or options; {}",
                suggestion(name, known())
            ));
        }
    }
    let options = || CONTRACT_OPTIONS.iter().map(|(name, _)| *name);
    for name in table.options.keys() {
        if !options().any(|known| known == name) {
            return Err(format!(
                "options.{name}: `{name}` is not an option of the contract; {}",
                suggestion(name, options())
            ));
        }
    }
    Ok(())
}

fn parameter_names(table: &Table) -> impl Iterator<Item = (&'static str, &str)> {
    let own = table.parameters.keys().map(|name| ("parameters", name.as_str()));
    let of_forms = [("quick.parameters", &table.quick), ("published.parameters", &table.published)];
    own.chain(
        of_forms
            .into_iter()
            .flat_map(|(key, changes)| changes.parameters.keys().map(move |name| (key, name.as_str()))),
    )
}

/// Variables of the templates that decide what is measured.
fn used_names(table: &Table) -> Result<BTreeSet<String>, String> {
    let of_forms =
        [&table.quick, &table.published].into_iter().flat_map(|changes| changes.parameters.values());
    let amounts = table.parameters.values().chain(of_forms);
    let texts = [&table.layer, &table.workload]
        .into_iter()
        .chain(table.roles.values().flat_map(Variants::names))
        .chain(table.options.values())
        .chain(amounts.filter_map(|amount| amount.template()));
    let mut used = BTreeSet::new();
    let of_path = table.path.iter().flat_map(path::texts);
    for text in texts.map(String::as_str).chain(of_path) {
        used.extend(template::variables(text)?);
    }
    Ok(used)
}

/// The line of a key in a table of a suite file; the table's first line if the key is not found.
pub(super) fn line_of(text: &str, table: &str, message: &str) -> Option<usize> {
    let (key, _) = message.split_once(':')?;
    let name = key.rsplit(['.', ',', ' ']).next()?;
    let start = text.lines().position(|line| line.trim() == format!("name = \"{table}\""))?;
    let is_key = |line: &str| {
        let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'));
        words.any(|word| word == name)
    };
    let of_table = text.lines().skip(start).take_while(|line| line.trim() != "[[tables]]");
    Some(start + 1 + of_table.into_iter().position(is_key).unwrap_or(0))
}
