//! Peers over QUIC that are hostile: a state machine of their own, with a socket.

use crate::Row;
use crate::common::{Engine, good_certificates, local};
use crate::subject::{MOST_MEMORY, Served, client, result};
use bytes::{Bytes, BytesMut};
use linerate_contract::{ErrorKind, Nanos, Tls};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event,
    ServerConfig, StreamId, VarInt,
};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An attack; the peers that it returns stay while an honest client works.
type Attack = fn(SocketAddr, &ClientConfig) -> Vec<Peer>;

/// Name, layers, attack, and the most memory of the server.
const CLIENTS: &[(&str, &[&str], Attack, u64)] = &[
    ("leave 256 heads unfinished, 20 of them", &["h3"], heads, MOST_MEMORY),
    ("begin 6,000 handshakes and go on with none", &["h3", "quic"], handshakes, MOST_MEMORY),
    ("are idle, 1,000 of them", &["h3", "quic"], idle, MOST_MEMORY),
];

pub(crate) fn rows() -> Vec<Row> {
    let (identity, tls) = good_certificates();
    let mut rows = Vec::new();
    for (what, layers, attack, most) in CLIENTS {
        for layer in *layers {
            let (identity, tls) = (identity.clone(), tls.clone());
            let run = move || {
                let mut served = Served::start(layer, "rr", &identity);
                let held = attack(served.address, &trusting(&tls, layer));
                served.still_serves(&tls, *most);
                drop(held);
                served.still_serves(&tls, *most);
                served.has_given_back();
            };
            rows.push(Row::new(format!("{layer}: clients that {what}"), run));
        }
    }
    for layer in ["h3", "quic"] {
        let of_flood = (identity.clone(), tls.clone());
        let run = move || {
            let address = flooding(&of_flood.0, layer);
            let mut spec = client(layer, "rr", address, &of_flood.1);
            spec.timeout_ns = Nanos(3_000_000_000);
            result(&spec);
        };
        rows.push(Row::new(format!("{layer}: a server that fills streams of its own"), run));
        let (identity, tls) = (identity.clone(), tls.clone());
        let run = move || {
            let mut config = serving(&identity, layer);
            let transport = Arc::get_mut(&mut config.transport).unwrap();
            transport.max_idle_timeout(Some(VarInt::from_u32(50).into()));
            let spec = client(layer, "rr", turning(config, |_| {}), &tls);
            let done = Engine::start(&spec).done();
            let cause = done.causes.0.get(&ErrorKind::Reset).map(|cause| cause.text.as_str());
            assert!(cause.is_some_and(|text| text.contains("idle timeout")), "{:?}", done.causes);
            assert_eq!(done.errors.0.get(&ErrorKind::Timeout), None, "{:?}", done.errors);
        };
        rows.push(Row::new(format!("{layer}: a server with an idle timeout of 50 ms"), run));
    }
    rows
}

fn alpn(layer: &str) -> Vec<Vec<u8>> {
    vec![if layer == "h3" { b"h3".to_vec() } else { b"perf".to_vec() }]
}

fn trusting(tls: &Tls, layer: &str) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(tls.authority.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn(layer);
    ClientConfig::new(Arc::new(QuicClientConfig::try_from(config).unwrap()))
}

/// A state machine with a socket.
struct Peer {
    socket: UdpSocket,
    endpoint: Endpoint,
    connections: HashMap<ConnectionHandle, Connection>,
}

impl Peer {
    fn new(server: Option<ServerConfig>) -> Self {
        let socket = UdpSocket::bind(local()).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let config = Arc::<EndpointConfig>::default();
        let endpoint = Endpoint::new(config, server.map(Arc::new), true, None);
        Self { socket, endpoint, connections: HashMap::new() }
    }

    fn connect(&mut self, to: SocketAddr, config: &ClientConfig) {
        let name = "linerate.test";
        let (handle, connection) = self.endpoint.connect(Instant::now(), config.clone(), to, name).unwrap();
        self.connections.insert(handle, connection);
    }

    /// Sends what is to be sent, and takes what arrives until nothing does.
    fn turn(&mut self, on: &mut impl FnMut(&mut Connection, Event)) {
        self.send();
        let (mut buffer, mut batch) = (vec![0; 65_536], Vec::new());
        while let Ok((length, from)) = self.socket.recv_from(&mut buffer) {
            let data = BytesMut::from(&buffer[..length]);
            match self.endpoint.handle(Instant::now(), from, None, None, data, &mut batch) {
                Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                    self.connections.get_mut(&handle).unwrap().handle_event(event);
                }
                Some(DatagramEvent::NewConnection(incoming)) => {
                    let (handle, connection) =
                        self.endpoint.accept(incoming, Instant::now(), &mut batch, None).unwrap();
                    self.connections.insert(handle, connection);
                }
                Some(DatagramEvent::Response(_)) | None => {}
            }
            self.take_events(on);
            self.send();
        }
    }

    fn take_events(&mut self, on: &mut impl FnMut(&mut Connection, Event)) {
        for (handle, connection) in &mut self.connections {
            if connection.poll_timeout().is_some_and(|due| due <= Instant::now()) {
                connection.handle_timeout(Instant::now());
            }
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
            while let Some(event) = connection.poll() {
                on(connection, event);
            }
        }
    }

    fn send(&mut self) {
        let mut batch = Vec::new();
        for connection in self.connections.values_mut() {
            while let Some(transmit) = connection.poll_transmit(Instant::now(), 1, &mut batch) {
                let _ = self.socket.send_to(&batch[..transmit.size], transmit.destination);
                batch.clear();
            }
        }
    }

    /// Takes turns until nothing was heard for `quiet`.
    fn until_quiet(&mut self, quiet: Duration, mut on: impl FnMut(&mut Connection, Event)) {
        let mut last = Instant::now();
        while last.elapsed() < quiet {
            self.turn(&mut |connection, event| {
                last = Instant::now();
                on(connection, event);
            });
        }
    }
}

/// The first bytes of a frame of fields with 65,535 bytes, on as many streams as there may be.
fn heads(to: SocketAddr, config: &ClientConfig) -> Vec<Peer> {
    let head = [&[1, 0x80, 0, 0xff, 0xff][..], &[0; 65_000]].concat();
    let mut sent = HashMap::<(usize, StreamId), usize>::new();
    let mut held = Vec::new();
    for number in 0..20 {
        let mut peer = Peer::new(None);
        peer.connect(to, config);
        peer.until_quiet(Duration::from_millis(200), |connection, _| {
            while let Some(id) = connection.streams().open(Dir::Bi) {
                sent.insert((number, id), 0);
            }
            for ((_, id), count) in sent.iter_mut().filter(|((of, _), _)| *of == number) {
                while let Ok(written @ 1..) = connection.send_stream(*id).write(&head[*count..]) {
                    *count += written;
                }
            }
        });
        held.push(peer);
    }
    held
}

/// From one socket; the responses are never read.
fn handshakes(to: SocketAddr, config: &ClientConfig) -> Vec<Peer> {
    let mut peer = Peer::new(None);
    for number in 0..6_000 {
        peer.connect(to, config);
        peer.send();
        peer.connections.clear();
        if number % 50 == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    vec![peer]
}

fn idle(to: SocketAddr, config: &ClientConfig) -> Vec<Peer> {
    let mut peer = Peer::new(None);
    for _ in 0..20 {
        (0..50).for_each(|_| peer.connect(to, config));
        peer.until_quiet(Duration::from_millis(100), |_, _| {});
    }
    vec![peer]
}

fn serving(identity: &Tls, layer: &str) -> ServerConfig {
    let certificate = CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = alpn(layer);
    ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(config).unwrap()))
}

/// A server that responds to nothing, with what it does at each event.
fn turning(config: ServerConfig, mut on: impl FnMut(&mut Connection) + Send + 'static) -> SocketAddr {
    let mut peer = Peer::new(Some(config));
    let address = peer.socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(15) {
            peer.turn(&mut |connection, _| on(connection));
        }
    });
    address
}

/// A server that sends on streams of its own as much as it may.
fn flooding(identity: &Tls, layer: &str) -> SocketAddr {
    let (piece, mut streams) = (Bytes::from(vec![0; 1 << 20]), Vec::new());
    turning(serving(identity, layer), move |connection| {
        streams.extend(std::iter::from_fn(|| connection.streams().open(Dir::Bi)));
        for id in &streams {
            while connection.send_stream(*id).write_chunks(&mut [piece.clone()]).is_ok() {}
        }
    })
}
