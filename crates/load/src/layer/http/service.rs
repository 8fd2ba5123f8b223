//! linerate's own HTTP/1.1 server: one `recv(2)`, the parser and one `send(2)` per request, and TLS where the
//! layer is `https`.
//!
//! It answers any GET with the same page, head and body in one piece that is built in advance. It is the
//! limit row of HTTP suites and the server of the engine's own benchmarks, so it does as little as RFC 9112
//! allows.

use super::line::{INPUT, Line, Lines};
use super::request::{ParsedRequest, parse};
use crate::layer::Flow;
use crate::layer::wire::Received;
use crate::refusal::Refusal;
use crate::server::{Fate, Service};
use linerate_contract::{ErrorKind, Spec, page};
use nix::sys::socket::{Shutdown, shutdown};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

/// After a refusal this many bytes of input are discarded, so that close(2) does not reset the connection
/// before the 400 has arrived; a peer that sends more is reset.
const LINGER_BYTES: usize = 1 << 20;
/// The largest page, in bytes: it is in memory twice.
const LARGEST_PAGE: u64 = 1 << 30;

const BAD_REQUEST: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// A thread's part of the service.
#[derive(Debug, Clone)]
pub struct HttpService<L> {
    lines: L,
    pages: Pages,
    input: Vec<u8>,
}

/// The complete answer, for a persistent connection and for one that closes.
#[derive(Debug, Clone)]
struct Pages {
    keep: Arc<[u8]>,
    close: Arc<[u8]>,
}

/// One connection.
#[derive(Debug)]
pub struct ServedConnection<L> {
    /// Created by the first event of the connection.
    line: Option<L>,
    exchange: Exchange,
}

impl<L> Default for ServedConnection<L> {
    fn default() -> Self {
        Self { line: None, exchange: Exchange::default() }
    }
}

/// The state of a connection within its requests and answers.
#[derive(Debug, Default)]
struct Exchange {
    /// Bytes of the current answer that were sent.
    sent: usize,
    phase: ExchangePhase,
    /// Input that is not answered yet: an incomplete request, or pipelined ones.
    pending: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ExchangePhase {
    #[default]
    Reading,
    /// Within an answer; `keep`: the connection stays open after it.
    Answering { keep: bool },
    /// Refused: the number of discarded bytes.
    Lingering(usize),
}

/// The socket and the line of a connection.
struct ServedPeer<'a, L> {
    socket: &'a OwnedFd,
    line: &'a mut L,
}

impl<L: Lines> Service for HttpService<L> {
    type Connection = ServedConnection<L::Line>;

    fn new(spec: &Spec) -> Result<Self, Refusal> {
        if spec.size > LARGEST_PAGE {
            return Err(Refusal::BadSpec(format!("\"size\" must be at most {LARGEST_PAGE} bytes")));
        }
        let body = page(spec.size as usize);
        let answer = |connection: &str| -> Arc<[u8]> {
            let head = format!(
                "HTTP/1.1 200 OK\r\nServer: linerate\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
                 Connection: {connection}\r\n\r\n",
                body.len()
            );
            [head.as_bytes(), &body].concat().into()
        };
        let pages = Pages { keep: answer("keep-alive"), close: answer("close") };
        Ok(Self { lines: L::new(spec)?, pages, input: vec![0; INPUT] })
    }

    #[inline]
    fn ready(&mut self, socket: &OwnedFd, connection: &mut Self::Connection, ended: bool) -> Fate {
        // A peer's error ends only its own connection.
        self.work(socket, connection, ended).unwrap_or(Fate::Close)
    }
}

impl<L: Lines> HttpService<L> {
    #[inline]
    fn work(
        &mut self,
        socket: &OwnedFd,
        connection: &mut ServedConnection<L::Line>,
        ended: bool,
    ) -> Result<Fate, ErrorKind> {
        let ServedConnection { line, exchange } = connection;
        let line = match line {
            Some(line) => line,
            none => none.insert(self.lines.line()?),
        };
        if line.establish(socket)? == Flow::Blocked {
            return Ok(Fate::Write);
        }
        let mut peer = ServedPeer { socket, line };
        if let ExchangePhase::Answering { keep } = exchange.phase {
            match self.pages.answer(&mut peer, exchange, keep)? {
                Fate::Read => {}
                fate => return Ok(fate),
            }
        }
        if !exchange.pending.is_empty() {
            match self.pages.answer_pending(&mut peer, exchange, &[])? {
                Fate::Read => {}
                fate => return Ok(fate),
            }
        }
        self.read(&mut peer, exchange, ended)
    }

    #[inline]
    fn read(
        &mut self,
        peer: &mut ServedPeer<'_, L::Line>,
        exchange: &mut Exchange,
        ended: bool,
    ) -> Result<Fate, ErrorKind> {
        loop {
            let (count, received) = peer.line.receive(peer.socket, &mut self.input)?;
            if count > 0 {
                match self.pages.take(peer, exchange, &self.input[..count])? {
                    Fate::Read => {}
                    fate => return Ok(fate),
                }
            }
            match received {
                Received::Drained if !ended => return Ok(Fate::Read),
                Received::More | Received::Drained => {}
                Received::Nothing => return Ok(Fate::Read),
                Received::End => return Ok(Fate::Close),
            }
        }
    }
}

impl Pages {
    #[inline]
    fn take<L: Line>(
        &self,
        peer: &mut ServedPeer<'_, L>,
        exchange: &mut Exchange,
        bytes: &[u8],
    ) -> Result<Fate, ErrorKind> {
        if let ExchangePhase::Lingering(thrown) = &mut exchange.phase {
            *thrown += bytes.len();
            return Ok(if *thrown > LINGER_BYTES { Fate::Close } else { Fate::Read });
        }
        if !exchange.pending.is_empty() {
            return self.answer_pending(peer, exchange, bytes);
        }
        let (used, fate) = self.answer_all(peer, exchange, bytes)?;
        if fate != Fate::Close && used < bytes.len() {
            exchange.pending = bytes[used..].to_vec();
        }
        Ok(fate)
    }

    /// Answers pending input, with `more` behind it.
    #[cold]
    fn answer_pending<L: Line>(
        &self,
        peer: &mut ServedPeer<'_, L>,
        exchange: &mut Exchange,
        more: &[u8],
    ) -> Result<Fate, ErrorKind> {
        let mut pending = std::mem::take(&mut exchange.pending);
        pending.extend_from_slice(more);
        let (used, fate) = self.answer_all(peer, exchange, &pending)?;
        if fate != Fate::Close && used < pending.len() {
            pending.drain(..used);
            exchange.pending = pending;
        }
        Ok(fate)
    }

    /// Answers the complete requests at the start of `bytes`; returns their length, and the next step.
    #[inline]
    fn answer_all<L: Line>(
        &self,
        peer: &mut ServedPeer<'_, L>,
        exchange: &mut Exchange,
        bytes: &[u8],
    ) -> Result<(usize, Fate), ErrorKind> {
        let mut used = 0;
        while used < bytes.len() {
            match parse(&bytes[used..]) {
                ParsedRequest::Get { length, keep } => {
                    used += length;
                    match self.answer(peer, exchange, keep)? {
                        Fate::Read => {}
                        fate => return Ok((used, fate)),
                    }
                }
                ParsedRequest::Partial if bytes.len() - used < INPUT => return Ok((used, Fate::Read)),
                ParsedRequest::Partial | ParsedRequest::Bad => {
                    return Ok((bytes.len(), refuse(peer, exchange)?));
                }
            }
        }
        Ok((used, Fate::Read))
    }

    /// Sends (the rest of) an answer. [`Fate::Read`]: it was sent, and the connection stays open.
    #[inline]
    fn answer<L: Line>(
        &self,
        peer: &mut ServedPeer<'_, L>,
        exchange: &mut Exchange,
        keep: bool,
    ) -> Result<Fate, ErrorKind> {
        let answer = if keep { &self.keep } else { &self.close };
        let (count, flow) = peer.line.send(peer.socket, &answer[exchange.sent..])?;
        if flow == Flow::Blocked {
            exchange.sent += count;
            exchange.phase = ExchangePhase::Answering { keep };
            return Ok(Fate::Write);
        }
        exchange.sent = 0;
        exchange.phase = ExchangePhase::Reading;
        if keep {
            return Ok(Fate::Read);
        }
        peer.line.end(peer.socket);
        Ok(Fate::Close)
    }
}

/// Sends 400, shuts down the output, and discards input until its end.
#[cold]
fn refuse<L: Line>(peer: &mut ServedPeer<'_, L>, exchange: &mut Exchange) -> Result<Fate, ErrorKind> {
    // 70 bytes fit any send buffer, unless it is full of unread answers.
    if peer.line.send(peer.socket, BAD_REQUEST)?.1 == Flow::Blocked {
        return Ok(Fate::Close);
    }
    peer.line.end(peer.socket);
    if shutdown(peer.socket.as_raw_fd(), Shutdown::Write).is_err() {
        return Ok(Fate::Close);
    }
    exchange.phase = ExchangePhase::Lingering(0);
    Ok(Fate::Read)
}
