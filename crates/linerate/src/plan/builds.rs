//! The cells of a comparison of builds: each chosen cell twice, with base and with head.

use super::pairs::obstacle;
use crate::arm::{Arm, BASE, HEAD};
use crate::axes::Axes;
use crate::error::Error;
use crate::measurement::{
    BUILD_AXIS, Metric, PlannedArm, PlannedCell, PlannedComparison, PlannedRate, PlannedSuite, PlannedSystem,
    PlannedTable, Sharing,
};
use crate::parameters::Parameters;
use crate::stats::duet::is_rate;
use crate::system::{Registry, SystemVariant};
use linerate_contract::Role;
use linerate_contract::nearest::suggestion;
use std::collections::BTreeSet;

/// Replaces the suite's cells by two of each that `is_chosen`, and its tables by ones of base and head.
///
/// # Errors
/// An arm that does not fit a cell.
pub(super) fn split(
    suite: &mut PlannedSuite,
    registry: &Registry,
    comparison: &PlannedComparison,
    is_chosen: impl Fn(&str) -> bool,
) -> Result<(), Error> {
    let arms = arms(comparison)?;
    let mut cells = Vec::new();
    let tables = std::mem::take(&mut suite.tables);
    suite.published = None;
    for table in &tables {
        let mut planned = PlannedTable {
            metric: if is_rate(table.metric) { table.metric } else { Metric::OperationsPerSecond },
            ..of_builds(table)
        };
        let is_new = |id: &str| is_chosen(id) && !cells.iter().any(|known: &PlannedCell| origin(known) == id);
        let in_table = suite.cells.iter().filter(|cell| table.cells.contains(&cell.id) && is_new(&cell.id));
        let mut split = Vec::new();
        for cell in in_table.filter(|cell| !cell.is_limit) {
            let Some(subject) = subject(cell, registry, comparison.system.as_deref()) else { continue };
            let cell = &paced(cell, registry, comparison.rate);
            let no_rate = comparison.rate.filter(|_| !cell.is_paced_in_turns());
            let no_rate = no_rate.map(|_| "--rate is for rr and crr with a client that works in turns");
            let own_rate =
                cell.parameters.load.map(|_| "its rate is a share of its own capacity: see --rate");
            if let Some(reason) = no_rate.or(own_rate).or_else(|| obstacle(cell, registry)) {
                planned.notes.push(format!("{} is left out: {reason}", cell.id));
                continue;
            }
            for (build, arm) in [BASE, HEAD].into_iter().zip(&arms) {
                let of_arm = with_arm(cell, subject, registry, build, arm);
                split.push(of_arm.map_err(|e| Error::Input(format!("--{build}: {e}")))?);
            }
            planned.row_values.push(cell.id.clone());
        }
        if !split.is_empty() && split.iter().all(PlannedCell::is_paced_in_turns) {
            (planned.metric, planned.title) =
                (Metric::P50Latency, "half of the operations end within".into());
        }
        planned.cells = split.iter().map(|cell| cell.id.clone()).collect();
        cells.extend(split);
        if !planned.cells.is_empty() || !planned.notes.is_empty() {
            suite.tables.push(planned);
        }
    }
    suite.cells = cells;
    // The first units decide how a pair shares the CPUs; they are the warm-up.
    suite.warmup_rounds = 0;
    Ok(())
}

/// The cell as an open loop of this rate, or of its own, whose load alternates. Where it has no rate, or
/// cannot alternate, its first unit decides, and not its table: builds are alike, and side by side they have
/// the same noise.
fn paced(cell: &PlannedCell, registry: &Registry, rate: Option<PlannedRate>) -> PlannedCell {
    let of_client = |system: &PlannedSystem| registry.variant(&system.name, Role::Client).ok();
    let mut clients = cell.systems.iter().filter(|system| system.role == Role::Client).filter_map(of_client);
    let can_alternate = clients.any(|client| client.variant.alternates);
    let rate = rate.map(|rate| rate.per_second(None).unwrap_or(0)).or(cell.parameters.rate);
    let Some(rate) = rate.filter(|_| can_alternate && cell.workload.is_of_round_trips()) else {
        return PlannedCell { pairs: None, ..cell.clone() };
    };
    let seconds = cell.parameters.seconds.or(Some(1));
    let parameters = Parameters { operations: None, rate: Some(rate), seconds, ..cell.parameters };
    PlannedCell { parameters, pairs: Some(Sharing::Alternating), ..cell.clone() }
}

/// Checks what cells together need: at least one, and one system where an arm replaces its program.
///
/// # Errors
/// The remedy.
pub(super) fn check(
    suites: &[PlannedSuite],
    registry: &Registry,
    comparison: &PlannedComparison,
) -> Result<(), Error> {
    let cells = || suites.iter().flat_map(|suite| &suite.cells);
    if cells().next().is_none() {
        let notes = suites.iter().flat_map(|suite| &suite.tables).flat_map(|table| &table.notes);
        let notes: Vec<&str> = notes.map(String::as_str).collect();
        return Err(Error::Input(match &comparison.system {
            _ if !notes.is_empty() => format!("no chosen cell can be compared: {}", notes.join("; ")),
            Some(name) => format!("--system {name}: it has no process in the chosen cells"),
            None => "no system of the chosen cells has a process that could be another build".into(),
        }));
    }
    let arms = arms(comparison)?;
    let subjects: BTreeSet<&str> = cells()
        .flat_map(|cell| &cell.systems)
        .filter(|system| system.build == HEAD)
        .filter_map(|system| Some(registry.variant(&system.name, system.role).ok()?.system.name.as_str()))
        .collect();
    let replaces = |arm: &Arm| arm.program.is_some() || arm.git.is_some() || !arm.env.is_empty();
    if subjects.len() > 1 && arms.iter().any(replaces) {
        let names = Vec::from_iter(subjects);
        return Err(Error::Input(format!(
            "the chosen cells have several systems ({}), and an arm replaces the program of one: \
             add `--system {}`",
            names.join(", "),
            names[0]
        )));
    }
    Ok(())
}

/// The id of the suite's own cell.
pub(crate) fn origin(cell: &PlannedCell) -> &str {
    cell.id.rsplit_once('@').map_or(&cell.id, |(id, _)| id)
}

fn arms(comparison: &PlannedComparison) -> Result<[Arm; 2], Error> {
    let parse = |build: &str, PlannedArm { arm, .. }: &PlannedArm| {
        Arm::parse(arm).map_err(|e| Error::Input(format!("--{build} {arm}: {e}")))
    };
    let [base, head] = comparison.arms();
    Ok([parse(BASE, &base)?, parse(HEAD, &head)?])
}

/// The table with rows by cell and columns by build.
fn of_builds(table: &PlannedTable) -> PlannedTable {
    PlannedTable {
        name: table.name.clone(),
        title: table.title.clone(),
        metric: table.metric,
        rows: "cell".into(),
        columns: BUILD_AXIS.into(),
        column_values: vec![BASE.into(), HEAD.into()],
        baseline: Axes(vec![(BUILD_AXIS.into(), BASE.into())]),
        ..PlannedTable::default()
    }
}

/// The system with two builds: the wanted one, else the relay, else the server, if it has a process.
fn subject<'r>(
    cell: &PlannedCell,
    registry: &'r Registry,
    wanted: Option<&str>,
) -> Option<SystemVariant<'r>> {
    let of_role = |role: Role| {
        let system = cell.systems.iter().find(|system| system.role == role)?;
        let chosen = registry.variant(&system.name, role).ok()?;
        let is_wanted = wanted.is_none_or(|name| chosen.name == name || chosen.system.name == name);
        (chosen.variant.start.is_some() && is_wanted).then_some(chosen)
    };
    [Role::Relay, Role::Server, Role::Client].into_iter().find_map(of_role)
}

fn with_arm(
    cell: &PlannedCell,
    subject: SystemVariant<'_>,
    registry: &Registry,
    build: &str,
    arm: &Arm,
) -> Result<PlannedCell, String> {
    let mut cell = cell.clone();
    let id = format!("{}@{build}", cell.id);
    cell.axes.0.extend([("cell".to_owned(), cell.id.clone()), (BUILD_AXIS.to_owned(), build.to_owned())]);
    if !arm.env.is_empty() && subject.system.manifest.build.is_none() {
        return Err(format!("env: is for systems with a [build], and {} has none", subject.system.name));
    }
    let is_subject = |name: &str, role: Role| {
        registry.variant(name, role).is_ok_and(|chosen| chosen.system.name == subject.system.name)
    };
    for (key, value) in &arm.set {
        set(&mut cell, subject, key, value)?;
    }
    let settings = arm.set.iter().filter(|(key, _)| subject.system.manifest.settings.contains_key(key));
    for system in cell.systems.iter_mut().filter(|system| is_subject(&system.name, system.role)) {
        build.clone_into(&mut system.build);
        system.settings = settings.clone().cloned().collect();
    }
    Ok(PlannedCell { id, ..cell })
}

/// A parameter or an option of the cell, or a setting of the subject.
fn set(cell: &mut PlannedCell, subject: SystemVariant<'_>, key: &str, value: &str) -> Result<(), String> {
    let settings = || subject.system.manifest.settings.keys().filter(|key| subject.reads(key));
    if settings().any(|known| known == key) {
        return Ok(());
    }
    let id = cell.id.clone();
    let set: Vec<&str> = cell.parameters.iter().map(|(name, _)| name).collect();
    if let Some(parameter) = cell.parameters.by_name(key).filter(|_| set.contains(&key)) {
        let number = value.parse().map_err(|_| format!("set:{key}={value}: expected a whole number"))?;
        *parameter = Some(number);
        return Ok(());
    }
    if let Some(option) = cell.options.get_mut(key) {
        value.clone_into(option);
        return Ok(());
    }
    let known = settings().chain(cell.options.keys()).map(String::as_str).chain(set);
    let known: BTreeSet<&str> = known.collect();
    let also = Parameters::NAMES.contains(&key).then_some(" (a parameter that this cell does not have)");
    Err(format!(
        "set:{key}={value}: {} has nothing that reads `{key}` in {id}{}; {}",
        subject.system.name,
        also.unwrap_or_default(),
        suggestion(key, known)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite;
    use std::path::Path;

    #[test]
    fn the_first_units_of_builds_decide_how_they_share_the_cpus_but_open_loops_alternate() {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let registry = Registry::load(&home).unwrap();
        let arm = serde_json::json!({"system": {"arm": "default"}});
        let plain = serde_json::json!({"kind": "gate", "subjects": [arm, arm], "margin": 0.01});
        let mut comparison: PlannedComparison = serde_json::from_value(plain).unwrap();
        let suites = suite::choose(suite::load_all(&home).unwrap(), &["proxy".to_owned()]).unwrap();
        let planned = |comparison: &PlannedComparison| {
            let (only, comparison) = (vec!["nginx/direct".to_owned()], Some(comparison.clone()));
            let choice = crate::plan::Choice { only, comparison, ..Default::default() };
            let suites = crate::plan::suites(&suites, &registry, &choice).unwrap();
            suites[0].cells.iter().map(|cell| cell.pairs).collect::<Vec<_>>()
        };
        assert_eq!(planned(&comparison), [None, None]);
        comparison.rate = Some(PlannedRate::PerSecond(1_000));
        assert_eq!(planned(&comparison), [Some(Sharing::Alternating); 2]);
    }
}
