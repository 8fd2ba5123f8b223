//! Faults of the clients of a server, as text and JSON: the causes are as those of a load.

use super::load::by_kind;
use super::load_causes::{CauseJson, causes};
use linerate_contract::{Done, ErrorKind, PeerFailures, Spec};
use serde::Serialize;

#[derive(Serialize)]
struct ServedJson<'a> {
    /// `linerate.serve/1`.
    schema: &'static str,
    /// The URL of the server.
    url: &'a str,
    /// Connections, requests and datagrams of clients that failed.
    failed: u64,
    causes: Vec<CauseJson>,
}

/// Why the first of each of these kinds has failed.
pub fn lines(spec: &Spec, peers: &PeerFailures, kinds: impl Fn(&ErrorKind) -> bool) -> Vec<String> {
    let mut peers = peers.clone();
    peers.errors.0.retain(|kind, _| kinds(kind));
    all(spec, &peers).iter().map(CauseJson::sentence).collect()
}

/// How many have failed, at the end; `None`: none.
#[must_use]
pub fn sum(peers: &PeerFailures) -> Option<String> {
    (peers.errors.total() > 0).then(|| format!("failed: {}", by_kind(&peers.errors)))
}

/// The result of a server of `url`.
#[must_use]
pub fn json(url: &str, spec: &Spec, peers: &PeerFailures) -> String {
    let (failed, causes) = (peers.errors.total(), all(spec, peers));
    let json = ServedJson { schema: "linerate.serve/1", url, failed, causes };
    serde_json::to_string_pretty(&json).expect("its keys are strings") + "\n"
}

fn all(spec: &Spec, peers: &PeerFailures) -> Vec<CauseJson> {
    let PeerFailures { errors, causes: known } = peers.clone();
    causes(spec, &Done { errors, causes: known, ..Done::default() })
}
