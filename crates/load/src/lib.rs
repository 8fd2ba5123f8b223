//! linerate's own load engine: client and server behind the contract of [`linerate_contract`].
//!
//! ```text
//!             spec -> run ─┬─ client -> a thread each: engine (epoll loop) -> meter -> merged -> done
//!                          │               drives  workload/<name>.rs  (what happens when)
//!                          │               through layer/<name>.rs     (how bytes are sent and checked)
//!                          └─ server -> a thread each: accept loop, a layer's Service answers
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`engine`] | the client's epoll loop: connections in slots, deadlines, the end of the window |
//! | [`search`] | the highest sustainable rate, by a sequential test |
//! | [`schedule`], [`waiter`] | open loop: when operations are due, and waiting until then |
//! | [`sample`] | progress while a client runs |
//! | [`meter`] | what one thread counts, without lock, atomic or allocation |
//! | [`layer`] | trait [`layer::Layer`]: connect, send, receive, verify |
//! | [`workload`] | the state machines of one connection, and the table of combinations with layers |
//! | [`client`] | threads, shares, merging |
//! | `cause` | why operations fail: the first cause of each kind, of a thread |
//! | [`server`] | the accept loop and trait [`server::Service`] |
//! | [`packets`] | datagrams in and out of the kernel, and the loop of servers of KCP and QUIC |
//! | `held` | a limit of what peers make the process keep, for a connection and for all |
//! | [`listener`] | a listening socket of an event loop, also when no descriptor is left |
//! | [`socket`] | non-blocking sockets and what their errors mean |
//! | [`tcp_info`] | the kernel's statistics of a TCP connection |
//! | `fuzz`, `fuzz_input` | what fuzz targets run, for tests and fuzzing only |
//! | [`process`], [`clock`], [`random`], [`refusal`] | process, clock, random numbers, errors |
//!
//! A combination is one line in that table, compiled as one unit. What is no load generation (relay,
//! limits, fault injectors) is `crates/natives`, which uses this library.

mod cause;
pub mod client;
pub mod engine;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
#[cfg(any(test, fuzzing))]
mod fuzz_input;
mod held;
pub mod layer;
pub mod listener;
pub mod meter;
pub mod packets;
pub mod process;
pub mod random;
pub mod refusal;
pub mod sample;
pub mod schedule;
pub mod search;
pub mod server;
pub mod socket;
pub mod tcp_info;
pub mod waiter;
pub mod workload;

pub use linerate_contract::clock;
pub use refusal::Refusal;
pub use workload::describe;

use linerate_contract::{Done, Role, Spec};

/// Options of a spec that only this engine supports, beside those of the contract.
pub const OWN_OPTIONS: &[&str] = &[
    // Waiting: polling before a thread sleeps, and batching. Client: HTTP pipelining.
    "spin",
    "coalesce_us",
    "pipeline",
    // How long a client waits outside of its window: for connections before it, for operations after it.
    "patience_ms",
    // HTTP/2 and QUIC: streams under way on each connection; whether requests are calls of gRPC, and of how
    // many messages; the length of a response of the protocol of performance tests, the congestion control,
    // whether sessions are resumed, and the bytes that are granted on a stream in advance.
    "streams",
    "grpc",
    "messages",
    "response",
    "congestion",
    "handshake",
    "stream_window",
    // HTTP: events within responses that are timed.
    "events",
    // WebSocket: received payload is unmasked before it is compared; messages are texts; messages that a
    // server sends before it is asked.
    "unmask",
    "text",
    "greetings",
    // A stream over TCP: bytes that each connection of a client sends in a second at most.
    "pace",
    // UDP server: how often content is compared.
    "every",
];

/// Does what `spec` says; returns when the task is over, for a client with its account.
///
/// # Errors
/// A [`Refusal`], which has its exit status.
pub fn run(spec: &Spec) -> Result<Option<Done>, Refusal> {
    prepare(spec)?;
    match spec.role {
        Role::Client => workload::client(spec).map(Some),
        Role::Server => workload::server(spec).map(|()| None),
        Role::Relay => Err(Refusal::Unsupported("a relay: linerate-natives is one".into())),
        Role::Describe => Err(Refusal::BadSpec("a description is no task".into())),
    }
}

/// Prepares the process for the task: its limit of descriptors, and its end with its parent.
///
/// # Errors
/// A client needs more connections than the process may open files.
pub fn prepare(spec: &Spec) -> Result<(), Refusal> {
    let descriptors = process::raise_descriptor_limit();
    process::follow_parent();
    if spec.role == Role::Client
        && spec.layer != linerate_contract::Layer::None
        && u64::from(spec.connections) > descriptors
    {
        return Err(Refusal::Failed(std::io::Error::other(format!(
            "\"connections\" is {}, and this process may open {descriptors} files (RLIMIT_NOFILE): ask for \
             fewer, or raise the limit (ulimit -n)",
            spec.connections
        ))));
    }
    Ok(())
}
