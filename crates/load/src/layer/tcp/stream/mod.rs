//! `stream` over TCP: client and server write and compare content without the engine's loop.
//!
//! The two halves of a connection, [`Outgoing`] and [`Incoming`], are the same at both ends. [`client`] and
//! [`service`] combine them by direction.

pub mod client;
mod mode;
mod sampler;
mod service;
mod worker;

pub use service::StreamService;

use crate::layer::transfer::{Content, Incoming, Number, good};
use crate::refusal::Refusal;
use linerate_contract::Spec;
use mode::{CopyMode, Writer};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, send};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

/// Bytes that a connection may move before the others get their turn.
const TURN: usize = 1 << 20;
/// N of a stream that ends by time (sdk/CONTRACT.md).
const UNTIL_TIME_IS_OVER: u64 = u64::MAX;

/// Content, and how it passes through the kernel.
#[derive(Debug, Clone)]
struct Payload {
    content: Content,
    mode: CopyMode,
    /// The content as a file, where the mode needs one.
    file: Option<Arc<OwnedFd>>,
}

impl Payload {
    fn new(spec: &Spec) -> Result<Self, Refusal> {
        let content = Content::new(spec)?;
        let mode = spec.choice::<CopyMode>()?.unwrap_or(CopyMode::Plain);
        let needs_file = matches!(mode, CopyMode::Sendfile | CopyMode::Splice);
        let file = needs_file.then(|| mode::file_of(content.bytes())).transpose()?;
        Ok(Self { content, mode, file })
    }
}

/// The state of one half of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// All of it has passed.
    Complete,
    /// The socket is full or empty.
    Blocked,
    /// The turn is used up.
    Turn,
    /// The peer closed its half.
    End,
}

/// Content to write, up to `total`.
#[derive(Debug, Default)]
struct Outgoing {
    at: u64,
    total: u64,
    writer: Writer,
}

impl Outgoing {
    /// Starts the next transfer.
    fn restart(&mut self, total: u64) {
        (self.at, self.total) = (0, total);
    }

    /// Writes one piece; `Turn` if all or a part of it was written.
    #[inline]
    fn push(&mut self, socket: &OwnedFd, payload: &Payload) -> nix::Result<Progress> {
        while self.at < self.total {
            let length = (self.total - self.at).min(payload.content.size() as u64) as usize;
            let piece = payload.content.at(self.at, length);
            match self.writer.write(payload.mode, socket, piece, self.at, payload.file.as_deref()) {
                Ok(n) => {
                    self.at += n as u64;
                    return Ok(if self.at < self.total { Progress::Turn } else { Progress::Complete });
                }
                Err(Errno::EAGAIN) => return Ok(Progress::Blocked),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(Progress::Complete)
    }
}

impl Incoming {
    /// Reads and compares one piece; `Turn` if something arrived.
    #[inline]
    fn pull(&mut self, socket: &OwnedFd, payload: &Payload, buffer: &mut [u8]) -> nix::Result<Progress> {
        while self.at < self.total {
            let length = self.next_read(payload.content.size());
            match mode::receive(payload.mode, socket, &mut buffer[..length]) {
                Ok(0) => return Ok(Progress::End),
                Ok(n) => {
                    let good = match payload.mode.compares() {
                        true => good(&buffer[..n], payload.content.at(self.at, n)),
                        false => n as u64,
                    };
                    self.add(n, good);
                    return Ok(if self.at < self.total { Progress::Turn } else { Progress::Complete });
                }
                Err(Errno::EAGAIN) => return Ok(Progress::Blocked),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(Progress::Complete)
    }
}

/// Moves both halves, a piece of each in turn, until neither can or the turn is over: the states of sending
/// and reading.
///
/// One piece at a time: what waits in the socket is then still in the cache when it is read, and a peer that
/// waits for room gets it early.
fn exchange(
    socket: &OwnedFd,
    payload: &Payload,
    (out, input): (&mut Outgoing, &mut Incoming),
    buffer: &mut [u8],
) -> nix::Result<(Progress, Progress)> {
    let before = out.at + input.at;
    let (mut sending, mut reading) = (Progress::Turn, Progress::Turn);
    while (sending == Progress::Turn || reading == Progress::Turn) && out.at + input.at - before < TURN as u64
    {
        if sending == Progress::Turn {
            sending = out.push(socket, payload)?;
        }
        if reading == Progress::Turn {
            reading = input.pull(socket, payload, buffer)?;
        }
    }
    Ok((sending, reading))
}

impl Number {
    /// Sends the rest. `more`: content follows at once and shares the first segment.
    fn push(&mut self, socket: &OwnedFd, more: bool) -> nix::Result<Progress> {
        let flags = if more { MsgFlags::from_bits_retain(libc::MSG_MORE) } else { MsgFlags::empty() };
        while !self.is_complete() {
            match send(socket.as_raw_fd(), self.rest(), flags | MsgFlags::MSG_NOSIGNAL) {
                Ok(n) => self.advance(n),
                Err(Errno::EAGAIN) => return Ok(Progress::Blocked),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(Progress::Complete)
    }

    fn pull(&mut self, socket: &OwnedFd) -> nix::Result<Progress> {
        while !self.is_complete() {
            match recv(socket.as_raw_fd(), self.rest(), MsgFlags::empty()) {
                Ok(0) => return Ok(Progress::End),
                Ok(n) => self.advance(n),
                Err(Errno::EAGAIN) => return Ok(Progress::Blocked),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(Progress::Complete)
    }
}
