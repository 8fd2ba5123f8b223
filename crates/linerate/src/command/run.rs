//! `linerate run`.

use super::{Terminal, overview, print, report_note};
use crate::cli::RunArgs;
use crate::error::Error;
use crate::journal;
use crate::measurement::Outcome;
use crate::progress::note;
use crate::report;
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
    let mut printed = Ok(ExitCode::SUCCESS);
    let end = session.measure(&mut |event| {
        if let Event::Suite(suite) = event {
            printed =
                print(&report::TERMINAL.render(&report::from_stored(&suite), terminal.style(args.long)));
        }
    });
    if let Some(folder) = session.folder() {
        let report = report::build(session.run(), session.trials(), session.duets());
        journal::write_report(folder, report::files(&report))?;
        note(&report_note(folder));
    }
    printed?;
    match (end?, session.folder()) {
        (End::Interrupted, None) => Err(Error::Interrupted),
        (End::Interrupted, Some(folder)) => {
            note(&format!("interrupted; go on with: linerate run --resume {}", folder.display()));
            Ok(ExitCode::from(130))
        }
        (End::Complete, _) if session.trials().iter().any(|trial| trial.outcome == Outcome::Ok) => {
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
