//! HTTP/1.1 over TCP or TLS (RFC 9110, RFC 9112): the client here, the server in [`service`].
//!
//! Requests are built once ([`mix`]); responses are parsed in place, in a buffer that all connections of a
//! thread share. Between two reads a connection stores its descriptor and the state of its parser.

mod cause;
mod mix;
mod responses;
mod service;
pub(super) mod verify;

pub use service::HttpService;

use crate::layer::opener::Opener;
use crate::layer::order::Numbering;
use crate::layer::wire::plain::connected;
use crate::layer::wire::{Received, Room, Source, Wire, Wires};
use crate::layer::{Flow, Layer, MAX_READS, Progress, Response, Wrong};
use crate::refusal::Refusal;
use crate::socket::disconnect;
use cause::note_end;
use linerate_contract::{Done, ErrorKind, Spec};
use linerate_proto::events::{EventKind, Events};
use linerate_proto::http::response::{LastHead, Odd, Parser};
use mix::{Kind, Mix};
use responses::Responses;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use verify::Check;

/// Pipelined requests fit any socket buffer, in bytes: a peer whose responses are not read would not read
/// more.
const LONGEST_BATCH: usize = 64 << 10;
/// A page of up to 60 KiB is received by one call; twice the size gains nothing and uses half of the L2
/// cache.
const BUFFER: usize = 64 << 10;

/// Counters of responses by status, which has three digits.
pub(super) const STATUSES: usize = 1 << 10;

/// A thread's part of the layer; `SEVERAL`: its requests differ.
#[derive(Debug, Clone)]
pub struct Http<C, const SEVERAL: bool = false> {
    opener: Opener<C>,
    /// All requests; of one, as many as a connection may have in flight.
    requests: Arc<[u8]>,
    depth: u16,
    /// Numbers for requests that vary, with a buffer for a body.
    numbers: Numbering,
    body: Vec<u8>,
    buffer: Box<[u8]>,
    reader: Reader<SEVERAL>,
}

/// The state of a thread that all its connections need to read responses.
#[derive(Debug, Clone)]
struct Reader<const SEVERAL: bool> {
    mix: Mix<SEVERAL>,
    statuses: Box<[u64; STATUSES]>,
    /// Responses by what is odd about them, in the order of [`Odd::ALL`].
    odd: [u64; Odd::ALL.len()],
    last: LastHead,
    /// The details that are timed within responses, and how much of it the last look at the socket brought.
    events: Option<EventKind>,
    arrived: u32,
    /// The number of the request that the last response belongs to.
    answered: u32,
    /// Further responses of the connection that received the last one.
    further: VecDeque<Result<Progress, ErrorKind>>,
}

/// One connection.
#[derive(Debug)]
pub struct HttpConnection<W> {
    socket: OwnedFd,
    /// Bytes of the requests that were sent.
    sent: u32,
    /// The request under way, where each is another.
    own: Option<Box<Own>>,
    wire: W,
    exchange: Exchange,
}

/// A request that no other connection sends.
#[derive(Debug, Default)]
struct Own {
    bytes: Vec<u8>,
}

/// Requests and responses of a connection.
#[derive(Debug)]
struct Exchange {
    /// The number of the request under way, where there are several.
    kind: Option<u32>,
    /// Requests that are sent together, and the number of their outstanding responses.
    asked: u16,
    due: u16,
    parser: Parser,
    check: Check,
    events: Events,
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
    const SEVERAL: bool = SEVERAL;

    fn new(spec: &Spec, persistent: bool) -> Result<Self, Refusal> {
        let opener = Opener::new(spec)?;
        let (mix, requests) = Mix::new(spec, persistent)?;
        let depth = depth(spec, requests.len())?;
        if SEVERAL && depth > 1 {
            return Err(Refusal::BadSpec("\"options.pipeline\" is for one request, not \"requests\"".into()));
        }
        Ok(Self {
            opener,
            requests: requests.repeat(depth.into()).into(),
            depth,
            numbers: Numbering::new(spec),
            body: Vec::new(),
            buffer: vec![0; BUFFER].into(),
            reader: Reader {
                mix,
                statuses: Box::new([0; STATUSES]),
                odd: [0; Odd::ALL.len()],
                last: LastHead::default(),
                events: events(spec)?,
                arrived: 0,
                answered: 0,
                further: VecDeque::with_capacity(depth.into()),
            },
        })
    }

    #[inline]
    fn open(&mut self) -> Result<Self::Connection, ErrorKind> {
        let socket = self.opener.dialer.open()?;
        if C::Wire::SHAKES {
            // The first request follows the end of the handshake directly. A server that sends no tickets
            // acknowledges that end 40 ms late.
            self.opener.dialer.without_delay(&socket)?;
        }
        let wire = self.opener.wire(ROOM)?;
        let (parser, check) = (Parser::new(self.reader.mix.kind(None).bodiless), Check::default());
        let exchange = Exchange { kind: None, asked: 1, due: 0, parser, check, events: Events::default() };
        Ok(HttpConnection { socket, sent: 0, own: None, wire, exchange })
    }

    #[inline]
    fn leave(&mut self, connection: &mut Self::Connection) -> bool {
        !C::Wire::SHAKES && disconnect(&connection.socket)
    }

    #[inline]
    fn reopen(&mut self, connection: &mut Self::Connection) -> Result<(), ErrorKind> {
        connection.wire = self.opener.wire(ROOM)?;
        self.opener.dialer.connect(&connection.socket)
    }

    #[inline]
    fn establish(&mut self, connection: &mut Self::Connection) -> Result<Flow, ErrorKind> {
        if !C::Wire::SHAKES {
            return connected(&connection.socket);
        }
        let wire = &mut connection.wire;
        let flow = wire.establish(&connection.socket)?;
        if flow == Flow::Done {
            self.opener.count_handshake(wire);
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
        let HttpConnection { socket, sent, own, wire, exchange } = connection;
        if SEVERAL && exchange.kind.is_none() {
            exchange.kind = Some(self.reader.mix.order.choose());
            let kind = self.reader.mix.kind(exchange.kind);
            exchange.parser = Parser::new(kind.bodiless);
            if let Some(varying) = &kind.varying {
                let own = own.get_or_insert_default();
                let number = self.numbers.next();
                varying.render(&mut own.bytes, &mut self.body, number, self.numbers.seed);
            }
        }
        let kind = self.reader.mix.kind(exchange.kind);
        let (start, length) = (if SEVERAL { kind.start } else { 0 }, kind.length);
        let bytes = match own {
            Some(own) if SEVERAL && kind.varying.is_some() => &own.bytes[..],
            _ => &self.requests[start..start + length * usize::from(exchange.asked)],
        };
        match wire.send(socket, &mut Requests { bytes, sent }) {
            Ok(Flow::Done) => {
                *sent = 0;
                exchange.expect(kind);
                Ok(Flow::Done)
            }
            Ok(Flow::Blocked) => Ok(Flow::Blocked),
            Err(kind) => {
                note_end(exchange, kind);
                Err(kind)
            }
        }
    }

    fn has_early_response(&mut self, connection: &mut Self::Connection) -> bool {
        if connection.sent == 0 {
            return false;
        }
        let exchange = &mut connection.exchange;
        exchange.expect(self.reader.mix.kind(exchange.kind));
        let response = match self.receive(connection) {
            Ok(Progress::Complete(response)) => {
                Ok(Progress::Complete(Response { reusable: false, ..response }))
            }
            Ok(Progress::Wrong(wrong)) => Ok(Progress::Wrong(Wrong { reusable: false, ..wrong })),
            // A closed connection has an error of its own.
            Err(kind) if !matches!(kind, ErrorKind::Reset | ErrorKind::EmptyResponse) => Err(kind),
            _ => return false,
        };
        self.reader.further.push_front(response);
        true
    }

    fn can_send_again(&mut self, connection: &mut Self::Connection, _kind: ErrorKind) -> bool {
        let Exchange { kind, parser, .. } = &connection.exchange;
        let again = parser.is_fresh() && self.reader.mix.kind(*kind).idempotent;
        if let Some(number) = kind.filter(|_| again) {
            self.reader.mix.order.give_back(number);
        }
        again
    }

    #[inline]
    fn receive(&mut self, connection: &mut Self::Connection) -> Result<Progress, ErrorKind> {
        if let Some(next) = self.reader.further.pop_front() {
            return next;
        }
        let HttpConnection { socket, wire, exchange, .. } = connection;
        for _ in 0..MAX_READS {
            let mut responses = Responses { reader: &mut self.reader, exchange, first: None };
            let received = match wire.receive(socket, &mut self.buffer, &mut responses) {
                Ok(received) => received,
                Err(kind) => {
                    note_end(exchange, kind);
                    return Err(kind);
                }
            };
            if let Some(first) = responses.first {
                return Ok(first);
            }
            match received {
                Received::Nothing => return Ok(Progress::Waiting),
                Received::End => return responses.end(wire.is_cut()),
                Received::More | Received::Drained => {}
            }
        }
        Ok(Progress::Unfinished)
    }

    fn has_begun(&self, connection: &Self::Connection) -> bool {
        !connection.exchange.parser.is_fresh()
    }

    fn take_events(&mut self) -> u32 {
        std::mem::take(&mut self.reader.arrived)
    }

    fn asked(&self, connection: &Self::Connection) -> Option<u32> {
        connection.exchange.kind
    }

    fn answered(&self) -> u32 {
        self.reader.answered
    }

    fn counts(&self) -> Done {
        let odd = Odd::ALL.iter().zip(self.reader.odd).filter(|(_, n)| *n > 0);
        Done {
            accepted: odd.map(|(odd, n)| (odd.to_string(), n)).collect(),
            statuses: by_status(&self.reader.statuses),
            ..self.opener.counts()
        }
    }
}

/// The responses that counters have, by status.
pub(super) fn by_status(statuses: &[u64; STATUSES]) -> BTreeMap<String, u64> {
    let counted = statuses.iter().enumerate().filter(|(_, n)| **n > 0);
    counted.map(|(status, n)| (status.to_string(), *n)).collect()
}

impl Exchange {
    /// The responses to what is sent are next, unless they are already.
    #[inline]
    fn expect(&mut self, kind: &mut Kind) {
        if self.due == 0 {
            self.due = self.asked;
            self.check = kind.verifier.begin();
        }
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

/// `options.events`: what is timed within responses; default nothing.
pub(in crate::layer) fn events(spec: &Spec) -> Result<Option<EventKind>, Refusal> {
    let wrong = |e| Refusal::BadSpec(format!("\"options.events\": {e}"));
    spec.option("events").map(|kind| kind.parse().map_err(wrong)).transpose()
}

/// `options.pipeline`: how many requests, of `request` bytes each, are sent together; default 1.
fn depth(spec: &Spec, request: usize) -> Result<u16, Refusal> {
    let most = (LONGEST_BATCH / request).max(1) as u64;
    let depth = spec.number("pipeline", 1..=most)?;
    Ok(depth.unwrap_or(1) as u16)
}
