//! linerate's own HTTP/1.1 server: one `recv(2)`, the parser and one `send(2)` per request, and TLS where the
//! layer is `https`.
//!
//! The service answers any GET with the same page, head and body in one piece that is built in advance. It is
//! the limit row of HTTP suites and the server of the engine's own benchmarks, so it does as little as RFC
//! 9112 allows.

use crate::cause::{note, peer_failed};
use crate::layer::wire::{Received, Room, Sink, Source, Wire, Wires};
use crate::layer::{Flow, MAX_READS};
use crate::refusal::Refusal;
use crate::server::{Fate, Service};
use linerate_contract::{Cause, ErrorKind, Spec, page};
use linerate_proto::http::request::{ParsedRequest, parse};
use linerate_proto::record::LARGEST_PLAIN;
use linerate_proto::speech::spoken;
use nix::sys::socket::{Shutdown, shutdown};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

/// Bytes per read, and the longest request: a browser's request with cookies has 2 KiB.
const INPUT: usize = 16 << 10;
/// After a refusal this many bytes of input are discarded, so that close(2) does not reset the connection
/// before the 400 has arrived; a peer that sends more is reset.
const LINGER_BYTES: usize = 1 << 20;
/// The largest page, in bytes: it is in memory twice.
const LARGEST_PAGE: u64 = 1 << 30;

const BAD_REQUEST: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// A thread's part of the service.
#[derive(Debug, Clone)]
pub struct HttpService<W> {
    wires: W,
    room: Room,
    pages: Pages,
    input: Box<[u8]>,
}

/// The complete response, for a persistent connection and for one that closes.
#[derive(Debug, Clone)]
struct Pages {
    keep: Arc<[u8]>,
    close: Arc<[u8]>,
}

/// One connection.
#[derive(Debug)]
pub struct ServedConnection<W> {
    /// Created by the first event of the connection.
    wire: Option<W>,
    exchange: Exchange,
}

impl<W> Default for ServedConnection<W> {
    fn default() -> Self {
        Self { wire: None, exchange: Exchange::default() }
    }
}

/// The state of a connection within its requests and responses.
#[derive(Debug, Default)]
struct Exchange {
    /// Responses to send after which the connection stays open, and bytes of the current response that were
    /// sent.
    due: u32,
    sent: usize,
    end: ExchangeEnd,
    /// The socket was full.
    blocked: bool,
    /// An incomplete request.
    pending: Vec<u8>,
}

/// The step after the responses that are due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ExchangeEnd {
    /// The next request.
    #[default]
    None,
    /// The last response, or a refusal.
    Close,
    Refuse,
    /// Either was sent.
    Closed,
    Refused,
    /// The number of bytes that were discarded since.
    Lingering(usize),
}

impl Exchange {
    fn is_within_a_request(&self) -> bool {
        self.end == ExchangeEnd::None && !self.pending.is_empty()
    }
}

/// The peer has closed the connection within a request.
#[cold]
fn note_cut(request: &[u8]) -> ErrorKind {
    let text = "the client closed the connection within a request";
    note(ErrorKind::Truncated, || Cause::showing(text, request))
}

/// These bytes are no request that is answered here.
#[cold]
fn refuse(bytes: &[u8]) {
    peer_failed(note(ErrorKind::Malformed, || {
        let text = match spoken(bytes).filter(|protocol| *protocol != "HTTP/1.1") {
            Some(protocol) => format!("not HTTP/1.1: the client speaks {protocol} here"),
            None => "not a GET of HTTP/1.1 of at most 16 KiB".into(),
        };
        Cause::showing(text, bytes)
    }));
}

impl<W: Wires> Service for HttpService<W> {
    type Connection = ServedConnection<W::Wire>;

    fn new(spec: &Spec) -> Result<Self, Refusal> {
        if spec.size > LARGEST_PAGE {
            return Err(Refusal::BadSpec(format!("\"size\" must be at most {LARGEST_PAGE} bytes")));
        }
        let body = page(spec.size as usize);
        let response = |connection: &str| -> Arc<[u8]> {
            let head = format!(
                "HTTP/1.1 200 OK\r\nServer: linerate\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
                 Connection: {connection}\r\n\r\n",
                body.len()
            );
            [head.as_bytes(), &body].concat().into()
        };
        let pages = Pages { keep: response("keep-alive"), close: response("close") };
        let room = Room { input: INPUT, records: records(pages.keep.len()) };
        Ok(Self { wires: W::new(spec)?, room, pages, input: vec![0; INPUT].into() })
    }

    #[inline]
    fn ready(&mut self, socket: &OwnedFd, connection: &mut Self::Connection, ended: bool) -> Fate {
        // A peer's error ends only its own connection.
        self.work(socket, connection, ended).unwrap_or_else(|kind| {
            peer_failed(kind);
            Fate::Close
        })
    }
}

/// TLS records of output per connection: as many as a response needs, up to those of a stream.
fn records(response: usize) -> usize {
    response.div_ceil(LARGEST_PLAIN).clamp(1, Room::STREAM.records)
}

impl<W: Wires> HttpService<W> {
    #[inline]
    fn work(
        &mut self,
        socket: &OwnedFd,
        connection: &mut ServedConnection<W::Wire>,
        ended: bool,
    ) -> Result<Fate, ErrorKind> {
        let ServedConnection { wire, exchange } = connection;
        let wire = match wire {
            Some(wire) => wire,
            none => none.insert(self.wires.wire(self.room)?),
        };
        if wire.establish(socket)? == Flow::Blocked {
            return Ok(Fate::Write);
        }
        let mut talk = HttpTalk { pages: &self.pages, exchange };
        // Pending output is sent before further input is read: that bounds the memory.
        if talk.exchange.blocked {
            match talk.answer(socket, wire)? {
                Fate::Read => {}
                fate => return Ok(fate),
            }
        }
        for _ in 0..MAX_READS {
            let received = wire.receive(socket, &mut self.input, &mut talk)?;
            if received == Received::Nothing {
                return Ok(Fate::Read);
            }
            // What came with the end of TLS is answered as well.
            match (talk.answer(socket, wire)?, received) {
                (Fate::Read, Received::End) if talk.exchange.is_within_a_request() => {
                    return Err(note_cut(&talk.exchange.pending));
                }
                (Fate::Read, Received::End) => return Ok(Fate::Close),
                (Fate::Read, Received::Drained) if !ended => return Ok(Fate::Read),
                (Fate::Read, _) => {}
                (fate, _) => return Ok(fate),
            }
        }
        Ok(Fate::Again)
    }
}

/// The talk on top of the wire: requests in, responses out.
struct HttpTalk<'a> {
    pages: &'a Pages,
    exchange: &'a mut Exchange,
}

impl HttpTalk<'_> {
    /// Sends the responses that are due. [`Fate::Read`]: all were sent, and the connection stays open.
    #[inline]
    fn answer(&mut self, socket: &OwnedFd, wire: &mut impl Wire) -> Result<Fate, ErrorKind> {
        self.exchange.blocked = wire.send(socket, self)? == Flow::Blocked;
        if self.exchange.blocked {
            return Ok(Fate::Write);
        }
        match self.exchange.end {
            ExchangeEnd::Closed => {
                wire.end();
                wire.send(socket, self)?;
                Ok(Fate::Close)
            }
            ExchangeEnd::Refused => {
                wire.end();
                wire.send(socket, self)?;
                self.exchange.end = ExchangeEnd::Lingering(0);
                let is_shut = shutdown(socket.as_raw_fd(), Shutdown::Write).is_ok();
                Ok(if is_shut { Fate::Read } else { Fate::Close })
            }
            _ => Ok(Fate::Read),
        }
    }

    /// Takes the complete requests at the start of `bytes`; returns their length.
    #[inline]
    fn requests(&mut self, bytes: &[u8]) -> usize {
        let mut used = 0;
        while used < bytes.len() && self.exchange.end == ExchangeEnd::None {
            match parse(&bytes[used..]) {
                ParsedRequest::Get { length, keep } => {
                    used += length;
                    if keep {
                        self.exchange.due += 1;
                    } else {
                        self.exchange.end = ExchangeEnd::Close;
                    }
                }
                ParsedRequest::Partial if bytes.len() - used < INPUT => return used,
                ParsedRequest::Partial | ParsedRequest::Bad => {
                    self.exchange.end = ExchangeEnd::Refuse;
                    refuse(&bytes[used..]);
                }
            }
        }
        used
    }

    /// The response under way.
    #[inline]
    fn current(&self) -> Option<&[u8]> {
        match self.exchange.end {
            _ if self.exchange.due > 0 => Some(&self.pages.keep),
            ExchangeEnd::Close => Some(&self.pages.close),
            ExchangeEnd::Refuse => Some(BAD_REQUEST),
            _ => None,
        }
    }
}

impl Sink for HttpTalk<'_> {
    #[inline]
    fn take(&mut self, bytes: &mut [u8]) -> Result<(), ErrorKind> {
        match &mut self.exchange.end {
            ExchangeEnd::None => {}
            ExchangeEnd::Lingering(discarded) => {
                *discarded += bytes.len();
                return if *discarded > LINGER_BYTES { Err(ErrorKind::Reset) } else { Ok(()) };
            }
            _ => return Ok(()),
        }
        if self.exchange.pending.is_empty() {
            let used = self.requests(bytes);
            if used < bytes.len() {
                self.exchange.pending.extend_from_slice(&bytes[used..]);
            }
        } else {
            let mut pending = std::mem::take(&mut self.exchange.pending);
            pending.extend_from_slice(bytes);
            let used = self.requests(&pending);
            pending.drain(..used);
            self.exchange.pending = pending;
        }
        Ok(())
    }
}

impl Source for HttpTalk<'_> {
    #[inline]
    fn prepare(&mut self) -> bool {
        self.current().is_some()
    }

    #[inline]
    fn slices(&self) -> Option<[&[u8]; 2]> {
        Some([&self.current()?[self.exchange.sent..], &[]])
    }

    #[inline]
    fn advance(&mut self, count: usize) -> bool {
        self.exchange.sent += count;
        if self.current().is_some_and(|response| self.exchange.sent < response.len()) {
            return true;
        }
        self.exchange.sent = 0;
        self.exchange.end = match self.exchange.end {
            ExchangeEnd::Close if self.exchange.due == 0 => ExchangeEnd::Closed,
            ExchangeEnd::Refuse if self.exchange.due == 0 => ExchangeEnd::Refused,
            end => end,
        };
        self.exchange.due = self.exchange.due.saturating_sub(1);
        true
    }

    #[inline]
    fn fill(&mut self, room: &mut [u8]) -> usize {
        let Some(response) = self.current() else { return 0 };
        let rest = &response[self.exchange.sent..];
        let count = room.len().min(rest.len());
        room[..count].copy_from_slice(&rest[..count]);
        self.advance(count);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_has_the_records_of_its_response_up_to_those_of_a_stream() {
        assert_eq!([0, 4096, 16_385, 1 << 30].map(records), [1, 1, 2, 8]);
    }
}
