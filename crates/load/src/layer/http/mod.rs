//! HTTP/1.1 over TCP or TLS (RFC 9110, RFC 9112): the client here, the server in [`service`].
//!
//! Requests are built once ([`mix`]); answers are parsed in place, in a buffer that all connections of a
//! thread share. Between two reads a connection stores its descriptor and the state of its parser.

mod mix;
mod service;
pub(super) mod verify;

pub use service::HttpService;

use crate::layer::wire::plain::connected;
use crate::layer::wire::{Received, Room, Sink, Source, Wire, Wires};
use crate::layer::{Answer, Flow, Layer, MAX_READS, Reply};
use crate::refusal::Refusal;
use crate::socket::{Dialer, disconnect};
use linerate_contract::{ErrorKind, Spec, TlsFailure};
use linerate_proto::http::response::{LastHead, Parser, ParserState};
use mix::Mix;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use verify::Check;

/// Pipelined requests fit any socket buffer, in bytes: a peer whose answers are not read would not read more.
const LONGEST_BATCH: usize = 64 << 10;
/// A page of up to 60 KiB is received by one call; twice the size gains nothing and uses half of the L2
/// cache.
const BUFFER: usize = 64 << 10;

/// Counters of answers by status, which has three digits.
pub(super) const STATUSES: usize = 1 << 10;

/// A thread's part of the layer; `SEVERAL`: its requests differ.
#[derive(Debug, Clone)]
pub struct Http<C, const SEVERAL: bool = false> {
    dialer: Dialer,
    connector: C,
    security: Option<String>,
    tls_failure: Option<TlsFailure>,
    /// All requests; of one, as many as a connection may have in flight.
    requests: Arc<[u8]>,
    depth: u16,
    buffer: Box<[u8]>,
    reader: Reader<SEVERAL>,
}

/// What all connections of a thread need to read answers.
#[derive(Debug, Clone)]
struct Reader<const SEVERAL: bool> {
    mix: Mix<SEVERAL>,
    statuses: Box<[u64; STATUSES]>,
    last: LastHead,
    /// Further answers of the connection that received the last one.
    further: VecDeque<Result<Answer, ErrorKind>>,
}

/// One connection.
#[derive(Debug)]
pub struct HttpConnection<W> {
    socket: OwnedFd,
    /// Bytes of the requests that were sent.
    sent: u32,
    wire: W,
    exchange: Exchange,
}

/// Requests and answers of a connection.
#[derive(Debug)]
struct Exchange {
    /// The number of the request under way, where there are several.
    kind: Option<u16>,
    /// Requests that are sent together, and the number of their outstanding answers.
    asked: u16,
    due: u16,
    parser: Parser,
    check: Check,
}

impl<W> AsFd for HttpConnection<W> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The buffers of a connection are those of its thread.
const ROOM: Room = Room { input: BUFFER, records: 1 };

impl<C: Wires, const SEVERAL: bool> Layer for Http<C, SEVERAL> {
    type Connection = HttpConnection<C::Wire>;

    fn new(spec: &Spec, persistent: bool) -> Result<Self, Refusal> {
        let (dialer, connector) = (Dialer::new(spec)?, C::new(spec)?);
        let (mix, requests) = Mix::new(spec, persistent)?;
        let depth = depth(spec, requests.len())?;
        if SEVERAL && depth > 1 {
            return Err(Refusal::BadSpec("\"options.pipeline\" is for one request, not \"requests\"".into()));
        }
        Ok(Self {
            dialer,
            connector,
            security: None,
            tls_failure: None,
            requests: requests.repeat(depth.into()).into(),
            depth,
            buffer: vec![0; BUFFER].into(),
            reader: Reader {
                mix,
                statuses: Box::new([0; STATUSES]),
                last: LastHead::default(),
                further: VecDeque::with_capacity(depth.into()),
            },
        })
    }

    #[inline]
    fn open(&mut self) -> Result<Self::Connection, ErrorKind> {
        let socket = self.dialer.open()?;
        if C::Wire::SHAKES {
            // The first request follows the end of the handshake directly. A server that sends no tickets
            // acknowledges that end 40 ms late.
            self.dialer.without_delay(&socket)?;
        }
        let wire = self.connector.wire(ROOM)?;
        let (parser, check) = (Parser::new(self.reader.mix.kind(None).bodiless), Check::default());
        let exchange = Exchange { kind: None, asked: 1, due: 0, parser, check };
        Ok(HttpConnection { socket, sent: 0, wire, exchange })
    }

    #[inline]
    fn leave(&mut self, connection: &mut Self::Connection) -> bool {
        !C::Wire::SHAKES && disconnect(&connection.socket)
    }

    #[inline]
    fn reopen(&mut self, connection: &mut Self::Connection) -> Result<(), ErrorKind> {
        connection.wire = self.connector.wire(ROOM)?;
        self.dialer.connect(&connection.socket)
    }

    #[inline]
    fn establish(&mut self, connection: &mut Self::Connection) -> Result<Flow, ErrorKind> {
        if !C::Wire::SHAKES {
            return connected(&connection.socket);
        }
        let wire = &mut connection.wire;
        let flow = wire.establish(&connection.socket).inspect_err(|_| {
            self.tls_failure = self.tls_failure.take().or_else(|| wire.tls_failure());
        })?;
        if flow == Flow::Done && self.security.is_none() {
            self.security = connection.wire.security();
        }
        Ok(flow)
    }

    #[inline]
    fn depth(&self) -> u32 {
        self.depth.into()
    }

    #[inline]
    fn ask(&mut self, connection: &mut Self::Connection, requests: u32) {
        connection.exchange.asked = requests as u16;
    }

    #[inline]
    fn send(&mut self, connection: &mut Self::Connection) -> Result<Flow, ErrorKind> {
        if C::Wire::SHAKES && self.establish(connection)? == Flow::Blocked {
            return Ok(Flow::Blocked);
        }
        let HttpConnection { socket, sent, wire, exchange } = connection;
        if SEVERAL && exchange.kind.is_none() {
            exchange.kind = Some(self.reader.mix.choose());
            exchange.parser = Parser::new(self.reader.mix.kind(exchange.kind).bodiless);
        }
        let kind = self.reader.mix.kind(exchange.kind);
        let (start, length) = (if SEVERAL { kind.start } else { 0 }, kind.length);
        let bytes = &self.requests[start..start + length * usize::from(exchange.asked)];
        let flow = wire.send(socket, &mut Requests { bytes, sent })?;
        if flow == Flow::Done {
            *sent = 0;
            exchange.due = exchange.asked;
            exchange.check = kind.verifier.begin();
        }
        Ok(flow)
    }

    #[inline]
    fn receive(&mut self, connection: &mut Self::Connection) -> Result<Reply, ErrorKind> {
        if let Some(next) = self.reader.further.pop_front() {
            return next.map(Reply::Complete);
        }
        let HttpConnection { socket, wire, exchange, .. } = connection;
        for _ in 0..MAX_READS {
            let mut answers = Answers { reader: &mut self.reader, exchange, first: None };
            let received = wire.receive(socket, &mut self.buffer, &mut answers).inspect_err(|_| {
                self.tls_failure = self.tls_failure.take().or_else(|| wire.tls_failure());
            })?;
            if let Some(answer) = answers.first {
                return Ok(Reply::Complete(answer));
            }
            match received {
                Received::Nothing => return Ok(Reply::Waiting),
                Received::End => return answers.end(wire.is_cut()).map(Reply::Complete),
                Received::More | Received::Drained => {}
            }
        }
        Ok(Reply::Unfinished)
    }

    fn security(&self) -> Option<String> {
        self.security.clone()
    }

    fn tls_failure(&self) -> Option<TlsFailure> {
        self.tls_failure.clone()
    }

    fn statuses(&self) -> BTreeMap<String, u64> {
        let counted = self.reader.statuses.iter().enumerate().filter(|(_, n)| **n > 0);
        counted.map(|(status, n)| (status.to_string(), *n)).collect()
    }
}

/// The requests that are to be sent.
struct Requests<'a> {
    bytes: &'a [u8],
    sent: &'a mut u32,
}

impl Source for Requests<'_> {
    #[inline]
    fn prepare(&mut self) -> bool {
        (*self.sent as usize) < self.bytes.len()
    }

    #[inline]
    fn slices(&self) -> Option<[&[u8]; 2]> {
        Some([&self.bytes[*self.sent as usize..], &[]])
    }

    #[inline]
    fn advance(&mut self, count: usize) -> bool {
        *self.sent += count as u32;
        self.prepare()
    }

    fn fill(&mut self, room: &mut [u8]) -> usize {
        let rest = &self.bytes[*self.sent as usize..];
        let count = rest.len().min(room.len());
        room[..count].copy_from_slice(&rest[..count]);
        *self.sent += count as u32;
        count
    }
}

/// The answers that one look at the socket gave.
struct Answers<'a, const SEVERAL: bool> {
    reader: &'a mut Reader<SEVERAL>,
    exchange: &'a mut Exchange,
    first: Option<Answer>,
}

impl<const SEVERAL: bool> Sink for Answers<'_, SEVERAL> {
    #[inline]
    fn take(&mut self, bytes: &mut [u8]) -> Result<(), ErrorKind> {
        let mut left = &*bytes;
        loop {
            match self.parse(left) {
                Ok((None, _)) => return Ok(()),
                Ok((Some(answer), rest)) => {
                    if self.first.is_none() {
                        self.first = Some(answer);
                    } else {
                        self.reader.further.push_back(Ok(answer));
                    }
                    // Bytes behind the last answer before a close are ignored.
                    if rest == 0 || !answer.reusable {
                        return Ok(());
                    }
                    left = &left[left.len() - rest..];
                }
                Err(kind) if self.first.is_none() => return Err(kind),
                // Those before it are good.
                Err(kind) => {
                    self.reader.further.push_back(Err(kind));
                    return Ok(());
                }
            }
        }
    }
}

impl<const SEVERAL: bool> Answers<'_, SEVERAL> {
    /// The answer that is complete with these bytes, and how many bytes are behind it.
    #[inline]
    fn parse(&mut self, bytes: &[u8]) -> Result<(Option<Answer>, usize), ErrorKind> {
        let Exchange { kind, parser, check, .. } = &mut *self.exchange;
        let Reader { mix, statuses, last, .. } = &mut *self.reader;
        let verifier = &mix.kind(*kind).verifier;
        let state = parser
            .feed(bytes, last, |at, bytes| verifier.body(check, at, bytes))
            .map_err(|_| ErrorKind::Malformed)?;
        // An unexpected head ends the operation at once: its body may never arrive.
        if let Some(head) = parser.head()
            && let Err(kind) = verifier.head(head)
        {
            statuses[usize::from(head.status) % STATUSES] += 1;
            return Err(kind);
        }
        let ParserState::Complete { rest } = state else { return Ok((None, 0)) };
        let answer = self.complete()?;
        if rest > 0 && self.exchange.due == 0 {
            // No further request was sent.
            return Err(ErrorKind::Malformed);
        }
        Ok((Some(answer), rest))
    }

    /// The peer has closed.
    #[cold]
    fn end(&mut self, cut: bool) -> Result<Answer, ErrorKind> {
        if self.exchange.parser.end_completes() && !cut {
            self.complete()
        } else if self.exchange.parser.is_fresh() {
            Err(ErrorKind::EmptyReply)
        } else {
            Err(ErrorKind::Truncated)
        }
    }

    #[inline]
    fn complete(&mut self) -> Result<Answer, ErrorKind> {
        let (exchange, reader) = (&mut *self.exchange, &mut *self.reader);
        let head = *exchange.parser.head().expect("an answer is complete only after its head");
        let bytes = exchange.parser.body_bytes();
        reader.statuses[usize::from(head.status) % STATUSES] += 1;
        let verified = reader.mix.kind(exchange.kind).verifier.answer(&exchange.check, bytes)?;
        exchange.kind = None;
        let kind = reader.mix.kind(None);
        exchange.parser = Parser::new(kind.bodiless);
        exchange.due = exchange.due.saturating_sub(1);
        if exchange.due > 0 {
            exchange.check = kind.verifier.begin();
        }
        Ok(Answer { bytes, verified, reusable: head.reusable })
    }
}

/// `options.pipeline`: how many requests, of `request` bytes each, are sent together; default 1.
fn depth(spec: &Spec, request: usize) -> Result<u16, Refusal> {
    let most = (LONGEST_BATCH / request).max(1) as u64;
    let depth = spec.number("pipeline", 1..=most)?;
    Ok(depth.unwrap_or(1) as u16)
}
