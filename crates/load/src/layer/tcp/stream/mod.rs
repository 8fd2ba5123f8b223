//! Bulk over TCP: one way, the other way, or both at once; each side compares all that it receives.
//!
//! The two halves of a connection, [`Outgoing`] and [`Incoming`], are the same at both ends. [`client`] and [`service`] put
//! them together as the contract's three directions ask.

pub mod client;
mod mode;
mod progress;
mod service;

pub use service::StreamService;

use crate::refusal::Refusal;
use linerate_contract::{Spec, page};
use mode::{Mode, Writer};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, send};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

/// The contract's: content repeats with this period.
const PERIOD: usize = 65_536;
/// The largest buffer. Beyond it the socket's own buffer decides how much a call moves.
const LARGEST_WRITE: u64 = 16 << 20;
/// Bytes that a connection may move before the others get their turn.
const TURN: usize = 1 << 20;

/// Which way the payload goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::layer) enum Direction {
    ClientWrites,
    ClientReads,
    Both,
}

impl Direction {
    pub(in crate::layer) fn of(spec: &Spec) -> Result<Self, Refusal> {
        match spec.options.get("direction").map(String::as_str) {
            Some("client-writes") => Ok(Self::ClientWrites),
            Some("client-reads") => Ok(Self::ClientReads),
            Some("both") => Ok(Self::Both),
            other => Err(Refusal::BadSpec(format!(
                "\"options.direction\" must be client-writes, client-reads or both, not {other:?}"
            ))),
        }
    }
}

/// Content at any offset as one slice, and the size of a read and a write.
#[derive(Debug, Clone)]
pub(in crate::layer) struct Content {
    bytes: Arc<[u8]>,
    size: usize,
    mode: Mode,
    /// The same as a file, where the mode needs one.
    file: Option<Arc<OwnedFd>>,
}

impl Content {
    pub(in crate::layer) fn new(spec: &Spec) -> Result<Self, Refusal> {
        if !(1..=LARGEST_WRITE).contains(&spec.size) {
            return Err(Refusal::BadSpec(format!("\"size\" must be 1 to {LARGEST_WRITE} bytes")));
        }
        let size = spec.size as usize;
        let mode = Mode::of(spec)?;
        let bytes: Arc<[u8]> = page(PERIOD).into_iter().cycle().take(PERIOD + size).collect();
        let file =
            matches!(mode, Mode::Sendfile | Mode::Splice).then(|| mode::file_of(&bytes)).transpose()?;
        Ok(Self { bytes, size, mode, file })
    }

    /// Bytes of a read or a write.
    pub(in crate::layer) fn size(&self) -> usize {
        self.size
    }

    #[inline]
    pub(in crate::layer) fn at(&self, offset: u64, length: usize) -> &[u8] {
        let start = (offset % PERIOD as u64) as usize;
        &self.bytes[start..start + length]
    }
}

/// How a half of a connection stands.
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

/// Bytes to write: content up to `total`.
#[derive(Debug, Default)]
struct Outgoing {
    at: u64,
    total: u64,
    writer: Writer,
}

impl Outgoing {
    fn up_to(total: u64) -> Self {
        Self { total, ..Self::default() }
    }

    /// Writes one piece; `Turn` if it went, or a part of it.
    #[inline]
    fn push(&mut self, socket: &OwnedFd, content: &Content) -> nix::Result<Progress> {
        while self.at < self.total {
            let length = (self.total - self.at).min(content.size as u64) as usize;
            let piece = content.at(self.at, length);
            match self.writer.write(content.mode, socket, piece, self.at, content.file.as_deref()) {
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

/// Bytes to read and compare, up to `total` or up to the peer's end.
#[derive(Debug, Clone, Copy, Default)]
struct Incoming {
    at: u64,
    total: u64,
    /// Those that were what they should be.
    good: u64,
}

impl Incoming {
    fn up_to(total: u64) -> Self {
        Self { at: 0, total, good: 0 }
    }

    /// Reads one piece; `Turn` if something came.
    #[inline]
    fn pull(&mut self, socket: &OwnedFd, content: &Content, buffer: &mut [u8]) -> nix::Result<Progress> {
        while self.at < self.total {
            let length = (self.total - self.at).min(content.size as u64) as usize;
            match mode::receive(content.mode, socket, &mut buffer[..length]) {
                Ok(0) => return Ok(Progress::End),
                Ok(n) => {
                    self.good += match content.mode.compares() {
                        true => good(&buffer[..n], content.at(self.at, n)),
                        false => n as u64,
                    };
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

/// Moves both halves, a piece of each in turn, until neither can or the turn is over; how sending and reading stand.
///
/// A piece each: what lies in the socket is then little enough to be in the cache still when it is read, and a peer that
/// waits for room gets it early.
fn exchange(
    socket: &OwnedFd,
    content: &Content,
    (out, input): (&mut Outgoing, &mut Incoming),
    buffer: &mut [u8],
) -> nix::Result<(Progress, Progress)> {
    let before = out.at + input.at;
    let (mut sending, mut reading) = (Progress::Turn, Progress::Turn);
    while (sending == Progress::Turn || reading == Progress::Turn) && out.at + input.at - before < TURN as u64
    {
        if sending == Progress::Turn {
            sending = out.push(socket, content)?;
        }
        if reading == Progress::Turn {
            reading = input.pull(socket, content, buffer)?;
        }
    }
    Ok((sending, reading))
}

/// How many bytes are what they should be: all, or counted one by one.
#[inline]
pub(in crate::layer) fn good(bytes: &[u8], wanted: &[u8]) -> u64 {
    if bytes == wanted {
        return bytes.len() as u64;
    }
    bytes.iter().zip(wanted).filter(|(is, should)| is == should).count() as u64
}

/// A number of eight bytes that goes before or behind the content.
#[derive(Debug, Clone, Copy, Default)]
struct Number {
    bytes: [u8; 8],
    at: usize,
}

impl Number {
    fn new(value: u64) -> Self {
        Self { bytes: value.to_le_bytes(), at: 0 }
    }

    fn value(self) -> u64 {
        u64::from_le_bytes(self.bytes)
    }

    fn push(&mut self, socket: &OwnedFd) -> nix::Result<Progress> {
        while self.at < self.bytes.len() {
            match send(socket.as_raw_fd(), &self.bytes[self.at..], MsgFlags::MSG_NOSIGNAL) {
                Ok(n) => self.at += n,
                Err(Errno::EAGAIN) => return Ok(Progress::Blocked),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(Progress::Complete)
    }

    fn pull(&mut self, socket: &OwnedFd) -> nix::Result<Progress> {
        while self.at < self.bytes.len() {
            match recv(socket.as_raw_fd(), &mut self.bytes[self.at..], MsgFlags::empty()) {
                Ok(0) => return Ok(Progress::End),
                Ok(n) => self.at += n,
                Err(Errno::EAGAIN) => return Ok(Progress::Blocked),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(Progress::Complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Role;

    #[test]
    fn content_repeats_and_is_one_slice_at_any_offset() {
        let mut spec = Spec::new(Role::Client, "tcp", "stream");
        spec.size = 1000;
        let content = Content::new(&spec).unwrap();
        let page = page(PERIOD);
        assert_eq!(content.at(0, 1000), &page[..1000]);
        assert_eq!(content.at(PERIOD as u64 * 3 + 7, 1000), &page[7..1007]);
        let across = content.at(PERIOD as u64 - 1, 2);
        assert_eq!(across, [page[PERIOD - 1], page[0]]);
    }

    #[test]
    fn only_good_bytes_count() {
        assert_eq!(good(b"abcd", b"abcd"), 4);
        assert_eq!(good(b"abXd", b"abcd"), 3);
    }
}
