//! `linerate gate`: a comparison with an exit status.

use super::Terminal;
use super::compare::{Measured, What, measure};
use crate::cli::GateArgs;
use crate::error::Error;
use crate::measurement::ComparisonKind;
use crate::progress::note;
use crate::session::End;
use crate::stats::verdict::Verdict;
use std::path::Path;
use std::process::ExitCode;

/// `git bisect run` skips a commit with this status, and ends at one above 127.
const SKIP: u8 = 125;
const ABORT: u8 = 128;
const INTERRUPTED: u8 = 130;
/// A verdict that is still undecided; 2 is bad usage alone.
const UNDECIDED: u8 = 4;

/// Compares two builds; the exit status is the verdict.
pub fn gate(args: &GateArgs, script: Option<&Path>, terminal: Terminal) -> ExitCode {
    let status = judged(args, script, terminal).unwrap_or_else(|error| {
        note(&format!("linerate: {error}"));
        match (&error, error.exit_status()) {
            (Error::Input(_) | Error::File { .. }, _) if args.bisect => ABORT,
            (Error::NothingMeasured(_), status) => translated(args, status),
            (_, status) => status,
        }
    });
    ExitCode::from(status)
}

/// The status of arguments that clap refused. `git bisect run` would read 2 as a bad commit.
pub fn refused(refusal: &clap::Error) -> ExitCode {
    let _ = refusal.print();
    let is_bisect = || std::env::args_os().any(|word| word == "--bisect");
    match refusal.use_stderr() {
        false => ExitCode::SUCCESS,
        true if is_bisect() => ExitCode::from(ABORT),
        true => ExitCode::from(2),
    }
}

fn judged(args: &GateArgs, script: Option<&Path>, terminal: Terminal) -> Result<u8, Error> {
    let kind = ComparisonKind::Gate;
    let (what, flags) = What::from_words(&args.what, &args.flags)?;
    let history = args.history.as_deref();
    let Measured { end, comparison, .. } = measure(&flags, what, kind, script, terminal, history)?;
    if end == End::Interrupted {
        return Ok(INTERRUPTED);
    }
    Ok(translated(args, status(comparison.conclusion)))
}

fn status(conclusion: Verdict) -> u8 {
    match conclusion {
        Verdict::Slower => 1,
        Verdict::CannotTell | Verdict::Failed => UNDECIDED,
        Verdict::Missing => 3,
        _ => 0,
    }
}

/// The status of a verdict, by the options of the user.
fn translated(args: &GateArgs, status: u8) -> u8 {
    match status {
        _ if args.advisory => 0,
        3 | UNDECIDED if args.bisect => SKIP,
        _ => status,
    }
}
