//! TLS 1.2 and 1.3 over TCP, by rustls with ring: the client's end.
//!
//! Certificates are checked against `tls.authority`, or without one against the system's roots, or not at all
//! (`request.insecure`, as with curl's `-k`). Sessions are resumed where a peer offers it, as in browsers.

use super::Flow;
use super::transport::{PlainStream, Transport};
use super::wire::tls::{bad, describe_security};
use crate::refusal::Refusal;
use crate::socket::{Dialer, connect_error};
use linerate_contract::{ErrorKind, Spec};
use nix::sys::socket::{setsockopt, sockopt};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Bytes of records without data, such as tickets, that a peer may send at once: four of the longest records.
const MOST_WITHOUT_DATA: usize = 64 << 10;

/// A thread's end.
#[derive(Debug, Clone)]
pub struct TlsTransport {
    dialer: Dialer,
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    security: Option<String>,
}

/// One connection. The TLS state is boxed: it is twenty times as large as everything else of a slot.
#[derive(Debug)]
pub struct TlsStream {
    stream: PlainStream,
    tls: Box<ClientConnection>,
    /// Bytes that are encrypted and not yet sent.
    taken: usize,
    /// The peer has ended the connection without close_notify.
    cut: bool,
}

impl AsFd for TlsStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Transport for TlsTransport {
    type Stream = TlsStream;

    fn new(spec: &Spec) -> Result<Self, Refusal> {
        let request = spec.request.clone().unwrap_or_default();
        let address = spec.connect.ok_or_else(|| Refusal::BadSpec("\"connect\" is missing".into()))?;
        let tls = spec.tls.clone().unwrap_or_default();
        let name = if tls.name.is_empty() {
            let host = request.host.as_deref();
            let host = host.map_or_else(|| address.ip().to_string(), |host| host_name(host).into());
            ServerName::try_from(host.clone())
                .map_err(|e| Refusal::BadSpec(format!("\"request.host\": {host}: {e}")))?
        } else {
            ServerName::try_from(tls.name).map_err(|e| bad("name", e))?
        };
        let config = Arc::new(config(request.insecure, &tls.authority)?);
        Ok(Self { dialer: Dialer::new(spec)?, config, name, security: None })
    }

    fn open(&mut self) -> Result<TlsStream, ErrorKind> {
        let tls = ClientConnection::new(Arc::clone(&self.config), self.name.clone());
        let tls = Box::new(tls.map_err(|_| ErrorKind::TlsFailed)?);
        let stream = PlainStream::open(&mut self.dialer)?;
        // The first request follows the end of the handshake directly. A server that sends no tickets
        // acknowledges that end 40 ms late.
        setsockopt(&stream, sockopt::TcpNoDelay, &true).map_err(connect_error)?;
        Ok(TlsStream { stream, tls, taken: 0, cut: false })
    }

    #[inline]
    fn establish(&mut self, secured: &mut TlsStream) -> Result<Flow, ErrorKind> {
        while secured.tls.is_handshaking() {
            let sent = secured.flush()?;
            if secured.tls.is_handshaking() && !(sent && secured.fill()? > 0) {
                return Ok(Flow::Blocked);
            }
        }
        if self.security.is_none() {
            self.security = secured.security();
        }
        Ok(if secured.flush()? { Flow::Done } else { Flow::Blocked })
    }

    fn security(&self) -> Option<String> {
        self.security.clone()
    }

    fn is_cut(&self, secured: &TlsStream) -> bool {
        secured.cut
    }

    #[inline]
    fn send(&mut self, secured: &mut TlsStream, bytes: &[u8]) -> Result<Option<usize>, ErrorKind> {
        if self.establish(secured)? == Flow::Blocked {
            return Ok(None);
        }
        if secured.taken == 0 {
            secured.taken = secured.tls.writer().write(bytes).map_err(|_| ErrorKind::TlsFailed)?;
        }
        Ok(if secured.flush()? { Some(std::mem::take(&mut secured.taken)) } else { None })
    }

    #[inline]
    fn receive(&mut self, secured: &mut TlsStream, buffer: &mut [u8]) -> Result<Option<usize>, ErrorKind> {
        let mut filled = 0;
        loop {
            match secured.tls.reader().read(buffer) {
                Ok(n) => return Ok(Some(n)),
                // Without close_notify, as many servers end: what is missing shows in the answer's length, if
                // it has one.
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                    secured.cut = true;
                    return Ok(Some(0));
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(ErrorKind::TlsFailed),
            }
            match secured.fill()? {
                0 => return Ok(None),
                count => filled += count,
            }
            if filled > MOST_WITHOUT_DATA {
                return Err(ErrorKind::TlsFailed);
            }
        }
    }
}

impl TlsStream {
    #[cold]
    fn security(&self) -> Option<String> {
        Some(describe_security(self.tls.protocol_version()?, self.tls.negotiated_cipher_suite()?))
    }

    /// Sends encrypted bytes; false if the socket is full or not yet connected.
    fn flush(&mut self) -> Result<bool, ErrorKind> {
        let mut socket = Socket { stream: &mut self.stream, failed: None };
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut socket) {
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(_) => return Err(socket.failed.unwrap_or(ErrorKind::TlsFailed)),
            }
        }
        Ok(true)
    }

    /// Receives and decrypts once; returns the number of received bytes, 0 if none were available. The peer's
    /// end counts as one.
    fn fill(&mut self) -> Result<usize, ErrorKind> {
        let handshaking = self.tls.is_handshaking();
        let mut socket = Socket { stream: &mut self.stream, failed: None };
        let count = match self.tls.read_tls(&mut socket) {
            Ok(0) if handshaking => return Err(ErrorKind::TlsFailed),
            Ok(count) => count.max(1),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(_) => return Err(socket.failed.unwrap_or(ErrorKind::TlsFailed)),
        };
        if self.tls.process_new_packets().is_err() {
            // Sends the alert. The handshake has failed even if this fails too.
            let _ = self.flush();
            return Err(ErrorKind::TlsFailed);
        }
        Ok(count)
    }
}

/// The socket as `Read` and `Write` for rustls; stores the kind of a failure.
struct Socket<'a> {
    stream: &'a mut PlainStream,
    failed: Option<ErrorKind>,
}

impl Socket<'_> {
    fn outcome(&mut self, result: Result<Option<usize>, ErrorKind>) -> io::Result<usize> {
        match result {
            Ok(Some(n)) => Ok(n),
            Ok(None) => Err(io::ErrorKind::WouldBlock.into()),
            Err(kind) => {
                self.failed = Some(kind);
                Err(io::ErrorKind::Other.into())
            }
        }
    }
}

impl Read for Socket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let result = self.stream.receive(buffer);
        self.outcome(result)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.stream.send(bytes);
        self.outcome(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The host without its port; an IPv6 address without its brackets.
fn host_name(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

fn config(insecure: bool, authority: &str) -> Result<ClientConfig, Refusal> {
    let mut provider = ring::default_provider();
    // AES-128-GCM first, as in browsers. A server that follows its client then has the suite of the others.
    provider.cipher_suites.sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    let provider = Arc::new(provider);
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| Refusal::Unsupported(format!("TLS: {e}")))?;
    let mut config = if insecure {
        builder.dangerous().with_custom_certificate_verifier(Anyone::by(provider)).with_no_client_auth()
    } else {
        builder.with_root_certificates(roots(authority)?).with_no_client_auth()
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Whom to trust: this authority (PEM), or whom the system trusts if there is none.
pub(super) fn roots(authority: &str) -> Result<RootCertStore, Refusal> {
    if authority.is_empty() {
        return system_roots();
    }
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
        let certificate = certificate.map_err(|e| bad("authority", e))?;
        roots.add(certificate).map_err(|e| bad("authority", e))?;
    }
    if roots.is_empty() { Err(bad("authority", "there is no certificate in it")) } else { Ok(roots) }
}

fn system_roots() -> Result<RootCertStore, Refusal> {
    let mut roots = RootCertStore::empty();
    // A root that cannot be read is one that a chain cannot end in: the handshake then says so.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(Refusal::Unsupported(
            "TLS: no root certificates on this system (Debian: ca-certificates); \"insecure\" does without"
                .into(),
        ));
    }
    Ok(roots)
}

/// Accepts every certificate. Signatures are still checked, as part of the cost of a handshake.
#[derive(Debug)]
pub(super) struct Anyone(Arc<CryptoProvider>);

impl Anyone {
    pub(super) fn by(provider: Arc<CryptoProvider>) -> Arc<Self> {
        Arc::new(Self(provider))
    }
}

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_prefers_aes_128_and_offers_the_others_too() {
        let suites = &config(true, "").unwrap().crypto_provider().cipher_suites.clone();
        assert_eq!(suites[0].suite(), CipherSuite::TLS13_AES_128_GCM_SHA256);
        assert_eq!(suites.len(), ring::default_provider().cipher_suites.len());
    }

    #[test]
    fn a_certificate_is_for_a_name_without_a_port() {
        for (host, name) in
            [("a.example:8443", "a.example"), ("a.example", "a.example"), ("[::1]:443", "::1")]
        {
            assert_eq!(host_name(host), name);
        }
    }
}
