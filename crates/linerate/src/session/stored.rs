//! `--resume`: a run that was cut off goes on with the cells and versions that it began with.

use super::Request;
use crate::arm::Arm;
use crate::error::Error;
use crate::journal::Journal;
use crate::lab::program::quoted;
use crate::measurement::journal::Journal as Units;
use crate::measurement::{
    PlannedArm, PlannedCell, PlannedComparison, PlannedHost, PlannedSuite, Run, Stored, Subject,
};
use crate::plan::{self, Choice};
use crate::suite;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::Path;

/// Differences between two plans that an error names.
const MOST_NAMED: usize = 3;

/// The choice that gives at least the cells of a stored run. A suite of a file of its own is given again.
pub(super) fn choice(run: &Run, given: &[String]) -> Choice {
    let given = |name: &String| given.iter().find(|given| suite::name_of(given) == name).cloned();
    let names = run.suites.iter().map(|suite| &suite.name);
    Choice {
        suites: names.map(|name| given(name).unwrap_or_else(|| name.clone())).collect(),
        quick: run.quick,
        published: run.published,
        complete: run.all_rows,
        rounds: None,
        only: if run.policy().is_sequential() { origins(run) } else { Vec::new() },
        probe: run.suites.iter().any(|suite| !suite.probes.is_empty()),
        comparison: run.comparison.clone(),
    }
}

/// Programs that a run executes and that is not linerate's own: builds, programs, servers, and ssh with its
/// options.
#[derive(Debug, PartialEq, Serialize)]
struct Executed {
    comparison: Option<PlannedComparison>,
    hosts: Vec<PlannedHost>,
}

impl Executed {
    fn asked(comparison: Option<&PlannedComparison>, hosts: &[PlannedHost]) -> Self {
        Self {
            comparison: comparison.map(PlannedComparison::as_asked),
            hosts: hosts.iter().map(PlannedHost::as_asked).collect(),
        }
    }
}

/// Checks that a stored run executes what the command line asks for, compared as one value: its folder may
/// come from someone else. Only what the run has learned is then the stored plan's own.
///
/// # Errors
/// The plans differ; with the differences and the command of the run.
pub(super) fn check_executed(
    folder: &Path,
    run: &Run,
    request: &Request,
    hosts: &[PlannedHost],
) -> Result<(), Error> {
    let stored = run.comparison.as_ref();
    let goes_on = request.is_bare && stored.is_none_or(is_of_linerate);
    let given = if goes_on { stored } else { request.choice.comparison.as_ref() };
    let (there, here) = (Executed::asked(stored, &run.hosts), Executed::asked(given, hosts));
    if there != here {
        return Err(refused(folder, run, &there, &here));
    }
    check_learned(run).map_err(|reason| Error::Input(format!("{}: {reason}", folder.display())))
}

/// Systems of linerate with other settings: no program, build or server of the user's own.
fn is_of_linerate(comparison: &PlannedComparison) -> bool {
    let is_setting = |arm: &PlannedArm| {
        Arm::parse(&arm.arm).is_ok_and(|arm| arm.program.is_none() && arm.env.is_empty() && arm.git.is_none())
    };
    let is_own = |subject: &Subject| matches!(subject, Subject::System(arm) if is_setting(arm));
    comparison.source.is_none() && comparison.subjects.iter().all(is_own)
}

fn refused(folder: &Path, run: &Run, there: &Executed, here: &Executed) -> Error {
    let value = |executed: &Executed| serde_json::to_value(executed).expect("plans are JSON");
    let mut all = Vec::new();
    differences("", &value(there), &value(here), &mut all);
    let others = all.len().saturating_sub(MOST_NAMED);
    let more = if others == 0 { String::new() } else { format!("\n  and {others} more") };
    all.truncate(MOST_NAMED);
    Error::Input(format!(
        "{}: the plan in run.json is not that of this command line, and a folder may come from someone else, \
         so nothing of it is executed:\n  {}{more}\nread the command of the run before you give it again: {}",
        folder.display(),
        all.join("\n  "),
        again(folder, &run.command)
    ))
}

/// Where two plans differ, each with both values.
fn differences(place: &str, there: &Value, here: &Value, all: &mut Vec<String>) {
    let inside = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
    let shown = |value: &Value| match value {
        Value::Null => "nothing".to_owned(),
        Value::Object(_) => "something".to_owned(),
        value => value.to_string(),
    };
    match (there, here) {
        (Value::Object(one), Value::Object(other)) => {
            for key in one.keys().chain(other.keys()).collect::<BTreeSet<_>>() {
                let [one, other] = [one, other].map(|map| map.get(key).unwrap_or(&Value::Null));
                differences(&inside(key), one, other, all);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                differences(&inside(&index.to_string()), one, other, all);
            }
        }
        _ if there == here => {}
        _ => all.push(format!("{place}: {} in run.json, {} here", shown(there), shown(here))),
    }
}

/// The command of a run with `--resume` behind its subcommand: what its user gives to go on with it.
pub fn again(folder: &Path, command: &str) -> String {
    let resume = format!("--resume {}", quoted(&folder.display().to_string()));
    match command.splitn(3, ' ').collect::<Vec<_>>()[..] {
        [program, subcommand, rest] => format!("{program} {subcommand} {resume} {rest}"),
        _ => format!("{command} {resume}"),
    }
}

/// Learned values that could not have been learned, and suites that are files of their own.
fn check_learned(run: &Run) -> Result<(), String> {
    if let Some(suite) = run.suites.iter().find(|suite| suite::name_of(&suite.name) != suite.name) {
        return Err(format!("`{}` is no name of a suite", suite.name));
    }
    let subjects = run.comparison.iter().flat_map(|comparison| &comparison.subjects);
    if let Some(commit) = subjects.filter_map(|one| one.arm().resolved).find(|one| !is_hash(one)) {
        return Err(format!("`{commit}` is no commit"));
    }
    let servers = run.comparison.as_ref().and_then(PlannedComparison::servers);
    let outside = servers.filter(|(_, load)| !load.place.is_lab()).map_or(&[][..], |(subjects, _)| subjects);
    let learned = outside.iter().zip(&run.learned.servers).filter(|(subject, _)| subject.is_started_here());
    match learned.filter_map(|(_, server)| server.address).find(|address| !is_own(address.ip())) {
        Some(address) => Err(format!("{address} is no address of this machine, where its servers ran")),
        None => Ok(()),
    }
}

fn is_hash(commit: &str) -> bool {
    !commit.is_empty() && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_own(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// The suite's own cells of a comparison of builds: its arms need not fit others.
fn origins(run: &Run) -> Vec<String> {
    let cells = run.suites.iter().flat_map(|suite| suite.cells.iter().map(move |cell| (suite, cell)));
    cells.map(|(suite, cell)| globset::escape(&format!("{}:{}", suite.name, plan::origin(cell)))).collect()
}

/// Opens the journal, after checking that the suites still have the stored cells, and the machines of the
/// roles their addresses and CPUs.
///
/// # Errors
/// A cell or a machine has changed, or the journal cannot be opened.
pub(super) fn open(
    folder: &Path,
    stored: Stored,
    now: Vec<PlannedSuite>,
    hosts: Vec<PlannedHost>,
) -> Result<(Run, Units, Journal), Error> {
    let Stored { run, journal: made } = stored;
    made.warnings.iter().for_each(|warning| crate::output::note(&format!("warning: {warning}")));
    let moved = run.hosts.iter().zip(&hosts).find(|(then, now)| place_of(then) != place_of(now));
    if let Some((then, now)) = moved {
        return Err(Error::Input(format!(
            "{}: {} had {:?} when this run began, and has {:?}: start a new run",
            folder.display(),
            then.place,
            place_of(then),
            place_of(now)
        )));
    }
    for suite in &run.suites {
        let now = now.iter().find(|s| s.name == suite.name);
        check_same(folder, &without_systems(suite), now.map(without_systems).as_ref())?;
    }
    let journal = Journal::open(folder, &run)?;
    Ok((run, made, journal))
}

/// Where a machine is reached, and which of its CPUs are used.
fn place_of(host: &PlannedHost) -> (Option<Ipv4Addr>, &[u32]) {
    (host.address, &host.cpus)
}

/// Checks that each cell of `suite` is unchanged in `now`.
///
/// # Errors
/// The first cell that differs.
pub(super) fn check_same(
    folder: &Path,
    suite: &PlannedSuite,
    now: Option<&PlannedSuite>,
) -> Result<(), Error> {
    for cell in &suite.cells {
        let found = now.and_then(|now| now.cells.iter().find(|c| c.id == cell.id));
        if found != Some(cell) {
            return Err(Error::Input(format!(
                "{}: `{}` has changed since this run began (its suite, a system or a version): \
                 start a new run",
                folder.display(),
                cell.id
            )));
        }
    }
    Ok(())
}

/// Versions and missing systems are known once a suite is prepared.
fn without_systems(suite: &PlannedSuite) -> PlannedSuite {
    let cells = suite.cells.iter().map(PlannedCell::definition).collect();
    PlannedSuite { cells, ..suite.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The plan of two commands.
    fn stored() -> Value {
        let load = json!({
            "folder": "/shop", "port": 8080, "connections": 16, "threads": 1,
            "requests": [{ "method": "GET", "path": "/" }],
        });
        let subjects = json!([
            { "command": { "name": "a", "line": "./a" } },
            { "command": { "name": "b", "line": "./b", "setup": "make" } },
        ]);
        let remarks = ["stripped"];
        json!({ "kind": "compare", "subjects": subjects, "margin": 0.01, "remarks": remarks, "load": load })
    }

    /// Checks a stored plan whose first server was reached at this address.
    fn check_at(stored: &Value, address: &str, request: &Request) -> Result<Run, String> {
        let comparison = serde_json::from_value(stored.clone()).unwrap();
        let command = "linerate compare ./a ./b --seed 7".to_owned();
        let learned = serde_json::from_value(json!({ "servers": [{ "address": address }] })).unwrap();
        let run = Run { comparison: Some(comparison), command, learned, ..Run::default() };
        check_executed(Path::new("dir"), &run, request, &[]).map_err(|e| e.to_string())?;
        Ok(run)
    }

    fn check(stored: &Value, request: &Request) -> Result<Run, String> {
        check_at(stored, "127.0.0.1:80", request)
    }

    /// The command line that asks for this plan.
    fn asking(plan: &Value) -> Request {
        let comparison: PlannedComparison = serde_json::from_value(plan.clone()).unwrap();
        let choice = Choice { comparison: Some(comparison.as_asked()), ..Choice::default() };
        Request { choice, ..Request::default() }
    }

    #[test]
    fn what_a_run_has_learned_is_no_difference() {
        let mut revisions = stored();
        revisions["subjects"][0]["command"]["revision"] = json!({ "arm": "git=one" });
        let request = asking(&revisions);
        revisions["subjects"][0]["command"]["revision"]["resolved"] = "abc123".into();
        let run = check(&revisions, &request).unwrap();
        assert_eq!(run.comparison.unwrap().subjects[0].arm().resolved.as_deref(), Some("abc123"));
    }

    #[test]
    fn whatever_differs_in_a_stored_plan_is_refused_and_named() {
        for (place, value) in [
            ("/subjects/0/command/line", json!("./evil")),
            ("/subjects/1/command/setup", json!("evil")),
            ("/subjects/1/command/cleanup", json!("evil")),
            ("/load/folder", json!("/evil")),
            ("/load/place", json!("local")),
            ("/load/companions", json!(["evil"])),
            ("/load/upstream", json!("evil")),
            ("/source", json!({ "checkout": "/evil", "build": "evil" })),
        ] {
            let mut edited = stored();
            let (parent, key) = place.rsplit_once('/').unwrap();
            edited.pointer_mut(parent).unwrap()[key] = value;
            let error = check(&edited, &asking(&stored())).unwrap_err();
            let named = format!("\n  comparison{}: ", place.replace('/', "."));
            assert!(error.contains(&named), "{named}: {error}");
            assert!(error.ends_with(": linerate compare --resume 'dir' ./a ./b --seed 7"), "{error}");
        }
    }

    #[test]
    fn commands_are_given_again_and_settings_of_linerates_own_systems_are_not() {
        let bare = Request { is_bare: true, ..Request::default() };
        let refused = check(&stored(), &bare).unwrap_err();
        assert!(refused.contains("comparison: something in run.json, nothing here"), "{refused}");
        let gate = |head: &str| {
            let subjects = ["default", head].map(|arm| json!({ "system": { "arm": arm } }));
            json!({ "kind": "gate", "subjects": subjects, "margin": 0.01 })
        };
        for head in ["set:threads=4", "plant=300"] {
            assert!(check(&gate(head), &bare).is_ok(), "{head}");
        }
        for head in ["program=/evil", "env:CXX=evil", "git=one"] {
            assert!(check(&gate(head), &bare).is_err(), "{head}");
        }
    }

    #[test]
    fn an_address_in_the_network_of_this_machine_is_one_of_its_own() {
        let mut plan = stored();
        plan["load"]["place"] = "local".into();
        let request = asking(&plan);
        assert!(check(&plan, &request).is_ok());
        let refused = check_at(&plan, "192.0.2.1:80", &request).unwrap_err();
        assert!(refused.contains("192.0.2.1:80 is no address of this machine"), "{refused}");
    }

    #[test]
    fn the_command_of_a_run_goes_on_with_its_folder_named() {
        let command = "linerate gate './a' --seed 7 # linerate.toml: url = \"/\"";
        let text = again(Path::new("/x y"), command);
        assert_eq!(text, "linerate gate --resume '/x y' './a' --seed 7 # linerate.toml: url = \"/\"");
        assert_eq!(again(Path::new("d"), "linerate gate"), "linerate gate --resume 'd'");
    }
}
