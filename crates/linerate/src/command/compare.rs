//! `linerate compare`, and what it has in common with `linerate gate`.

use super::{Terminal, print};
use crate::cli::{BuildOptions, CompareArgs};
use crate::comparison::stored;
use crate::error::Error;
use crate::journal;
use crate::measurement::ComparisonKind;
use crate::progress::note;
use crate::report;
use crate::report::comparison::{ComparisonReport, Conclusion, comment};
use crate::session::{End, Session};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Compares two builds, or two stored runs.
///
/// # Errors
/// Bad input, or nothing could be measured.
pub fn compare(args: &CompareArgs, script: Option<&Path>, terminal: Terminal) -> Result<ExitCode, Error> {
    if let [one, two] = &args.what[..] {
        let runs = [one, two].map(|folder| journal::read(Path::new(folder)));
        let [one, two] = runs;
        return print(&report::comparison::of_stored(&stored::compare(&one?, &two?), terminal.style));
    }
    let suite = args.what.first().cloned();
    let compared = measure(&args.builds, suite, ComparisonKind::Compare, script, Some(terminal))?;
    match compared {
        Measured { end: End::Interrupted, .. } => Ok(ExitCode::from(130)),
        Measured { comparison, .. } if comparison.conclusion == Conclusion::Nothing => {
            Err(Error::NothingMeasured(comparison.sentence))
        }
        Measured { .. } => Ok(ExitCode::SUCCESS),
    }
}

/// A comparison of builds that was measured and published.
pub(super) struct Measured {
    pub(super) end: End,
    pub(super) folder: PathBuf,
    pub(super) report: report::model::Report,
    pub(super) comparison: ComparisonReport,
}

/// Measures both builds and writes the reports; prints them to the terminal, if one is given. Without one,
/// both arms may be the same build.
///
/// # Errors
/// Bad input, or the lab is lost.
pub(super) fn measure(
    builds: &BuildOptions,
    suite: Option<String>,
    kind: ComparisonKind,
    script: Option<&Path>,
    terminal: Option<Terminal>,
) -> Result<Measured, Error> {
    if suite.is_none() && builds.resume.is_none() {
        return Err(Error::Input("name a suite, such as `proxy`; `linerate list` shows them".into()));
    }
    let run = builds.run(suite);
    let session = Session::open(&run, Some(builds.comparison(kind)), script)?;
    let mut session = if terminal.is_none() { session.with_equal_arms() } else { session };
    let end = session.measure(&mut |_, _| {});
    let folder = session.publish()?.to_owned();
    let end = end?;
    let report = session.report();
    let comparison = report.comparison.clone().ok_or_else(|| {
        let folder = folder.display();
        Error::Input(format!("{folder}: this run compares no builds: `linerate run --resume {folder}`"))
    })?;
    if let Some(terminal) = terminal {
        print(&report::TERMINAL.render(&report, terminal.style))?;
        note(&format!("report: {}/report.md (also .html, .json, .csv)", folder.display()));
    }
    if let Some(file) = &builds.comment {
        journal::write(file, &comment(&report, &comparison))?;
    }
    if end == End::Interrupted {
        let name = if kind == ComparisonKind::Gate { "gate" } else { "compare" };
        note(&format!("interrupted; go on with: linerate {name} --resume {}", folder.display()));
    }
    Ok(Measured { end, folder, report, comparison })
}
