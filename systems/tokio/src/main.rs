//! tokio as a system of linerate (sdk/CONTRACT.md): `tokio-system SPEC`.
//!
//! ```text
//! spec -> runtime (options.runtime) -> server.rs | client.rs | udp.rs | kcp.rs | local.rs -> events
//! ```

mod client;
mod http;
mod kcp;
mod local;
mod server;
mod udp;

use linerate_contract::program::{self, Refusal};
use linerate_contract::{Choice, Describe, Done, Ends, Layer, Role, Spec};
use linerate_sdk::unsupported;

fn main() {
    program::run("tokio-system", &[], describe, run);
}

fn run(spec: &Spec) -> Result<Option<Done>, Refusal> {
    if spec.connections == 0 || spec.threads == 0 || spec.timeout_ns.0 == 0 {
        return Err(Refusal::BadSpec(
            "\"connections\", \"threads\" and \"timeout_ns\" must be above 0".into(),
        ));
    }
    match spec.role {
        Role::Client if spec.rate.is_some() => Err(Refusal::Unsupported("an open loop (\"rate\")".into())),
        Role::Server => serve(spec).map(|()| None),
        Role::Client => drive(spec).map(Some),
        _ => Err(unsupported(spec)),
    }
}

fn serve(spec: &Spec) -> Result<(), Refusal> {
    match (spec.layer.as_str(), spec.workload.as_str()) {
        ("http", "rr" | "crr") | ("tcp", "rr" | "crr" | "fanout" | "stream") => server::run(spec),
        ("udp", "stream") => udp::serve(spec),
        ("kcp", "stream") => kcp::serve(spec),
        _ => Err(unsupported(spec)),
    }
}

fn drive(spec: &Spec) -> Result<Done, Refusal> {
    match (spec.layer.as_str(), spec.workload.as_str()) {
        ("tcp", "rr") => client::rr(spec),
        ("http", "rr") if spec.ends()?.is_some() => client::rr(spec),
        ("tcp", "stream") => client::stream(spec),
        (_, _) if spec.ends()?.is_some() => Err(unsupported(spec)),
        ("tcp", "crr") => client::crr(spec),
        ("tcp", "fanout") => client::fanout(spec),
        ("udp", "stream") => udp::client(spec),
        ("kcp", "stream") => kcp::client(spec),
        ("none", "dispatch") => local::dispatch(spec),
        _ => Err(unsupported(spec)),
    }
}

/// Layer `kcp` has its own library, and the version of that.
fn describe(spec: &Spec) -> Describe {
    let version = if spec.layer == Layer::Kcp { env!("TOKIO_KCP_VERSION") } else { env!("TOKIO_VERSION") };
    let workloads = ["crr", "dispatch", "fanout", "rr", "stream"];
    let layers = ["http", "kcp", "none", "tcp", "udp"];
    let described =
        linerate_sdk::describe("tokio", version, &[Role::Client, Role::Server], &layers, &workloads);
    Describe { ends: vec![Ends::OneLoop.word().into()], ..described }
}
