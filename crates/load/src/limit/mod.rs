//! Limit rows: the same work with the part under test left out, so that no contender can beat them.
//!
//! | `options.limit` | workload | what is left |
//! |---|---|---|
//! | `blocking` | `rr` | two processes, blocking sockets, a thread for each connection: no event loop |
//! | `memory` | `rr` | two processes and a shared cache line: no kernel |
//! | `loop` | `dispatch` | function pointers that lie ready, called one after the other: no queue |
//! | `copies` | `stream` | the two copies that a socket transfer needs, in one process: no sockets |
//! | `aead` | `stream` | sealing and opening the records of TLS, in one process |
//! | `mask` | `stream` | masking and unmasking the frames of WebSocket, in one process |
//! | `calls` | `stream` | an empty system call for each write and each read: nothing is moved |
//!
//! The limit of `http` is the engine's own server.

mod blocking;
mod calls;
mod memory;
mod passes;
mod syscalls;

use crate::refusal::Refusal;
use linerate_contract::{Datagrams, Done, Role, Spec};

/// Does what `spec` says in the way that its `options.limit` names.
///
/// # Errors
/// A [`Refusal`], which knows its exit status.
pub fn run(limit: &str, spec: &Spec) -> Result<Option<Done>, Refusal> {
    let done = match (limit, spec.role, spec.workload.as_str()) {
        ("blocking", Role::Server, "rr") => return blocking::serve(spec).map(|()| None),
        ("blocking", Role::Client, "rr") => blocking::client(spec),
        ("memory", Role::Server, "rr") => return memory::server::serve(spec).map(|()| None),
        ("memory", Role::Client, "rr") => memory::client::run(spec),
        ("loop", Role::Client, "dispatch") => calls::run(spec),
        ("copies" | "calls" | "aead" | "mask", Role::Server, "stream") => {
            return passes::serve(spec).map(|()| None);
        }
        ("aead", Role::Client, "stream") => passes::aead(spec),
        ("mask", Role::Client, "stream") => passes::mask(spec),
        ("calls", Role::Client, "stream") => syscalls::run(spec),
        ("copies", Role::Client, "stream") => passes::copies(spec),
        (_, role, workload) => {
            Err(Refusal::Unsupported(format!("{role} of workload {workload:?} with limit {limit:?}")))
        }
    };
    done.map(Some)
}

/// Transfers of a counted stream; one where the spec tells of none.
fn transfers(spec: &Spec) -> u64 {
    spec.options.get("transfers").and_then(|n| n.parse().ok()).unwrap_or(1)
}

/// What every limit with messages needs.
fn check_messages(spec: &Spec) -> Result<usize, Refusal> {
    let enough = spec.operations.is_some() || spec.duration_ns.is_some();
    if !(1..=LARGEST_MESSAGE).contains(&spec.size)
        || spec.connections == 0
        || !enough
        || spec.timeout_ns.0 == 0
    {
        return Err(Refusal::BadSpec(format!(
            "needs \"size\" of 1 to {LARGEST_MESSAGE} bytes, \"connections\" and \"timeout_ns\" above 0, and \
             \"operations\" or \"duration_ns\""
        )));
    }
    Ok(spec.size as usize)
}

/// How many of a stream's directions carry something.
fn ways(spec: &Spec) -> Result<u64, Refusal> {
    match spec.options.get("direction").map(String::as_str) {
        Some("both") => Ok(2),
        Some("client-writes" | "client-reads") => Ok(1),
        _ => {
            Err(Refusal::BadSpec("\"options.direction\" must be client-writes, client-reads or both".into()))
        }
    }
}

/// Where nothing can be lost.
fn datagrams(spec: &Spec, all: u64) -> Option<Datagrams> {
    (spec.layer == "udp").then(|| Datagrams { sent: all, received: all, ..Datagrams::default() })
}

/// As for the systems that they are the limit of.
const LARGEST_MESSAGE: u64 = 65_536;
