//! Which systems this machine has: the program of each variant and build, and versions of the plan's cells.

use crate::error::Error;
use crate::lab::scripted::Scripted;
use crate::measurement::{DEFAULT_BUILD, Outcome, PlannedSuite, PlannedSystem};
use crate::system::build::{Builds, Permission};
use crate::system::probe::{Presence, presence};
use crate::system::{Registry, SystemVariant, VERIFIER};
use linerate_contract::Role;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The program of each variant that is here, by variant and build.
#[derive(Debug, Clone, Default)]
pub struct Programs(BTreeMap<(String, String), PathBuf>);

impl Programs {
    /// The program of a variant; `None` where it starts none.
    #[must_use]
    pub fn of(&self, variant: &str, build: &str) -> Option<&PathBuf> {
        self.0.get(&(variant.to_owned(), build.to_owned()))
    }

    fn insert(&mut self, variant: &str, build: &str, program: PathBuf) {
        self.0.insert((variant.to_owned(), build.to_owned()), program);
    }
}

/// Probes variants, each once; with a script, the variants are those of the script.
#[derive(Debug)]
pub struct Machine<'a> {
    known: BTreeMap<String, Presence>,
    builds: Builds<'a>,
    script: Option<&'a Scripted>,
}

impl<'a> Machine<'a> {
    #[must_use]
    pub fn new(permission: Permission<'a>, script: Option<&'a Scripted>) -> Self {
        Self { known: BTreeMap::new(), builds: Builds::new(permission), script }
    }

    pub fn presence(&mut self, chosen: SystemVariant<'_>) -> Presence {
        if let Some(script) = self.script {
            return script.presence(chosen);
        }
        if let Some(known) = self.known.get(chosen.name) {
            return known.clone();
        }
        let presence = presence(chosen, &mut self.builds);
        self.known.insert(chosen.name.to_owned(), presence.clone());
        presence
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
        programs.insert(verifier.name, DEFAULT_BUILD, program);
    }
    for cell in &mut suite.cells {
        cell.absent = None;
        for PlannedSystem { role, name, build, version, .. } in &mut cell.systems {
            let Ok(chosen) = registry.variant(name, *role) else { continue };
            match machine.presence(chosen) {
                Presence::Ready { program, version: found } => {
                    *version = found;
                    if let Some(program) = program {
                        programs.insert(name, build, program);
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
