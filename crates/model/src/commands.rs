//! Servers of the user's own that are compared, as part of the plan of a run.

use crate::{PlannedRate, url};
use linerate_contract::Nanos;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Responses on each connection in the shortest window.
const RESPONSES: u64 = 3;

/// Commands that start servers, the baseline first, and what is asked of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedCommands {
    pub commands: Vec<PlannedCommand>,
    /// Commands that are started before each server, in its namespace, such as its database.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub companions: Vec<String>,
    /// Started before them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<PlannedUpstream>,
    /// Their working folder.
    pub folder: PathBuf,
    /// What `{port}` and the variable PORT are.
    pub port: u16,
    /// They run in the network of the host, at ports that are given to them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_host: bool,
    /// True if the user named the port.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub port_is_given: bool,
    /// One, or several by their weights.
    pub requests: Vec<PlannedRequest>,
    /// The file of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_file: Option<PathBuf>,
    /// `http`, `https`, `h2c`, `h2`, or an echo over `tcp`, `udp` or `websocket`.
    #[serde(default = "http", skip_serializing_if = "is_http")]
    pub layer: String,
    /// Bytes of an echo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    pub connections: u32,
    /// HTTP/2: requests under way on each connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<u16>,
    /// The request is a unary call of gRPC, and its body the message in Base64.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub are_calls: bool,
    /// The rate of an open loop; `None`: a closed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<PlannedRate>,
    /// Requests per second of the baseline in a closed loop; found before the first trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<f64>,
    /// Threads of the client; the server has as many CPUs.
    pub threads: u32,
    /// A correct response, as far as the user says.
    #[serde(default)]
    pub given: Expectation,
}

impl PlannedCommands {
    /// The commands as the user asked for them; `has_worktrees`: their folders are found when revisions are
    /// built.
    pub(super) fn as_asked(&self, has_worktrees: bool) -> Self {
        let command = |one: &PlannedCommand| PlannedCommand {
            address: one.address.filter(|_| one.target.is_some()),
            folder: one.folder.clone().filter(|_| !has_worktrees),
            warmup: None,
            ..one.clone()
        };
        let request = |one: &PlannedRequest| PlannedRequest { expect: self.given, ..one.clone() };
        let upstream = |one: &PlannedUpstream| PlannedUpstream { address: None, ..one.clone() };
        Self {
            commands: self.commands.iter().map(command).collect(),
            upstream: self.upstream.as_ref().map(upstream),
            requests: self.requests.iter().map(request).collect(),
            capacity: None,
            ..self.clone()
        }
    }

    /// The command of this name.
    pub fn named(&self, name: &str) -> Option<&PlannedCommand> {
        self.commands.iter().find(|command| command.name == name)
    }

    /// The servers speak TLS.
    pub fn has_tls(&self) -> bool {
        url::layer_has_tls(&self.layer)
    }

    /// The servers receive datagrams, and listen for nothing.
    pub fn is_of_datagrams(&self) -> bool {
        url::layer_is_of_datagrams(&self.layer)
    }

    /// The request target at the command of this name: an address has its own, unless a file or a method of
    /// gRPC has it.
    pub fn path<'a>(&'a self, name: &str, request: &'a PlannedRequest) -> &'a str {
        let target = self.named(name).and_then(|command| command.target.as_ref());
        let has_own = self.requests_file.is_none() && !self.are_calls;
        target.filter(|_| has_own).map_or(&request.path, |target| &target.path)
    }

    /// The shortest window in which each connection has responses, by those after the warm-up.
    pub fn least_window(&self) -> Nanos {
        let responses =
            self.commands.iter().filter_map(|command| command.warmup).map(|warmup| warmup.response);
        Nanos(RESPONSES * responses.max().unwrap_or(Nanos::ZERO).0)
    }

    /// Requests per second of an open loop, once they are known.
    pub fn per_second(&self) -> Option<u64> {
        self.rate?.per_second(self.capacity)
    }

    /// True for servers that run elsewhere: nothing is started, and their CPU time is not known without
    /// `host`.
    pub fn are_elsewhere(&self) -> bool {
        self.commands.iter().any(|command| command.target.is_some())
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedCommand {
    pub name: String,
    /// As on the command line.
    pub command: String,
    /// Shell commands outside of the lab: before anything is measured, and at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<String>,
    /// What is asked of a server that runs elsewhere: `command` is its URL, and nothing is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<PlannedTarget>,
    /// The host on which it runs, where its CPU time is read: `local` or `ssh:NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The worktree of its revision; without one, the folder of all commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Where it listens; found before the first trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
    /// Found there too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup: Option<Warmup>,
}

/// A server behind the commands, which are proxies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedUpstream {
    pub command: String,
    /// What `{upstream}` in the commands is; found before the first trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
}

/// A part of a URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTarget {
    /// The `Host` header, and the name of the certificate.
    pub host: String,
    pub path: String,
}

fn http() -> String {
    "http".into()
}

fn is_http(layer: &str) -> bool {
    layer == "http"
}

/// One HTTP request, in place of a plain GET of `/`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedRequest {
    pub method: String,
    pub path: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// How often it is sent, relative to the others.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: u32,
    /// A correct response, by the user or else by the baseline's first responses.
    #[serde(default)]
    pub expect: Expectation,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(weight: &u32) -> bool {
    *weight == 1
}

/// Parts of a correct response; what varies is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expectation {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// CRC-32 of the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crc32: Option<u32>,
    /// The body is JSON: of the first responses, which alone are read as such.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub json: bool,
}

/// How long a server takes until its rate and its CPU time are steady, measured once and used in all units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warmup {
    /// Under load, beside the other side of its pair.
    pub time: Nanos,
    /// False: the rate still changed at the end of the longest warm-up.
    pub is_steady: bool,
    /// The mean time of a response after it.
    pub response: Nanos,
}
