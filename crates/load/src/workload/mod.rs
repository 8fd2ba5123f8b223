//! Traffic patterns, one file each (`workload/<name>.rs`), and where they meet layers: one table,
//! [`COMBINATIONS`].
//!
//! A workload is the state machine of one connection: its first step, and the steps after a response and
//! after a failure. It reports to the meter. The layer handles the bytes. No other module names both sides.
//! Each combination is its own instance of the engine, so the hot loop has no indirect call. A new layer or
//! workload is a file, and its rows here.

pub mod crr;
pub mod fanout;
pub mod multiplexed;
pub mod paced;
pub mod paced_lanes;
pub mod rr;
pub mod stream;

use crate::layer::echo::EchoService;
use crate::layer::h2::{H2 as H2Client, H2Service};
use crate::layer::http::{Http, HttpService};
use crate::layer::kcp;
use crate::layer::quic::client::{ClientProtocol, Quic};
use crate::layer::quic::h3::{H3, H3Page};
use crate::layer::quic::perf::{Perf, PerfService};
use crate::layer::quic::server::{self as quic_server, ServerProtocol};
use crate::layer::session::client::{RoundTrips, Sessions, Transfers};
use crate::layer::session::framing::{Framing, Raw, WebSocket};
use crate::layer::session::service::{Echoes, SessionService, Streams};
use crate::layer::udp;
use crate::layer::wire::Wires;
use crate::layer::wire::passage::Kernel;
use crate::layer::wire::plain::PlainWires;
use crate::layer::wire::tls::{AnyTlsConnector, TlsAcceptor, TlsConnector};
use crate::layer::{Lanes, Layer};
use crate::{Refusal, client, server};
use crr::Crr;
use linerate_contract::Layer as Protocol;
use linerate_contract::{Describe, Done, Role, Spec, Workload};
use linerate_proto::http::vary::varies;
use multiplexed::Multiplexed;
use paced::Paced;
use paced_lanes::PacedLanes;
use rr::Rr;
use std::collections::BTreeSet;

/// A function that runs a client to its end.
type RunClient = fn(&Spec) -> Result<Done, Refusal>;
/// A function that serves until SIGTERM.
type RunServer = fn(&Spec) -> Result<(), Refusal>;

/// A supported pair of layer and workload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Combination {
    layer: Protocol,
    workload: Workload,
    client: RunClient,
    /// The client with an open loop (`rate`), where there is one.
    paced: Option<RunClient>,
    /// Both with several `requests`.
    several: [Option<RunClient>; 2],
    server: RunServer,
}

impl Combination {
    const fn new(layer: Protocol, workload: Workload, client: RunClient, server: RunServer) -> Self {
        Self { layer, workload, client, paced: None, several: [None; 2], server }
    }

    const fn paced(mut self, client: RunClient) -> Self {
        self.paced = Some(client);
        self
    }

    const fn several(mut self, of: Self) -> Self {
        self.several = [Some(of.client), of.paced];
        self
    }
}

/// Operations one after the other on connections that stay.
const fn rr<L: Layer>(layer: Protocol, server: RunServer) -> Combination {
    Combination::new(layer, Workload::Rr, client::run::<L, Rr>, server).paced(client::run::<L, Paced<true>>)
}

/// A connection for each operation.
const fn crr<L: Layer>(layer: Protocol, server: RunServer) -> Combination {
    Combination::new(layer, Workload::Crr, client::run::<L, Crr>, server)
        .paced(client::run::<L, Paced<false>>)
}

/// Transfers of content: the ends of the wires, and the framing.
const fn stream<C: Wires, A: Wires, F: Framing + 'static>(layer: Protocol) -> Combination {
    let server = server::run::<SessionService<A, F, Streams>>;
    Combination::new(layer, Workload::Stream, stream::run::<Sessions<C, F, Transfers>>, server)
}

/// HTTP over one kind of wires: a connection for each request, and connections that stay.
const fn http<C: Wires, A: Wires>(layer: Protocol) -> [Combination; 2] {
    let server = server::run::<HttpService<A>>;
    [
        crr::<Http<C>>(layer, server).several(crr::<Http<C, true>>(layer, server)),
        rr::<Http<C>>(layer, server).several(rr::<Http<C, true>>(layer, server)),
    ]
}

/// Operations in lanes: a connection for each, and connections that stay.
const fn lanes<L: Lanes>(layer: Protocol, server: RunServer) -> [Combination; 2] {
    let crr = Combination::new(layer, Workload::Crr, client::run::<L, Multiplexed<false>>, server);
    let rr = Combination::new(layer, Workload::Rr, client::run::<L, Multiplexed<true>>, server)
        .paced(client::run::<L, PacedLanes>);
    [crr, rr]
}

/// Combinations whose requests may differ.
const fn with_several([crr, rr]: [Combination; 2]) -> [Combination; 2] {
    [crr.several(crr), rr.several(rr)]
}

/// HTTP/2 over one kind of wires.
const fn h2<C: Wires, A: Wires>(layer: Protocol) -> [Combination; 2] {
    with_several(lanes::<H2Client<C>>(layer, server::run::<H2Service<A>>))
}

/// Operations on streams of QUIC.
const fn quic<C: ClientProtocol, S: ServerProtocol>(layer: Protocol) -> [Combination; 2] {
    lanes::<Quic<C>>(layer, quic_server::run::<S>)
}

/// Both workloads of a session.
const fn session<C: Wires, A: Wires, F: Framing + 'static>(layer: Protocol) -> [Combination; 2] {
    let server = server::run::<SessionService<A, F, Echoes>>;
    [rr::<Sessions<C, F, RoundTrips>>(layer, server), stream::<C, A, F>(layer)]
}

type Tcp = Sessions<PlainWires, Raw, RoundTrips>;
const HTTP: [Combination; 2] = http::<PlainWires, PlainWires>(Protocol::Http);
const HTTPS: [Combination; 2] = http::<AnyTlsConnector, TlsAcceptor>(Protocol::Https);
const H2C: [Combination; 2] = h2::<PlainWires, PlainWires>(Protocol::H2c);
const H2: [Combination; 2] = h2::<AnyTlsConnector, TlsAcceptor>(Protocol::H2);
const HTTP_3: [Combination; 2] = with_several(quic::<H3, H3Page>(Protocol::H3));
const QUIC: [Combination; 2] = quic::<Perf, PerfService>(Protocol::Quic);
const TLS: [Combination; 2] = session::<TlsConnector, TlsAcceptor, Raw>(Protocol::Tls);
const WEBSOCKET: [Combination; 2] = session::<PlainWires, PlainWires, WebSocket>(Protocol::WebSocket);
const WSS: [Combination; 2] = session::<TlsConnector, TlsAcceptor, WebSocket>(Protocol::Wss);

/// Every combination, by layer and workload.
pub(crate) const COMBINATIONS: &[Combination] = &[
    H2[0],
    H2[1],
    H2C[0],
    H2C[1],
    HTTP_3[0],
    HTTP_3[1],
    HTTP[0],
    HTTP[1],
    HTTPS[0],
    HTTPS[1],
    Combination::new(
        Protocol::Kcp,
        Workload::Stream,
        stream::run_once::<kcp::client::KcpClient>,
        kcp::server::run,
    ),
    QUIC[0],
    QUIC[1],
    crr::<Tcp>(Protocol::Tcp, server::run::<EchoService>),
    Combination::new(Protocol::Tcp, Workload::Fanout, fanout::run::<Tcp>, server::run::<EchoService>),
    rr::<Tcp>(Protocol::Tcp, server::run::<EchoService>),
    stream::<PlainWires<Kernel>, PlainWires<Kernel>, Raw>(Protocol::Tcp),
    TLS[0],
    TLS[1],
    rr::<udp::echo::UdpEcho>(Protocol::Udp, udp::echo::serve),
    Combination::new(Protocol::Udp, Workload::Stream, udp::client::run, udp::server::run)
        .paced(udp::client::run),
    WEBSOCKET[0],
    WEBSOCKET[1],
    WSS[0],
    WSS[1],
];

/// Runs a client to its end.
///
/// # Errors
/// Unsupported combinations, invalid specs, failing system calls.
pub fn client(spec: &Spec) -> Result<Done, Refusal> {
    let combination = find(spec)?;
    let Combination { client, paced, several, .. } = *combination;
    let request = spec.request.clone().unwrap_or_default();
    let is_varied = varies(spec.path.as_deref().unwrap_or("/"), &request)
        || spec.requests.iter().any(|one| varies(&one.path, &one.request));
    if is_varied && !spec.layer.is_http() {
        return Err(Refusal::Unsupported(
            "requests that vary ({seq}, {rand:1:9}) over another layer than those of HTTP".into(),
        ));
    }
    let (field, client) = match (spec.requests.is_empty() && !is_varied, spec.rate) {
        (true, None) => ("", Some(client)),
        (true, Some(_)) => ("rate", paced),
        (false, rate) => ("requests", several[usize::from(rate.is_some())]),
    };
    let client = client.ok_or_else(|| {
        let text = format!("{field:?} with layer {:?} and workload {:?}", spec.layer, spec.workload);
        Refusal::Unsupported(text)
    })?;
    client(spec)
}

/// Serves until SIGTERM.
///
/// # Errors
/// Unsupported combinations, invalid specs, failing system calls.
pub fn server(spec: &Spec) -> Result<(), Refusal> {
    (find(spec)?.server)(spec)
}

/// Roles, layers and workloads of this program.
pub fn describe() -> Describe {
    let layers: BTreeSet<Protocol> = COMBINATIONS.iter().map(|row| row.layer).collect();
    let workloads: BTreeSet<Workload> = COMBINATIONS.iter().map(|row| row.workload).collect();
    Describe {
        name: "native".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        roles: vec![Role::Client, Role::Server],
        layers: layers.into_iter().collect(),
        workloads: workloads.into_iter().collect(),
        ends: Vec::new(),
    }
}

fn find(spec: &Spec) -> Result<&'static Combination, Refusal> {
    let found = COMBINATIONS.iter().find(|row| row.layer == spec.layer && row.workload == spec.workload);
    found.ok_or_else(|| {
        let text = format!("{} of layer {:?} and workload {:?}", spec.role, spec.layer, spec.workload);
        Refusal::Unsupported(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Layer as Protocol;
    use linerate_contract::Workload;

    #[test]
    fn each_combination_is_listed_once() {
        let mut pairs: Vec<_> = COMBINATIONS.iter().map(|row| (row.layer, row.workload)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        assert_eq!(pairs.len(), COMBINATIONS.len());
    }

    #[test]
    fn description_lists_every_layer_and_workload_of_the_table() {
        let described = describe();
        for row in COMBINATIONS {
            assert!(described.layers.contains(&row.layer));
            assert!(described.workloads.contains(&row.workload));
        }
    }

    #[test]
    fn combinations_that_are_not_listed_are_unsupported() {
        let mut spec = Spec::new(Role::Client, Protocol::Http, Workload::Stream);
        assert_eq!(client(&spec).unwrap_err().exit_status(), 127);
        spec = Spec::new(Role::Server, Protocol::Udp, Workload::Crr);
        assert_eq!(server(&spec).unwrap_err().exit_status(), 127);
        spec = Spec { rate: Some(10.0), ..Spec::new(Role::Client, Protocol::Tcp, Workload::Stream) };
        assert_eq!(client(&spec).unwrap_err().exit_status(), 127);
    }
}
