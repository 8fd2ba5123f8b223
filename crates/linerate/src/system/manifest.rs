//! `systems/<name>/system.toml`: what a system is, as data.
//!
//! Strings marked *template* are rendered with minijinja (`{{ name }}`) before use; [`super::template`] lists
//! the names. A name that does not exist is an error that shows file and line.

use linerate_contract::{ErrorKind, Role};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A system under test: one folder, one or more variants.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Manifest {
    /// One line for `linerate systems`.
    pub about: String,
    pub homepage: Option<String>,
    /// Debian packages that install it.
    #[serde(default)]
    pub debian: Vec<String>,
    /// What to do where no package installs it; one sentence.
    pub install_hint: Option<String>,
    /// The program, looked up on `PATH` and in the `sbin` folders; `linerate-load` is found beside linerate.
    /// Absent where nothing is started (an empty path).
    pub program: Option<String>,
    /// Further programs that must be there, such as `nft`, or files, given with their full path.
    #[serde(default)]
    pub needs: Vec<String>,
    pub version: Option<VersionProbe>,
    /// How it is built, where no package installs it.
    pub build: Option<Build>,
    /// By name, as used in suites, cell ids and on the command line.
    pub variants: BTreeMap<String, Variant>,
}

/// Built when it is first needed, and kept in the cache folder until an input changes: [`super::build`].
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// Commands (templates over `source`, the system's folder, `out`, an empty folder to build in, and `python`),
    /// run in the system's folder, one after the other.
    pub commands: Vec<Vec<String>>,
    /// Globs relative to the system's folder, such as `*.cpp` or `../../sdk/cpp/*.hpp`: whatever the commands read. `$NAME/*.cpp`: in the
    /// folder that the environment's NAME says, without which the system is missing.
    pub inputs: Vec<String>,
    /// Debian packages that only the build needs.
    #[serde(default)]
    pub debian: Vec<String>,
    /// Python packages with exact versions, unpacked into `{{ python }}`: some C++ libraries are distributed so.
    #[serde(default)]
    pub python: Vec<String>,
    /// The program (template); a variant may name another one of the same build.
    pub program: String,
}

/// How the program tells its version.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VersionProbe {
    /// Who is asked, if not the program itself.
    pub program: Option<String>,
    pub args: Vec<String>,
    /// A regular expression; its first group is the version. Both output streams are searched.
    pub pattern: String,
}

/// One way to run the system.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Variant {
    pub about: String,
    /// The roles it can take; as a rule one. A trial starts it in the one that its suite names.
    pub roles: Vec<Role>,
    /// `default`: as the project ships it, but for what every system has in common. `tuned`: NOTES.md says how and why.
    #[serde(default)]
    pub tuning: Tuning,
    /// In place of the manifest's program.
    pub program: Option<String>,
    /// In place of the manifest's probe.
    pub version: Option<VersionProbe>,
    /// Beyond what the manifest needs, such as a module's file.
    #[serde(default)]
    pub needs: Vec<String>,
    /// In place of the manifest's hint, where its packages do not hold this variant everywhere.
    pub install_hint: Option<String>,
    /// Layers and workloads it takes part in; empty: every one.
    #[serde(default)]
    pub layers: Vec<String>,
    #[serde(default)]
    pub workloads: Vec<String>,
    /// Template files beside `system.toml`, rendered into the role's folder `{{ dir }}` under the same name.
    #[serde(default)]
    pub configs: Vec<String>,
    /// Commands (templates) that run to their end in the role's namespace before `start`.
    #[serde(default)]
    pub setup: Vec<Vec<String>>,
    /// Arguments (templates) of the program, which stays in the foreground; absent: nothing is started.
    pub start: Option<Start>,
    #[serde(default)]
    pub ready: Ready,
    /// Sent to end it; what is left after a grace period is killed.
    #[serde(default)]
    pub stop: StopSignal,
    /// What the client connects to: this relay's own address, or straight the server's.
    #[serde(default)]
    pub reached_at: ReachedAt,
    /// The variant stands for another path, such as a single link.
    pub topology: Option<Topology>,
    /// Its rules are about what a router forwards, so one stands on the path whatever the others' topology is.
    #[serde(default)]
    pub router: bool,
    /// Passed on in the spec, for programs that speak the contract.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// Share of operations that this variant is known to fail, above which its trials fail; in place of the one percent
    /// that holds for all (decision 0007). `NOTES.md` says what is known.
    pub tolerated_errors: Option<f64>,
    /// How to read a client that does not speak the contract.
    pub output: Option<Output>,
    /// Who proves, before the clock starts, that the server does the work, where the client does not speak the contract.
    #[serde(default)]
    pub verifier: Verifier,
}

/// Arguments of every role, or of each by itself: `start.server = [...]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Start {
    Same(Vec<String>),
    ByRole(BTreeMap<Role, Vec<String>>),
}

impl Start {
    /// `None`: it names other roles only.
    #[must_use]
    pub fn of(&self, role: Role) -> Option<&[String]> {
        match self {
            Self::Same(arguments) => Some(arguments),
            Self::ByRole(by_role) => by_role.get(&role).map(Vec::as_slice),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verifier {
    /// linerate's own client, which compares every byte.
    #[default]
    Native,
    /// The client itself, with the parameters of the verification: client and server have a protocol of their own, and what they
    /// compare is theirs to say.
    Itself,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tuning {
    #[default]
    Default,
    Tuned,
}

/// How a started system shows that it can take work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ready {
    /// A TCP socket listens on its port (read from the kernel's table: nothing connects).
    #[default]
    Listen,
    /// It prints the contract's `ready` event.
    Event,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum StopSignal {
    #[default]
    Term,
    Int,
    Quit,
    Kill,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReachedAt {
    #[default]
    Relay,
    Server,
}

/// What lies between client and server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Topology {
    /// Client and server in one namespace, joined by its loopback.
    Loopback,
    /// Client and server, joined by one veth pair.
    Link,
    /// Client - router - server, joined by two veth pairs.
    #[default]
    Router,
    /// A client whose TUN device leads to the server: a process that is its own TCP/IP stack.
    Tun,
    /// Client and server, each with a TUN device, which the server's process joins.
    #[serde(rename = "tun-pair")]
    TunPair,
    /// As `tun`, and the device is that of a router, to which the client has a veth pair.
    #[serde(rename = "tun-router")]
    TunRouter,
    /// As `tun-pair`, and the client's device is that of such a router.
    #[serde(rename = "tun-pair-router")]
    TunPairRouter,
}

impl Topology {
    /// The same with a router between.
    #[must_use]
    pub fn routed(self) -> Self {
        match self {
            Self::Loopback | Self::Link | Self::Router => Self::Router,
            Self::Tun | Self::TunRouter => Self::TunRouter,
            Self::TunPair | Self::TunPairRouter => Self::TunPairRouter,
        }
    }

    #[must_use]
    pub fn has_router(self) -> bool {
        self == self.routed()
    }

    #[must_use]
    pub fn has_tun(self) -> bool {
        matches!(self.routed(), Self::TunRouter | Self::TunPairRouter)
    }

    /// It has two TUN devices, which want to be joined.
    #[must_use]
    pub fn has_two_tuns(self) -> bool {
        self.routed() == Self::TunPairRouter
    }
}

/// Regular expressions over a foreign client's output; the first group of each is the number.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Output {
    /// Seconds for all operations.
    pub elapsed_seconds: String,
    /// Operations it completed; absent: what is left of `bytes` or `datagrams`, one for each write of `size` bytes that arrived.
    pub operations: Option<String>,
    /// True where the program counts failed operations among the completed ones.
    #[serde(default)]
    pub operations_include_errors: bool,
    /// Payload bytes received.
    pub bytes: Option<String>,
    /// What it tells of latencies, by the name that the report has for it: `mean`, `min`, `p50`, `p90`, `p99`, `p999`, `max`.
    /// The second group is the unit (`us`, `ms`, `s`, `secs`); without one it is `latency-unit`.
    #[serde(default)]
    pub latency: BTreeMap<String, String>,
    pub latency_unit: Option<String>,
    /// Failed operations by kind; a pattern that does not occur counts none.
    #[serde(default)]
    pub errors: BTreeMap<ErrorKind, String>,
    /// What became of datagrams.
    pub datagrams: Option<DatagramPatterns>,
}

/// Those that were sent either arrived or are lost.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatagramPatterns {
    pub sent: String,
    /// Absent: those are lost that `bytes`, in datagrams of `size`, do not account for.
    pub lost: Option<String>,
    /// Absent, here and below: the program does not tell.
    pub reordered: Option<String>,
    pub duplicates: Option<String>,
}

impl Output {
    /// Every pattern with its key, `latency` aside, whose groups are two.
    pub fn patterns(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let datagrams = self.datagrams.iter().flat_map(|told| {
            let optional = [
                ("datagrams.lost", &told.lost),
                ("datagrams.reordered", &told.reordered),
                ("datagrams.duplicates", &told.duplicates),
            ];
            let optional = optional.into_iter().filter_map(|(key, pattern)| Some((key, pattern.as_ref()?)));
            [("datagrams.sent", &told.sent)].into_iter().chain(optional)
        });
        [("elapsed-seconds", &self.elapsed_seconds)]
            .into_iter()
            .chain(self.operations.iter().map(|pattern| ("operations", pattern)))
            .chain(self.bytes.iter().map(|pattern| ("bytes", pattern)))
            .chain(self.errors.values().map(|pattern| ("errors", pattern)))
            .chain(datagrams)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_router_changes_nothing_but_that_there_is_one() {
        use Topology::{Link, Loopback, Router, Tun, TunPair, TunPairRouter, TunRouter};
        for plain in [Loopback, Link, Tun, TunPair] {
            let routed = plain.routed();
            assert!(routed.has_router() && !plain.has_router(), "{plain:?}");
            assert_eq!(routed.routed(), routed);
            assert_eq!((plain.has_tun(), plain.has_two_tuns()), (routed.has_tun(), routed.has_two_tuns()));
        }
        assert_eq!([Link.routed(), Tun.routed(), TunPair.routed()], [Router, TunRouter, TunPairRouter]);
        assert!(Tun.has_tun() && !Tun.has_two_tuns() && TunPair.has_two_tuns() && !Link.has_tun());
    }
}
