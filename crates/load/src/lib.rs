//! linerate's own load engine: client, server and relay behind the contract of [`linerate_contract`].
//!
//! ```text
//!             spec -> run ─┬─ client -> a thread each: engine (epoll loop) -> meter -> merged -> done
//!                          │               drives  workload/<name>.rs  (what happens when)
//!                          │               through layer/<name>.rs     (how bytes are sent and checked)
//!                          ├─ server -> a thread each: accept loop, a layer's Service answers
//!                          └─ relay  -> accept, connect onward, relay/<mode>.rs moves the bytes
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`engine`] | the client's epoll loop: connections in slots, deadlines, the end of the window |
//! | [`eventloop`] | queue and timers of a loop without sockets, for the layer `none` |
//! | [`search`] | the highest sustainable rate, by a sequential test |
//! | [`schedule`], [`waiter`] | open loop: when operations are due, and waiting until then |
//! | [`limit`] | limit rows: the same work with the part under test left out |
//! | [`sample`] | progress while a client runs |
//! | [`meter`] | what one thread counts, without lock, atomic or allocation |
//! | [`layer`] | trait [`layer::Layer`]: connect, send, receive, verify |
//! | [`workload`] | the state machines of one connection, by trait [`engine::Workload`] |
//! | [`registry`] | where layers and workloads meet, and nowhere else |
//! | [`client`] | threads, shares, merging |
//! | [`server`] | the accept loop and trait [`server::Service`] |
//! | [`packets`] | datagrams in and out of the kernel, one or many for a call |
//! | [`relay`] | TCP forwarding by `splice(2)` |
//! | [`tun_bridge`] | two TUN devices joined, for the kernel's rows beside stacks in a process |
//! | [`listener`] | a listening socket of an event loop, also when no descriptor is left |
//! | [`socket`] | non-blocking sockets and what their errors mean |
//! | `tcp_info` | the kernel's statistics of a TCP connection |
//! | `fuzz`, `fuzz_input` | what fuzz targets run, for tests and fuzzing only |
//! | [`process`], [`clock`], [`random`], [`refusal`] | process, clock, random numbers, errors |
//!
//! A combination is one line in the registry, compiled as one unit.

pub mod client;
pub mod engine;
pub mod eventloop;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
#[cfg(any(test, fuzzing))]
mod fuzz_input;
pub mod layer;
pub mod limit;
pub mod listener;
pub mod meter;
pub mod packets;
pub mod process;
pub mod random;
pub mod refusal;
pub mod registry;
pub mod relay;
pub mod sample;
pub mod schedule;
pub mod search;
pub mod server;
pub mod socket;
mod tcp_info;
pub mod tun_bridge;
pub mod waiter;
pub mod workload;

pub use linerate_contract::clock;
pub use refusal::Refusal;
pub use registry::describe;

use linerate_contract::{Done, Role, Spec};

/// Options of a spec that only this engine supports, beside those of the contract.
pub const OWN_OPTIONS: &[&str] = &[
    // Waiting: polling before a thread sleeps, and batching. Client: HTTP pipelining.
    "spin",
    "coalesce_us",
    "pipeline",
    // WebSocket: received payload is unmasked before it is compared.
    "unmask",
    // Limit rows and the TUN bridge.
    "limit",
    "tun_bridge",
    // UDP server: how often content is compared; injected faults of datagrams and of HTTP responses.
    "every",
    "loss",
    "duplicate",
    "reorder",
    "delay",
    "stall",
    "errors",
    "cap",
];

/// Does what `spec` says; returns when the task is over, for a client with its account.
///
/// # Errors
/// A [`Refusal`], which knows its exit status.
pub fn run(spec: &Spec) -> Result<Option<Done>, Refusal> {
    let descriptors = process::raise_descriptor_limit();
    process::follow_parent();
    if spec.role == Role::Client && spec.layer != "none" && u64::from(spec.connections) > descriptors {
        return Err(Refusal::Failed(std::io::Error::other(format!(
            "\"connections\" is {}, and this process may open {descriptors} files (RLIMIT_NOFILE): ask for \
             fewer, or raise the limit (ulimit -n)",
            spec.connections
        ))));
    }
    if let (Role::Client | Role::Server, Some(limit)) = (spec.role, spec.options.get("limit")) {
        return limit::run(limit, spec);
    }
    match spec.role {
        Role::Client => registry::client(spec).map(Some),
        Role::Server => {
            tun_bridge::start(spec)?;
            registry::server(spec).map(|()| None)
        }
        Role::Relay => relay::run(spec).map(|()| None),
        Role::Describe => Err(Refusal::BadSpec("a description is no task".into())),
    }
}
