//! A comparison, as part of the plan of a run, and its subjects: builds of a system, commands that start
//! servers, servers that run already.

use crate::{Place, PlannedLoad, PlannedRequest};
use linerate_contract::Role;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Subjects that are compared until there is a verdict: `linerate compare` and `linerate gate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedComparison {
    pub kind: ComparisonKind,
    /// The baseline first.
    pub subjects: Vec<Subject>,
    /// The system or variant that has two builds; `None`: of each cell the relay, else the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The relative difference that matters.
    pub margin: f64,
    /// The margin of latencies.
    #[serde(default)]
    pub latency_margin: LatencyMargin,
    /// The highest percentile of open loops that has to be decided.
    #[serde(default, skip_serializing_if = "DecidingPercentile::is_default")]
    pub percentile: DecidingPercentile,
    /// The load of open loops; `None`: closed loops, and the cells' own rates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<PlannedRate>,
    /// Where the revisions of arms with `git=` come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<PlannedSource>,
    /// The load on the user's own servers; builds of a system have the cells of suites.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<PlannedLoad>,
    /// About programs and commands that the user gives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Text that subjects wrote on stderr when they were started first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub written: Vec<WrittenBySubject>,
}

impl PlannedComparison {
    /// The comparison as the user asked for it: without what a run has learned since.
    #[must_use]
    pub fn as_asked(&self) -> Self {
        Self {
            subjects: self.subjects.iter().map(Subject::as_asked).collect(),
            remarks: Vec::new(),
            written: Vec::new(),
            ..self.clone()
        }
    }

    /// The baseline, and all that is compared with it.
    pub fn arms(&self) -> [PlannedArm; 2] {
        let together = |subjects: &[Subject]| match subjects {
            [one] => one.arm(),
            several => {
                let names: Vec<&str> = several.iter().map(Subject::name).collect();
                PlannedArm { arm: names.join(", "), resolved: None }
            }
        };
        let (base, heads) = self.subjects.split_at(self.subjects.len().min(1));
        [together(base), together(heads)]
    }

    /// The role of the subjects in all cells; builds of a system have that of their system in each cell.
    pub fn role(&self) -> Option<Role> {
        self.subjects.first()?.role()
    }

    /// The user's own servers with their load.
    pub fn servers(&self) -> Option<(&[Subject], &PlannedLoad)> {
        Some((&self.subjects[..], self.load.as_ref()?)).filter(|(subjects, _)| !subjects.is_empty())
    }
}

/// One of what is compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    /// A build of a system, in the cells of suites.
    System(PlannedArm),
    /// A command line that starts a server.
    Command(PlannedCommand),
    /// The address of a server that runs already: nothing is started.
    Address(PlannedAddress),
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedCommand {
    pub name: String,
    /// As on the command line.
    pub line: String,
    #[serde(flatten)]
    pub hooks: Hooks,
    /// The revision in whose worktree it runs; without one, in the folder of all commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<PlannedArm>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedAddress {
    pub name: String,
    pub url: String,
    pub target: PlannedTarget,
    pub address: SocketAddr,
    /// Further addresses of a name: connections go to all in turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<SocketAddr>,
    /// Where the server runs, and its CPU time is read; without a place it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched_on: Option<Place>,
    #[serde(flatten)]
    pub hooks: Hooks,
}

/// Shell commands outside of the lab: before anything is measured, and at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hooks {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<String>,
}

/// A part of a URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTarget {
    /// The `Host` header, and the name of the certificate.
    pub host: String,
    pub path: String,
}

impl Subject {
    /// The subject's name in tables, which is the id of its cell; an arm is named by its settings.
    pub fn name(&self) -> &str {
        match self {
            Self::System(arm) => &arm.arm,
            Self::Command(command) => &command.name,
            Self::Address(address) => &address.name,
        }
    }

    /// The word of the command line: an arm, a command or a URL.
    pub fn text(&self) -> &str {
        match self {
            Self::System(arm) => &arm.arm,
            Self::Command(command) => &command.line,
            Self::Address(address) => &address.url,
        }
    }

    /// The arm of the subject: that of the command line, or else its name.
    pub fn arm(&self) -> PlannedArm {
        let named = || PlannedArm { arm: self.name().to_owned(), resolved: None };
        self.given_arm().cloned().unwrap_or_else(named)
    }

    /// The arm of the command line: settings of a build, or a revision.
    pub fn given_arm(&self) -> Option<&PlannedArm> {
        match self {
            Self::System(arm) => Some(arm),
            Self::Command(command) => command.revision.as_ref(),
            Self::Address(_) => None,
        }
    }

    /// The subject as the user asked for it: without the commit that a revision was.
    #[must_use]
    pub fn as_asked(&self) -> Self {
        let asked = |arm: &PlannedArm| PlannedArm { resolved: None, ..arm.clone() };
        match self {
            Self::System(arm) => Self::System(asked(arm)),
            Self::Command(command) => Self::Command(PlannedCommand {
                revision: command.revision.as_ref().map(asked),
                ..command.clone()
            }),
            Self::Address(_) => self.clone(),
        }
    }

    /// The role of the subject in all cells; a build of a system has that of its system in each cell.
    pub fn role(&self) -> Option<Role> {
        match self {
            Self::System(_) => None,
            Self::Command(_) | Self::Address(_) => Some(Role::Server),
        }
    }

    /// False for a server elsewhere: it cannot be stopped, and its CPU time is not known unless its host is
    /// watched.
    pub fn is_started_here(&self) -> bool {
        !matches!(self, Self::Address(_))
    }

    /// The address of a server that runs already.
    pub fn address(&self) -> Option<&PlannedAddress> {
        match self {
            Self::Address(address) => Some(address),
            Self::System(_) | Self::Command(_) => None,
        }
    }

    /// The hooks before and after all of it; builds of a system have no hooks.
    pub fn hooks(&self) -> Option<&Hooks> {
        match self {
            Self::System(_) => None,
            Self::Command(PlannedCommand { hooks, .. }) | Self::Address(PlannedAddress { hooks, .. }) => {
                Some(hooks)
            }
        }
    }

    /// The request target: an address has its own, unless a file or a method of gRPC has it.
    pub fn path<'a>(&'a self, load: &PlannedLoad, request: &'a PlannedRequest) -> &'a str {
        match self {
            Self::Address(address) if load.requests_file.is_none() && !load.are_calls => &address.target.path,
            _ => &request.path,
        }
    }
}

/// The first lines that a subject wrote on stderr, until it was ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenBySubject {
    /// The name of a command, or a variant with its build.
    pub subject: String,
    pub lines: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ComparisonKind {
    Compare,
    /// With an exit status, and a second series for each suspect.
    Gate,
}

/// The difference of latencies that matters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LatencyMargin {
    /// A share of the baseline's latency.
    Share(f64),
    Microseconds(f64),
}

impl Default for LatencyMargin {
    /// With 1 % most equal builds stay open: in an experiment (docs/evidence/latency.md) a minute of machine
    /// time left half-widths of 0.7 % at p50 and 1.7 % at p90.
    fn default() -> Self {
        Self::Share(0.05)
    }
}

/// A comparison of open loops is open while p50 is, or p50 or p90 (docs/decisions/latency.md).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DecidingPercentile {
    #[default]
    P50,
    P90,
}

impl DecidingPercentile {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Operations per second of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PlannedRate {
    PerSecond(u64),
    /// A share of the baseline's rate in a closed loop with the same connections.
    Share(f64),
}

impl PlannedRate {
    /// Operations per second; `None` for a share of what is not measured yet.
    pub fn per_second(self, capacity: Option<f64>) -> Option<u64> {
        match self {
            Self::PerSecond(rate) => Some(rate),
            Self::Share(share) => capacity.map(|capacity| (capacity * share).round().max(1.0) as u64),
        }
    }
}

/// The builds of the two arms of a comparison.
pub const BASE: &str = "base";
pub const HEAD: &str = "head";

/// One of the two arms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedArm {
    /// As on the command line.
    pub arm: String,
    /// The identity of the arm at the time of the run: the commit of a revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<String>,
}

/// A repository that both arms are built from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedSource {
    pub checkout: String,
    /// A shell command, run in a worktree of the revision.
    pub build: String,
    /// The program's path in the worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn subject(json: serde_json::Value) -> Subject {
        serde_json::from_value(json).unwrap()
    }

    fn address() -> Subject {
        let target = json!({"host": "box2", "path": "/own"});
        let address = json!({"name": "new", "url": "http://box2/own", "target": target});
        let mut address = json!({ "address": address });
        address["address"]["address"] = "10.0.0.2:80".into();
        subject(address)
    }

    #[test]
    fn a_subject_is_read_as_it_is_written() {
        let command = json!({"name": "v1", "line": "./v1", "setup": "make"});
        let command = subject(json!({ "command": command }));
        let setup = command.hooks().and_then(|hooks| hooks.setup.as_deref());
        assert_eq!((command.name(), command.text(), setup), ("v1", "./v1", Some("make")));
        for one in [command, address(), subject(json!({"system": {"arm": "git=main"}}))] {
            assert_eq!(subject(serde_json::to_value(&one).unwrap()), one);
        }
    }

    #[test]
    fn an_address_has_a_path_of_its_own_unless_a_file_or_a_method_has_the_requests() {
        let request: PlannedRequest =
            serde_json::from_value(json!({"method": "GET", "path": "/all"})).unwrap();
        let (plain, calls) =
            (PlannedLoad::default(), PlannedLoad { are_calls: true, ..PlannedLoad::default() });
        let file = PlannedLoad { requests_file: Some("mix.jsonl".into()), ..PlannedLoad::default() };
        assert_eq!(
            [&plain, &file, &calls].map(|load| address().path(load, &request).to_owned()),
            ["/own", "/all", "/all"]
        );
        assert!(!address().is_started_here());
    }

    #[test]
    fn the_arms_of_a_comparison_are_the_baseline_and_all_others() {
        let command = |name: &str| json!({"command": {"name": name, "line": name}});
        let revision = json!({"command": {"name": "HEAD", "line": "./run", "revision": {"arm": "git=HEAD"}}});
        let arms = |subjects: &[serde_json::Value]| {
            let comparison = json!({"kind": "compare", "subjects": subjects, "margin": 0.01});
            let comparison: PlannedComparison = serde_json::from_value(comparison).unwrap();
            comparison.arms().map(|arm| arm.arm)
        };
        assert_eq!(arms(&[command("a"), command("b"), command("c")]), ["a", "b, c"]);
        assert_eq!(arms(&[revision.clone(), revision]), ["git=HEAD", "git=HEAD"]);
    }
}
