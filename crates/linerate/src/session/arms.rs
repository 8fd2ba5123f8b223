//! The arms of a comparison: revisions are built and programs are found before anything is measured.

use super::remarks;
use crate::arm::{Arm, BASE, HEAD};
use crate::error::Error;
use crate::lab::program::locate;
use crate::measurement::{
    PlannedArm, PlannedCell, PlannedCommand, PlannedComparison, PlannedSource, PlannedSuite, PlannedSystem,
    Subject,
};
use crate::programs::Programs;
use crate::system::build::Failure;
use crate::system::build::revision::Repository;
use crate::system::probe::Replacement;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// In the value of `env:`, the worktree of the arm's revision.
const CHECKOUT: &str = "{checkout}";

/// The replacements of each build of a system. The commits of revisions become part of the plan.
///
/// # Errors
/// An arm cannot be built, or its program is not there.
pub(super) fn replacements(
    comparison: &mut PlannedComparison,
    note: impl Fn(&str),
) -> Result<BTreeMap<String, Replacement>, Error> {
    let (mut all, mut about) = (BTreeMap::new(), Vec::new());
    let source = comparison.source.clone();
    let repository = source.as_ref().map(Repository::from_source);
    for (build, subject) in [BASE, HEAD].into_iter().zip(&mut comparison.subjects) {
        let Subject::System(planned) = subject else { continue };
        let place = format!("--{build} {}", planned.arm);
        let arm = Arm::parse(&planned.arm).map_err(|e| Error::Input(format!("{place}: {e}")))?;
        let tree = match (&arm.git, &repository) {
            (None, _) => None,
            (Some(_), None) => {
                return Err(Error::Input(format!("{place}: add --checkout DIR and --build COMMAND")));
            }
            (Some(revision), Some(repository)) => {
                Some(worktree(planned, revision, repository, &note).map_err(|e| e.at_place(&place))?)
            }
        };
        let built = tree.as_ref().and_then(|tree| Some(tree.join(repository.as_ref()?.program?)));
        let found = arm.program.as_deref().map(|program| {
            let found = locate(program).and_then(|path| std::path::absolute(path).ok());
            found.ok_or_else(|| Error::NothingMeasured(format!("{place}: there is no program `{program}`")))
        });
        let uses_tree = arm.env.iter().any(|(_, value)| value.contains(CHECKOUT));
        if tree.is_some() && built.is_none() && !uses_tree {
            return Err(Error::Input(format!(
                "{place}: nothing is taken from the revision: add --program PATH, or a variable such as \
                 env:CMAKE_PREFIX_PATH={CHECKOUT}/install"
            )));
        }
        let tree = tree.map_or_else(String::new, |tree| tree.display().to_string());
        let env = arm.env.into_iter().map(|(name, value)| (name, value.replace(CHECKOUT, &tree)));
        let program = found.transpose()?.or(built);
        about.extend(program.iter().flat_map(|program| remarks::about(&place, program)));
        all.insert(build.to_owned(), Replacement { program, env: env.collect(), plant: arm.plant });
    }
    let programs = [BASE, HEAD].map(|build| all.get(build).and_then(|replaced| replaced.program.as_ref()));
    about.extend(remarks::about_lengths(programs));
    about.iter().for_each(|remark| note(remark));
    comparison.remarks = about;
    Ok(all)
}

/// The worktree of each command's revision, built.
///
/// # Errors
/// A revision cannot be built, or both are one commit.
pub(super) fn trees(
    comparison: &mut PlannedComparison,
    note: impl Fn(&str),
) -> Result<Vec<Option<PathBuf>>, Error> {
    let source = comparison.source.clone().unwrap_or_default();
    let repository = Repository { program: None, ..Repository::from_source(&source) };
    let tree = |(option, subject): (&str, &mut Subject)| {
        let Subject::Command(PlannedCommand { revision: Some(planned), .. }) = subject else {
            return Ok(None);
        };
        let place = format!("--{option} {}", planned.arm);
        let arm = Arm::parse(&planned.arm).map_err(|e| Error::Input(format!("{place}: {e}")))?;
        let revision = arm.git.unwrap_or_default();
        worktree(planned, &revision, &repository, &note).map(Some).map_err(|e| e.at_place(&place))
    };
    let trees: Vec<_> =
        [BASE, HEAD].into_iter().zip(&mut comparison.subjects).map(tree).collect::<Result<_, _>>()?;
    let [base, head] = comparison.arms();
    match base.resolved.as_deref() {
        Some(commit) if base.resolved == head.resolved => Err(Error::Input(format!(
            "{} and {} are both {}: nothing has changed; name another revision, such as --base git=HEAD~1",
            base.arm,
            head.arm,
            &commit[..commit.len().min(12)]
        ))),
        _ => Ok(trees),
    }
}

impl<'a> Repository<'a> {
    fn from_source(source: &'a PlannedSource) -> Self {
        let PlannedSource { checkout, build, program } = source;
        Self { checkout: Path::new(checkout), build, program: program.as_deref() }
    }
}

fn worktree(
    planned: &mut PlannedArm,
    revision: &str,
    repository: &Repository<'_>,
    note: impl Fn(&str),
) -> Result<PathBuf, Failure> {
    let commit = planned.resolved.clone().map_or_else(|| repository.commit(revision), Ok)?;
    planned.resolved = Some(commit.clone());
    repository.worktree(&commit, note)
}

impl Failure {
    fn at_place(self, place: &str) -> Error {
        match self {
            Self::Interrupted => Error::Interrupted,
            Self::Reason(reason) => Error::NothingMeasured(format!("{place}: {reason}")),
        }
    }
}

/// Checks that the arms differ in every cell that both can run.
///
/// # Errors
/// The first cell whose two builds are one.
pub(super) fn check_different(suite: &PlannedSuite, programs: &Programs) -> Result<(), Error> {
    let of_build = |build: &'static str| {
        let has_build = move |system: &PlannedSystem| system.build == build;
        suite.cells.iter().filter(move |cell| cell.systems.iter().any(has_build))
    };
    let identity = |cell: &PlannedCell| {
        let real = |system: &PlannedSystem| {
            let (program, words) = programs.command_line(system.role, &system.name, &system.build)?;
            Some((program.canonicalize().unwrap_or_else(|_| program.clone()), words.clone()))
        };
        let of_role = |system: &PlannedSystem| (real(system), system.settings.clone(), system.name.clone());
        let roles = cell.systems.iter().map(of_role);
        (cell.parameters, cell.options.clone(), roles.collect::<Vec<_>>())
    };
    for (base, head) in of_build(BASE).zip(of_build(HEAD)) {
        if base.absent.is_none() && head.absent.is_none() && identity(base) == identity(head) {
            return Err(Error::Input(format!(
                "{} and {}: both arms are the same build, so there is nothing to compare",
                base.id, head.id
            )));
        }
    }
    Ok(())
}
