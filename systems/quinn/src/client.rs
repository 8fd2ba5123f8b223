//! The client of layer `quic`, after quinn's `perf client`: connections of one endpoint.

use crate::bad;
use bytes::Bytes;
use linerate_contract::program::Refusal;
use linerate_contract::resumption::Handshakes;
use linerate_contract::{Done, ErrorKind, Spec, Tls};
use linerate_sdk::client::Target;
use linerate_sdk::missing;
use linerate_sdk::perf::{ALPN, Peer, Requests};
use linerate_sdk::server::runtime;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, ConnectionError, Endpoint, ReadError, VarInt, WriteError};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::sync::Arc;
use tokio::time::timeout;

/// Pieces that one call reads.
const PIECES: usize = 32;
/// The only suite that the client offers, as linerate's own.
const SUITE: &str = concat!("TLSv1.3 TLS_AES_128_GCM_SHA256 rustls ", env!("RUSTLS_VERSION"), " (ring)");

pub fn run(spec: &Spec) -> Result<Done, Refusal> {
    let requests = Requests::new(spec)?;
    let tls = spec.tls.as_ref().ok_or_else(|| missing("tls"))?;
    let (config, target) = (config(spec, tls)?, Target::new(spec)?);
    runtime(spec)?.block_on(async {
        let mut endpoint = Endpoint::client(target.source())?;
        endpoint.set_default_client_config(config);
        let done = requests.run(spec, Server { endpoint, target, name: tls.name.clone() }).await;
        Ok(Done { tls: Some(SUITE.into()), ..done })
    })
}

fn config(spec: &Spec, tls: &Tls) -> Result<ClientConfig, Refusal> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(tls.authority.as_bytes()).map_err(|e| bad(&e))?;
    roots.add(authority).map_err(|e| bad(&e))?;
    let mut provider = ring::default_provider();
    provider.cipher_suites = vec![ring::cipher_suite::TLS13_AES_128_GCM_SHA256];
    let provider = Arc::new(provider);
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let handshakes = Handshakes::from_spec(spec)?;
    let verifier = handshakes.verifier(verifier.build().map_err(|e| bad(&e))?, spec.connections);
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|e| bad(&e))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.resumption = handshakes.sessions(spec.connections);
    Ok(ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).map_err(|e| bad(&e))?)))
}

struct Server {
    endpoint: Endpoint,
    target: Target,
    name: String,
}

impl Peer for Server {
    type Connection = Connection;

    async fn connect(&self) -> Result<Connection, ErrorKind> {
        let connecting = self.endpoint.connect(self.target.address, &self.name);
        let connecting = connecting.map_err(|_| ErrorKind::ConnectFailed)?;
        match timeout(self.target.timeout, connecting).await {
            Ok(outcome) => outcome.map_err(|error| match error {
                ConnectionError::TimedOut => ErrorKind::ConnectTimeout,
                ConnectionError::TransportError(_) => ErrorKind::TlsFailed,
                _ => ErrorKind::ConnectFailed,
            }),
            Err(_) => Err(ErrorKind::ConnectTimeout),
        }
    }

    fn is_open(connection: &Connection) -> bool {
        connection.close_reason().is_none()
    }

    fn close(connection: &Connection) {
        connection.close(VarInt::from_u32(0), b"");
    }

    async fn exchange(&self, connection: &mut Connection, request: Bytes) -> Result<u64, ErrorKind> {
        let (mut send, mut receive) = connection.open_bi().await.map_err(|error| lost(&error))?;
        send.write_chunk(request).await.map_err(|error| match error {
            WriteError::ConnectionLost(error) => lost(&error),
            _ => ErrorKind::Reset,
        })?;
        send.finish().map_err(|_| ErrorKind::Reset)?;
        let (mut pieces, mut received) = (<[Bytes; PIECES]>::default(), 0);
        while let Some(count) = receive.read_chunks(&mut pieces).await.map_err(|error| match error {
            ReadError::ConnectionLost(error) => lost(&error),
            _ => ErrorKind::Reset,
        })? {
            received += pieces[..count].iter().map(|piece| piece.len() as u64).sum::<u64>();
        }
        Ok(received)
    }
}

fn lost(error: &ConnectionError) -> ErrorKind {
    if *error == ConnectionError::TimedOut { ErrorKind::Timeout } else { ErrorKind::Reset }
}
