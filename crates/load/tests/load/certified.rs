//! Servers of rustls.

use linerate_contract::Tls;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, SupportedCipherSuite, SupportedProtocolVersion};
use std::sync::Arc;

/// rustls with this certificate.
pub(crate) fn server_config(identity: &Tls) -> Arc<ServerConfig> {
    Arc::new(config(identity, rustls::ALL_VERSIONS, |_| true, &[]))
}

/// rustls with this certificate, some versions, some cipher suites and names of protocols.
pub(crate) fn config(
    identity: &Tls,
    versions: &[&'static SupportedProtocolVersion],
    is_offered: impl Fn(&SupportedCipherSuite) -> bool,
    protocols: &[&str],
) -> ServerConfig {
    let chain = CertificateDer::pem_slice_iter(identity.certificate.as_bytes());
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap();
    let mut provider = rustls::crypto::ring::default_provider();
    provider.cipher_suites.retain(is_offered);
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain.collect::<Result<_, _>>().unwrap(), key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    config
}
