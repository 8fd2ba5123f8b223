//! A table of a suite file, cell by cell.

use super::file::{Amount, Changes, Table, TableChanges};
use super::names;
use super::path;
use crate::axes::Axes;
use crate::measurement::{self, DEFAULT_BUILD, PlannedCell, PlannedSystem, PlannedTable, Sharing};
use crate::parameters::Parameters;
use crate::path::{Device, MOST_ROUTERS};
use crate::system::{Registry, template};
use linerate_contract::Role;
use linerate_contract::nearest::suggestion;
use std::collections::{BTreeMap, BTreeSet};

/// A form that has changes.
#[derive(Clone, Copy)]
pub(super) struct Form<'a> {
    /// The changes of the suite, if it has any.
    pub(super) of_suite: Option<&'a Changes>,
    pub(super) key: Key,
}

/// The key of a table that has the changes of a form.
#[derive(Clone, Copy)]
pub(super) enum Key {
    Quick,
    Published,
    Full,
}

impl Key {
    fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Published => "published",
            Self::Full => "full",
        }
    }

    pub(super) fn of_table(self, table: &Table) -> &TableChanges {
        match self {
            Self::Quick => &table.quick,
            Self::Published => &table.published,
            Self::Full => &table.full,
        }
    }
}

/// A table and its cells, with the changes of a form.
///
/// # Errors
/// An inconsistency, with its key.
pub(super) fn table(
    table: &Table,
    registry: &Registry,
    lists: &toml::Table,
    form: Option<Form<'_>>,
) -> Result<(PlannedTable, Vec<PlannedCell>), String> {
    let mut axes = names::with_no_choices(table, axis_values("axes", &table.axes, lists)?)?;
    let changes = form.map(|form| form.key.of_table(table));
    if let Some((form, changes)) = form.zip(changes) {
        let key = format!("{}.axes", form.key.name());
        for (name, fewer) in axis_values(&key, &changes.axes, lists)? {
            let known = axes.iter_mut().find(|(axis, _)| *axis == name);
            let (_, values) =
                known.ok_or_else(|| format!("{key}.{name}: `{name}` is not one of its axes"))?;
            *values = fewer;
        }
    }
    let lists_of_points = changes.and_then(|changes| changes.points.as_ref()).unwrap_or(&table.points);
    let points = points(lists_of_points, lists)?;
    let combined = product(&axes);
    let all: Vec<Axes> = if lists_of_points.is_empty() {
        combined
    } else {
        // The axes of points behind the others, as if they were axes of the table.
        for (name, value) in points.iter().flat_map(|point| &point.0) {
            match axes.iter_mut().find(|(axis, _)| axis == name) {
                Some((_, values)) if values.contains(value) => {}
                Some((_, values)) => values.push(value.clone()),
                None => axes.push((name.clone(), vec![value.clone()])),
            }
        }
        let with = |rest: &Axes, point: &Axes| Axes(point.0.iter().chain(&rest.0).cloned().collect());
        combined.iter().flat_map(|rest| points.iter().map(move |point| with(rest, point))).collect()
    };
    for (key, axis) in [("rows", &table.rows), ("columns", &table.columns)] {
        if !axes.iter().any(|(name, _)| name == axis) {
            return Err(format!(
                "{key}.{axis}: `{axis}` is not one of its axes; {}",
                nearest_axis(axis, &axes)
            ));
        }
    }
    names::check(table, registry, &axes)?;
    let mut parameters = table.parameters.clone();
    if let Some((form, changes)) = form.zip(changes) {
        let of_suite = form.of_suite.iter().flat_map(|changes| &changes.parameters);
        let known = of_suite.filter(|(name, _)| table.parameters.contains_key(*name));
        parameters.extend(known.map(|(name, value)| (name.clone(), Amount::Number(*value))));
        parameters.extend(changes.parameters.clone());
    }
    let mut cells = Vec::new();
    for point in all {
        cells.push(cell(table, registry, &parameters, point)?);
    }
    let values_of =
        |axis: &str| axes.iter().find(|(name, _)| name == axis).map(|(_, v)| v.clone()).unwrap_or_default();
    let partner_of = |key: &str, wanted: &Option<BTreeMap<String, String>>| {
        wanted.as_ref().map(|wanted| partner(key, &axes, wanted)).transpose()
    };
    let planned = PlannedTable {
        name: table.name.clone(),
        title: template::render("title", &table.title, &title_values(&parameters, &axes))?,
        metric: table.metric,
        also: table.also.clone(),
        rows: table.rows.clone(),
        columns: table.columns.clone(),
        row_values: values_of(&table.rows),
        column_values: values_of(&table.columns),
        cells: cells.iter().map(|cell| cell.id.clone()).collect(),
        baseline: partner("baseline", &axes, &table.baseline)?,
        no_choice: table.no_choice.clone(),
        truth: table.truth()?,
        limit: partner_of("limit", &table.limit)?,
        reference: partner_of("reference", &table.reference)?,
        scaling: partner_of("scaling", &table.scaling)?,
        best_of: table.best_of.as_ref().map(|_| best_of(table, &axes, lists)).transpose()?,
        notes: table.notes.clone(),
    };
    Ok((planned, cells))
}

/// Several tables share one list of competitors; those that the table lacks are left out.
fn best_of(table: &Table, axes: &AxisValues, lists: &toml::Table) -> Result<measurement::BestOf, String> {
    let best_of = table.best_of.as_ref().expect("the caller has looked");
    let subject = BTreeMap::from([(best_of.axis.clone(), best_of.subject.clone())]);
    partner("best_of", axes, &subject)?;
    let mut competitors = values("best_of.competitors", &best_of.competitors, lists)?;
    competitors.retain(|competitor| *competitor != best_of.subject);
    let metrics = if best_of.metrics.is_empty() { vec![table.metric] } else { best_of.metrics.clone() };
    Ok(measurement::BestOf {
        axis: best_of.axis.clone(),
        subject: best_of.subject.clone(),
        competitors,
        metrics,
    })
}

fn cell(
    table: &Table,
    registry: &Registry,
    amounts: &BTreeMap<String, Amount>,
    axes: Axes,
) -> Result<PlannedCell, String> {
    let mut numbers = numbers(amounts);
    // An axis that is a number is a parameter of its cells, such as `connections`.
    numbers.extend(axes.0.iter().filter_map(|(name, value)| Some((name.clone(), value.parse().ok()?))));
    let values_of = |numbers: &BTreeMap<String, u64>| {
        let mut values: BTreeMap<String, minijinja::Value> =
            axes.0.iter().map(|(name, value)| (name.clone(), value.into())).collect();
        values.extend(numbers.iter().map(|(name, value)| (name.clone(), (*value).into())));
        minijinja::Value::from_serialize(&values)
    };
    for (name, amount) in amounts {
        let Amount::Template(text) = amount else { continue };
        let place = format!("parameters.{name}");
        let number = template::render(&place, text, &values_of(&numbers))?;
        let number = number.parse().map_err(|_| format!("{place}: `{number}` is not a whole number"))?;
        numbers.insert(name.clone(), number);
    }
    let values = values_of(&numbers);
    let mut parameters = Parameters::default();
    for (name, number) in &numbers {
        // Other names are for the table's templates alone.
        if let Some(parameter) = parameters.by_name(name) {
            *parameter = Some(*number);
        }
    }
    if parameters.load.is_some() {
        if parameters.rate.is_some() || parameters.seconds.is_none() || parameters.operations.is_some() {
            return Err("parameters.load: it sets the rate of a window: `seconds` in place of `rate` and \
                        `operations`"
                .into());
        }
        // Until the capacity is known.
        parameters.rate = Some(0);
    }
    let mut systems = Vec::new();
    let render = |place: &str, text: &str| template::render(place, text, &values);
    let mut used = BTreeSet::new();
    for text in table.path.iter().flat_map(path::texts) {
        used.extend(template::variables(text)?);
    }
    // An axis that a template of the path uses is only where the template has it.
    let keys = axes.iter().filter(|(name, _)| !used.contains(*name));
    let mut path = path::read(table.path.as_ref(), keys, &render)?;
    let (mut is_limit, mut warmup, mut pairs) = (false, table.warmup, table.pairs.unwrap_or(Sharing::Turns));
    for (role, names) in &table.roles {
        let is_relay = *role == Role::Relay;
        let place = format!("roles.{role}");
        let names = names.names();
        if names.is_empty() || names.len() > if is_relay { MOST_ROUTERS } else { 1 } {
            return Err(format!("{place}: expected one name, or of relays a list of up to {MOST_ROUTERS}"));
        }
        for name in names {
            let name = template::render(&place, name, &values)?;
            let chosen = registry.variant(&name, *role).map_err(|e| format!("{place}: {e}"))?;
            names::check_own_options(table, chosen, *role)?;
            path.adapt(chosen.variant.device, chosen.variant.routers);
            path.need_routers(usize::from(chosen.variant.router));
            is_limit |= chosen.variant.limit;
            if *role == Role::Client && !chosen.variant.alternates && pairs == Sharing::Alternating {
                pairs = Sharing::Turns;
            }
            let least = chosen.variant.warmup_operations.unwrap_or(0);
            warmup.operations = warmup.operations.map(|operations| operations.max(least));
            let (role, build, spins) = (*role, DEFAULT_BUILD.to_owned(), chosen.variant.spins);
            let own = chosen.own().map(str::to_owned);
            systems.push(PlannedSystem { role, name, build, spins, own, ..PlannedSystem::default() });
        }
        // A relay alone runs on the server's host where the path has no router.
        path.need_routers(if names.len() > 1 { names.len() } else { 0 });
    }
    if path.device == Device::Loopback && table.roles.contains_key(&Role::Relay) {
        let remedy = "path: a relay is on a host of its own, which `loopback` has not: leave `path` out";
        return Err(remedy.into());
    }
    let server = table.roles.get(&Role::Server);
    let mut options = BTreeMap::new();
    for (name, text) in &table.options {
        options.insert(name.clone(), template::render(&format!("options.{name}"), text, &values)?);
    }
    Ok(PlannedCell {
        id: template::render("id", &table.id, &values)?,
        axes,
        layer: template::render("layer", &table.layer, &values)?.parse()?,
        workload: template::render("workload", &table.workload, &values)?.parse()?,
        path,
        parameters,
        verify: table.verify,
        warmup,
        options,
        // In a table of points the pair of systems is the subject, mixed or not.
        own_client: !table.points.is_empty()
            || server.is_none_or(|server| table.roles.get(&Role::Client) == Some(server)),
        pairs: Some(pairs),
        is_limit,
        systems,
        ..PlannedCell::default()
    })
}

type AxisValues = Vec<(String, Vec<String>)>;

/// A title may name parameters, and axes of a single value.
fn title_values(parameters: &BTreeMap<String, Amount>, axes: &AxisValues) -> minijinja::Value {
    let mut values: BTreeMap<String, minijinja::Value> =
        numbers(parameters).into_iter().map(|(name, value)| (name, value.into())).collect();
    for (axis, of_axis) in axes {
        if let [only] = &of_axis[..] {
            values.insert(axis.clone(), only.into());
        }
    }
    minijinja::Value::from_serialize(&values)
}

fn numbers(amounts: &BTreeMap<String, Amount>) -> BTreeMap<String, u64> {
    let number = |amount: &Amount| match amount {
        Amount::Number(number) => Some(*number),
        Amount::Template(_) => None,
    };
    amounts.iter().filter_map(|(name, amount)| Some((name.clone(), number(amount)?))).collect()
}

fn axis_values(key: &str, axes: &toml::Table, lists: &toml::Table) -> Result<AxisValues, String> {
    let mut all = Vec::new();
    for (name, of_axis) in axes {
        all.push((name.clone(), values(&format!("{key}.{name}"), of_axis, lists)?));
    }
    Ok(all)
}

/// The points of these lists, one behind the other.
fn points(names: &[String], lists: &toml::Table) -> Result<Vec<Axes>, String> {
    let mut all: Vec<Axes> = Vec::new();
    for name in names {
        let list = lists.get(name).and_then(toml::Value::as_array);
        let list = list.ok_or_else(|| {
            format!(
                "points: `{name}` is not one of the lists; {}",
                suggestion(name, lists.keys().map(String::as_str))
            )
        })?;
        for point in list {
            let values = point.as_table().into_iter().flatten().map(|(axis, value)| {
                let value =
                    value.as_str().map(str::to_owned).or_else(|| Some(value.as_integer()?.to_string()));
                Some((axis.clone(), value?))
            });
            let values: Option<Vec<_>> = values.collect();
            let values = values.filter(|values| !values.is_empty()).ok_or_else(|| {
                format!("points: lists.{name}: expected tables of axes, each with a string or a whole number")
            })?;
            if all.iter().any(|other| other.0 == values) {
                return Err(format!("points: lists.{name}: a point is there twice"));
            }
            all.push(Axes(values));
        }
    }
    Ok(all)
}

/// A list of values, or one of the suite's lists by its name.
fn values(key: &str, values: &toml::Value, lists: &toml::Table) -> Result<Vec<String>, String> {
    let named = |list: &str| {
        let names = || lists.keys().map(String::as_str);
        lists
            .get(list)
            .ok_or_else(|| format!("{key}: `{list}` is not one of the lists; {}", suggestion(list, names())))
    };
    let values = values.as_str().map(named).transpose()?.unwrap_or(values);
    let values = values.as_array().filter(|values| !values.is_empty());
    let values =
        values.ok_or_else(|| format!("{key}: expected a list of values, or the name of one of the lists"))?;
    let text = values.iter().map(|value| match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        other => Err(format!("{key}: {} is neither a string nor a whole number", other.type_str())),
    });
    let text = text.collect::<Result<Vec<_>, _>>()?;
    if text.iter().collect::<BTreeSet<_>>().len() < text.len() {
        return Err(format!("{key}: a value is there twice"));
    }
    Ok(text)
}

/// Every combination, the last axis fastest.
fn product(axes: &[(String, Vec<String>)]) -> Vec<Axes> {
    axes.iter().fold(vec![Axes::default()], |points, (name, values)| {
        let extend = |point: &Axes, value: &String| {
            Axes(point.0.iter().cloned().chain([(name.clone(), value.clone())]).collect())
        };
        points.iter().flat_map(|point| values.iter().map(move |value| extend(point, value))).collect()
    })
}

/// Checks that a baseline or another partner names axes and values of the table.
fn partner(
    key: &str,
    axes: &[(String, Vec<String>)],
    wanted: &BTreeMap<String, String>,
) -> Result<Axes, String> {
    for (axis, value) in wanted {
        match axes.iter().find(|(name, _)| name == axis) {
            None => {
                return Err(format!(
                    "{key}.{axis}: `{axis}` is not one of its axes; {}",
                    nearest_axis(axis, axes)
                ));
            }
            Some((_, values)) if !values.contains(value) => {
                let nearest = suggestion(value, values.iter().map(String::as_str));
                return Err(format!("{key}.{axis}: `{value}` is not one of its values; {nearest}"));
            }
            Some(_) => {}
        }
    }
    Ok(Axes(wanted.iter().map(|(axis, value)| (axis.clone(), value.clone())).collect()))
}

fn nearest_axis(axis: &str, axes: &[(String, Vec<String>)]) -> String {
    suggestion(axis, axes.iter().map(|(name, _)| name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_product_has_every_combination_once_in_order() {
        let axes = [
            ("a".to_owned(), vec!["1".to_owned(), "2".to_owned()]),
            ("b".to_owned(), vec!["x".into(), "y".into()]),
        ];
        let points: Vec<String> =
            product(&axes).iter().map(|p| format!("{}{}", p.0[0].1, p.0[1].1)).collect();
        assert_eq!(points, ["1x", "1y", "2x", "2y"]);
    }

    #[test]
    fn a_baseline_that_is_not_there_is_refused() {
        let axes = [("path".to_owned(), vec!["direct".to_owned()])];
        let wanted = BTreeMap::from([("path".to_owned(), "dirct".to_owned())]);
        assert_eq!(
            partner("baseline", &axes, &wanted).unwrap_err(),
            "baseline.path: `dirct` is not one of its values; nearest: \"direct\""
        );
    }
}
