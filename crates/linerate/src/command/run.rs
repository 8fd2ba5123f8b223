//! `linerate run`.

use super::{Terminal, has_json_alone, overview, print, publish, report_note};
use crate::cli::RunArgs;
use crate::error::Error;
use crate::measurement::Outcome;
use crate::output::{self, note, warn};
use crate::report::{self, comparison::with_profile};
use crate::session::{End, Event, Request, Session};
use std::path::Path;
use std::process::ExitCode;

/// Measures and reports; without a suite or `--published`, shows what can be run.
///
/// # Errors
/// Bad input, or nothing could be measured. Trials made before an error are in the journal and in the report.
pub fn run(args: &RunArgs, script: Option<&Path>, terminal: Terminal) -> Result<ExitCode, Error> {
    if args.selection.suites.is_empty() && !args.selection.published && args.run.resume.is_none() {
        return print(&overview::text(script)?);
    }
    let mut session = Session::open(&Request::from(args), script)?;
    let end = session.measure(&mut |event| {
        let is_shown = !has_json_alone(&args.run);
        if let (Event::Suite(suite, profile), true) = (event, is_shown) {
            let report = with_profile(report::from_stored(&suite), profile);
            warn(output::print(&report::TERMINAL.render(&report, terminal.style(args.long))));
        }
    });
    let report = report::build(session.run(), session.made());
    let report = with_profile(report, session.profile().clone());
    publish(&report, session.folder(), &args.run);
    session.folder().map(report_note).into_iter().for_each(|text| note(&text));
    match (end?, session.folder()) {
        (End::Interrupted, None) => Err(Error::Interrupted),
        (End::Interrupted, Some(folder)) => {
            note(&format!("interrupted; go on with: linerate run --resume {}", folder.display()));
            Ok(ExitCode::from(130))
        }
        (End::Complete, _) if session.made().units.iter().any(|unit| unit.outcome == Outcome::Ok) => {
            Ok(ExitCode::SUCCESS)
        }
        (End::Complete, None) => Err(Error::NothingMeasured(
            "nothing could be measured, and nothing is kept: each row has its reason".into(),
        )),
        (End::Complete, Some(_)) => {
            Err(Error::NothingMeasured("nothing could be measured: see the report".into()))
        }
    }
}
