//! tokio as a system of linerate (sdk/CONTRACT.md): `tokio-system SPEC`.
//!
//! ```text
//! spec -> abilities -> runtime (options.runtime) -> server.rs | client.rs | stream.rs | udp.rs | kcp.rs | local.rs -> events
//! ```

mod client;
mod http;
mod kcp;
mod local;
mod server;
mod stream;
mod udp;

use linerate_contract::program::{self, Refusal};
use linerate_contract::{Describe, Done, Event, Role, Spec};
use std::net::SocketAddr;
use tokio::runtime::{Builder, Runtime};

fn main() {
    program::run("tokio-system", &[], describe, run);
}

fn run(spec: &Spec) -> Result<Option<Done>, Refusal> {
    if spec.connections == 0 || spec.threads == 0 || spec.timeout_ns.0 == 0 {
        return Err(Refusal::BadSpec(
            "\"connections\", \"threads\" and \"timeout_ns\" must be above 0".into(),
        ));
    }
    match (spec.role, spec.layer.as_str(), spec.workload.as_str()) {
        (_, "tcp", "stream") if spec.options.contains_key("transfers") => {
            Err(Refusal::Unsupported("a counted stream (\"options.transfers\")".into()))
        }
        (Role::Client, _, _) if spec.rate.is_some() => {
            Err(Refusal::Unsupported("an open loop (\"rate\")".into()))
        }
        (Role::Server, _, _) => serve(spec).map(|()| None),
        (Role::Client, _, _) => drive(spec).map(Some),
        _ => Err(unsupported(spec)),
    }
}

fn serve(spec: &Spec) -> Result<(), Refusal> {
    match (spec.layer.as_str(), spec.workload.as_str()) {
        ("http", "http" | "crr") => server::run(spec, server::Serve::Http),
        ("tcp", "rr" | "churn" | "fanout") => server::run(spec, server::Serve::Echo),
        ("tcp", "stream") => server::run(spec, server::Serve::Stream),
        ("udp", "stream") => udp::serve(spec),
        ("kcp", "stream") => kcp::serve(spec),
        _ => Err(unsupported(spec)),
    }
}

fn drive(spec: &Spec) -> Result<Done, Refusal> {
    match (spec.layer.as_str(), spec.workload.as_str()) {
        ("tcp", "rr") => client::rr(spec),
        ("tcp", "churn") => client::churn(spec),
        ("tcp", "fanout") => client::fanout(spec),
        ("tcp", "stream") => stream::client(spec),
        ("udp", "stream") => udp::client(spec),
        ("kcp", "stream") => kcp::client(spec),
        ("none", "dispatch") => local::dispatch(spec),
        ("none", "timers") => local::timers(spec),
        _ => Err(unsupported(spec)),
    }
}

fn unsupported(spec: &Spec) -> Refusal {
    Refusal::Unsupported(format!("{} of layer {:?} and workload {:?}", spec.role, spec.layer, spec.workload))
}

/// The layer `kcp` has a library of its own, and its version.
fn describe(spec: &Spec) -> Describe {
    let names = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    Describe {
        name: "tokio".into(),
        version: if spec.layer == "kcp" { env!("TOKIO_KCP_VERSION") } else { env!("TOKIO_VERSION") }.into(),
        roles: vec![Role::Client, Role::Server],
        layers: names(&["http", "kcp", "none", "tcp", "udp"]),
        workloads: names(&["churn", "crr", "dispatch", "fanout", "http", "rr", "stream", "timers"]),
    }
}

/// The runtime that the variant names: one thread, or a pool of `threads` that steal work from each other.
fn runtime(spec: &Spec) -> Result<Runtime, Refusal> {
    let mut builder = match spec.options.get("runtime").map(String::as_str) {
        None | Some("current-thread") if spec.threads == 1 => Builder::new_current_thread(),
        None | Some("current-thread") => {
            return Err(Refusal::Unsupported("several threads on the current-thread runtime".into()));
        }
        Some("multi-thread") => Builder::new_multi_thread(),
        Some(other) => {
            return Err(Refusal::BadSpec(format!(
                "\"options.runtime\" must be current-thread or multi-thread, not {other}"
            )));
        }
    };
    builder.worker_threads(spec.threads as usize).enable_all().build().map_err(Refusal::Failed)
}

fn ready(address: SocketAddr) {
    program::emit(&Event::Ready { address });
}
