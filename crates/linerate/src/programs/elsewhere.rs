//! Which systems another host has: linerate there answers, and builds what is missing.
//!
//! A question is a line, `ROLE VARIANT`; an answer is a line of JSON, in the same order.

use super::{Elsewhere, Machine};
use crate::error::Error;
use crate::lab::Lab;
use crate::measurement::PlannedSuite;
use crate::placement;
use crate::system::build::Permission;
use crate::system::probe::Presence;
use crate::system::{Registry, VERIFIER};
use linerate_contract::Role;
use std::collections::BTreeSet;

/// The hidden subcommand that reports which systems another host has.
pub const PRESENCE: &str = "lab-presence";

/// The presence of systems on the hosts of the suite's roles, where these are not this machine.
///
/// # Errors
/// A host does not answer.
pub fn presences(lab: &dyn Lab, suite: &PlannedSuite) -> Result<Elsewhere, Error> {
    let systems = suite.cells.iter().flat_map(|cell| &cell.systems);
    let mut wanted: BTreeSet<(Role, &str)> = systems.map(|s| (s.role, s.name.as_str())).collect();
    wanted.insert((Role::Client, VERIFIER));
    let mut found = Elsewhere::new();
    for role in [Role::Client, Role::Relay, Role::Server] {
        let names: Vec<&str> = wanted.iter().filter(|(of, _)| *of == role).map(|(_, name)| *name).collect();
        let questions: String = names.iter().map(|name| format!("{role} {name}\n")).collect();
        // What runs there is not asked.
        if role == Role::Server && placement::served(&lab.hosts()).is_some() {
            let ready = || Presence::Ready { program: None, version: None };
            found.extend(names.iter().map(|name| ((role, (*name).to_owned()), ready())));
            continue;
        }
        let Some(answers) = lab.ask_host(role, PRESENCE, questions.as_bytes()) else { continue };
        let answers = answers.map_err(|error| Error::NothingMeasured(error.to_string()))?;
        for (name, line) in names.iter().zip(answers.lines()) {
            let presence = serde_json::from_str(line).map_err(|e| {
                Error::NothingMeasured(format!("the host of the {role}: an answer that is no presence: {e}"))
            })?;
            found.insert((role, (*name).to_owned()), presence);
        }
    }
    Ok(found)
}

/// The answers to `questions`, a line each.
pub fn answers(questions: &str, registry: &Registry, note: &dyn Fn(&str)) -> String {
    let mut machine = Machine::new(Permission::Build(note), None);
    let answer = |question: &str| {
        let (role, name) = question.split_once(' ').unwrap_or_default();
        let role = [Role::Client, Role::Relay, Role::Server].into_iter().find(|r| r.to_string() == role);
        let chosen = role.and_then(|role| registry.variant(name, role).ok());
        let presence = chosen.map_or_else(
            || Presence::Missing { reason: format!("there is no `{question}`"), install: String::new() },
            |chosen| machine.presence(chosen),
        );
        serde_json::to_string(&presence).expect("a presence has string keys only") + "\n"
    };
    questions.lines().map(answer).collect()
}
