//! Clients that resume TLS sessions, with rustls (RFC 8446, section 2.2; RFC 5077).
//!
//! A server sends its certificate in full handshakes only, so the verifier sees each of them. The first
//! connection of each slot has no session to resume. A later handshake that is a full one fails, so no row of
//! resumed handshakes has the cost of others.

use crate::options::Choice;
use crate::{Refusal, Spec};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::crypto::ring::Ticketer;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, NamedGroup, ServerConfig, SignatureScheme};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

/// Tickets of a handshake: rustls's default.
const TICKETS: usize = 2;

/// Handshakes of a client after the first one of each connection slot; of a server, whether it sends tickets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Handshakes {
    #[default]
    Full,
    Resumed,
}

impl Choice for Handshakes {
    const OPTION: &'static str = "handshake";
    const WORDS: &'static [(&'static str, Self)] = &[("full", Self::Full), ("resumed", Self::Resumed)];

    fn refuse(message: String) -> Refusal {
        Refusal::Unsupported(message)
    }
}

impl Handshakes {
    /// `options.handshake`, full by default.
    ///
    /// # Errors
    /// [`Refusal::Unsupported`]: another word.
    pub fn from_spec(spec: &Spec) -> Result<Self, Refusal> {
        Ok(spec.choice()?.unwrap_or_default())
    }

    /// The verifier of a client; `connections` is how many it has at the same time.
    #[must_use]
    pub fn verifier(
        self,
        verifier: Arc<dyn ServerCertVerifier>,
        connections: u32,
    ) -> Arc<dyn ServerCertVerifier> {
        match self {
            Self::Full => verifier,
            Self::Resumed => Arc::new(FirstOnly { verifier, left: AtomicU32::new(connections) }),
        }
    }

    /// The sessions that a client keeps; `connections` is how many it has at the same time. The store of
    /// rustls has eight sessions of a server, so connections that end together would lose some.
    #[must_use]
    pub fn sessions(self, connections: u32) -> Resumption {
        match self {
            Self::Full => Resumption::disabled(),
            Self::Resumed => Resumption::store(Arc::new(Sessions {
                most: connections as usize * TICKETS,
                kept: Mutex::default(),
            })),
        }
    }

    /// Sets what a server gives after each handshake: nothing, or rustls's number of tickets. They have the
    /// session in them (RFC 5077), as those of most servers; rustls itself remembers the last 256 by default,
    /// and a client may have an older one.
    ///
    /// # Errors
    /// [`Refusal::Failed`]: no random key.
    pub fn set(self, server: &mut ServerConfig) -> Result<(), Refusal> {
        match self {
            Self::Full => server.send_tls13_tickets = 0,
            Self::Resumed => {
                server.ticketer = Ticketer::new().map_err(|e| Refusal::Failed(io::Error::other(e)))?
            }
        }
        Ok(())
    }
}

/// The sessions with one server.
#[derive(Debug)]
struct Sessions {
    most: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    group: Option<NamedGroup>,
    tickets: VecDeque<Tls13ClientSessionValue>,
    /// A session of TLS 1.2 serves any number of connections (RFC 5246, appendix F.1.4).
    older: Option<Tls12ClientSessionValue>,
}

impl Sessions {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("no holder of the lock panics")
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.kept().group = Some(group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.kept().group
    }

    fn set_tls12_session(&self, _: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.kept().older = Some(session);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.kept().older.clone()
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.kept().older = None;
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let mut kept = self.kept();
        if kept.tickets.len() == self.most {
            kept.tickets.pop_front();
        }
        kept.tickets.push_back(ticket);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.kept().tickets.pop_back()
    }
}

/// Fails the full handshakes after the first ones.
#[derive(Debug)]
struct FirstOnly {
    verifier: Arc<dyn ServerCertVerifier>,
    left: AtomicU32,
}

impl ServerCertVerifier for FirstOnly {
    fn verify_server_cert(
        &self,
        end: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let left = self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        left.map_err(|_| Error::General("a full handshake in place of a resumed one".into()))?;
        self.verifier.verify_server_cert(end, others, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
