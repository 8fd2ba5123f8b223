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
    for suite in &mut planned {
        programs::resolve(suite, &registry, &mut Programs::default(), &mut machine);
        let to_build = machine.to_build();
        let line = line(suite, &registry, &to_build, &timings);
        let _ = writeln!(text, "{:12} {}\n{:12} {line}", suite.name, suite.question, "");
    }
    text.push_str(START);
    Ok(text)
}

fn line(suite: &PlannedSuite, registry: &Registry, to_build: &BTreeSet<String>, timings: &Timings) -> String {
    let systems = plan::built_systems(suite, registry);
    let unbuilt = systems.iter().filter(|system| to_build.contains(**system)).count();
    let missing =
        suite.cells.iter().filter(|cell| matches!(cell.absent, Some(Outcome::Missing { .. }))).count();
    let mut parts = vec![format!(
        "{} of {} ready",
        suite.cells.len() - missing,
        counted(suite.cells.len() as u64, "cell")
    )];
    match unbuilt {
        0 => {}
        1 => parts.push("1 system is built first".to_owned()),
        _ => parts.push(format!("{unbuilt} systems are built first")),
    }
    parts.push(format!("--quick takes up to {}", humantime::format_duration(quick_time(suite, timings))));
    parts.join("; ")
}

/// By earlier trials on this machine, and the time for narrower intervals.
fn quick_time(suite: &PlannedSuite, timings: &Timings) -> Duration {
    let run = Run { schema: RUN_SCHEMA.into(), suites: vec![suite.clone()], quick: true, ..Run::default() };
    let [_, most] = seconds_in_all(&run, timings, &plan::order(&run));
    Duration::from_secs(most.ceil() as u64)
}

const START: &str = "
Start with:
  linerate run proxy --quick             a first table
  linerate run proxy --quick --install   install its missing Debian packages first
  linerate run all --quick               every suite, quick form
  linerate run all                       every suite in full
  linerate run --help                    options and more examples
";
