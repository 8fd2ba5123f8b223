//! Two builds of a system, or two revisions of a command.

use super::CompareFlags;
use crate::arm::Arm;
use crate::error::Error;
use crate::measurement::{PlannedArm, PlannedComparison, PlannedSource};
use crate::subject::values::Filled;
use clap::Args;
use std::path::{Path, PathBuf};

/// Two builds of a system, or two revisions of a command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Builds of a system, revisions of a command")]
pub struct BuildFlags {
    /// The first build [default: default; with --checkout git=merge-base]
    #[arg(long, value_name = "ARM", value_parser = arm)]
    pub base: Option<String>,

    /// The second build [default: default; with --checkout git=working-tree]
    #[arg(long, value_name = "ARM", value_parser = arm)]
    pub head: Option<String>,

    /// The system or variant with two builds [default: the relay of each cell, else the server]
    #[arg(hide_short_help = true, long, value_name = "NAME")]
    pub system: Option<String>,

    /// Repository of the revisions of git= [default with --build: the current folder]
    #[arg(hide_short_help = true, long, value_name = "DIR")]
    pub checkout: Option<PathBuf>,

    /// The built program, relative to the checkout
    #[arg(hide_short_help = true, long, value_name = "PATH", requires = "build")]
    pub program: Option<String>,
}

pub(super) const ARMS: &str = "An arm is a build: settings joined by commas.
  default              the system as it is
  program=PATH         another program
  git=REV              a revision of --checkout, built by --build; also git=merge-base, git=working-tree
  env:NAME=VALUE       a variable of the system's [build]; {checkout} is the revision's clone
  set:KEY=VALUE        a setting of its templates, an option, or a parameter such as connections
  plant=N              N iterations of a loop after each receive: a slowdown to test with";

impl CompareFlags {
    /// Revisions of a repository are compared.
    pub fn has_revisions(&self) -> bool {
        self.builds.checkout.is_some() || self.settings.subjects.build.is_some()
    }

    pub(super) fn source(&self) -> PlannedSource {
        let checkout = self.builds.checkout.as_deref().unwrap_or(Path::new("."));
        PlannedSource {
            checkout: checkout.display().to_string(),
            // Scripts need no build.
            build: self.settings.subjects.build.clone().unwrap_or_else(|| "true".into()),
            program: self.builds.program.clone(),
        }
    }
}

/// One command in the worktrees of both arms.
pub(super) fn two_revisions(
    commands: Vec<Filled>,
    comparison: &PlannedComparison,
) -> Result<Vec<Filled>, Error> {
    let [one] = &commands[..] else {
        let n = commands.len();
        return Err(Error::Input(format!("--build is for two revisions of one command, and there are {n}")));
    };
    let arms = ["base", "head"].into_iter().zip(comparison.arms());
    let of_arm = |(option, planned): (&str, PlannedArm)| {
        let arm = Arm::parse(&planned.arm).map_err(Error::Input)?;
        let revision = arm.git.clone().filter(|git| arm == Arm { git: Some(git.clone()), ..Arm::default() });
        let revision = revision.ok_or_else(|| {
            Error::Input(format!("--{option} {}: a command is compared by revisions: git=REV", planned.arm))
        })?;
        Ok(Filled { name: revision, ..one.clone() })
    };
    arms.map(of_arm).collect()
}

fn arm(text: &str) -> Result<String, String> {
    Arm::parse(text).map(|_| text.to_owned())
}
