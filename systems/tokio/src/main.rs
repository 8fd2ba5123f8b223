//! tokio as a system of linerate (sdk/CONTRACT.md): `tokio-system SPEC`.
//!
//! ```text
//! spec -> abilities -> runtime (options.runtime) -> server.rs | client.rs | stream.rs | udp.rs | kcp.rs | local.rs -> events
//! ```

mod client;
mod clock;
mod http;
mod kcp;
mod local;
mod server;
mod stream;
mod tally;
mod udp;

use linerate_contract::{Describe, Done, EXIT_UNSUPPORTED, Event, Role, Spec};
use std::io::Write;
use std::net::SocketAddr;
use tokio::runtime::{Builder, Runtime};

/// Why a task ended without its result.
#[derive(Debug)]
enum Refusal {
    Unsupported(String),
    BadSpec(String),
    Failed(std::io::Error),
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let outcome = match (arguments.next(), arguments.next()) {
        (Some(json), None) => Spec::parse(&json).map_err(Refusal::BadSpec).and_then(|spec| run(&spec)),
        _ => Err(Refusal::BadSpec("expected one argument, the spec as JSON (sdk/CONTRACT.md)".into())),
    };
    let (status, text) = match outcome {
        Ok(()) => return,
        Err(Refusal::Unsupported(text)) => (EXIT_UNSUPPORTED, format!("unsupported: {text}")),
        Err(Refusal::BadSpec(text)) => (2, format!("bad spec: {text}")),
        Err(Refusal::Failed(error)) => (1, error.to_string()),
    };
    eprintln!("tokio-system: {text}");
    std::process::exit(status);
}

fn run(spec: &Spec) -> Result<(), Refusal> {
    if spec.role == Role::Describe {
        emit(&Event::Describe(describe(&spec.layer)));
        return Ok(());
    }
    if spec.connections == 0 || spec.threads == 0 || spec.timeout_ns.0 == 0 {
        return Err(Refusal::BadSpec(
            "\"connections\", \"threads\" and \"timeout_ns\" must be above 0".into(),
        ));
    }
    let done = match (spec.role, spec.layer.as_str(), spec.workload.as_str()) {
        (_, "tcp", "stream") if spec.options.contains_key("transfers") => {
            return Err(Refusal::Unsupported("a counted stream (\"options.transfers\")".into()));
        }
        (Role::Server, "http", "http" | "crr") => return server::run(spec, server::Serve::Http),
        (Role::Server, "tcp", "rr" | "churn" | "fanout") => return server::run(spec, server::Serve::Echo),
        (Role::Server, "tcp", "stream") => return server::run(spec, server::Serve::Stream),
        (Role::Server, "udp", "stream") => return udp::serve(spec),
        (Role::Server, "kcp", "stream") => return kcp::serve(spec),
        (Role::Client, _, _) if spec.rate.is_some() => {
            Err(Refusal::Unsupported("an open loop (\"rate\")".into()))
        }
        (Role::Client, "tcp", "rr") => client::rr(spec),
        (Role::Client, "tcp", "churn") => client::churn(spec),
        (Role::Client, "tcp", "fanout") => client::fanout(spec),
        (Role::Client, "tcp", "stream") => stream::client(spec),
        (Role::Client, "udp", "stream") => udp::client(spec),
        (Role::Client, "kcp", "stream") => kcp::client(spec),
        (Role::Client, "none", "dispatch") => local::dispatch(spec),
        (Role::Client, "none", "timers") => local::timers(spec),
        (role, layer, workload) => {
            Err(Refusal::Unsupported(format!("{role} of layer {layer:?} and workload {workload:?}")))
        }
    };
    done.map(|done: Done| emit(&Event::Done(Box::new(done))))
}

/// The layer `kcp` has a library of its own, and its version.
fn describe(layer: &str) -> Describe {
    let names = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    Describe {
        name: "tokio".into(),
        version: if layer == "kcp" { env!("TOKIO_KCP_VERSION") } else { env!("TOKIO_VERSION") }.into(),
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
    emit(&Event::Ready { address });
}

/// Prints one event and flushes it.
fn emit(event: &Event) {
    println!("{}", event.to_json());
    // A reader that went away is no reason to fail.
    let _ = std::io::stdout().flush();
}
