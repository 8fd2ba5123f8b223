//! The server of `stream`.

use super::{Content, Direction, Incoming, Number, Outgoing, Progress, exchange, good};
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
    /// Absent: each client's own (`options.direction` is `any`).
    direction: Option<Direction>,
    content: Content,
    buffer: Box<[u8]>,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    /// Where it was told from what the client sent first.
    told: Option<Direction>,
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
            told: None,
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
        let any = spec.options.get("direction").is_some_and(|direction| direction == "any");
        let direction = if any { None } else { Some(Direction::of(spec)?) };
        Ok(Self { direction, buffer: vec![0; content.size].into(), content })
    }

    #[inline]
    fn ready(&mut self, socket: &OwnedFd, connection: &mut Connection, _ended: bool) -> Fate {
        self.work(socket, connection).unwrap_or(Fate::Close)
    }
}

impl StreamService {
    fn work(&mut self, socket: &OwnedFd, c: &mut Connection) -> nix::Result<Fate> {
        let Some(direction) = self.direction.or(c.told) else {
            c.told = self.recognise(socket, c)?;
            return if c.told.is_some() { self.work(socket, c) } else { Ok(Fate::Read) };
        };
        if direction != Direction::ClientWrites && c.wanted.at < 8 {
            match c.wanted.pull(socket)? {
                Progress::Complete => c.out.total = c.wanted.value(),
                Progress::End => return Ok(Fate::Close),
                Progress::Blocked | Progress::Turn => return Ok(Fate::Read),
            }
        }
        let (sending, reading) =
            exchange(socket, &self.content, (&mut c.out, &mut c.input), &mut self.buffer)?;
        if direction == Direction::ClientReads && sending == Progress::Complete && !c.shut {
            tell(socket);
            shutdown(socket.as_raw_fd(), Shutdown::Write)?;
            c.shut = true;
        }
        if reading == Progress::End && sending == Progress::Complete {
            return Self::finish(direction, socket, c);
        }
        Ok(match (sending, reading) {
            (Progress::Turn, _) | (_, Progress::Turn) => Fate::Again,
            (Progress::Blocked, _) => Fate::Write,
            _ => Fate::Read,
        })
    }

    /// Which way a client's stream goes: it begins with content that it writes, or with the number of bytes that it wants to read.
    /// `None` while that is open. As a number, the first bytes of content are more than anybody asks for.
    fn recognise(&self, socket: &OwnedFd, c: &mut Connection) -> nix::Result<Option<Direction>> {
        let progress = c.wanted.pull(socket)?;
        if progress == Progress::Blocked {
            return Ok(None);
        }
        let first = &c.wanted.bytes[..c.wanted.at];
        let content = self.content.at(0, first.len());
        if progress == Progress::Complete && first != content {
            c.out.total = c.wanted.value();
            return Ok(Some(Direction::ClientReads));
        }
        (c.input.at, c.input.good) = (first.len() as u64, good(first, content));
        Ok(Some(Direction::ClientWrites))
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
