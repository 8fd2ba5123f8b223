//! The fuzz target of QUIC above its datagrams: a peer opens, writes, ends, resets and stops streams in any
//! order, and the bookkeeping of this end stays right. The library's state machine carries both ends without
//! a socket.

use super::client::Tested as TestedClient;
use super::client::{ClientProtocol, Quic};
use super::h3::{H3, H3Page};
use super::perf::{Perf, PerfService};
use super::server::{ServerProtocol, Tested as TestedServer, config};
use crate::fuzz_input::FuzzInput;
use crate::layer::Layer as _;
use crate::layer::wire::tls::client_config;
use bytes::BytesMut;
use linerate_contract::{Layer, Role, Spec, Tls, Workload};
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, ServerConfig,
    StreamId, TransportConfig, VarInt,
};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

/// Both ends have this address: nothing is sent.
pub(super) const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9);
/// Turns after what a peer does in one go: a response of any length goes on for ever.
const MOST_TURNS: usize = 20;
/// The window of the hostile end.
const WINDOW: u32 = 10_000;

/// The end under test.
pub(super) trait End {
    /// Takes datagrams, and returns those that follow.
    fn turn(&mut self, datagrams: Vec<BytesMut>, now: Instant) -> Vec<BytesMut>;
    /// Panics if the bookkeeping is wrong.
    fn check(&self);
}

/// Both ends of HTTP/3 and of performance tests, and a socket that takes what they send of themselves.
#[allow(missing_debug_implementations, reason = "state machines of a library have none")]
pub struct QuicEnds {
    servers: (Spec, Spec),
    clients: (Quic<H3>, Quic<Perf>),
    _socket: UdpSocket,
}

impl QuicEnds {
    /// # Panics
    /// The identity is none.
    pub fn new(tls: &Tls) -> Self {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).expect("a socket");
        let spec = |role, layer| {
            let mut spec = Spec::new(role, layer, Workload::Rr);
            (spec.tls, spec.size, spec.connect) = (Some(tls.clone()), 100, socket.local_addr().ok());
            spec
        };
        let client = |layer| {
            let mut spec = spec(Role::Client, layer);
            spec.set_option("streams", 4);
            spec
        };
        Self {
            servers: (spec(Role::Server, Layer::H3), spec(Role::Server, Layer::Quic)),
            clients: (
                Quic::new(&client(Layer::H3), true).expect("a good spec"),
                Quic::new(&client(Layer::Quic), true).expect("a good spec"),
            ),
            _socket: socket,
        }
    }
}

/// The first byte chooses the end under test, the others are what its peer does.
pub fn fuzz_quic(ends: &QuicEnds, input: &[u8]) {
    let Some((choice, input)) = input.split_first() else { return };
    match choice % 4 {
        0 => _ = server::<H3Page>(&ends.servers.0, input),
        1 => _ = server::<PerfService>(&ends.servers.1, input),
        2 => drop(client(ends.clients.0.clone(), &config::<H3Page>(&ends.servers.0), input)),
        _ => drop(client(ends.clients.1.clone(), &config::<PerfService>(&ends.servers.1), input)),
    }
}

/// Bytes that the peer has read.
fn server<P: ServerProtocol>(spec: &Spec, input: &[u8]) -> usize {
    let mut tls = client_config(spec).expect("a good spec");
    tls.alpn_protocols = vec![P::ALPN.to_vec()];
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).expect("a good spec")));
    config.transport_config(Arc::new(small()));
    let mut peer = Hostile::new(Endpoint::new(Arc::<EndpointConfig>::default(), None, true, None), input);
    peer.connection = peer.endpoint.connect(Instant::now(), config, ADDRESS, "linerate.test").ok();
    run(&mut peer, &mut TestedServer::<P>::new(spec));
    peer.read
}

fn client<P: ClientProtocol>(layer: Quic<P>, config: &ServerConfig, input: &[u8]) -> TestedClient<P> {
    let mut config = config.clone();
    config.transport_config(Arc::new(small()));
    let endpoint = Endpoint::new(Arc::<EndpointConfig>::default(), Some(Arc::new(config)), true, None);
    let mut tested = TestedClient::new(layer);
    run(&mut Hostile::new(endpoint, input), &mut tested);
    tested
}

fn small() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(VarInt::from_u32(WINDOW));
    transport.send_window(u64::from(WINDOW));
    transport
}

/// Both ends have their turns until there is nothing to be sent, and then the peer goes on.
fn run(peer: &mut Hostile<'_>, tested: &mut impl End) {
    loop {
        for _ in 0..MOST_TURNS {
            let now = Instant::now();
            let sent = peer.sent(now);
            let is_quiet = sent.is_empty();
            let back = tested.turn(sent, now);
            tested.check();
            if is_quiet && back.is_empty() {
                break;
            }
            peer.take(back, now);
        }
        if !peer.act() {
            return;
        }
    }
}

/// The datagrams that a connection has to send.
pub(super) fn datagrams(connection: &mut Connection, now: Instant) -> Vec<BytesMut> {
    if connection.poll_timeout().is_some_and(|due| due <= now) {
        connection.handle_timeout(now);
    }
    let next = || {
        let mut batch = Vec::new();
        let transmit = connection.poll_transmit(now, 1, &mut batch)?;
        Some(BytesMut::from(&batch[..transmit.size]))
    };
    std::iter::from_fn(next).collect()
}

/// A peer with the streams that it or the other end has begun.
struct Hostile<'a> {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    streams: Vec<StreamId>,
    input: FuzzInput<'a>,
    read: usize,
}

impl<'a> Hostile<'a> {
    fn new(endpoint: Endpoint, input: &'a [u8]) -> Self {
        Self { endpoint, connection: None, streams: Vec::new(), input: FuzzInput(input), read: 0 }
    }

    fn sent(&mut self, now: Instant) -> Vec<BytesMut> {
        let Some((handle, connection)) = &mut self.connection else { return Vec::new() };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while connection.poll().is_some() {}
        for dir in [Dir::Bi, Dir::Uni] {
            self.streams.extend(std::iter::from_fn(|| connection.streams().accept(dir)));
        }
        datagrams(connection, now)
    }

    fn take(&mut self, datagrams: Vec<BytesMut>, now: Instant) {
        let mut batch = Vec::new();
        for data in datagrams {
            match self.endpoint.handle(now, ADDRESS, None, None, data, &mut batch) {
                Some(DatagramEvent::ConnectionEvent(_, event)) => {
                    if let Some((_, connection)) = &mut self.connection {
                        connection.handle_event(event);
                    }
                }
                Some(DatagramEvent::NewConnection(incoming)) => {
                    self.connection = self.endpoint.accept(incoming, now, &mut batch, None).ok();
                }
                _ => {}
            }
        }
    }

    /// Does what the input says, until the other end has its turn; false at the end of the input.
    fn act(&mut self) -> bool {
        let Some((_, connection)) = &mut self.connection else { return false };
        while let Some(byte) = self.input.byte() {
            let at = usize::from(byte >> 4) % self.streams.len().max(1);
            // Of a stream with one direction one end writes, and the other reads.
            let writes = matches!(byte % 16, 5..12);
            let is_own =
                |id: &StreamId| id.dir() == Dir::Bi || (id.initiator() == connection.side()) == writes;
            let known = self.streams.get(at).copied().filter(is_own);
            match (byte % 16, known) {
                (0..3, _) => self.streams.extend(connection.streams().open(Dir::Bi)),
                (3..5, _) => self.streams.extend(connection.streams().open(Dir::Uni)),
                (5..9, Some(id)) => _ = connection.send_stream(id).write(self.input.field()),
                (9..11, Some(id)) => _ = connection.send_stream(id).finish(),
                (11, Some(id)) => _ = connection.send_stream(id).reset(VarInt::from_u32(byte.into())),
                (12, Some(id)) => _ = connection.recv_stream(id).stop(VarInt::from_u32(byte.into())),
                (13, Some(id)) => {
                    if let Ok(mut chunks) = connection.recv_stream(id).read(true) {
                        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                            self.read += chunk.bytes.len();
                        }
                        let _ = chunks.finalize();
                    }
                }
                (14, _) if byte == 0xfe => {
                    connection.close(Instant::now(), VarInt::from_u32(byte.into()), bytes::Bytes::new());
                }
                _ => return true,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn seed(name: &str) -> Vec<u8> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/quic/");
        fs::read(format!("{folder}{name}")).unwrap().split_off(1)
    }

    /// Without operations and responses the target would show nothing.
    #[test]
    fn seeds_end_operations_and_have_responses() {
        let made = rcgen::generate_simple_self_signed(["linerate.test".to_owned()]).unwrap();
        let (authority, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let certificate = authority.clone();
        let ends = QuicEnds::new(&Tls { certificate, key, authority, name: "linerate.test".into() });
        let config = config::<H3Page>(&ends.servers.0);
        assert!(client(ends.clients.0.clone(), &config, &seed("client_h3")).operations() >= 4);
        let served = server::<H3Page>(&ends.servers.0, &seed("server_h3"));
        assert!(served > 100, "{served} bytes of responses");
    }
}
