//! `linerate run`.

use super::{Terminal, overview, print};
use crate::cli::RunArgs;
use crate::error::Error;
use crate::measurement::Outcome;
use crate::progress::note;
use crate::report;
use crate::session::{End, Extent, Session};
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
    let mut session = Session::open(args, None, script)?;
    let mut printed = Ok(ExitCode::SUCCESS);
    let end = session.measure(&mut |suite, part| {
        let style = terminal.style(args.long);
        match part {
            // Standard output gets each table once.
            Extent::Rounds { left } if !args.quiet => note(&format!(
                "{}more units of pairs with wide intervals follow, for up to {}; then the tables again\n",
                report::TERMINAL.render(suite, style.on_stderr()),
                humantime::format_duration(Duration::from_secs(left.ceil() as u64))
            )),
            Extent::Rounds { .. } => {}
            Extent::All => printed = print(&report::TERMINAL.render(suite, style)),
        }
    });
    let folder = session.publish()?.to_owned();
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
