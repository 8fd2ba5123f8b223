//! TLS from the PEM texts of a spec: servers and QUIC have TLS 1.3 with AES-128-GCM and nothing else, clients
//! of TLS and WebSocket prefer them.

use super::handshake::{Handshake, describe_security};
use super::trust::{identified, verifier};
use super::{Room, TlsWire};
use crate::layer::wire::Wires;
use crate::refusal::Refusal;
use linerate_contract::resumption::Handshakes;
use linerate_contract::{ErrorKind, Layer, Spec, Tls};
use rustls::client::UnbufferedClientConnection;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::UnbufferedServerConnection;
use rustls::{
    ALL_VERSIONS, CipherSuite, ClientConfig, ProtocolVersion, ServerConfig, SupportedProtocolVersion,
};
use std::fmt::Display;
use std::sync::Arc;

const TLS_1_3: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];

/// Whom a client trusts, and for which name.
#[derive(Debug, Clone)]
pub struct TlsConnector {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    /// Sessions are resumed.
    keeps_tickets: bool,
}

impl Wires for TlsConnector {
    type Wire = TlsWire;

    fn new(spec: &Spec) -> Result<Self, Refusal> {
        let tls = spec.tls.as_ref().ok_or_else(missing)?;
        let mut config = client_config(spec)?;
        config.enable_secret_extraction = true;
        let name = ServerName::try_from(tls.name.clone()).map_err(|e| bad("name", e))?;
        let keeps_tickets = Handshakes::from_spec(spec)? == Handshakes::Resumed;
        Ok(Self { config: Arc::new(config), name, keeps_tickets })
    }

    fn wire(&self, room: Room) -> Result<TlsWire, ErrorKind> {
        let connection = UnbufferedClientConnection::new(self.config.clone(), self.name.clone());
        let wire = |c| TlsWire::new(Handshake::client(c), room, self.keeps_tickets);
        connection.map(wire).map_err(|_| ErrorKind::TlsFailed)
    }
}

/// Who a server is.
#[derive(Debug, Clone)]
pub struct TlsAcceptor {
    config: Arc<ServerConfig>,
}

impl Wires for TlsAcceptor {
    type Wire = TlsWire;

    fn new(spec: &Spec) -> Result<Self, Refusal> {
        let mut config = server_config(spec)?;
        if spec.layer == Layer::H2 {
            // A client of HTTP/1.1 needs no response to what it offers.
            config.alpn_protocols = protocols(spec);
        }
        config.enable_secret_extraction = true;
        Ok(Self { config: Arc::new(config) })
    }

    fn wire(&self, room: Room) -> Result<TlsWire, ErrorKind> {
        let connection = UnbufferedServerConnection::new(self.config.clone());
        connection.map(|c| TlsWire::new(Handshake::server(c), room, false)).map_err(|_| ErrorKind::TlsFailed)
    }
}

/// A client's configuration without the names of protocols. Each handshake is a full one, also of a server
/// that gives tickets, unless the spec says something else.
///
/// # Errors
/// Certificates that cannot be read.
pub(in crate::layer) fn client_config(spec: &Spec) -> Result<ClientConfig, Refusal> {
    let tls = spec.tls.clone().unwrap_or_default();
    // A server of somebody else may have another suite, and an older version.
    let is_open = matches!(spec.layer, Layer::Tls | Layer::Wss);
    let (provider, versions) =
        if is_open { (preferring_aes_128(), ALL_VERSIONS) } else { (only_aes_128(), TLS_1_3) };
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .map_err(|e| Refusal::Unsupported(format!("TLS: {e}")))?;
    let insecure = spec.request.as_ref().is_some_and(|request| request.insecure);
    let verifier = verifier(insecure, &tls.authority, provider)?;
    let handshakes = Handshakes::from_spec(spec)?;
    let verifier = handshakes.verifier(verifier, spec.connections);
    let mut config = identified(builder.dangerous().with_custom_certificate_verifier(verifier), &tls)?;
    config.resumption = handshakes.sessions(spec.connections);
    Ok(config)
}

/// The properties that these configurations agree on.
pub(in crate::layer) fn security() -> String {
    describe_security(ProtocolVersion::TLSv1_3, ring::cipher_suite::TLS13_AES_128_GCM_SHA256)
}

/// A server's configuration without the names of protocols.
///
/// # Errors
/// The spec has no certificate, or one that cannot be read.
pub(in crate::layer) fn server_config(spec: &Spec) -> Result<ServerConfig, Refusal> {
    let tls = spec.tls.as_ref().ok_or_else(missing)?;
    let (chain, key) = certified(tls)?;
    let mut config = ServerConfig::builder_with_provider(only_aes_128())
        .with_protocol_versions(TLS_1_3)
        .map_err(|e| Refusal::Unsupported(format!("TLS: {e}")))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|e| bad("certificate", e))?;
    Handshakes::from_spec(spec)?.set(&mut config)?;
    Ok(config)
}

/// The certificates of a client or server, and their key.
pub(super) fn certified(
    tls: &Tls,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Refusal> {
    let chain = CertificateDer::pem_slice_iter(tls.certificate.as_bytes());
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(|e| bad("certificate", e))?;
    let key = PrivateKeyDer::from_pem_slice(tls.key.as_bytes()).map_err(|e| bad("key", e))?;
    Ok((chain, key))
}

/// AES-128-GCM first, as in browsers. A server that follows its client then has the suite of the others.
pub(super) fn preferring_aes_128() -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    provider.cipher_suites.sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    Arc::new(provider)
}

fn only_aes_128() -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    provider.cipher_suites.retain(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256);
    Arc::new(provider)
}

/// The protocols that a client offers with TLS (RFC 7301), where more than one protocol is on the same port.
pub(super) fn protocols(spec: &Spec) -> Vec<Vec<u8>> {
    match spec.layer {
        Layer::H2 => vec![b"h2".to_vec()],
        Layer::Https => vec![b"http/1.1".to_vec()],
        _ => Vec::new(),
    }
}

fn missing() -> Refusal {
    Refusal::BadSpec("\"tls\" is missing: this layer needs certificates (sdk/CONTRACT.md)".into())
}

pub(super) fn bad(field: &str, why: impl Display) -> Refusal {
    Refusal::BadSpec(format!("\"tls.{field}\": {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Role, Workload};

    #[test]
    fn no_client_keeps_a_session_for_the_next_handshake() {
        for layer in [Layer::Https, Layer::H2, Layer::H3, Layer::Quic] {
            let config = client_config(&Spec::new(Role::Client, layer, Workload::Crr)).unwrap();
            let store = format!("{:?}", config.resumption);
            assert!(store.contains("NoClientSessionStorage"), "{layer}: {store}");
        }
    }
}
