//! Servers of rustls.

use crate::common::local;
use linerate_contract::Tls;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned, SupportedCipherSuite, SupportedProtocolVersion};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

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

/// A proxy that speaks TLS to clients, and none to the server behind it.
pub(crate) fn terminating(config: Arc<ServerConfig>, server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind(local()).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let secure = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream);
            std::thread::spawn(move || forward(secure, TcpStream::connect(server).unwrap()));
        }
    });
    address
}

/// Until either end closes.
fn forward(mut secure: StreamOwned<ServerConnection, TcpStream>, mut plain: TcpStream) {
    for stream in [&secure.sock, &plain] {
        stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        stream.set_nodelay(true).unwrap();
    }
    while pass(&mut secure, &mut plain) && pass(&mut plain, &mut secure) {}
}

/// Passes on what has come; false if nothing more will.
fn pass(from: &mut impl Read, to: &mut impl Write) -> bool {
    let mut bytes = [0; 64 << 10];
    match from.read(&mut bytes) {
        Ok(0) => false,
        Ok(count) => to.write_all(&bytes[..count]).is_ok(),
        Err(e) => matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
    }
}
