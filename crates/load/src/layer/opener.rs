//! The connections of a thread over TCP or TLS: how they begin, and what their handshakes have shown.

use super::wire::{Room, Wire, Wires};
use crate::refusal::Refusal;
use crate::socket::Dialer;
use linerate_contract::{Done, ErrorKind, HandshakeCounts, Spec};

/// Begins connections.
#[derive(Debug, Clone)]
pub(super) struct Opener<C> {
    pub(super) dialer: Dialer,
    wires: C,
    tls: Option<String>,
    handshakes: Option<HandshakeCounts>,
}

impl<C: Wires> Opener<C> {
    /// # Errors
    /// The spec lacks something; the message is a sentence.
    pub(super) fn new(spec: &Spec) -> Result<Self, Refusal> {
        Ok(Self { dialer: Dialer::new(spec)?, wires: C::new(spec)?, tls: None, handshakes: None })
    }

    /// The wire of one connection.
    ///
    /// # Errors
    /// As of [`Wires::wire`].
    #[inline]
    pub(super) fn wire(&self, room: Room) -> Result<C::Wire, ErrorKind> {
        self.wires.wire(room)
    }

    /// Counts the handshake of a connection that is established, once.
    #[inline]
    pub(super) fn count_handshake(&mut self, wire: &mut C::Wire) {
        if let Some(resumed) = wire.take_handshake() {
            self.handshakes.get_or_insert_default().add(resumed);
            self.tls = self.tls.take().or_else(|| wire.security());
        }
    }

    /// The counts of the connections.
    pub(super) fn counts(&self) -> Done {
        let by_address = self.dialer.by_address();
        Done { tls: self.tls.clone(), handshakes: self.handshakes, by_address, ..Done::default() }
    }
}
