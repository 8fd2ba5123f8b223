//! Which layers and workloads there are, and which of them go together.
//!
//! The only place that names both: each pair is its own instance of the engine, so the hot loop has no
//! indirect call. A new layer or workload is a file and its lines here.

use crate::layer::http::{Bare, Http, HttpService, truth};
use crate::layer::kcp;
use crate::layer::session::client::{
    Connector, PlainConnector, RoundTrips, Sessions, Transfers, as_operations, as_writes,
};
use crate::layer::session::framing::{Framing, Raw, WebSocket};
use crate::layer::session::service::{Echoes, PlainAcceptor, SessionService, Streams};
use crate::layer::tcp::{EchoService, Tcp, stream};
use crate::layer::tls::Tls;
use crate::layer::transport::Plain;
use crate::layer::udp;
use crate::layer::wire::tls as secured;
use crate::workload::{crr::Crr, dispatch, fanout, http::KeepAlive, paced::Paced, timers};
use crate::{Refusal, client, server};
use linerate_contract::{Done, Spec};

/// Layers of the client and the server; the relay forwards `tcp`, and workloads without a network have `none`.
pub const LAYERS: &[&str] = &["http", "https", "kcp", "none", "tcp", "tls", "udp", "websocket", "wss"];
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
        ("kcp", "stream") => kcp::client::run(spec),
        ("none", "dispatch") => dispatch::run(spec),
        ("none", "timers") => timers::run(spec),
        ("tcp", "churn") => client::run::<Tcp, Crr>(spec),
        ("tcp", "fanout") => fanout::run::<Tcp>(spec),
        ("tcp", "rr") => client::run::<Tcp, KeepAlive>(spec),
        ("tcp", "stream") if spec.options.contains_key("transfers") => transfers::<PlainConnector, Raw>(spec),
        ("tcp", "stream") => stream::client::run(spec),
        ("tls", "rr") => client::run::<Sessions<secured::Client, Raw, RoundTrips>, KeepAlive>(spec),
        ("tls", "stream") => transfers::<secured::Client, Raw>(spec),
        ("websocket", "rr") => {
            client::run::<Sessions<PlainConnector, WebSocket, RoundTrips>, KeepAlive>(spec)
        }
        ("websocket", "stream") => transfers::<PlainConnector, WebSocket>(spec),
        ("wss", "rr") => client::run::<Sessions<secured::Client, WebSocket, RoundTrips>, KeepAlive>(spec),
        ("wss", "stream") => transfers::<secured::Client, WebSocket>(spec),
        ("udp", "rr") => client::run::<udp::echo::Echo, KeepAlive>(spec),
        ("udp", "stream") => udp::client::run(spec),
        _ => Err(unsupported(spec)),
    }
}

/// The counted stream: to the engine a transfer is an operation, in the account a write is.
fn transfers<C: Connector, F: Framing + 'static>(spec: &Spec) -> Result<Done, Refusal> {
    let done = client::run::<Sessions<C, F, Transfers>, KeepAlive>(&as_operations(spec)?)?;
    Ok(as_writes(spec, done))
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
        ("tls", "rr") => client::run::<Sessions<secured::Client, Raw, RoundTrips>, Paced<true>>(spec),
        ("websocket", "rr") => {
            client::run::<Sessions<PlainConnector, WebSocket, RoundTrips>, Paced<true>>(spec)
        }
        ("wss", "rr") => client::run::<Sessions<secured::Client, WebSocket, RoundTrips>, Paced<true>>(spec),
        ("udp", "rr") => client::run::<udp::echo::Echo, Paced<true>>(spec),
        ("udp", "stream") => udp::client::run(spec),
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
        ("http", _) => server::run::<HttpService<Bare>>(spec),
        ("https", _) => server::run::<HttpService<secured::Server>>(spec),
        ("tcp", "churn" | "fanout" | "rr") => server::run::<EchoService>(spec),
        ("tcp", "stream") if spec.options.contains_key("transfers") => {
            server::run::<SessionService<PlainAcceptor, Raw, Streams>>(spec)
        }
        ("tcp", "stream") => server::run::<stream::StreamService>(spec),
        ("tls", "rr") => server::run::<SessionService<secured::Server, Raw, Echoes>>(spec),
        ("tls", "stream") => server::run::<SessionService<secured::Server, Raw, Streams>>(spec),
        ("websocket", "rr") => server::run::<SessionService<PlainAcceptor, WebSocket, Echoes>>(spec),
        ("websocket", "stream") => server::run::<SessionService<PlainAcceptor, WebSocket, Streams>>(spec),
        ("wss", "rr") => server::run::<SessionService<secured::Server, WebSocket, Echoes>>(spec),
        ("wss", "stream") => server::run::<SessionService<secured::Server, WebSocket, Streams>>(spec),
        ("udp", "rr") => udp::echo::serve(spec),
        ("udp", "stream") if udp::truth::is_asked_for(spec) => udp::truth::run(spec),
        ("udp", "stream") => udp::server::run(spec),
        ("kcp", "stream") => kcp::server::run(spec),
        _ => Err(unsupported(spec)),
    }
}

fn unsupported(spec: &Spec) -> Refusal {
    Refusal::Unsupported(format!("{} of layer {:?} and workload {:?}", spec.role, spec.layer, spec.workload))
}
