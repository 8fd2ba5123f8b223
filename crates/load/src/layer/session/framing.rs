//! How messages lie in a stream of bytes: one behind the other, or in WebSocket's frames.

use super::script::{Ended, Script};
use crate::cause::note;
use crate::refusal::Refusal;
use linerate_contract::{Cause, ErrorKind, Spec};
use linerate_proto::speech::spoken;
use linerate_proto::websocket::decoder::{Decoder, Receiver};
use linerate_proto::websocket::encoder::{Encoder, Messages};
use linerate_proto::websocket::frame::Opcode;
use linerate_proto::websocket::mask::Key;
use linerate_proto::websocket::{End, close, upgrade};
use ring::rand::{SecureRandom, SystemRandom};

/// Both directions of one connection's framing.
pub trait Framing: Send + Sized {
    /// Whether there is a handshake.
    const SHAKES: bool;

    /// The end of a client or of a server.
    ///
    /// # Errors
    /// The spec lacks something; the message is a sentence.
    fn new(end: End, spec: &Spec) -> Result<Self, Refusal>;
    /// Whether the handshake is over; true without one.
    fn is_established(&self) -> bool;
    /// As of [`crate::layer::wire::Source`].
    fn prepare(&mut self, script: &mut impl Script) -> bool;
    fn slices<'a>(&'a self, script: &'a impl Script) -> Option<[&'a [u8]; 2]>;
    /// Returns whether a part of the message is left.
    fn advance(&mut self, count: usize) -> bool;
    fn fill(&mut self, script: &mut impl Script, room: &mut [u8]) -> usize;
    fn place(&self, _script: &impl Script) -> Option<u64> {
        None
    }
    fn joins(&self, _script: &impl Script) -> bool {
        false
    }
    /// Takes what was received.
    ///
    /// # Errors
    /// A violation of the protocol.
    fn take(&mut self, script: &mut impl Script, bytes: &mut [u8]) -> Result<(), ErrorKind>;
    /// Whether control messages are to be sent.
    fn owes(&self) -> bool;
    /// Queues a close message; false if the framing has none.
    fn end(&mut self) -> bool;
    /// Whether both ends have sent a close message.
    fn is_over(&self) -> bool;
    /// Whether the peer has ended the conversation in order, by a close message without a fault.
    fn is_closed_in_order(&self) -> bool {
        false
    }
}

/// Writes one behind the other, as tcp and tls have them.
#[derive(Debug, Default)]
pub struct Raw {
    at: u64,
    length: u64,
}

impl Framing for Raw {
    const SHAKES: bool = false;

    fn new(_end: End, _spec: &Spec) -> Result<Self, Refusal> {
        Ok(Self::default())
    }

    fn is_established(&self) -> bool {
        true
    }

    #[inline]
    fn prepare(&mut self, script: &mut impl Script) -> bool {
        if self.at == self.length {
            let Some((_, length)) = script.next() else { return false };
            (self.at, self.length) = (0, length);
        }
        true
    }

    #[inline]
    fn slices<'a>(&'a self, script: &'a impl Script) -> Option<[&'a [u8]; 2]> {
        Some([script.piece(self.at, (self.length - self.at) as usize), &[]])
    }

    #[inline]
    fn advance(&mut self, count: usize) -> bool {
        self.at += count as u64;
        self.at < self.length
    }

    #[inline]
    fn fill(&mut self, script: &mut impl Script, room: &mut [u8]) -> usize {
        if !self.prepare(script) {
            return 0;
        }
        let most = room.len().min((self.length - self.at) as usize);
        let piece = script.piece(self.at, most);
        room[..piece.len()].copy_from_slice(piece);
        self.at += piece.len() as u64;
        piece.len()
    }

    #[inline]
    fn place(&self, script: &impl Script) -> Option<u64> {
        script.place().map(|place| place + self.at)
    }

    #[inline]
    fn joins(&self, script: &impl Script) -> bool {
        script.joins()
    }

    #[inline]
    fn take(&mut self, script: &mut impl Script, bytes: &mut [u8]) -> Result<(), ErrorKind> {
        script.payload(bytes, Key::NONE);
        script.ended(Ended::Read);
        Ok(())
    }

    fn owes(&self) -> bool {
        false
    }

    fn end(&mut self) -> bool {
        false
    }

    fn is_over(&self) -> bool {
        false
    }

    /// There is no other end than that of the connection.
    fn is_closed_in_order(&self) -> bool {
        true
    }
}

/// Codes of a close message without a fault: a normal end, going away, and a restart of the server.
const IN_ORDER: &[u16] = &[close::NORMAL, 1001, 1012];

/// Messages of this length and more are sent from where they lie; below, a copy costs less than a call.
const WORTH_A_CALL: u64 = 16 << 10;

/// Each message a frame of its own, after an HTTP upgrade. Boxed: it is larger than all else of a connection.
#[derive(Debug)]
pub struct WebSocket(Box<Frames>);

#[derive(Debug)]
struct Frames {
    end: End,
    encoder: Encoder,
    decoder: Decoder,
    /// The handshake's head as far as it was received; `None` when it is over.
    head: Option<Vec<u8>>,
    nonce: [u8; 16],
    /// The subprotocols that a client has offered.
    offered: Box<str>,
    message: u64,
    /// The code of the peer's close message.
    closed: Option<u16>,
}

impl Framing for WebSocket {
    const SHAKES: bool = true;

    fn new(end: End, spec: &Spec) -> Result<Self, Refusal> {
        let mut encoder = Encoder::new(end);
        let mut nonce = [0; 16];
        let headers = spec.request.as_ref().map_or(&[][..], |request| &request.headers);
        let offered = upgrade::offered(headers).unwrap_or_default().into();
        if end == End::Client {
            SystemRandom::new().fill(&mut nonce).expect("Linux has had getrandom(2) since 3.17");
            let address = spec.connect.ok_or_else(|| Refusal::BadSpec("\"connect\" is missing".into()))?;
            let host = spec.request.as_ref().and_then(|request| request.host.clone());
            let host = host.unwrap_or_else(|| address.to_string());
            if !host.bytes().all(|b| b.is_ascii_graphic()) {
                return Err(Refusal::BadSpec(format!("\"request.host\" must be printable ASCII: {host:?}")));
            }
            let path = spec.path.as_deref().unwrap_or("/");
            encoder.say(&upgrade::request(&host, path, nonce, headers)?);
        }
        let decoder = Decoder::new(end).unmasking(is_unmasking(spec)?);
        let head = Some(Vec::new());
        Ok(Self(Box::new(Frames { end, encoder, decoder, head, nonce, offered, message: 0, closed: None })))
    }

    fn is_established(&self) -> bool {
        self.0.head.is_none()
    }

    #[inline]
    fn prepare(&mut self, script: &mut impl Script) -> bool {
        let established = self.is_established();
        self.0.encoder.prepare(&mut Gated { script, established, length: &mut self.0.message })
    }

    #[inline]
    fn slices<'a>(&'a self, script: &'a impl Script) -> Option<[&'a [u8]; 2]> {
        if self.0.message < WORTH_A_CALL {
            return None;
        }
        self.0.encoder.slices(script)
    }

    #[inline]
    fn advance(&mut self, count: usize) -> bool {
        self.0.encoder.advance(count);
        true
    }

    #[inline]
    fn fill(&mut self, script: &mut impl Script, room: &mut [u8]) -> usize {
        let established = self.is_established();
        self.0.encoder.fill(&mut Gated { script, established, length: &mut self.0.message }, room)
    }

    #[inline]
    fn take(&mut self, script: &mut impl Script, bytes: &mut [u8]) -> Result<(), ErrorKind> {
        let bytes = if self.is_established() {
            bytes
        } else {
            let Some(used) = self.0.shake_hands(bytes)? else { return Ok(()) };
            &mut bytes[used..]
        };
        let Frames { encoder, decoder, closed, .. } = &mut *self.0;
        let mut incoming = Delivery { script, encoder, closed };
        decoder.feed(bytes, &mut incoming).map_err(|broken| {
            encoder.close(Some(broken.code()));
            note(ErrorKind::Malformed, || Cause::showing(broken.to_string(), bytes))
        })
    }

    fn owes(&self) -> bool {
        self.0.encoder.owes()
    }

    fn end(&mut self) -> bool {
        self.0.encoder.end();
        self.is_established()
    }

    fn is_over(&self) -> bool {
        self.0.decoder.is_closed() && self.0.encoder.is_closing()
    }

    fn is_closed_in_order(&self) -> bool {
        self.0.closed.is_some_and(|code| IN_ORDER.contains(&code))
    }
}

/// Option `unmask`: `yes` removes masks before content is compared, `no` (or none) compares through them.
fn is_unmasking(spec: &Spec) -> Result<bool, Refusal> {
    match spec.options.get("unmask").map(String::as_str) {
        None | Some("no") => Ok(false),
        Some("yes") => Ok(true),
        Some(other) => Err(Refusal::BadSpec(format!("option \"unmask\" is \"{other}\", not yes or no"))),
    }
}

impl Frames {
    /// Takes bytes of the handshake; once it is over, returns how many of them belonged to it.
    #[cold]
    fn shake_hands(&mut self, bytes: &[u8]) -> Result<Option<usize>, ErrorKind> {
        let Some(head) = &mut self.head else { return Ok(Some(0)) };
        let before = head.len();
        head.extend_from_slice(bytes);
        let Some(end) = upgrade::end_of_head(head) else {
            if self.end == End::Server && upgrade::cannot_be_a_request(head) {
                self.encoder.say(upgrade::BAD_REQUEST.0.as_bytes());
                return Err(note_no_upgrade(head));
            }
            let is_none = self.end == End::Client && !b"HTTP/1.".starts_with(&head[..head.len().min(7)]);
            if !is_none && head.len() <= upgrade::LONGEST_HEAD {
                return Ok(None);
            }
            let text = match spoken(head) {
                Some(protocol) if is_none => format!("the server speaks {protocol} there"),
                _ if is_none => "no response of HTTP/1.1 to the upgrade".into(),
                _ => "a head of more than 8 KiB".into(),
            };
            return Err(note(ErrorKind::Malformed, || Cause::showing(text, head)));
        };
        let whole = &head[..end];
        match self.end {
            End::Client if upgrade::is_accepted(whole, self.nonce, &self.offered) => {}
            End::Client => {
                let (kind, text) = match upgrade::status(whole) {
                    None => (ErrorKind::Malformed, "no response of HTTP/1.1 to the upgrade".into()),
                    Some(101) => (ErrorKind::Malformed, "an upgrade that was not asked for".into()),
                    Some(status) => (ErrorKind::WrongStatus, format!("the upgrade has status {status}")),
                };
                return Err(note(kind, || Cause::showing(text, whole)));
            }
            End::Server => match upgrade::respond(whole) {
                Ok(response) => self.encoder.say(&response),
                Err(refused) => {
                    self.encoder.say(refused.0.as_bytes());
                    return Err(note_no_upgrade(whole));
                }
            },
        }
        self.head = None;
        Ok(Some(end - before))
    }
}

/// A client's first bytes are no upgrade to WebSocket.
#[cold]
fn note_no_upgrade(bytes: &[u8]) -> ErrorKind {
    note(ErrorKind::Malformed, || {
        let text = match spoken(bytes).filter(|protocol| *protocol != "HTTP/1.1") {
            Some(protocol) => format!("not an upgrade to WebSocket: the client speaks {protocol} here"),
            None => "not an upgrade to WebSocket (RFC 6455, 4.2.1)".into(),
        };
        Cause::showing(text, bytes)
    })
}

/// The script as the source of messages: none before the handshake is over.
struct Gated<'a, S> {
    script: &'a mut S,
    established: bool,
    length: &'a mut u64,
}

impl<S: Script> Messages for Gated<'_, S> {
    #[inline]
    fn next(&mut self) -> Option<(Opcode, u64)> {
        let next = if self.established { self.script.next() } else { None };
        *self.length = next.map_or(0, |(_, length)| length);
        next
    }

    #[inline]
    fn piece(&self, at: u64, most: usize) -> &[u8] {
        self.script.piece(at, most)
    }
}

/// Passes received payload and control frames on to the script and the encoder.
struct Delivery<'a, S> {
    script: &'a mut S,
    encoder: &'a mut Encoder,
    closed: &'a mut Option<u16>,
}

impl<S: Script> Receiver for Delivery<'_, S> {
    #[inline]
    fn payload(&mut self, bytes: &mut [u8], key: Key) {
        self.script.payload(bytes, key);
    }

    #[inline]
    fn end_of_message(&mut self, kind: Opcode) {
        self.script.ended(Ended::Message(kind));
    }

    fn ping(&mut self, payload: &[u8]) {
        self.encoder.pong(payload);
    }

    fn close(&mut self, code: Option<u16>) {
        *self.closed = Some(code.unwrap_or(close::NORMAL));
        // Section 5.5.1: answered with the same code.
        self.encoder.close(code);
    }
}
