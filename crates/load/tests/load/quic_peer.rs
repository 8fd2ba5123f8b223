//! Ends of QUIC connections that a test has in its hand: the state machine of a library, with a socket.

use crate::common::local;
use bytes::BytesMut;
use linerate_contract::Tls;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, Event, ServerConfig,
};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn alpn(layer: &str) -> Vec<Vec<u8>> {
    vec![if layer == "h3" { b"h3".to_vec() } else { b"perf".to_vec() }]
}

pub(crate) fn trusting(tls: &Tls, layer: &str) -> ClientConfig {
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
pub(crate) struct Peer {
    pub(crate) socket: UdpSocket,
    endpoint: Endpoint,
    pub(crate) connections: HashMap<ConnectionHandle, Connection>,
}

impl Peer {
    pub(crate) fn new(server: Option<ServerConfig>) -> Self {
        let socket = UdpSocket::bind(local()).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let config = Arc::<EndpointConfig>::default();
        let endpoint = Endpoint::new(config, server.map(Arc::new), true, None);
        Self { socket, endpoint, connections: HashMap::new() }
    }

    pub(crate) fn connect(&mut self, to: SocketAddr, config: &ClientConfig) {
        let name = "linerate.test";
        let (handle, connection) = self.endpoint.connect(Instant::now(), config.clone(), to, name).unwrap();
        self.connections.insert(handle, connection);
    }

    /// Sends what is to be sent, and takes what arrives until nothing does.
    pub(crate) fn turn(&mut self, on: &mut impl FnMut(&mut Connection, Event)) {
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

    pub(crate) fn send(&mut self) {
        let mut batch = Vec::new();
        for connection in self.connections.values_mut() {
            while let Some(transmit) = connection.poll_transmit(Instant::now(), 1, &mut batch) {
                let _ = self.socket.send_to(&batch[..transmit.size], transmit.destination);
                batch.clear();
            }
        }
    }

    /// Takes turns until nothing was heard for `quiet`.
    pub(crate) fn until_quiet(&mut self, quiet: Duration, mut on: impl FnMut(&mut Connection, Event)) {
        let mut last = Instant::now();
        while last.elapsed() < quiet {
            self.turn(&mut |connection, event| {
                last = Instant::now();
                on(connection, event);
            });
        }
    }
}

pub(crate) fn serving(identity: &Tls, layer: &str) -> ServerConfig {
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

/// A server that does nothing by itself, with what it does at each event; `for_long`: how long it is there.
pub(crate) fn turning(
    config: ServerConfig,
    for_long: Duration,
    mut on: impl FnMut(&mut Connection, Event) + Send + 'static,
) -> SocketAddr {
    let mut peer = Peer::new(Some(config));
    let address = peer.socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let start = Instant::now();
        while start.elapsed() < for_long {
            peer.turn(&mut on);
        }
    });
    address
}
