//! The task of a program: one JSON document, its only argument.

use crate::{Alternation, Body, CONTRACT, Layer, Nanos, Refusal, Workload};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// A program's role in a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    #[default]
    Client,
    Relay,
    Server,
    /// Print one `describe` event and exit.
    Describe,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The name in JSON.
        self.serialize(f)
    }
}

/// A correct HTTP response; a client counts every other one as an error. Parts that are absent may be
/// anything, and a status from 200 to 399.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Length of the body in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// CRC-32 of the body, as [`crate::crc32`] makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crc32: Option<u32>,
    /// Check the checksum of every n-th response (1: every one); status and length always.
    pub every: u64,
}

impl Expect {
    /// Status 200 and this body, compared in every n-th response.
    #[must_use]
    pub fn of_page(page: &[u8], every: u64) -> Self {
        let (bytes, crc32) = (page.len() as u64, crate::crc32(page));
        Self { status: Some(200), bytes: Some(bytes), crc32: Some(crc32), every }
    }
}

/// The due times of an open loop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrival {
    /// One each `1 / rate` seconds.
    #[default]
    Constant,
    /// Independent, as of many users: exponential gaps with a mean of `1 / rate`.
    Poisson,
    /// From 0 to `rate`, linear over `duration_ns`.
    Ramp,
}

impl Arrival {
    fn is_constant(&self) -> bool {
        *self == Self::Constant
    }
}

/// An HTTP client's request, in place of a plain GET.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Absent: `GET`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The `Host` header, and the name that a TLS certificate must have; absent: the address of `connect`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Further header lines, `Name: value` each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
    #[serde(default, skip_serializing_if = "<[u8]>::is_empty")]
    pub body: Body,
    /// Accept any TLS certificate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
}

/// One of several requests of an HTTP client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightedRequest {
    pub path: String,
    /// Without a host it has that of the spec's request.
    #[serde(default)]
    pub request: Request,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
    /// How often it is sent, relative to the others; at least 1.
    pub weight: u32,
}

/// PEM texts. A server has a certificate and its key (PKCS#8), a client the authority that signed it and the
/// expected name; and a certificate of its own where the server asks for one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub certificate: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub authority: String,
    /// The name that the client sends (SNI) and verifies.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// A tunnel through a proxy of HTTP, which `CONNECT` opens (RFC 9110 section 9.3.6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tunnel {
    /// Host and port of the server.
    pub to: String,
    /// The value of `Proxy-Authorization`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization: Option<String>,
}

impl Tunnel {
    /// The request that asks the proxy for the tunnel.
    #[must_use]
    pub fn request(&self) -> String {
        let Self { to, authorization } = self;
        let line = |value: &String| format!("Proxy-Authorization: {value}\r\n");
        let authorization = authorization.as_ref().map_or_else(String::new, line);
        format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{authorization}\r\n")
    }
}

/// The task of one process. Fields that a role does not need are absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The version of the contract, [`CONTRACT`].
    pub contract: u32,
    pub role: Role,
    pub layer: Layer,
    pub workload: Workload,
    /// Where a server or relay listens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
    /// Where a client or relay connects to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect: Option<SocketAddr>,
    /// Further addresses of the server, of the family of `connect`: connections over TCP go to all in turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<SocketAddr>,
    /// The path of a Unix domain socket that a client connects to in place of `connect`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix: Option<String>,
    /// A client's `connect` is a proxy that opens a tunnel for TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<Tunnel>,
    /// Local addresses of a client, used in turn so that ports never run out; empty: the kernel chooses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<IpAddr>,
    /// Connections open at the same time.
    #[serde(default = "one")]
    pub connections: u32,
    #[serde(default = "one")]
    pub threads: u32,
    /// Stop after exactly this number of operations, failed ones included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
    /// Payload bytes of one direction of a transfer of a `stream`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Stop after this time; with `operations`, whichever comes first. Transfers of `bytes` and passes of
    /// `dispatch` are repeated until this time is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<Nanos>,
    /// An operation that takes longer counts as `timeout`.
    #[serde(default = "ten_seconds")]
    pub timeout_ns: Nanos,
    /// Bytes of a message, a write, or the page of a server.
    #[serde(default)]
    pub size: u64,
    /// HTTP request target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
    /// Open loop: operations due per second, whether or not earlier ones have ended; absent: closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// The distribution of due times in an open loop.
    #[serde(default, skip_serializing_if = "Arrival::is_constant")]
    pub arrival: Arrival,
    /// The client works in turns with another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternation: Option<Alternation>,
    /// Seed of everything random; the same seed gives the same schedule.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub seed: u64,
    /// Print a `sample` event at this interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_ns: Option<Nanos>,
    /// An HTTP request that is not a plain GET of `path` from `connect`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
    /// Several HTTP requests, in an order that is drawn from `seed` and has each by its weight. They have
    /// their own paths and expectations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<WeightedRequest>,
    /// When each operation of an open loop with one thread is due since the start, and which of `requests`
    /// it is, in the order of the times. It replaces the times of `rate` and the order of the weights.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replay: Vec<(Nanos, u32)>,
    /// Keys and certificates of the layers `https`, `tls` and `wss`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// See [`crate::options`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
}

impl Spec {
    /// A spec with the fields that every role has; set the others by name.
    #[must_use]
    pub fn new(role: Role, layer: Layer, workload: Workload) -> Self {
        Self {
            contract: CONTRACT,
            role,
            layer,
            workload,
            connections: one(),
            threads: one(),
            timeout_ns: ten_seconds(),
            ..Self::default()
        }
    }

    /// Parses a spec. [`Self::check_options`] checks its options.
    ///
    /// # Errors
    /// Invalid JSON, unknown or missing fields, another contract: a sentence that names the field. A layer or
    /// workload that is not of this version is not supported.
    pub fn parse(json: &str) -> Result<Self, Refusal> {
        let spec: Self = serde_json::from_str(json).map_err(|e| {
            unknown_name(json)
                .map_or_else(|| Refusal::BadSpec(format!("the spec is not valid: {e}")), Refusal::Unsupported)
        })?;
        if spec.contract != CONTRACT {
            let text = format!("the spec is of contract {}, this program of {CONTRACT}", spec.contract);
            return Err(Refusal::BadSpec(text));
        }
        Ok(spec)
    }

    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a spec has string keys only, so it always serialises")
    }
}

/// The refusal of a layer or workload of another version.
fn unknown_name(json: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Names {
        layer: String,
        workload: String,
    }
    let Names { layer, workload } = serde_json::from_str(json).ok()?;
    layer.parse::<Layer>().err().or_else(|| workload.parse::<Workload>().err())
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it by reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

fn one() -> u32 {
    1
}

/// Longer than any response of a working system, short enough to notice one that hangs (RFC 9110 has no
/// number).
fn ten_seconds() -> Nanos {
    Nanos(10_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_is_parsed_as_it_was_written() {
        let mut spec = Spec::new(Role::Client, Layer::Http, Workload::Crr);
        spec.connect = Some("10.0.0.1:80".parse().unwrap());
        spec.expect = Some(Expect { bytes: None, ..Expect::of_page(b"abc", 1) });
        spec.rate = Some(1000.5);
        spec.arrival = Arrival::Poisson;
        spec.request = Some(Request { headers: vec!["X: y".into()], insecure: true, ..Request::default() });
        let request = Request { method: Some("PUT".into()), ..Request::default() };
        spec.requests = vec![WeightedRequest { path: "/a".into(), request, expect: spec.expect, weight: 3 }];
        spec.tls = Some(Tls { authority: "PEM".into(), name: "linerate.test".into(), ..Tls::default() });
        assert_eq!(Spec::parse(&spec.to_json()).unwrap(), spec);
    }

    #[test]
    fn a_spec_of_another_contract_or_with_an_unknown_key_is_refused() {
        let number = format!("\"contract\":{CONTRACT}");
        let other =
            Spec::new(Role::Client, Layer::Http, Workload::Crr).to_json().replace(&number, "\"contract\":9");
        assert!(Spec::parse(&other).unwrap_err().to_string().contains("contract 9"));
        let unknown =
            Spec::new(Role::Client, Layer::Http, Workload::Crr).to_json().replace("\"layer\"", "\"lair\"");
        assert!(Spec::parse(&unknown).unwrap_err().to_string().contains("lair"));
        let newer = Spec::new(Role::Client, Layer::Http, Workload::Crr).to_json().replace("crr", "churn");
        assert!(matches!(Spec::parse(&newer), Err(Refusal::Unsupported(text)) if text.contains("churn")));
    }
}
