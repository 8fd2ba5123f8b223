//! TLS 1.2 and 1.3 over TCP, by rustls with ring: the end of a client whose server may be of any kind.
//!
//! Certificates are checked against `tls.authority`, or without one against the system's roots, or not at all
//! (`request.insecure`, as with curl's `-k`). Sessions are resumed where a peer
//! offers it, as in browsers, unless the spec says something else.

use super::config::{bad, preferring_aes_128, protocols};
use super::trust::{identified, note_closed, note_tls, verifier};
use super::tunnel::TunnelMouth;
use super::{describe_security, plain};
use crate::cause::note;
use crate::layer::wire::{Flow, Received, Room, Sink, Source, Wire, Wires};
use crate::refusal::Refusal;
use crate::socket::{recv, send, stream_error};
use linerate_contract::resumption::Handshakes;
use linerate_contract::{Cause, ErrorKind, Layer, Spec};
use nix::errno::Errno;
use nix::sys::socket::MsgFlags;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

/// Bytes that tell what a peer speaks.
const FIRST: usize = 16;

/// Bytes of records without data, such as tickets, that a peer may send at once: four of the longest records.
const MOST_WITHOUT_DATA: usize = 64 << 10;

/// See [`Wires`].
#[derive(Debug, Clone)]
pub struct AnyTlsConnector {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    /// The request that asks a proxy for a tunnel.
    tunnel: Option<Arc<[u8]>>,
    /// The server has to agree to HTTP/2 (RFC 9113 section 3.3); to HTTP/1.1 it need not.
    needs_h2: bool,
}

impl Wires for AnyTlsConnector {
    type Wire = AnyTlsWire;

    fn new(spec: &Spec) -> Result<Self, Refusal> {
        let request = spec.request.clone().unwrap_or_default();
        let mut config = config(request.insecure, spec)?;
        config.alpn_protocols = protocols(spec);
        let name = server_name(spec)?;
        let tunnel = spec.tunnel.as_ref().map(|tunnel| tunnel.request().into_bytes().into());
        Ok(Self { config: Arc::new(config), name, tunnel, needs_h2: spec.layer == Layer::H2 })
    }

    fn wire(&self, _room: Room) -> Result<AnyTlsWire, ErrorKind> {
        let tls = ClientConnection::new(Arc::clone(&self.config), self.name.clone());
        let tls = Box::new(tls.map_err(|_| ErrorKind::TlsFailed)?);
        let tunnel = self.tunnel.clone().map(|request| Box::new(TunnelMouth::new(request)));
        Ok(AnyTlsWire {
            tls,
            tunnel,
            needs_h2: self.needs_h2,
            connected: false,
            is_counted: false,
            cut: false,
            first: [0; FIRST],
        })
    }
}

/// One connection. The TLS state is boxed: it is twenty times as large as everything else of a slot.
#[derive(Debug)]
pub struct AnyTlsWire {
    tls: Box<ClientConnection>,
    tunnel: Option<Box<TunnelMouth>>,
    needs_h2: bool,
    connected: bool,
    /// The handshake of the wire was counted.
    is_counted: bool,
    /// The peer has ended the connection without close_notify.
    cut: bool,
    /// The first bytes of the peer, which show what it speaks if that is not TLS.
    first: [u8; FIRST],
}

impl Wire for AnyTlsWire {
    const SHAKES: bool = true;

    #[inline]
    fn establish(&mut self, socket: &OwnedFd) -> Result<Flow, ErrorKind> {
        if !self.connected {
            let tunnel = self.tunnel.as_mut();
            if plain::connected(socket)? == Flow::Blocked
                || tunnel.map_or(Ok(Flow::Done), |mouth| mouth.open(socket))? == Flow::Blocked
            {
                return Ok(Flow::Blocked);
            }
            self.connected = true;
        }
        while self.tls.is_handshaking() {
            let sent = self.flush(socket)?;
            if self.tls.is_handshaking() && (sent == Flow::Blocked || self.fill(socket)? == 0) {
                return Ok(Flow::Blocked);
            }
        }
        if self.needs_h2 && self.tls.alpn_protocol() != Some(b"h2") {
            let text = "the server does not agree to HTTP/2 (ALPN h2)";
            return Err(note(ErrorKind::TlsFailed, || Cause::new(text)));
        }
        self.flush(socket)
    }

    #[inline]
    fn send(&mut self, socket: &OwnedFd, source: &mut impl Source) -> Result<Flow, ErrorKind> {
        loop {
            if self.flush(socket)? == Flow::Blocked {
                return Ok(Flow::Blocked);
            }
            if !source.prepare() {
                return Ok(Flow::Done);
            }
            let [bytes, _] = source.slices().ok_or(ErrorKind::Failed)?;
            let taken = self.tls.writer().write(bytes).map_err(|_| ErrorKind::TlsFailed)?;
            source.advance(taken);
        }
    }

    #[inline]
    fn receive(
        &mut self,
        socket: &OwnedFd,
        input: &mut [u8],
        sink: &mut impl Sink,
    ) -> Result<Received, ErrorKind> {
        let mut filled = 0;
        loop {
            match self.tls.reader().read(input) {
                Ok(0) => return Ok(Received::End),
                Ok(count) => {
                    sink.take(&mut input[..count])?;
                    return Ok(Received::More);
                }
                // Without close_notify, as many servers end: what is missing shows in the response's length,
                // if it has one.
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                    self.cut = true;
                    return Ok(Received::End);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(ErrorKind::TlsFailed),
            }
            match self.fill(socket)? {
                0 => return Ok(Received::Nothing),
                count => filled += count,
            }
            if filled > MOST_WITHOUT_DATA {
                return Err(ErrorKind::TlsFailed);
            }
        }
    }

    fn is_cut(&self) -> bool {
        self.cut
    }

    #[inline]
    fn take_handshake(&mut self) -> Option<bool> {
        let was_counted = std::mem::replace(&mut self.is_counted, true);
        (!was_counted).then(|| self.tls.handshake_kind() == Some(HandshakeKind::Resumed))
    }

    #[cold]
    fn security(&self) -> Option<String> {
        Some(describe_security(self.tls.protocol_version()?, self.tls.negotiated_cipher_suite()?))
    }
}

impl AnyTlsWire {
    /// Sends encrypted bytes.
    fn flush(&mut self, socket: &OwnedFd) -> Result<Flow, ErrorKind> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Socket { socket, first: None }) {
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Flow::Blocked),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(failure(&e)),
            }
        }
        Ok(Flow::Done)
    }

    /// Receives and decrypts once; returns the number of received bytes, 0 if none were available. The peer's
    /// end counts as one.
    fn fill(&mut self, socket: &OwnedFd) -> Result<usize, ErrorKind> {
        let handshaking = self.tls.is_handshaking();
        let count = loop {
            let first = (self.first[0] == 0).then_some(&mut self.first);
            match self.tls.read_tls(&mut Socket { socket, first }) {
                Ok(0) if handshaking => return Err(note_closed()),
                Ok(count) => break count.max(1),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(failure(&e)),
            }
        };
        if let Err(error) = self.tls.process_new_packets() {
            // Sends the alert. The handshake has failed even if this fails too.
            let _ = self.flush(socket);
            return Err(note_tls(&error, &self.first));
        }
        Ok(count)
    }
}

/// The socket as `Read` and `Write` for rustls.
struct Socket<'a> {
    socket: &'a OwnedFd,
    /// Keeps the first bytes.
    first: Option<&'a mut [u8; FIRST]>,
}

impl Read for Socket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = recv(self.socket.as_raw_fd(), buffer, MsgFlags::empty())?;
        if let Some(first) = self.first.take() {
            let known = count.min(FIRST);
            first[..known].copy_from_slice(&buffer[..known]);
        }
        Ok(count)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.socket.as_raw_fd(), bytes, MsgFlags::MSG_NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An error of the socket, or else of rustls.
fn failure(error: &io::Error) -> ErrorKind {
    error.raw_os_error().map_or(ErrorKind::TlsFailed, |errno| stream_error(Errno::from_raw(errno)))
}

/// The host without its port; an IPv6 address without its brackets.
fn host_name(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

/// Whom the certificate has to name: `tls.name`, or else the host of the request or the address.
///
/// # Errors
/// The spec's name of the server is no name.
pub(in crate::layer) fn server_name(spec: &Spec) -> Result<ServerName<'static>, Refusal> {
    if let Some(tls) = spec.tls.as_ref().filter(|tls| !tls.name.is_empty()) {
        return ServerName::try_from(tls.name.clone()).map_err(|e| bad("name", e));
    }
    let host = spec.request.as_ref().and_then(|request| request.host.as_deref());
    let host = host.map(|host| host_name(host).to_owned());
    let host = host.or_else(|| spec.connect.map(|address| address.ip().to_string()));
    let host = host.ok_or_else(|| Refusal::BadSpec("\"request.host\" is missing".into()))?;
    ServerName::try_from(host.clone()).map_err(|e| Refusal::BadSpec(format!("\"request.host\": {host}: {e}")))
}

fn config(insecure: bool, spec: &Spec) -> Result<ClientConfig, Refusal> {
    let tls = spec.tls.clone().unwrap_or_default();
    let provider = preferring_aes_128();
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| Refusal::Unsupported(format!("TLS: {e}")))?;
    let verifier = verifier(insecure, &tls.authority, provider)?;
    let Some(handshakes) = spec.choice::<Handshakes>()? else {
        return identified(builder.dangerous().with_custom_certificate_verifier(verifier), &tls);
    };
    let verifier = handshakes.verifier(verifier, spec.connections);
    let mut config = identified(builder.dangerous().with_custom_certificate_verifier(verifier), &tls)?;
    config.resumption = handshakes.sessions(spec.connections);
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Role, Workload};
    use rustls::CipherSuite;
    use rustls::crypto::ring;

    #[test]
    fn the_client_prefers_aes_128_and_offers_the_others_too() {
        let suites = &config(true, &Spec::new(Role::Client, Layer::Https, Workload::Rr))
            .unwrap()
            .crypto_provider()
            .cipher_suites
            .clone();
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
