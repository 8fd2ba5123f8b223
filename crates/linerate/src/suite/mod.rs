//! Suites: `suites/<name>.toml` in, cells out.

pub mod file;

use crate::axes::Axes;
use crate::error::Error;
use crate::measurement::{PlannedCell, PlannedSuite, PlannedSystem, PlannedTable};
use crate::system::{Registry, sorted_entries, template};
use file::{SuiteFile, Table};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A suite as its file has it.
#[derive(Debug, Clone)]
pub struct Suite {
    pub name: String,
    pub path: PathBuf,
    pub file: SuiteFile,
}

/// Reads every `<home>/suites/*.toml`.
///
/// # Errors
/// The first file that is not valid, with its line.
pub fn load_all(home: &Path) -> Result<Vec<Suite>, Error> {
    let paths = sorted_entries(&home.join("suites"))?;
    paths.into_iter().filter(|path| path.extension().is_some_and(|e| e == "toml")).map(load).collect()
}

fn load(path: PathBuf) -> Result<Suite, Error> {
    let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
    let file = parse(&path, &text)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Suite { name, path, file })
}

fn parse(path: &Path, text: &str) -> Result<SuiteFile, Error> {
    toml::from_str(text)
        .map_err(|e| Error::Input(format!("{}: {}", path.display(), e.to_string().trim_end())))
}

/// The suites of these names, or all of them.
///
/// # Errors
/// An unknown name, with those that exist.
pub fn choose(all: Vec<Suite>, names: &[String]) -> Result<Vec<Suite>, Error> {
    for name in names {
        if !all.iter().any(|suite| suite.name == *name) {
            let known: Vec<&str> = all.iter().map(|s| s.name.as_str()).collect();
            return Err(Error::Input(format!("there is no suite `{name}`; there are: {}", known.join(", "))));
        }
    }
    Ok(all.into_iter().filter(|suite| names.is_empty() || names.contains(&suite.name)).collect())
}

impl Suite {
    /// Every cell and table, with the systems still without versions.
    ///
    /// # Errors
    /// Whatever in the file does not fit together, with its key.
    pub fn expand(&self, registry: &Registry, quick: bool) -> Result<PlannedSuite, Error> {
        let rounds = if quick { self.file.quick.rounds } else { self.file.rounds };
        let warmup_rounds = if quick { self.file.quick.warmup_rounds } else { self.file.warmup_rounds };
        let mut suite = PlannedSuite {
            name: self.name.clone(),
            question: self.file.question.clone(),
            rounds,
            warmup_rounds,
            tables: Vec::new(),
            cells: Vec::new(),
            twin: self.file.twin.clone(),
        };
        for table in &self.file.tables {
            let in_table = |what: String| {
                Error::Input(format!("{}: table `{}`: {what}", self.path.display(), table.name))
            };
            let (planned, cells) =
                expand_table(table, registry, quick, &self.file.quick.parameters).map_err(in_table)?;
            for cell in cells {
                match suite.cells.iter().find(|known| known.id == cell.id) {
                    Some(known) if *known == cell => {}
                    Some(_) => {
                        return Err(in_table(format!(
                            "its cell `{}` differs from that of an earlier table",
                            cell.id
                        )));
                    }
                    None => suite.cells.push(cell),
                }
            }
            suite.tables.push(planned);
        }
        if let Some(twin) = &suite.twin
            && !suite.cells.iter().any(|cell| cell.id == *twin)
        {
            return Err(Error::Input(format!("{}: twin: there is no cell `{twin}`", self.path.display())));
        }
        Ok(suite)
    }
}

fn expand_table(
    table: &Table,
    registry: &Registry,
    quick: bool,
    quick_parameters: &BTreeMap<String, u64>,
) -> Result<(PlannedTable, Vec<PlannedCell>), String> {
    let axes = axis_values(&table.axes)?;
    for (key, axis) in [("rows", &table.rows), ("columns", &table.columns)] {
        if !axes.iter().any(|(name, _)| name == axis) {
            return Err(format!("{key}: `{axis}` is not one of its axes ({})", names(&axes)));
        }
    }
    let mut parameters = table.parameters.clone();
    if quick {
        parameters.extend(
            quick_parameters
                .iter()
                .filter(|(name, _)| table.parameters.contains_key(*name))
                .map(|(n, v)| (n.clone(), *v)),
        );
    }
    let mut cells = Vec::new();
    for point in product(&axes) {
        cells.push(expand_cell(table, registry, &parameters, point)?);
    }
    let values_of =
        |axis: &str| axes.iter().find(|(name, _)| name == axis).map(|(_, v)| v.clone()).unwrap_or_default();
    let planned = PlannedTable {
        name: table.name.clone(),
        title: template::render("title", &table.title, &minijinja::Value::from_serialize(&parameters))?,
        metric: table.metric,
        rows: table.rows.clone(),
        columns: table.columns.clone(),
        row_values: values_of(&table.rows),
        column_values: values_of(&table.columns),
        cells: cells.iter().map(|cell| cell.id.clone()).collect(),
        baseline: reference("baseline", &axes, &table.baseline)?,
        limit: table.limit.as_ref().map(|limit| reference("limit", &axes, limit)).transpose()?,
        notes: table.notes.clone(),
    };
    Ok((planned, cells))
}

fn expand_cell(
    table: &Table,
    registry: &Registry,
    parameters: &BTreeMap<String, u64>,
    axes: Axes,
) -> Result<PlannedCell, String> {
    let mut values: BTreeMap<&str, minijinja::Value> =
        parameters.iter().map(|(name, value)| (name.as_str(), (*value).into())).collect();
    values.extend(axes.0.iter().map(|(name, value)| (name.as_str(), value.into())));
    let values = minijinja::Value::from_serialize(&values);
    let mut systems = Vec::new();
    let mut topology = table.topology;
    for (role, name) in &table.roles {
        let name = template::render(&format!("roles.{role}"), name, &values)?;
        let chosen = registry.variant(&name, *role).map_err(|e| format!("roles.{role}: {e}"))?;
        topology = chosen.variant.topology.unwrap_or(topology);
        systems.push(PlannedSystem { role: *role, name, version: None });
    }
    let mut parameters = parameters.clone();
    // An axis that is a number is a parameter of its cells, such as `connections`.
    parameters.extend(axes.0.iter().filter_map(|(name, value)| Some((name.clone(), value.parse().ok()?))));
    Ok(PlannedCell {
        id: template::render("id", &table.id, &values)?,
        axes,
        layer: table.layer.clone(),
        workload: table.workload.clone(),
        topology,
        parameters,
        systems,
        absent: None,
    })
}

type AxisValues = Vec<(String, Vec<String>)>;

fn axis_values(axes: &toml::Table) -> Result<AxisValues, String> {
    let mut all = Vec::new();
    for (name, values) in axes {
        let values = values.as_array().filter(|values| !values.is_empty());
        let values = values.ok_or_else(|| format!("axes.{name}: expected a list of values"))?;
        let text = values.iter().map(|value| match value {
            toml::Value::String(text) => Ok(text.clone()),
            toml::Value::Integer(number) => Ok(number.to_string()),
            other => Err(format!("axes.{name}: {} is neither a string nor a whole number", other.type_str())),
        });
        let text = text.collect::<Result<Vec<_>, _>>()?;
        if text.iter().collect::<BTreeSet<_>>().len() < text.len() {
            return Err(format!("axes.{name}: a value stands there twice"));
        }
        all.push((name.clone(), text));
    }
    Ok(all)
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

/// Checks that a baseline or limit names axes and values of the table.
fn reference(
    key: &str,
    axes: &[(String, Vec<String>)],
    wanted: &BTreeMap<String, String>,
) -> Result<Axes, String> {
    for (axis, value) in wanted {
        match axes.iter().find(|(name, _)| name == axis) {
            None => return Err(format!("{key}: `{axis}` is not one of its axes ({})", names(axes))),
            Some((_, values)) if !values.contains(value) => {
                return Err(format!("{key}.{axis}: `{value}` is not one of {}", values.join(", ")));
            }
            Some(_) => {}
        }
    }
    Ok(Axes(wanted.iter().map(|(axis, value)| (axis.clone(), value.clone())).collect()))
}

fn names(axes: &[(String, Vec<String>)]) -> String {
    axes.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_with_a_wrong_type_names_file_line_and_key() {
        let error = parse(Path::new("suites/x.toml"), "question = \"?\"\nrounds = \"ten\"\n")
            .unwrap_err()
            .to_string();
        for part in ["suites/x.toml", "line 2", "rounds", "u32"] {
            assert!(error.contains(part), "{part} is missing in: {error}");
        }
    }

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
            reference("baseline", &axes, &wanted).unwrap_err(),
            "baseline.path: `dirct` is not one of direct"
        );
    }
}
