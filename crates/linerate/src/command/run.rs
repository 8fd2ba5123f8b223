//! `linerate run`.

use super::{Terminal, overview, print};
use crate::cli::RunArgs;
use crate::error::Error;
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
    if args.selection.suites.is_empty() && !args.selection.published && args.resume.is_none() {
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
    let report = report::build(session.run(), session.trials(), session.duets());
    report::write_files(session.folder(), &report)?;
    let folder = session.folder();
    note(&format!("report: {}/report.md (also .html, .json, .csv)", folder.display()));
    printed?;
    match end? {
        End::Interrupted => {
            note(&format!("interrupted; go on with: linerate run --resume {}", folder.display()));
            Ok(ExitCode::from(130))
        }
        End::Complete if session.trials().iter().any(|trial| trial.outcome == Outcome::Ok) => {
            Ok(ExitCode::SUCCESS)
        }
        End::Complete => Err(Error::NothingMeasured("nothing could be measured: see the report".into())),
    }
}
