//! `linerate run` without a suite: which suites there are, what is ready, how long each takes, how to start.

use crate::error::Error;
use crate::measurement::{Outcome, PlannedSuite, RUN_SCHEMA, Run};
use crate::plan::{self, Choice};
use crate::programs::{self, Machine, Programs};
use crate::report::numbers::counted;
use crate::session::seconds_in_all;
use crate::system::Registry;
use crate::system::build::Permission;
use crate::timings::Timings;
use crate::{home, suite};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// # Errors
/// A suite or manifest is not valid.
pub(super) fn text(script: Option<&Path>) -> Result<String, Error> {
    let script = programs::script(script)?;
    let home = home::find()?;
    let registry = Registry::load(&home)?;
    let suites = suite::load_all(&home)?;
    let choice = Choice { quick: true, ..Choice::default() };
    let mut planned = plan::suites(&suites, &registry, &choice)?;
    let mut machine = Machine::new(Permission::Later, script.as_ref());
    let timings = Timings::load();
    let mut text = String::new();
    let mut ready = None;
    for suite in &mut planned {
        programs::resolve(suite, &registry, &mut Programs::default(), &mut machine);
        let to_build = machine.to_build();
        let line = line(suite, &registry, &to_build, &timings);
        let _ = writeln!(text, "{:12} {}\n{:12} {line}", suite.name, suite.question, "");
        // Where nothing is missing, a first table needs no package.
        let share = 1.0 - missing(suite) as f64 / suite.cells.len().max(1) as f64;
        if ready.as_ref().is_none_or(|(best, _)| share > *best) {
            ready = Some((share, suite.name.clone()));
        }
    }
    let first = ready.map_or_else(|| "proxy".to_owned(), |(_, name)| name);
    text.push_str(&START.replace("{first}", &format!("{:22}", format!("{first} --quick"))));
    Ok(text)
}

fn line(suite: &PlannedSuite, registry: &Registry, to_build: &BTreeSet<String>, timings: &Timings) -> String {
    let systems = plan::built_systems(suite, registry);
    let unbuilt = systems.iter().filter(|system| to_build.contains(**system)).count();
    let ready = suite.cells.len() - missing(suite);
    let mut parts = vec![format!("{ready} of {} ready", counted(suite.cells.len() as u64, "cell"))];
    match unbuilt {
        0 => {}
        1 => parts.push("1 system is built first".to_owned()),
        _ => parts.push(format!("{unbuilt} systems are built first")),
    }
    match ready {
        0 => parts.push(format!("linerate run {} --quick --install installs them", suite.name)),
        _ => {
            let time = humantime::format_duration(quick_time(suite, timings));
            parts.push(format!("--quick takes up to {time}"));
        }
    }
    parts.join("; ")
}

/// Cells whose systems are not installed.
fn missing(suite: &PlannedSuite) -> usize {
    suite.cells.iter().filter(|cell| matches!(cell.absent, Some(Outcome::Missing { .. }))).count()
}

/// By earlier trials on this machine, and the time for narrower intervals.
fn quick_time(suite: &PlannedSuite, timings: &Timings) -> Duration {
    let run = Run { schema: RUN_SCHEMA.into(), suites: vec![suite.clone()], quick: true, ..Run::default() };
    let [_, most] = seconds_in_all(&run, timings, &plan::order(&run));
    Duration::from_secs(most.ceil() as u64)
}

const START: &str = "
Start with:
  linerate run {first} a first table
  linerate run proxy --quick --install   install its missing Debian packages first
  linerate run all --quick               every suite, quick form
  linerate run all                       every suite in full
  linerate run --help                    options and more examples
";
