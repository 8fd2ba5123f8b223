//! TLS 1.3 over TCP, both ends, and TLS 1.2 for a client whose server has no 1.3: the handshake is rustls's,
//! the records are sealed and opened here, in the buffers that the socket sends from and receives into.
//!
//! rustls hands its keys to who carries on where it ends (its module `kernel`, meant for TLS in the kernel),
//! and knows how they change. What this spares are its buffers: a copy and an allocation for each record, and
//! reads of 4 KiB.

mod any;
mod config;
#[cfg(any(test, fuzzing))]
mod fuzz;
mod handshake;
mod trust;
mod tunnel;

pub use any::AnyTlsConnector;
pub(in crate::layer) use any::server_name;
pub use config::{TlsAcceptor, TlsConnector};
pub(in crate::layer) use config::{client_config, security, server_config};
#[cfg(any(test, fuzzing))]
pub use fuzz::{fuzz_handshake, fuzz_records};
pub(in crate::layer) use trust::full_handshakes;

use super::plain::{self, Outbox, receive};
use super::{Flow, Received, Room, Sink, Source, Wire};
use handshake::{Handshake, Keys, Step, describe_security};
use linerate_contract::ErrorKind;
use linerate_proto::record::{self, Kind, LARGEST_PLAIN, LARGEST_RECORD, OVERHEAD, Opener, Sealer};
use nix::sys::socket::MsgFlags;
use rustls::{Error, ProtocolVersion};
use std::os::fd::OwnedFd;
use trust::note_closed;
pub(in crate::layer) use trust::note_tls;

/// KeyUpdates that a peer may send without data in between, as in rustls: each costs three derivations of a
/// key.
const MOST_KEY_UPDATES: u32 = 32;

/// A server's wish for another handshake, in TLS 1.2.
const HELLO_REQUEST: u8 = 0;

/// The locked version of ring.
pub const RING_VERSION: &str = env!("RING_VERSION");

/// A connection.
#[derive(Debug)]
pub struct TlsWire {
    input: Box<[u8]>,
    /// Bytes that were received and not yet looked at.
    from: usize,
    to: usize,
    output: Outbox,
    state: TlsState,
    ended: bool,
    /// Tickets are for the next sessions; else they are ignored.
    keeps_tickets: bool,
    /// Whether the handshake that is over resumed a session, until it was asked for.
    resumed: Option<bool>,
}

#[derive(Debug)]
enum TlsState {
    Handshake(Box<Handshake>),
    Open(Box<Open>),
    Failed,
}

#[derive(Debug)]
struct Open {
    sealer: Sealer,
    opener: Opener,
    keys: Keys,
    /// The peer has requested a KeyUpdate. One answers all requests before the next record of data (RFC 8446,
    /// section 4.6.3).
    owes_key_update: bool,
    /// KeyUpdates of the peer since its last data.
    key_updates: u32,
    /// TLS 1.2, which has none.
    is_older: bool,
}

impl TlsWire {
    fn new(handshake: Handshake, room: Room, keeps_tickets: bool) -> Self {
        Self {
            // Behind a record that is not all there yet.
            input: vec![0; room.input + LARGEST_RECORD].into(),
            from: 0,
            to: 0,
            output: Outbox::new(room.records * (LARGEST_PLAIN + OVERHEAD)),
            state: TlsState::Handshake(Box::new(handshake)),
            ended: false,
            keeps_tickets,
            resumed: None,
        }
    }

    /// One `recv(2)` behind what is there.
    #[inline]
    fn pull(&mut self, socket: &OwnedFd) -> Result<Received, ErrorKind> {
        // Less than a record is left over each time, so it is cheap to move, and there is always room.
        self.input.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, self.to - self.from);
        let room = &mut self.input[self.to..];
        let whole = room.len();
        match receive(socket, room, MsgFlags::empty())? {
            Ok(count) => {
                self.to += count;
                Ok(Received::from_count(count, whole))
            }
            Err(nothing) => Ok(nothing),
        }
    }
}

impl Wire for TlsWire {
    const SHAKES: bool = true;

    fn establish(&mut self, socket: &OwnedFd) -> Result<Flow, ErrorKind> {
        loop {
            let TlsState::Handshake(handshake) = &mut self.state else {
                return if matches!(self.state, TlsState::Open(_)) {
                    self.output.flush(socket)
                } else {
                    Err(ErrorKind::TlsFailed)
                };
            };
            let awaits_hello = handshake.awaits_hello();
            let step = handshake.step(&mut self.input[self.from..self.to], &mut self.output);
            let sent = self.output.flush(socket);
            let (used, step) = match step {
                Ok(went) => went,
                // The flush above has sent the alert, if the socket accepted it.
                Err(error) => {
                    self.state = TlsState::Failed;
                    return Err(note_tls(&error, &self.input[self.from..self.to]));
                }
            };
            self.from += used;
            if sent? == Flow::Blocked {
                return Ok(Flow::Blocked);
            }
            match step {
                Step::Again => {}
                Step::Read => match self.pull(socket)? {
                    Received::More | Received::Drained => {}
                    Received::Nothing => return Ok(Flow::Blocked),
                    // A look at the port.
                    Received::End if awaits_hello && self.from == self.to => {
                        return Err(ErrorKind::EmptyResponse);
                    }
                    Received::End => return Err(note_closed()),
                },
                Step::Done => {
                    let TlsState::Handshake(handshake) = std::mem::replace(&mut self.state, TlsState::Failed)
                    else {
                        unreachable!("it was one above");
                    };
                    self.resumed = Some(handshake.is_resumed());
                    let (sealer, opener, keys) = handshake.finish().map_err(|e| note_tls(&e, &[]))?;
                    self.state = TlsState::Open(Box::new(Open::new(sealer, opener, keys)));
                }
            }
        }
    }

    #[inline]
    fn send(&mut self, socket: &OwnedFd, source: &mut impl Source) -> Result<Flow, ErrorKind> {
        let TlsState::Open(open) = &mut self.state else { return Err(ErrorKind::TlsFailed) };
        loop {
            if self.output.flush(socket)? == Flow::Blocked {
                return Ok(Flow::Blocked);
            }
            if open.owes_key_update {
                open.renew(&mut self.output).map_err(|_| ErrorKind::TlsFailed)?;
                continue;
            }
            if !source.prepare() {
                return Ok(Flow::Done);
            }
            if open.sealer.is_worn_out() {
                open.renew(&mut self.output).map_err(|_| ErrorKind::TlsFailed)?;
            }
            self.output.begin(|room| {
                let mut used = 0;
                for room in room.chunks_exact_mut(LARGEST_PLAIN + OVERHEAD) {
                    match open.sealer.seal(room, Kind::Data, |plain| source.fill(plain)) {
                        0 => break,
                        // Short ones leave gaps where they were made, so there is one of them at most.
                        sealed if sealed < LARGEST_PLAIN + OVERHEAD => return used + sealed,
                        sealed => used += sealed,
                    }
                }
                used
            });
        }
    }

    #[inline]
    fn receive(
        &mut self,
        socket: &OwnedFd,
        _input: &mut [u8],
        sink: &mut impl Sink,
    ) -> Result<Received, ErrorKind> {
        if self.ended {
            return Ok(Received::End);
        }
        // What came with the end of the handshake is already there.
        let received = if self.from < self.to && record::length(&self.input[self.from..self.to]).is_some() {
            Received::More
        } else {
            self.pull(socket)?
        };
        if matches!(received, Received::Nothing | Received::End) {
            return Ok(received);
        }
        let TlsState::Open(open) = &mut self.state else { return Err(ErrorKind::TlsFailed) };
        while let Some(length) = record::length(&self.input[self.from..self.to]) {
            let length = length.map_err(|_| note_tls(&Error::DecryptError, &[]))?;
            let bytes = &mut self.input[self.from..self.from + length];
            self.from += length;
            match open.opener.open(bytes).map_err(|_| note_tls(&Error::DecryptError, &[]))? {
                (Kind::Data, plain) => {
                    if !plain.is_empty() {
                        open.key_updates = 0;
                    }
                    sink.take(plain)?;
                }
                (Kind::Handshake, message) => {
                    open.after_handshake(message, self.keeps_tickets).map_err(|e| note_tls(&e, &[]))?;
                }
                (Kind::Alert, alert) => {
                    // close_notify; all else is a reason for failing.
                    if alert != [1, 0] {
                        let code = alert.last().copied().unwrap_or_default();
                        return Err(note_tls(&Error::AlertReceived(code.into()), &[]));
                    }
                    self.ended = true;
                    return Ok(Received::End);
                }
            }
        }
        Ok(received)
    }

    fn end(&mut self) {
        if let TlsState::Open(open) = &mut self.state {
            self.output.begin(|room| open.sealer.seal_bytes(room, Kind::Alert, &[1, 0]));
        }
    }

    fn take_handshake(&mut self) -> Option<bool> {
        self.resumed.take()
    }

    fn security(&self) -> Option<String> {
        if let TlsState::Open(open) = &self.state { Some(open.keys.security()) } else { None }
    }
}

impl Open {
    fn new(sealer: Sealer, opener: Opener, keys: Keys) -> Self {
        let is_older = keys.version() != ProtocolVersion::TLSv1_3;
        Self { sealer, opener, keys, owes_key_update: false, key_updates: 0, is_older }
    }

    /// New tickets, and new keys (RFC 8446, section 4.6.3).
    #[cold]
    fn after_handshake(&mut self, mut bytes: &[u8], keeps_tickets: bool) -> Result<(), rustls::Error> {
        let malformed = || rustls::Error::General("a handshake message that is none".into());
        while let [kind, rest @ ..] = bytes {
            let length = rest.first_chunk::<3>().ok_or_else(malformed)?;
            let length = u32::from_be_bytes([0, length[0], length[1], length[2]]) as usize;
            let message = rest.get(3..3 + length).ok_or_else(malformed)?;
            bytes = &rest[3 + length..];
            match (*kind, message) {
                // A client may ignore it (RFC 5246, section 7.4.1.1), and sessions are short here.
                (HELLO_REQUEST, []) if self.is_older => {}
                _ if self.is_older => return Err(malformed()),
                (record::NEW_SESSION_TICKET, _) if !keeps_tickets => {}
                (record::NEW_SESSION_TICKET, ticket) => self.keys.take_ticket(ticket)?,
                (record::KEY_UPDATE, [asked @ (0 | 1)]) if self.key_updates < MOST_KEY_UPDATES => {
                    self.key_updates += 1;
                    self.opener = self.keys.next_opener()?;
                    self.owes_key_update |= *asked == 1;
                }
                _ => return Err(malformed()),
            }
        }
        Ok(())
    }

    /// Seals a KeyUpdate and changes to the next keys. `output` is empty, so there is room.
    #[cold]
    fn renew(&mut self, output: &mut Outbox) -> Result<(), rustls::Error> {
        let message = [record::KEY_UPDATE, 0, 0, 1, 0];
        let mut sealed = 0;
        output.begin(|room| {
            sealed = self.sealer.seal_bytes(room, Kind::Handshake, &message);
            sealed
        });
        if sealed == 0 {
            return Err(rustls::Error::General("no room for a KeyUpdate".into()));
        }
        self.owes_key_update = false;
        self.sealer = self.keys.next_sealer()?;
        Ok(())
    }
}
