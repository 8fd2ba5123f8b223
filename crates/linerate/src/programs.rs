//! Which systems this machine has: the program of each variant and build, and versions of the plan's cells.

use crate::error::Error;
use crate::lab::CommandLine;
use crate::lab::scripted::Scripted;
use crate::measurement::{DEFAULT_BUILD, Outcome, PlannedSuite, PlannedSystem};
use crate::system::build::{Builds, Permission, revision};
use crate::system::probe::{Presence, Replacement, presence};
use crate::system::{Registry, SystemVariant, VERIFIER, install};
use linerate_contract::Role;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The program of each variant that is here, by variant and build; with the arguments of one that starts it.
#[derive(Debug, Clone, Default)]
pub struct Programs(BTreeMap<(String, String), CommandLine>);

/// The system whose `launch` starts a program with a planted slowdown.
const PLANTED: &str = "planted";

impl Programs {
    /// The program of a variant; `None` where it starts none.
    #[must_use]
    pub fn of(&self, variant: &str, build: &str) -> Option<&CommandLine> {
        self.0.get(&(variant.to_owned(), build.to_owned()))
    }

    fn insert(&mut self, variant: &str, build: &str, program: CommandLine) {
        self.0.insert((variant.to_owned(), build.to_owned()), program);
    }
}

/// Probes variants, each once; with a script, the variants are those of the script.
#[derive(Debug)]
pub struct Machine<'a> {
    known: BTreeMap<(String, String), Presence>,
    builds: Builds<'a>,
    script: Option<&'a Scripted>,
    /// What the arms of a comparison replace, by build.
    replacements: BTreeMap<String, Replacement>,
}

impl<'a> Machine<'a> {
    #[must_use]
    pub fn new(permission: Permission<'a>, script: Option<&'a Scripted>) -> Self {
        let (known, replacements) = (BTreeMap::new(), BTreeMap::new());
        Self { known, builds: Builds::new(permission), script, replacements }
    }

    /// With these replacements for builds other than the default.
    #[must_use]
    pub fn with(self, replacements: BTreeMap<String, Replacement>) -> Self {
        Self { replacements, ..self }
    }

    pub fn presence(&mut self, chosen: SystemVariant<'_>) -> Presence {
        self.presence_of(chosen, DEFAULT_BUILD)
    }

    fn presence_of(&mut self, chosen: SystemVariant<'_>, build: &str) -> Presence {
        if let Some(script) = self.script {
            return script.presence(chosen, build);
        }
        let key = (chosen.name.to_owned(), build.to_owned());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let usual = Replacement::default();
        let replacement = self.replacements.get(build).unwrap_or(&usual);
        let presence = presence(chosen, replacement, &mut self.builds);
        self.known.insert(key, presence.clone());
        presence
    }

    /// How the program of a build is started: under a name as long as that of the other arm's, and with
    /// its planted slowdown.
    fn command_line(
        &mut self,
        chosen: SystemVariant<'_>,
        build: &str,
        program: PathBuf,
        registry: &Registry,
    ) -> Result<CommandLine, String> {
        if build == DEFAULT_BUILD || self.script.is_some() {
            return Ok((program, Vec::new()));
        }
        let usual = Path::new(chosen.program().unwrap_or(chosen.name)).file_name().unwrap_or_default();
        let link = revision::link(&program, &usual.to_string_lossy())?;
        match self.replacements.get(build).and_then(|replacement| replacement.plant) {
            None => Ok((link, Vec::new())),
            Some(iterations) => {
                let planted = registry.systems.get(PLANTED).ok_or("there is no system `planted`")?;
                let launch = self.builds.of(planted, &[])?.join("launch");
                // The same number of digits in both arms.
                Ok((launch, vec![format!("{iterations:08}"), link.display().to_string()]))
            }
        }
    }

    /// Systems that are not built yet, and that a run would build.
    #[must_use]
    pub fn to_build(&self) -> BTreeSet<String> {
        self.builds.pending().clone()
    }

    /// # Errors
    /// [`Error::Interrupted`], if the user stopped a build.
    pub fn check(&self) -> Result<(), Error> {
        if self.builds.interrupted() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// Sets the version of every system of the suite, and the outcome of cells that cannot run here.
pub fn resolve(
    suite: &mut PlannedSuite,
    registry: &Registry,
    programs: &mut Programs,
    machine: &mut Machine<'_>,
) {
    // It verifies the servers of every client that does not implement the contract.
    if let Ok(verifier) = registry.variant(VERIFIER, Role::Client)
        && let Presence::Ready { program: Some(program), .. } = machine.presence(verifier)
    {
        programs.insert(verifier.name, DEFAULT_BUILD, (program, Vec::new()));
    }
    for cell in &mut suite.cells {
        cell.absent = None;
        for PlannedSystem { role, name, build, version, .. } in &mut cell.systems {
            let Ok(chosen) = registry.variant(name, *role) else { continue };
            match machine.presence_of(chosen, build) {
                Presence::Ready { program, version: found } => {
                    *version = found;
                    let started = program.map(|path| machine.command_line(chosen, build, path, registry));
                    match started.transpose() {
                        Ok(Some(started)) => programs.insert(name, build, started),
                        Ok(None) => {}
                        Err(reason) => {
                            let install = install::advice(chosen);
                            cell.absent = Some(Outcome::Missing { reason, install });
                        }
                    }
                }
                Presence::Missing { reason, install } => {
                    cell.absent = Some(Outcome::Missing { reason, install });
                }
            }
            if cell.absent.is_none() {
                cell.absent = unsupported(chosen, *role, &cell.layer, &cell.workload);
            }
        }
    }
}

fn unsupported(chosen: SystemVariant<'_>, role: Role, layer: &str, workload: &str) -> Option<Outcome> {
    let lacks = |all: &[String], one: &str| !all.is_empty() && !all.iter().any(|l| l == one);
    let missing = if lacks(&chosen.variant.layers, layer) {
        layer
    } else if lacks(&chosen.variant.workloads, workload) {
        workload
    } else {
        return None;
    };
    Some(Outcome::Unsupported { reason: format!("{} has no {missing} as a {role}", chosen.name) })
}
