//! `systems/<name>/system.toml`: a system as data.
//!
//! Strings marked *template* are rendered with minijinja (`{{ name }}`) before use; [`super::template`] lists
//! the names. An unknown name is an error with file and line.

use crate::lab::{Ready, StopSignal};
use crate::path::Device;
use linerate_contract::{ErrorKind, Layer, Role, Workload};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A system under test: one folder, one or more variants.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Manifest {
    /// One line for `linerate systems`.
    pub about: String,
    pub homepage: Option<String>,
    /// True if all its variants are linerate's own ([`Variant::own`]).
    #[serde(default)]
    pub own: bool,
    /// Debian packages that install it.
    #[serde(default)]
    pub debian: Vec<String>,
    /// Instruction for systems without a package; one sentence.
    pub install_hint: Option<String>,
    /// The program, searched in linerate's own folder, on `PATH` and in the `sbin` folders. Absent if nothing
    /// is started (an empty path).
    pub program: Option<String>,
    /// Other required programs, such as `nft`, or files with their full path.
    #[serde(default)]
    pub needs: Vec<String>,
    pub version: Option<VersionProbe>,
    /// The build of systems without a package.
    pub build: Option<Build>,
    /// Values of templates that an arm of a comparison can replace (`set:`).
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// By name, as used in suites, cell ids and on the command line.
    pub variants: BTreeMap<String, Variant>,
}

/// A build, made on first use and cached until an input changes: [`super::build`].
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// Commands, run in order in the system's folder. Templates with `source` (the system's folder), `out`
    /// (an empty build folder) and `python`.
    pub commands: Vec<Vec<String>>,
    /// Globs of all files that the commands read, relative to the system's folder, such as `*.cpp` or
    /// `../../sdk/cpp/*.hpp`. `$NAME/*.cpp`: in the folder of the environment variable NAME; without it the
    /// system is missing.
    pub inputs: Vec<String>,
    /// Debian packages that are needed only for the build.
    #[serde(default)]
    pub debian: Vec<String>,
    /// Python packages with exact versions, unpacked into `{{ python }}`: some C++ libraries are distributed
    /// this way.
    #[serde(default)]
    pub python: Vec<String>,
    /// The program (template); a variant may name another program of the same build.
    pub program: String,
}

/// How to get the program's version.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VersionProbe {
    /// The program that prints the version, if not the program itself.
    pub program: Option<String>,
    pub args: Vec<String>,
    /// A regular expression; its first group is the version. Both output streams are searched.
    pub pattern: String,
}

/// One way to run the system.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Variant {
    pub about: String,
    /// The roles that it supports, usually one; a suite's table selects one of them.
    pub roles: Vec<Role>,
    /// `default`: as shipped, except for settings common to all systems. `tuned`: explained in NOTES.md.
    #[serde(default)]
    pub tuning: Tuning,
    /// True if it is linerate's own: an answer that names it first says so, with its `about`.
    #[serde(default)]
    pub own: bool,
    /// Replaces the manifest's program.
    pub program: Option<String>,
    /// Replaces the manifest's version probe.
    pub version: Option<VersionProbe>,
    /// Requirements in addition to the manifest's, such as a module's file.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Replaces the manifest's hint, if its packages lack this variant on some distributions.
    pub install_hint: Option<String>,
    /// Layers and workloads that it supports; empty: all.
    #[serde(default)]
    pub layers: Vec<Layer>,
    #[serde(default)]
    pub workloads: Vec<Workload>,
    /// Template files in the system's folder, rendered into the role's folder `{{ dir }}` with the same name.
    #[serde(default)]
    pub configs: Vec<String>,
    /// Commands (templates) that run to their end in the role's namespace before `start`.
    #[serde(default)]
    pub setup: Vec<Vec<String>>,
    /// Arguments (templates) of the program, which must stay in the foreground; absent: nothing is started.
    pub start: Option<Start>,
    #[serde(default)]
    pub ready: Ready,
    /// The signal that ends it; after a grace period it is killed.
    #[serde(default)]
    pub stop: StopSignal,
    /// The address to which the client connects: this relay's own, or the server's.
    #[serde(default)]
    pub reached_at: ReachedAt,
    /// The device at the server's end of the path with this variant, such as a TUN device.
    pub device: Option<Device>,
    /// Routers of the path in place of the suite's; 0: client and server have one link.
    pub routers: Option<usize>,
    /// True if its rules apply to forwarded packets: a path then has a router at least.
    #[serde(default)]
    pub router: bool,
    /// True for a relay that ends TLS: it has the certificate (template names `tls.certificate` and
    /// `tls.key`, PEM), and the server behind it has the layer without TLS.
    #[serde(default)]
    pub terminates_tls: bool,
    /// True if its work is a part of that of the other rows: no competitor.
    #[serde(default)]
    pub limit: bool,
    /// Options in the spec, for programs that implement the contract.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// Names of options beyond those of the contract that its program accepts: a suite's table can have them.
    #[serde(default)]
    pub own_options: Vec<String>,
    /// True if its CPU is busy whatever it has to do, such as a thread that polls and never sleeps. Its CPU
    /// time then says nothing about the bottleneck.
    #[serde(default)]
    pub spins: bool,
    /// True of a client that works in turns with another one (`alternation` in sdk/CONTRACT.md), in `rr` and
    /// `crr`.
    #[serde(default)]
    pub alternates: bool,
    /// Least operations of a warm-up, where a suite has fewer: a just-in-time compiler needs thousands.
    pub warmup_operations: Option<u64>,
    /// The share of failed operations above which a trial fails, instead of the usual one percent
    /// (docs/decisions/fairness.md); for known failures that `NOTES.md` describes.
    pub tolerated_errors: Option<f64>,
    /// True for a client that ends what is under way after its number of operations, and counts it.
    #[serde(default)]
    pub overshoots: bool,
    /// The program begins its work long after its start, such as an interpreter that compiles its script
    /// first: its window is not that of the other side of a duet.
    #[serde(default)]
    pub starts_late: bool,
    /// How to parse the output of a client that does not implement the contract.
    pub output: Option<OutputPatterns>,
    /// The client of the verification before the measurement, if this client does not implement the contract.
    #[serde(default)]
    pub verifier: Verifier,
}

/// Arguments of all roles, or by role: `start.server = [...]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Start {
    Same(Vec<String>),
    ByRole(BTreeMap<Role, Vec<String>>),
}

impl Start {
    /// The arguments of a role; `None` if only other roles have some.
    pub fn arguments(&self, role: Role) -> Option<&[String]> {
        match self {
            Self::Same(arguments) => Some(arguments),
            Self::ByRole(by_role) => by_role.get(&role).map(Vec::as_slice),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verifier {
    /// linerate's own client, which verifies every byte.
    #[default]
    Native,
    /// The client itself, with the parameters of the verification, because client and server have their own
    /// protocol.
    Itself,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tuning {
    #[default]
    Default,
    Tuned,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReachedAt {
    #[default]
    Relay,
    Server,
}

/// Regular expressions for a foreign client's output; the first group of each is the number.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OutputPatterns {
    /// Time for all operations: seconds, or the unit of a second group (ns, us, ms or s).
    pub elapsed_seconds: String,
    /// Completed operations; absent: computed from `bytes` or `datagrams`, one for each received write of
    /// `size` bytes.
    pub operations: Option<String>,
    /// True if the program counts failed operations among the completed ones.
    #[serde(default)]
    pub operations_include_errors: bool,
    /// Payload bytes received.
    pub bytes: Option<String>,
    /// Reported latencies, by their names in the report: `mean`, `min`, `p50`, `p90`, `p99`, `p999`, `max`.
    /// The second group is the unit (`us`, `ms`, `s`, `secs`); without one it is `latency-unit`.
    #[serde(default)]
    pub latency: BTreeMap<String, String>,
    pub latency_unit: Option<String>,
    /// Failed operations by kind; a pattern without a match counts as zero.
    #[serde(default)]
    pub errors: BTreeMap<ErrorKind, String>,
    /// Counts of datagrams.
    pub datagrams: Option<DatagramPatterns>,
}

/// Every sent datagram is either received or lost.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatagramPatterns {
    pub sent: String,
    /// Absent: computed from `bytes` in datagrams of `size`.
    pub lost: Option<String>,
    /// Absent, here and below: not reported by the program.
    pub reordered: Option<String>,
    pub duplicates: Option<String>,
}

impl OutputPatterns {
    /// Every pattern with its key, except those of `latency`, which have two groups.
    pub fn patterns(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let datagrams = self.datagrams.iter().flat_map(|patterns| {
            let optional = [
                ("datagrams.lost", &patterns.lost),
                ("datagrams.reordered", &patterns.reordered),
                ("datagrams.duplicates", &patterns.duplicates),
            ];
            let optional = optional.into_iter().filter_map(|(key, pattern)| Some((key, pattern.as_ref()?)));
            [("datagrams.sent", &patterns.sent)].into_iter().chain(optional)
        });
        [("elapsed-seconds", &self.elapsed_seconds)]
            .into_iter()
            .chain(self.operations.iter().map(|pattern| ("operations", pattern)))
            .chain(self.bytes.iter().map(|pattern| ("bytes", pattern)))
            .chain(self.errors.values().map(|pattern| ("errors", pattern)))
            .chain(datagrams)
    }
}
