//! Which layers and workloads there are, and which of them go together.
//!
//! The only place that names both: each pair is its own instance of the engine, so the hot loop has no
//! indirect call. A new layer or workload is a file and its lines here.

use crate::layer::http::{Http, HttpService, truth};
use crate::layer::tcp::{EchoService, Tcp, stream};
use crate::layer::tls::Tls;
use crate::layer::transport::Plain;
use crate::workload::{crr::Crr, dispatch, fanout, http::KeepAlive, paced::Paced, timers};
use crate::{Refusal, client, server};
use linerate_contract::{Done, Spec};

/// Layers of the client and the server; the relay forwards `tcp`, and workloads without a network have `none`.
pub const LAYERS: &[&str] = &["http", "https", "none", "tcp"];
/// Workloads of the client; `relay` is the relay's.
pub const WORKLOADS: &[&str] =
    &["churn", "crr", "dispatch", "fanout", "http", "relay", "rr", "stream", "timers"];

/// Runs a client to its end.
///
/// # Errors
/// Unsupported pairs, bad specs, and a kernel that refuses.
pub fn client(spec: &Spec) -> Result<Done, Refusal> {
    if spec.rate.is_some() {
        return paced_client(spec);
    }
    match (spec.layer.as_str(), spec.workload.as_str()) {
        ("http", "crr") => client::run::<Http<Plain>, Crr>(spec),
        ("http", "http") => client::run::<Http<Plain>, KeepAlive>(spec),
        ("https", "crr") => client::run::<Http<Tls>, Crr>(spec),
        ("https", "http") => client::run::<Http<Tls>, KeepAlive>(spec),
        ("none", "dispatch") => dispatch::run(spec),
        ("none", "timers") => timers::run(spec),
        ("tcp", "churn") => client::run::<Tcp, Crr>(spec),
        ("tcp", "fanout") => fanout::run::<Tcp>(spec),
        ("tcp", "rr") => client::run::<Tcp, KeepAlive>(spec),
        ("tcp", "stream") => stream::client::run(spec),
        _ => Err(unsupported(spec)),
    }
}

/// Those that can begin operations by a schedule.
fn paced_client(spec: &Spec) -> Result<Done, Refusal> {
    match (spec.layer.as_str(), spec.workload.as_str()) {
        ("http", "crr") => client::run::<Http<Plain>, Paced<false>>(spec),
        ("http", "http") => client::run::<Http<Plain>, Paced<true>>(spec),
        ("https", "crr") => client::run::<Http<Tls>, Paced<false>>(spec),
        ("https", "http") => client::run::<Http<Tls>, Paced<true>>(spec),
        ("tcp", "churn") => client::run::<Tcp, Paced<false>>(spec),
        ("tcp", "rr") => client::run::<Tcp, Paced<true>>(spec),
        _ => Err(Refusal::Unsupported(format!(
            "\"rate\" with layer {:?} and workload {:?}",
            spec.layer, spec.workload
        ))),
    }
}

/// Serves until SIGTERM.
///
/// # Errors
/// Unsupported layers, bad specs, and a kernel that refuses.
pub fn server(spec: &Spec) -> Result<(), Refusal> {
    match (spec.layer.as_str(), spec.workload.as_str()) {
        ("http", _) if truth::is_asked_for(spec) => truth::run(spec),
        ("http", _) => server::run::<HttpService>(spec),
        ("tcp", "churn" | "fanout" | "rr") => server::run::<EchoService>(spec),
        ("tcp", "stream") => server::run::<stream::StreamService>(spec),
        _ => Err(unsupported(spec)),
    }
}

fn unsupported(spec: &Spec) -> Refusal {
    Refusal::Unsupported(format!("{} of layer {:?} and workload {:?}", spec.role, spec.layer, spec.workload))
}
