//! `linerate gate --calibrate`: gates of a build against itself, and against itself with a planted slowdown.
//! What they found is counted as that of stored runs.

use super::{GateArgs, Terminal, What, measure};
use crate::arm::Arm;
use crate::cli::{BuildFlags, CellFlags, CompareFlags, RunFlags};
use crate::command::calibrate::counts;
use crate::command::print;
use crate::error::Error;
use crate::measurement::ComparisonKind;
use crate::progress::note;
use crate::report::comparison::conclusion_words;
use std::path::Path;

/// Prints how many gates found a slowdown where there is none, and where there is one.
///
/// # Errors
/// Bad input, or a gate measured nothing.
pub(super) fn calibrate(
    args: &GateArgs,
    times: u32,
    script: Option<&Path>,
    terminal: Terminal,
) -> Result<(), Error> {
    let flags = &args.flags;
    let arm = flags.builds.base.clone().unwrap_or_else(|| "default".into());
    let parsed = Arm::parse(&arm).map_err(Error::Input)?;
    if flags.builds.head.is_some() || parsed.plant.is_some() {
        let remedy = "--calibrate compares --base with itself: leave out --head and plant=";
        return Err(Error::Input(remedy.into()));
    }
    if args.what.len() > 1 {
        return Err(Error::Input("--calibrate is for the builds of a suite: name one".into()));
    }
    let with = |iterations: u32| {
        let plant = format!("plant={iterations}");
        if parsed.is_default() { plant } else { format!("{arm},{plant}") }
    };
    let mut folders = Vec::new();
    for (name, iterations) in [("equal", 0), ("planted", args.plant)] {
        for gate in 1..=times {
            let out = flags.run.out.as_ref().map(|out| out.join(format!("{name}-{gate:03}")));
            let (base, head) = (Some(with(0)), Some(with(iterations)));
            let seed = flags.cells.seed.map(|seed| seed + u64::from(gate));
            let flags = CompareFlags {
                builds: BuildFlags { base, head, ..flags.builds.clone() },
                cells: CellFlags { seed, ..flags.cells.clone() },
                run: RunFlags { out, quiet: true, ..flags.run.clone() },
                ..flags.clone()
            };
            let (suite, history) = (What::Suite(args.what.first().cloned()), args.history.as_deref());
            let done = measure(&flags, suite, ComparisonKind::Gate, script, None, history)?;
            if done.end == crate::session::End::Interrupted {
                return Err(Error::Interrupted);
            }
            let nothing = || Error::NothingMeasured(done.comparison.sentence.clone());
            folders.push(done.folder.ok_or_else(nothing)?);
            note(&format!("{name} {gate} of {times}: {}", conclusion_words(done.comparison.conclusion)));
        }
    }
    print(&counts(&folders, terminal)?).map(|_| ())
}
