//! TLS 1.3 with AES-128-GCM only, by rustls: the client verifies chain and name; no session resumption.

use linerate_contract::Tls;
use std::sync::Arc;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::NoServerSessionStorage;
use tokio_rustls::rustls::{
    self, ClientConfig, RootCertStore, ServerConfig, client::Resumption, version::TLS13,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

pub(crate) fn acceptor(tls: &Tls) -> Result<TlsAcceptor, String> {
    let certificate = CertificateDer::from_pem_slice(tls.certificate.as_bytes())
        .map_err(|e| format!("\"tls.certificate\": {e}"))?;
    let key = PrivateKeyDer::from_pem_slice(tls.key.as_bytes()).map_err(|e| format!("\"tls.key\": {e}"))?;
    let builder =
        ServerConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS13]).map_err(text)?;
    let mut config = builder.with_no_client_auth().with_single_cert(vec![certificate], key).map_err(text)?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config).into())
}

pub(crate) fn connector(tls: &Tls) -> Result<(TlsConnector, ServerName<'static>), String> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(tls.authority.as_bytes())
        .map_err(|e| format!("\"tls.authority\": {e}"))?;
    roots.add(authority).map_err(text)?;
    let builder =
        ClientConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS13]).map_err(text)?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.resumption = Resumption::disabled();
    let name = ServerName::try_from(tls.name.clone()).map_err(|e| format!("\"tls.name\": {e}"))?;
    Ok((Arc::new(config).into(), name))
}

/// Version, cipher suite and library, for `done`.
pub(crate) fn describe(connection: &rustls::ClientConnection) -> String {
    let version = match connection.protocol_version() {
        Some(rustls::ProtocolVersion::TLSv1_3) => "TLSv1.3".to_owned(),
        other => format!("{other:?}"),
    };
    let suite = connection
        .negotiated_cipher_suite()
        .map(|suite| format!("{:?}", suite.suite()).replace("TLS13_", "TLS_"));
    format!("{version} {} rustls {} (ring)", suite.unwrap_or_default(), env!("RUSTLS_VERSION"))
}

fn provider() -> Arc<CryptoProvider> {
    let cipher_suites = vec![ring::cipher_suite::TLS13_AES_128_GCM_SHA256];
    Arc::new(CryptoProvider { cipher_suites, ..ring::default_provider() })
}

fn text(error: rustls::Error) -> String {
    error.to_string()
}
