//! `linerate run`.

use super::{Terminal, overview, print, publish};
use crate::cli::RunArgs;
use crate::error::Error;
use crate::measurement::Outcome;
use crate::progress::note;
use crate::report;
use crate::session::{End, Event, Request, Session};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Measures and reports; without a suite, shows what can be run.
///
/// # Errors
/// Bad input, or nothing could be measured. Trials made before an error are in the journal and in the report.
pub fn run(args: &RunArgs, script: Option<&Path>, terminal: Terminal) -> Result<ExitCode, Error> {
    if args.selection.suites.is_empty() && args.resume.is_none() {
        return print(&overview::text(script)?);
    }
    let mut session = Session::open(&Request::from(args), script)?;
    let mut printed = Ok(ExitCode::SUCCESS);
    let end = session.measure(&mut |event| {
        let style = terminal.style(args.long);
        match event {
            // Standard output gets each table once.
            Event::Rounds { suite, left } if !args.quiet => note(&format!(
                "{}more units of pairs with wide intervals follow, for up to {}; then the tables again\n",
                report::TERMINAL.render(&report::of(&suite), style.on_stderr()),
                humantime::format_duration(Duration::from_secs(left.ceil() as u64))
            )),
            Event::Rounds { .. } | Event::Prospect(_) => {}
            Event::Suite(suite) => printed = print(&report::TERMINAL.render(&report::of(&suite), style)),
        }
    });
    publish(&session)?;
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
