//! The server of `stream`.

use super::{Content, Direction, Incoming, Number, Outgoing, Progress, exchange};
use crate::process::emit;
use crate::refusal::Refusal;
use crate::server::{Fate, Service};
use crate::tcp_info;
use linerate_contract::{Event, Spec};
use nix::sys::socket::{Shutdown, shutdown};
use std::os::fd::{AsRawFd, OwnedFd};

/// A thread's end of the service.
#[derive(Debug, Clone)]
pub struct StreamService {
    direction: Direction,
    content: Content,
    buffer: Box<[u8]>,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    /// How much the client wants, once it has said so.
    wanted: Number,
    out: Outgoing,
    input: Incoming,
    /// What goes back at the end, once it is known.
    count: Option<Number>,
    shut: bool,
}

impl Default for Connection {
    fn default() -> Self {
        Self {
            wanted: Number::default(),
            out: Outgoing::default(),
            input: Incoming::up_to(u64::MAX),
            count: None,
            shut: false,
        }
    }
}

impl Service for StreamService {
    type Connection = Connection;

    fn new(spec: &Spec) -> Result<Self, Refusal> {
        let content = Content::new(spec)?;
        Ok(Self { direction: Direction::of(spec)?, buffer: vec![0; content.size].into(), content })
    }

    #[inline]
    fn ready(&mut self, socket: &OwnedFd, connection: &mut Connection, _ended: bool) -> Fate {
        self.work(socket, connection).unwrap_or(Fate::Close)
    }
}

impl StreamService {
    fn work(&mut self, socket: &OwnedFd, c: &mut Connection) -> nix::Result<Fate> {
        if self.direction != Direction::ClientWrites && c.wanted.at < 8 {
            match c.wanted.pull(socket)? {
                Progress::Complete => c.out.total = c.wanted.value(),
                Progress::End => return Ok(Fate::Close),
                Progress::Blocked | Progress::Turn => return Ok(Fate::Read),
            }
        }
        let (sending, reading) =
            exchange(socket, &self.content, (&mut c.out, &mut c.input), &mut self.buffer)?;
        if self.direction == Direction::ClientReads && sending == Progress::Complete && !c.shut {
            tell(socket);
            shutdown(socket.as_raw_fd(), Shutdown::Write)?;
            c.shut = true;
        }
        if reading == Progress::End && sending == Progress::Complete {
            return Self::finish(self.direction, socket, c);
        }
        Ok(match (sending, reading) {
            (Progress::Turn, _) | (_, Progress::Turn) => Fate::Again,
            (Progress::Blocked, _) => Fate::Write,
            _ => Fate::Read,
        })
    }

    /// Both halves of the content have passed: the count follows, where there is one.
    fn finish(direction: Direction, socket: &OwnedFd, c: &mut Connection) -> nix::Result<Fate> {
        if direction == Direction::ClientReads {
            return Ok(Fate::Close);
        }
        let good = c.input.good;
        let count = c.count.get_or_insert_with(|| {
            tell(socket);
            Number::new(good)
        });
        Ok(if count.push(socket)? == Progress::Complete { Fate::Close } else { Fate::Write })
    }
}

/// How the connection fared, before the client can know that the stream is over: whoever waits for the client has it then.
fn tell(socket: &OwnedFd) {
    if let Ok(info) = tcp_info::info(socket) {
        emit(&Event::Tcp(info));
    }
}
