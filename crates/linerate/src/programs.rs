//! Which systems this machine has: the program of each variant and build, and versions of the plan's cells.

pub mod elsewhere;

use crate::error::Error;
use crate::lab::scripted::Scripted;
use crate::lab::{CommandLine, Lab};
use crate::measurement::{DEFAULT_BUILD, Outcome, PlannedSuite, PlannedSystem};
use crate::placement;
use crate::system::build::{Builds, Permission};
use crate::system::probe::{Presence, Replacement, presence};
use crate::system::{Registry, System, SystemVariant, VERIFIER, install};
use linerate_contract::{Layer, Role, Workload};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The program of each variant on the host of its role, by role, variant and build; with the arguments of one
/// that starts it.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    found: BTreeMap<(Role, String, String), CommandLine>,
}

/// The system whose `launch` starts a program with a planted slowdown.
const PLANTED: &str = "planted";

impl Programs {
    /// The program of a variant; `None` where it starts none.
    pub fn command_line(&self, role: Role, variant: &str, build: &str) -> Option<&CommandLine> {
        self.found.get(&(role, variant.to_owned(), build.to_owned()))
    }

    pub(crate) fn insert(&mut self, role: Role, variant: &str, build: &str, program: CommandLine) {
        self.found.insert((role, variant.to_owned(), build.to_owned()), program);
    }
}

/// Probes variants, each once; with a script, the variants are those of the script.
#[derive(Debug)]
pub struct Machine<'a> {
    known: BTreeMap<(String, String), Presence>,
    builds: Builds<'a>,
    script: Option<&'a Scripted>,
    /// The replacements of a comparison's arms, by build.
    replacements: BTreeMap<String, Replacement>,
    /// Where these run.
    lab: Option<&'a mut dyn Lab>,
    elsewhere: Elsewhere,
    /// The roles are on several hosts.
    is_spread: bool,
}

/// The presence of systems on the hosts of roles, where these are not this machine.
pub type Elsewhere = BTreeMap<(Role, String), Presence>;

impl<'a> Machine<'a> {
    pub fn new(permission: Permission<'a>, script: Option<&'a Scripted>) -> Self {
        Self {
            known: BTreeMap::new(),
            builds: Builds::new(permission),
            script,
            replacements: BTreeMap::new(),
            lab: None,
            elsewhere: Elsewhere::new(),
            is_spread: false,
        }
    }

    /// With these replacements for builds other than the default; their versions are asked in the lab.
    pub fn with(self, replacements: BTreeMap<String, Replacement>, lab: &'a mut dyn Lab) -> Self {
        Self { replacements, lab: Some(lab), ..self }
    }

    pub fn presence(&mut self, chosen: SystemVariant<'_>) -> Presence {
        self.presence_here(chosen, DEFAULT_BUILD)
    }

    /// With what other hosts have, by role and variant.
    pub fn with_hosts(self, elsewhere: Elsewhere, is_spread: bool) -> Self {
        Self { elsewhere, is_spread, ..self }
    }

    /// Builds what these systems lack, several at a time.
    pub fn prepare<'r>(&mut self, chosen: impl Iterator<Item = SystemVariant<'r>>) {
        if self.script.is_some() {
            return;
        }
        let chosen = chosen.filter(|one| one.unmet_need().is_none());
        let systems: BTreeMap<&str, &System> = chosen.map(|one| (&*one.system.name, one.system)).collect();
        self.builds.make_several(&systems.into_values().collect::<Vec<_>>());
    }

    fn presence_of(&mut self, chosen: SystemVariant<'_>, role: Role, build: &str) -> Presence {
        let there = self.elsewhere.get(&(role, chosen.name.to_owned())).cloned();
        there.unwrap_or_else(|| self.presence_here(chosen, build))
    }

    fn presence_here(&mut self, chosen: SystemVariant<'_>, build: &str) -> Presence {
        if let Some(script) = self.script {
            return scripted(script, chosen, build);
        }
        let key = (chosen.name.to_owned(), build.to_owned());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let usual = Replacement::default();
        let replacement = self.replacements.get(build).unwrap_or(&usual);
        let lab: Option<&mut dyn Lab> = match &mut self.lab {
            Some(lab) if build != DEFAULT_BUILD => Some(&mut **lab),
            _ => None,
        };
        let presence = presence(chosen, replacement, &mut self.builds, lab);
        self.known.insert(key, presence.clone());
        presence
    }

    /// How the program of a build is started: with its planted slowdown.
    fn command_line(
        &mut self,
        build: &str,
        program: PathBuf,
        registry: &Registry,
    ) -> Result<CommandLine, String> {
        match self.replacements.get(build).and_then(|replacement| replacement.plant) {
            None => Ok((program, Vec::new())),
            Some(_) if self.script.is_some() => Ok((program, Vec::new())),
            Some(iterations) => {
                let planted = registry.systems.get(PLANTED).ok_or("there is no system `planted`")?;
                let launch = self.builds.folder(planted, &[])?.join("launch");
                // The same number of digits in both arms.
                Ok((launch, vec![format!("{iterations:08}"), program.display().to_string()]))
            }
        }
    }

    /// Systems that are not built yet, and that a run would build.
    pub fn to_build(&self) -> BTreeSet<String> {
        self.builds.pending().clone()
    }

    /// # Errors
    /// [`Error::Interrupted`], if the user stopped a build.
    pub fn check(&self) -> Result<(), Error> {
        if self.builds.interrupted() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// The script of the tests, if there is one.
///
/// # Errors
/// As [`Scripted::load`].
pub fn script(path: Option<&Path>) -> Result<Option<Scripted>, Error> {
    path.map(Scripted::load).transpose().map_err(Error::Input)
}

fn scripted(script: &Scripted, chosen: SystemVariant<'_>, build: &str) -> Presence {
    match script.program(chosen.name, build) {
        None => Presence::Missing {
            reason: format!("{} is not in the script", chosen.name),
            install: install::advice(chosen),
        },
        Some((_, "")) => Presence::Ready { program: None, version: None },
        Some((program, version)) => {
            Presence::Ready { program: Some(program), version: Some(version.to_owned()) }
        }
    }
}

/// Sets the version of every system of the suite, and the outcome of cells that cannot run here.
pub fn resolve(
    suite: &mut PlannedSuite,
    registry: &Registry,
    programs: &mut Programs,
    machine: &mut Machine<'_>,
) {
    let is_usual_and_here = |system: &&PlannedSystem| {
        system.build == DEFAULT_BUILD && !machine.elsewhere.contains_key(&(system.role, system.name.clone()))
    };
    let usual = suite.cells.iter().flat_map(|cell| &cell.systems).filter(is_usual_and_here);
    let usual: Vec<_> = usual.filter_map(|one| registry.variant(&one.name, one.role).ok()).collect();
    machine.prepare(usual.into_iter());
    // It verifies the servers of every client that does not implement the contract.
    if let Ok(verifier) = registry.variant(VERIFIER, Role::Client)
        && let Presence::Ready { program: Some(program), .. } =
            machine.presence_of(verifier, Role::Client, DEFAULT_BUILD)
    {
        programs.insert(Role::Client, verifier.name, DEFAULT_BUILD, (program, Vec::new()));
    }
    for cell in &mut suite.cells {
        cell.absent = None;
        let ends_tls = cell.systems.iter().any(|s| registry.terminates_tls(&s.name, s.role));
        for PlannedSystem { role, name, build, version, .. } in &mut cell.systems {
            let Ok(chosen) = registry.variant(name, *role) else { continue };
            match machine.presence_of(chosen, *role, build) {
                Presence::Ready { program, version: found } => {
                    *version = found;
                    let started = program.map(|path| machine.command_line(build, path, registry));
                    match started.transpose() {
                        Ok(Some(started)) => programs.insert(*role, name, build, started),
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
                let is_behind = *role == Role::Server && ends_tls;
                let layer = if is_behind { cell.layer.without_tls() } else { cell.layer };
                cell.absent = unsupported(chosen, *role, layer, cell.workload);
            }
            if cell.absent.is_none() && machine.is_spread && chosen.consists_of_rules() {
                let reason = format!("{name} changes the packet filter of its host");
                cell.absent = Some(Outcome::Unsupported { reason });
            }
        }
        if machine.is_spread
            && let Some(obstacle) = placement::obstacle(cell)
        {
            let reason = format!("over several hosts: {obstacle}");
            cell.absent = Some(Outcome::Unsupported { reason });
        }
    }
}

fn unsupported(chosen: SystemVariant<'_>, role: Role, layer: Layer, workload: Workload) -> Option<Outcome> {
    let (layers, workloads) = (&chosen.variant.layers, &chosen.variant.workloads);
    let missing = if !layers.is_empty() && !layers.contains(&layer) {
        layer.as_str()
    } else if !workloads.is_empty() && !workloads.contains(&workload) {
        workload.as_str()
    } else {
        return None;
    };
    Some(Outcome::Unsupported { reason: format!("{} has no {missing} as a {role}", chosen.name) })
}
