//! linerate's own HTTP/1.1 server: one `recv(2)` and one `send(2)` for a request, nothing in between but the parser.
//!
//! It answers any GET with the same page, head and body in one piece that was built before. It is the limit row of
//! HTTP suites and the far end of the engine's own benchmarks, so it does as little as RFC 9112 allows.

use super::request::{Parsed, parse};
use crate::refusal::Refusal;
use crate::server::{Fate, Service};
use linerate_contract::{Spec, page};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, Shutdown, recv, send, shutdown};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

/// Input that is read at once, and the longest request: a browser's with cookies is 2 KiB.
const BUFFER: usize = 16 << 10;
/// After a refusal input is thrown away, so that close(2) does not reset the connection before the 400 has
/// arrived; a peer that sends more than this gets its reset.
const LINGER_BYTES: usize = 1 << 20;
/// The largest page: it is held in memory twice.
const LARGEST_PAGE: u64 = 1 << 30;

const BAD_REQUEST: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// A thread's end of the service.
#[derive(Debug, Clone)]
pub struct HttpService {
    /// The whole answer, for a connection that stays and for one that closes.
    keep: Arc<[u8]>,
    close: Arc<[u8]>,
    buffer: Box<[u8]>,
}

/// One connection.
#[derive(Debug, Default)]
pub struct Connection {
    /// Bytes of the current answer that are sent.
    sent: usize,
    doing: Doing,
    /// Input that is not answered yet: a request that was cut, or some that came ahead of their turn.
    pending: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Doing {
    #[default]
    Reading,
    /// In the middle of an answer; whether the connection stays.
    Answering { keep: bool },
    /// Refused: so much input was thrown away.
    Lingering(usize),
}

impl Service for HttpService {
    type Connection = Connection;

    fn new(spec: &Spec) -> Result<Self, Refusal> {
        if spec.size > LARGEST_PAGE {
            return Err(Refusal::BadSpec(format!("\"size\" must be at most {LARGEST_PAGE} bytes")));
        }
        let body = page(spec.size as usize);
        let answer = |connection: &str| -> Arc<[u8]> {
            let head = format!(
                "HTTP/1.1 200 OK\r\nServer: linerate\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: {connection}\r\n\r\n",
                body.len()
            );
            [head.as_bytes(), &body].concat().into()
        };
        Ok(Self { keep: answer("keep-alive"), close: answer("close"), buffer: vec![0; BUFFER].into() })
    }

    #[inline]
    fn ready(&mut self, socket: &OwnedFd, connection: &mut Connection, ended: bool) -> Fate {
        if let Doing::Answering { keep } = connection.doing {
            match self.answer(socket, connection, keep) {
                Fate::Read => {}
                fate => return fate,
            }
        }
        if !connection.pending.is_empty() {
            match self.answer_pending(socket, connection, &[]) {
                Fate::Read => {}
                fate => return fate,
            }
        }
        self.read(socket, connection, ended)
    }
}

impl HttpService {
    fn read(&mut self, socket: &OwnedFd, connection: &mut Connection, ended: bool) -> Fate {
        let mut buffer = std::mem::take(&mut self.buffer);
        let fate = loop {
            let n = match recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                Ok(0) => break Fate::Close,
                Ok(n) => n,
                Err(Errno::EAGAIN) => break Fate::Read,
                Err(Errno::EINTR) => continue,
                Err(_) => break Fate::Close,
            };
            let fate = self.take(socket, connection, &buffer[..n]);
            // A read that did not fill the buffer has emptied the socket (epoll(7)).
            if fate != Fate::Read || (n < BUFFER && !ended) {
                break fate;
            }
        };
        self.buffer = buffer;
        fate
    }

    #[inline]
    fn take(&mut self, socket: &OwnedFd, connection: &mut Connection, bytes: &[u8]) -> Fate {
        if let Doing::Lingering(thrown) = &mut connection.doing {
            *thrown += bytes.len();
            return if *thrown > LINGER_BYTES { Fate::Close } else { Fate::Read };
        }
        if !connection.pending.is_empty() {
            return self.answer_pending(socket, connection, bytes);
        }
        let (used, fate) = self.answer_all(socket, connection, bytes);
        if fate != Fate::Close && used < bytes.len() {
            connection.pending = bytes[used..].to_vec();
        }
        fate
    }

    /// Answers what had to wait, with `more` behind it.
    #[cold]
    fn answer_pending(&mut self, socket: &OwnedFd, connection: &mut Connection, more: &[u8]) -> Fate {
        let mut pending = std::mem::take(&mut connection.pending);
        pending.extend_from_slice(more);
        let (used, fate) = self.answer_all(socket, connection, &pending);
        if fate != Fate::Close && used < pending.len() {
            pending.drain(..used);
            connection.pending = pending;
        }
        fate
    }

    /// Answers the whole requests at the start of `bytes`; how many bytes those are, and what to do next.
    #[inline]
    fn answer_all(&mut self, socket: &OwnedFd, connection: &mut Connection, bytes: &[u8]) -> (usize, Fate) {
        let mut used = 0;
        while used < bytes.len() {
            match parse(&bytes[used..]) {
                Parsed::Get { length, keep } => {
                    used += length;
                    match self.answer(socket, connection, keep) {
                        Fate::Read => {}
                        fate => return (used, fate),
                    }
                }
                Parsed::Partial if bytes.len() - used < BUFFER => return (used, Fate::Read),
                Parsed::Partial | Parsed::Bad => return (bytes.len(), refuse(socket, connection)),
            }
        }
        (used, Fate::Read)
    }

    /// Sends (the rest of) an answer. [`Fate::Read`]: it is out, and the connection stays.
    #[inline]
    fn answer(&self, socket: &OwnedFd, connection: &mut Connection, keep: bool) -> Fate {
        let answer = if keep { &self.keep } else { &self.close };
        loop {
            match send(socket.as_raw_fd(), &answer[connection.sent..], MsgFlags::MSG_NOSIGNAL) {
                Ok(n) if connection.sent + n == answer.len() => {
                    connection.sent = 0;
                    connection.doing = Doing::Reading;
                    return if keep { Fate::Read } else { Fate::Close };
                }
                Ok(n) => connection.sent += n,
                Err(Errno::EAGAIN) => {
                    connection.doing = Doing::Answering { keep };
                    return Fate::Write;
                }
                Err(Errno::EINTR) => {}
                Err(_) => return Fate::Close,
            }
        }
    }
}

/// 400, no more output, and input is thrown away until its end.
#[cold]
fn refuse(socket: &OwnedFd, connection: &mut Connection) -> Fate {
    // A fresh answer of 70 bytes fits any send buffer that is not full of answers nobody reads.
    let sent = send(socket.as_raw_fd(), BAD_REQUEST, MsgFlags::MSG_NOSIGNAL);
    if sent != Ok(BAD_REQUEST.len()) || shutdown(socket.as_raw_fd(), Shutdown::Write).is_err() {
        return Fate::Close;
    }
    connection.doing = Doing::Lingering(0);
    Fate::Read
}
