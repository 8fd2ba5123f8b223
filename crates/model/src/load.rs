//! The load on the user's own servers, and the programs that they run beside.

use crate::{Place, PlannedRate};
use linerate_contract::{Body, Layer, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The load on the servers of a comparison, and their surroundings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedLoad {
    /// Commands that are started before each server, in its namespace, such as its database.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub companions: Vec<String>,
    /// The command of a server behind the servers, which are proxies; started before the companions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// The working folder of all commands.
    pub folder: PathBuf,
    /// The value of `{port}` and of the variable PORT.
    pub port: u16,
    /// True if the user named the port.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub port_is_given: bool,
    /// The network of the client and of what is started: a lab, or this machine's own, where ports are given
    /// to the servers.
    #[serde(default)]
    pub place: Place,
    /// One, or several by their weights.
    pub requests: Vec<PlannedRequest>,
    /// The file of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_file: Option<PathBuf>,
    /// `http`, `https`, `h2c`, `h2`, or an echo over `tcp`, `udp` or `websocket`.
    #[serde(default = "http", skip_serializing_if = "is_http")]
    pub layer: Layer,
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
    /// A second load beside the closed loop: the rate of an open one, in whose units latencies are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<PlannedRate>,
    /// Threads of the client; the server has as many CPUs.
    pub threads: u32,
    /// A correct response, as far as the user says.
    #[serde(default)]
    pub given: Expectation,
    /// Folders and files to which the servers' writes last; to all others these end with a unit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub share: Vec<PathBuf>,
    /// Folders and files of the user in images, each with its place there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<(PathBuf, PathBuf)>,
    /// Variables of the servers and their companions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Options of linerate's own client beside those that follow from the rest: texts and greetings of
    /// WebSocket, handshakes of TLS.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// How long a server may take until its first expected response; `None`: the usual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Nanos>,
    /// How long each setup and each cleanup may take; `None`: the usual times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup_within: Option<Nanos>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup_within: Option<Nanos>,
}

impl PlannedLoad {
    /// The servers speak TLS.
    pub fn has_tls(&self) -> bool {
        self.layer.has_tls()
    }

    /// The servers receive datagrams, and listen for nothing.
    pub fn is_of_datagrams(&self) -> bool {
        self.layer.is_of_datagrams()
    }

    /// Requests under way at the same time.
    pub fn under_way(&self) -> u32 {
        self.connections * self.streams.map_or(1, u32::from)
    }
}

fn http() -> Layer {
    Layer::Http
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_http(layer: &Layer) -> bool {
    *layer == Layer::Http
}

/// One HTTP request, in place of a plain GET of `/`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedRequest {
    pub method: String,
    pub path: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
    #[serde(default, skip_serializing_if = "<[u8]>::is_empty")]
    pub body: Body,
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
