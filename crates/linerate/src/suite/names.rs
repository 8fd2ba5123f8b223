//! Names in a suite file: unknown ones are refused with the nearest known one, and with their line.

use super::file::{Table, Variants};
use super::path;
use crate::parameters::Parameters;
use crate::path::IMPAIRMENTS;
use crate::system::{Registry, SystemVariant, template};
use linerate_contract::Role;
use linerate_contract::nearest::suggestion;
use linerate_contract::options::CONTRACT_OPTIONS;
use std::collections::BTreeSet;

/// The axes of all forms, if they have each value of `no-choice`.
///
/// # Errors
/// The value, and the nearest one of the axes.
pub(super) fn with_no_choices(
    table: &Table,
    axes: Vec<(String, Vec<String>)>,
) -> Result<Vec<(String, Vec<String>)>, String> {
    let values = || axes.iter().flat_map(|(_, values)| values).map(String::as_str);
    match table.no_choice.iter().find(|one| values().all(|value| value != *one)) {
        Some(one) => {
            Err(format!("no-choice: `{one}` is not a value of its axes; {}", suggestion(one, values())))
        }
        None => Ok(axes),
    }
}

/// Checks that every parameter, axis and option of the table has an effect.
///
/// A parameter or an axis of numbers must be one of [`Parameters`], or a template that decides what is
/// measured must use it. An axis of words that only `id` uses is a label.
///
/// # Errors
/// The key, and the nearest known name.
pub(super) fn check(
    table: &Table,
    registry: &Registry,
    axes: &[(String, Vec<String>)],
) -> Result<(), String> {
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
    let of_systems: BTreeSet<&str> =
        registry.variants().flat_map(|one| &one.variant.own_options).map(String::as_str).collect();
    let options = || CONTRACT_OPTIONS.iter().map(|(name, _)| *name).chain(of_systems.iter().copied());
    for name in table.options.keys() {
        if !options().any(|known| known == name) {
            return Err(format!(
                "options.{name}: `{name}` is neither an option of the contract nor one of a system's own; {}",
                suggestion(name, options())
            ));
        }
    }
    Ok(())
}

/// Checks that options of the table that are not the contract's have their effect in this system.
///
/// # Errors
/// The first one that would be refused or ignored: its key, the system, what its manifest lacks.
pub(super) fn check_own_options(table: &Table, chosen: SystemVariant<'_>, role: Role) -> Result<(), String> {
    let is_of_contract = |name: &String| CONTRACT_OPTIONS.iter().any(|(known, _)| known == name);
    let mut own = table.options.keys().filter(|name| !is_of_contract(name));
    let lacking = own.find_map(|name| Some((name, chosen.lacks_option(role, name)?)));
    lacking.map_or(Ok(()), |(name, why)| {
        let (variant, system) = (chosen.name, &chosen.system.name);
        Err(format!(
            "options.{name}: `{variant}` as the {role} would not get this option: leave it out of the table \
             (systems/{system}/system.toml: {why})"
        ))
    })
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

#[cfg(test)]
mod tests {
    use super::super::{Form, Suite, choose, load_all, parse};
    use crate::system::Registry;
    use std::path::Path;

    #[test]
    fn an_option_beyond_the_contract_needs_systems_that_have_it() {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let registry = Registry::load(&home).unwrap();
        let suite = choose(load_all(&home).unwrap(), &["generators".to_owned()]).unwrap().remove(0);
        let (clients, servers) = (r#"["native", "h2load-h2c"]"#, r#"["native", "nginx-h2c"]"#);
        for (right, wrong, message) in [
            (
                clients,
                r#"["native", "h2load-h2c", "wrk"]"#,
                "options.streams: `wrk` as the client would not get this option: leave it out of the table \
                 (systems/wrk/system.toml: variants.wrk.start has no {{ options.streams }})",
            ),
            (
                servers,
                r#"["native", "asio-async"]"#,
                "options.streams: `asio-async` as the server would not get this option: leave it out of the \
                 table (systems/asio/system.toml: variants.asio-async.own-options does not have it",
            ),
            ("{ streams =", "{ steams =", r#"nor one of a system's own; nearest: "streams""#),
        ] {
            let text = suite.text.replacen(right, wrong, 1);
            let of_table = text.lines().position(|line| line == r#"name = "multiplexed""#).unwrap();
            let of_option = text.lines().skip(of_table).position(|line| line.starts_with("options")).unwrap();
            let place = format!("generators.toml:{}: ", of_table + of_option + 1);
            let changed = Suite { file: parse(&suite.path, &text).unwrap(), text, ..suite.clone() };
            let error = changed.expand(&registry, Form::Complete).unwrap_err().to_string();
            assert!(error.contains(message) && error.contains(&place), "{wrong}: {error}");
        }
    }
}
