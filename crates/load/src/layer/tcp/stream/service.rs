//! The server of `stream` over TCP.

use super::{Incoming, Number, Outgoing, Payload, Progress, UNTIL_TIME_IS_OVER, exchange};
use crate::process::emit;
use crate::refusal::Refusal;
use crate::server::{Fate, Service};
use crate::tcp_info;
use linerate_contract::{Direction, Event, Spec};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use std::os::fd::{AsRawFd, OwnedFd};

/// Stages of a connection in a turn: short transfers that follow one another cannot occupy a thread.
const MAX_STAGES: u32 = 64;

/// A thread's part of the service.
#[derive(Debug, Clone)]
pub struct StreamService {
    /// Absent: each client has its own (`options.direction` is `any`).
    direction: Option<Direction>,
    /// Transfers of each connection.
    transfers: u64,
    payload: Payload,
    buffer: Box<[u8]>,
}

/// The stage of a transfer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    /// The client's number is awaited.
    #[default]
    Start,
    Content,
    /// The number of good bytes is on its way.
    Answer,
}

/// One connection.
#[derive(Debug, Default)]
pub struct StreamConnection {
    direction: Option<Direction>,
    stage: Stage,
    /// N of the current transfer.
    wanted: Number,
    out: Outgoing,
    input: Incoming,
    /// Transfers before the current one.
    completed: u64,
    answer: Number,
}

impl Service for StreamService {
    type Connection = StreamConnection;

    fn new(spec: &Spec) -> Result<Self, Refusal> {
        let payload = Payload::new(spec)?;
        let any = spec.option("direction") == Some("any");
        let direction = if any { None } else { Some(spec.direction()?) };
        let buffer = vec![0; payload.content.size()].into();
        Ok(Self { direction, transfers: spec.transfers()?, payload, buffer })
    }

    #[inline]
    fn ready(&mut self, socket: &OwnedFd, connection: &mut StreamConnection, _ended: bool) -> Fate {
        self.advance(socket, connection).unwrap_or(Fate::Close)
    }
}

impl StreamService {
    fn advance(&mut self, socket: &OwnedFd, c: &mut StreamConnection) -> nix::Result<Fate> {
        for _ in 0..MAX_STAGES {
            match c.stage {
                Stage::Start => {
                    if c.direction.is_none() {
                        match self.direction.map_or_else(|| recognise(socket), |known| Ok(Some(known)))? {
                            None => return Ok(Fate::Read),
                            known => c.direction = known,
                        }
                    }
                    match c.wanted.pull(socket)? {
                        Progress::Complete => {}
                        Progress::End => return Ok(Fate::Close),
                        Progress::Blocked | Progress::Turn => return Ok(Fate::Read),
                    }
                    if !self.begin(socket, c) {
                        return Ok(Fate::Close);
                    }
                }
                Stage::Content => {
                    if let Some(fate) = self.content(socket, c)? {
                        return Ok(fate);
                    }
                }
                Stage::Answer => {
                    if c.answer.push(socket, false)? == Progress::Blocked {
                        return Ok(Fate::Write);
                    }
                    if c.wanted.value() == UNTIL_TIME_IS_OVER {
                        return Ok(Fate::Close);
                    }
                    c.complete();
                }
            }
        }
        Ok(Fate::Again)
    }

    /// The client's number has arrived; false if it is not valid.
    fn begin(&self, socket: &OwnedFd, c: &mut StreamConnection) -> bool {
        let (total, direction) = (c.wanted.value(), c.direction());
        if direction == Direction::Both && total == UNTIL_TIME_IS_OVER {
            return false;
        }
        c.out.restart(if direction.client_reads() { total } else { 0 });
        c.input = Incoming::up_to(if direction.client_writes() { total } else { 0 });
        c.stage = Stage::Content;
        if direction == Direction::ClientReads && self.is_last(c) {
            // The last piece waits until the connection's figures are printed: the client may exit when it
            // has all.
            c.out.total = total.saturating_sub(self.payload.content.size() as u64);
            if c.out.total == 0 {
                print_info(socket);
                c.out.total = total;
            }
        }
        true
    }

    /// Moves content; `None` if the next stage has begun.
    #[inline]
    fn content(&mut self, socket: &OwnedFd, c: &mut StreamConnection) -> nix::Result<Option<Fate>> {
        let (sending, reading) =
            exchange(socket, &self.payload, (&mut c.out, &mut c.input), &mut self.buffer)?;
        if reading == Progress::End {
            let is_end = c.wanted.value() == UNTIL_TIME_IS_OVER && c.direction() == Direction::ClientWrites;
            if !is_end {
                return Ok(Some(Fate::Close));
            }
        }
        match (sending, reading) {
            (Progress::Turn, _) | (_, Progress::Turn) => return Ok(Some(Fate::Again)),
            (Progress::Blocked, _) => return Ok(Some(Fate::Write)),
            (_, Progress::Blocked) => return Ok(Some(Fate::Read)),
            _ => {}
        }
        if c.direction() == Direction::ClientReads {
            if c.out.total < c.wanted.value() {
                print_info(socket);
                c.out.total = c.wanted.value();
            } else {
                c.complete();
            }
            return Ok(None);
        }
        if self.is_last(c) {
            print_info(socket);
        }
        (c.answer, c.stage) = (Number::new(c.input.good), Stage::Answer);
        Ok(None)
    }

    fn is_last(&self, c: &StreamConnection) -> bool {
        c.completed + 1 == self.transfers
    }
}

impl StreamConnection {
    fn direction(&self) -> Direction {
        self.direction.expect("it is set before the first number is read")
    }

    /// The transfer is complete; the next one may begin.
    fn complete(&mut self) {
        (self.stage, self.wanted) = (Stage::Start, Number::default());
        self.completed += 1;
    }
}

/// The direction of a client of this engine, by its first segment: a number alone reads, a number with
/// content writes. `None` while the number is not complete.
fn recognise(socket: &OwnedFd) -> nix::Result<Option<Direction>> {
    let mut first = [0; 9];
    match recv(socket.as_raw_fd(), &mut first, MsgFlags::MSG_PEEK) {
        Ok(0) => Err(Errno::ECONNRESET),
        Ok(8) => Ok(Some(Direction::ClientReads)),
        Ok(9) => Ok(Some(Direction::ClientWrites)),
        Ok(_) | Err(Errno::EAGAIN) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Prints the connection's `TCP_INFO`, before the client can see the end of the stream: a reader that waits
/// for the client then has it.
fn print_info(socket: &OwnedFd) {
    if let Ok(info) = tcp_info::info(socket) {
        emit(&Event::Tcp(info));
    }
}
