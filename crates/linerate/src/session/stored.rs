//! `--resume`: a run that was cut off goes on with the cells and versions that it began with.

use crate::arm::Arm;
use crate::error::Error;
use crate::journal::Journal;
use crate::lab::program::quoted;
use crate::measurement::{
    ComparisonKind, Duet, PlannedCell, PlannedComparison, PlannedHost, PlannedLoad, PlannedSuite, Run,
    Stored, Subject, Trial,
};
use crate::plan::{self, Choice};
use crate::suite;
use std::path::Path;

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

/// Checks that the user gave again what a stored run would execute outside of the lab: its folder may come
/// from someone else. These are the builds and programs of a comparison, and ssh with its options.
///
/// # Errors
/// The options that are not given, or have other values.
pub(super) fn check_commands(
    folder: &Path,
    run: &Run,
    comparison: Option<&PlannedComparison>,
    hosts: &[PlannedHost],
) -> Result<(), Error> {
    let subcommand = match run.policy().verdict().map(|comparison| comparison.kind) {
        None => "run",
        Some(ComparisonKind::Compare) => "compare",
        Some(ComparisonKind::Gate) => "gate",
    };
    let mut absent = run.policy().verdict().map_or_else(Vec::new, |stored| of_builds(stored, comparison));
    absent.extend(of_hosts(&run.hosts, hosts));
    if !absent.is_empty() {
        return Err(Error::Input(format!(
            "{0}: this run executes commands that are in its run.json, and a folder may come from someone \
             else. If they are yours, give them again: linerate {subcommand} --resume {0} {1}",
            folder.display(),
            absent.join(" ")
        )));
    }
    let subjects = run.comparison.iter().flat_map(|comparison| &comparison.subjects);
    match subjects.filter_map(|subject| subject.arm().resolved).find(|commit| !is_hash(commit)) {
        Some(commit) => Err(Error::Input(format!("{}: `{commit}` is no commit", folder.display()))),
        None => Ok(()),
    }
}

/// The options of the stored builds and programs that differ from those given.
fn of_builds(stored: &PlannedComparison, given: Option<&PlannedComparison>) -> Vec<String> {
    let executes =
        |arm: &String| Arm::parse(arm).map_or(true, |arm| arm.program.is_some() || !arm.env.is_empty());
    let arms = |planned: &PlannedComparison| planned.arms().map(|arm| arm.arm);
    let [base, head] = arms(stored).map(|arm| Some(arm).filter(executes));
    let [given_base, given_head] = given.map_or([None, None], |given| arms(given).map(Some));
    let (source, given_source) = (stored.source.as_ref(), given.and_then(|given| given.source.as_ref()));
    let options = [
        ("base", base, given_base.as_ref()),
        ("head", head, given_head.as_ref()),
        ("checkout", source.map(|s| s.checkout.clone()), given_source.map(|s| &s.checkout)),
        ("build", source.map(|s| s.build.clone()), given_source.map(|s| &s.build)),
        ("program", source.and_then(|s| s.program.clone()), given_source.and_then(|s| s.program.as_ref())),
    ];
    let differ = options.into_iter().filter_map(|(name, stored, given)| {
        let stored = stored.filter(|stored| Some(stored) != given)?;
        Some(format!("--{name} {}", quoted(&stored)))
    });
    let given = given.and_then(PlannedComparison::servers);
    stored.servers().into_iter().flat_map(|stored| of_servers(stored, given)).chain(differ).collect()
}

/// The commands of servers, if they are not those given, and their folder, if it is not the current one.
fn of_servers(stored: (&[Subject], &PlannedLoad), given: Option<(&[Subject], &PlannedLoad)>) -> Vec<String> {
    let lines = |(subjects, load): (&[Subject], &PlannedLoad)| -> Vec<String> {
        let option = |name: &str, text: &str| format!("--{name} {}", quoted(text));
        let setups = subjects.iter().filter_map(|one| Some(option("setup", one.hooks()?.setup.as_ref()?)));
        let cleanups =
            subjects.iter().filter_map(|one| Some(option("cleanup", one.hooks()?.cleanup.as_ref()?)));
        let companions = load.companions.iter().map(|one| option("with", one));
        let hosts = subjects.iter().filter_map(|one| {
            let place = one.address()?.watched_on.as_ref()?;
            Some(option("host", &format!("{}={place}", one.name())))
        });
        let upstream = load.upstream.iter().map(|upstream| option("upstream", upstream));
        let words = subjects.iter().map(|one| quoted(one.text()));
        let all = words.chain(upstream).chain(setups).chain(cleanups).chain(hosts);
        let mut all: Vec<String> = all.chain(companions).collect();
        // Revisions have one command.
        all.dedup();
        all
    };
    let folder = &stored.1.folder;
    let is_here = given.is_none_or(|(_, load)| load.folder == *folder);
    if is_here && given.map(lines) == Some(lines(stored)) {
        return Vec::new();
    }
    let elsewhere = (!is_here).then(|| format!("(in the folder {})", folder.display()));
    lines(stored).into_iter().chain(elsewhere).collect()
}

/// `--host` of each role, if the machines are not those given. Their addresses and CPUs are no commands.
fn of_hosts(stored: &[PlannedHost], given: &[PlannedHost]) -> Vec<String> {
    let command = |host: &PlannedHost| {
        let ssh = (host.destination.clone(), host.ssh_options.clone(), host.agent.clone());
        (host.place.clone(), host.roles.clone(), ssh)
    };
    if stored.iter().map(command).eq(given.iter().map(command)) {
        return Vec::new();
    }
    let places = stored.iter().flat_map(|host| host.roles.iter().map(move |role| (role, &host.place)));
    let options = places.map(|(role, place)| format!("--host {}", quoted(&format!("{role}={place}"))));
    let has_options = stored.iter().any(|host| command(host).2 != (None, Vec::new(), None));
    let file = has_options.then(|| "--hosts FILE (with the ssh options of that run)".to_owned());
    options.chain(["--host-network".to_owned()]).chain(file).collect()
}

fn is_hash(commit: &str) -> bool {
    !commit.is_empty() && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The suite's own cells of a comparison of builds: its arms need not fit others.
fn origins(run: &Run) -> Vec<String> {
    let cells = run.suites.iter().flat_map(|suite| suite.cells.iter().map(move |cell| (suite, cell)));
    cells.map(|(suite, cell)| globset::escape(&format!("{}:{}", suite.name, plan::origin(cell)))).collect()
}

/// Opens the journal, after checking that the suites still have the stored cells.
///
/// # Errors
/// A cell has changed, or the journal cannot be opened.
pub(super) fn open(
    folder: &Path,
    stored: Stored,
    now: Vec<PlannedSuite>,
) -> Result<(Run, Vec<Trial>, Vec<Duet>, Journal), Error> {
    let Stored { run, trials, duets, warnings } = stored;
    warnings.iter().for_each(|warning| crate::progress::note(&format!("warning: {warning}")));
    for suite in &run.suites {
        let now = now.iter().find(|s| s.name == suite.name);
        check_same(folder, &without_systems(suite), now.map(without_systems).as_ref())?;
    }
    let journal = Journal::open(folder, &run)?;
    Ok((run, trials, duets, journal))
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
