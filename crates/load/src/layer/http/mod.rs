//! HTTP/1.1 over TCP or TLS (RFC 9110, RFC 9112): the client here, the server in [`service`].
//!
//! Requests are built once; answers are parsed in place, in a buffer that all connections of a thread share.
//! Between two reads a connection stores its descriptor and the state of its parser.

mod service;
mod verify;

pub use service::HttpService;

use crate::layer::transport::Transport;
use crate::layer::{Answer, Flow, Layer, MAX_READS, Reply};
use crate::refusal::Refusal;
use linerate_contract::{ErrorKind, Spec};
use linerate_proto::http::request;
use linerate_proto::http::response::{LastHead, Parser, ParserState};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use verify::{Check, Verifier};

/// Pipelined requests fit any socket buffer, in bytes: a peer whose answers are not read would not read more.
const LONGEST_BATCH: usize = 64 << 10;
/// A page of up to 60 KiB is received by one call; twice the size gains nothing and uses half of the L2
/// cache.
const BUFFER: usize = 64 << 10;

/// A thread's part of the layer.
#[derive(Debug, Clone)]
pub struct Http<T> {
    transport: T,
    /// A sequence of requests, as many as a connection may have in flight.
    requests: Arc<[u8]>,
    /// Bytes of one of them.
    length: usize,
    depth: u16,
    /// Answers to HEAD have a length and no body.
    bodiless: bool,
    verifier: Verifier,
    last: LastHead,
    buffer: Box<[u8]>,
    /// The unparsed part of the buffer: further answers of the connection that received the last one.
    rest: Range<usize>,
}

/// One connection.
#[derive(Debug)]
pub struct HttpConnection<S> {
    stream: S,
    /// Bytes of the requests that were sent.
    sent: u32,
    /// Requests that are sent together, and the number of their outstanding answers.
    asked: u16,
    due: u16,
    parser: Parser,
    check: Check,
}

impl<S: AsFd> AsFd for HttpConnection<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl<T: Transport> Layer for Http<T> {
    type Connection = HttpConnection<T::Stream>;

    fn new(spec: &Spec, persistent: bool) -> Result<Self, Refusal> {
        let transport = T::new(spec)?;
        let plain = spec.request.clone().unwrap_or_default();
        let host = plain.host.clone().or_else(|| spec.connect.map(|address| address.to_string()));
        let host = host.expect("the transport has checked \"connect\"");
        let request = request::build(spec.path.as_deref().unwrap_or("/"), &host, persistent, &plain)?;
        let depth = depth(spec, request.len())?;
        Ok(Self {
            transport,
            requests: request.repeat(depth.into()).into(),
            length: request.len(),
            depth,
            bodiless: plain.method.as_deref() == Some("HEAD"),
            verifier: Verifier::new(spec.expect)?,
            last: LastHead::default(),
            buffer: vec![0; BUFFER].into(),
            rest: 0..0,
        })
    }

    #[inline]
    fn open(&mut self) -> Result<Self::Connection, ErrorKind> {
        let stream = self.transport.open()?;
        let (parser, check) = (Parser::new(self.bodiless), Check::default());
        Ok(HttpConnection { stream, sent: 0, asked: 1, due: 0, parser, check })
    }

    #[inline]
    fn leave(&mut self, connection: &mut Self::Connection) -> bool {
        self.transport.leave(&mut connection.stream)
    }

    #[inline]
    fn reopen(&mut self, connection: &mut Self::Connection) -> Result<(), ErrorKind> {
        self.transport.reopen(&mut connection.stream)
    }

    #[inline]
    fn establish(&mut self, connection: &mut Self::Connection) -> Result<Flow, ErrorKind> {
        self.transport.establish(&mut connection.stream)
    }

    #[inline]
    fn depth(&self) -> u32 {
        self.depth.into()
    }

    #[inline]
    fn ask(&mut self, connection: &mut Self::Connection, requests: u32) {
        connection.asked = requests as u16;
    }

    #[inline]
    fn send(&mut self, connection: &mut Self::Connection) -> Result<Flow, ErrorKind> {
        let end = self.length * usize::from(connection.asked);
        loop {
            let rest = &self.requests[connection.sent as usize..end];
            let Some(n) = self.transport.send(&mut connection.stream, rest)? else {
                return Ok(Flow::Blocked);
            };
            connection.sent += n as u32;
            if n == rest.len() {
                connection.sent = 0;
                connection.due = connection.asked;
                connection.check = self.verifier.begin();
                return Ok(Flow::Done);
            }
        }
    }

    #[inline]
    fn receive(&mut self, connection: &mut Self::Connection) -> Result<Reply, ErrorKind> {
        for _ in 0..MAX_READS {
            let piece = if self.rest.is_empty() {
                match self.transport.receive(&mut connection.stream, &mut self.buffer)? {
                    None => return Ok(Reply::Waiting),
                    Some(0) => return self.end(connection).map(Reply::Complete),
                    Some(n) => 0..n,
                }
            } else {
                std::mem::take(&mut self.rest)
            };
            if let Some(answer) = self.take(connection, piece)? {
                return Ok(Reply::Complete(answer));
            }
        }
        Ok(Reply::Unfinished)
    }

    fn security(&self) -> Option<String> {
        self.transport.security()
    }
}

impl<T: Transport> Http<T> {
    /// Parses received bytes.
    #[inline]
    fn take(
        &mut self,
        connection: &mut HttpConnection<T::Stream>,
        piece: Range<usize>,
    ) -> Result<Option<Answer>, ErrorKind> {
        let HttpConnection { parser, check, .. } = connection;
        let verifier = &self.verifier;
        let state = parser
            .feed(&self.buffer[piece.clone()], &mut self.last, |at, bytes| verifier.body(check, at, bytes))
            .map_err(|_| ErrorKind::Malformed)?;
        // An unexpected head ends the operation at once: its body may never arrive.
        if let Some(head) = parser.head() {
            verifier.head(head)?;
        }
        let ParserState::Complete { rest } = state else { return Ok(None) };
        let answer = self.complete(connection)?;
        if rest > 0 && connection.due == 0 {
            // No further request was sent.
            return Err(ErrorKind::Malformed);
        }
        // Bytes behind the last answer before a close are ignored.
        if rest > 0 && answer.reusable {
            self.rest = piece.end - rest..piece.end;
        }
        Ok(Some(answer))
    }

    /// The peer has closed.
    #[cold]
    fn end(&mut self, connection: &mut HttpConnection<T::Stream>) -> Result<Answer, ErrorKind> {
        if connection.parser.end_completes() && !self.transport.is_cut(&connection.stream) {
            self.complete(connection)
        } else if connection.parser.is_fresh() {
            Err(ErrorKind::EmptyReply)
        } else {
            Err(ErrorKind::Truncated)
        }
    }

    #[inline]
    fn complete(&mut self, connection: &mut HttpConnection<T::Stream>) -> Result<Answer, ErrorKind> {
        let head = *connection.parser.head().expect("an answer is complete only after its head");
        let bytes = connection.parser.body_bytes();
        let verified = self.verifier.answer(&connection.check, bytes)?;
        connection.parser = Parser::new(self.bodiless);
        connection.due = connection.due.saturating_sub(1);
        if connection.due > 0 {
            connection.check = self.verifier.begin();
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
