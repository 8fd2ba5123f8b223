//! linerate's own HTTP/2 server: the same page for each GET, or the same message for each call of gRPC,
//! whatever stream it is on.

use super::{cause, rpc};
use crate::cause::peer_failed;
use crate::held::Held;
use crate::layer::wire::{Received, Room, Sink, Source, Wire, Wires};
use crate::layer::{Flow, MAX_READS};
use crate::refusal::Refusal;
use crate::server::{Fate, Service};
use linerate_contract::{ErrorKind, Spec, page};
use linerate_proto::h2::server::{Content, Server};
use nix::sys::socket::{Shutdown, shutdown};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

/// Bytes per read: some hundred requests.
const ROOM: Room = Room { input: 16 << 10, records: Room::STREAM.records };
/// The largest page, in bytes, as over HTTP/1.1.
const LARGEST_PAGE: u64 = 1 << 30;

/// A thread's part of the service.
#[derive(Debug, Clone)]
pub struct H2Service<W> {
    wires: W,
    content: Arc<Content>,
    input: Box<[u8]>,
}

/// One connection.
#[derive(Debug)]
pub struct ServedH2<W> {
    /// Created by the first event of the connection.
    wire: Option<W>,
    server: Server,
    /// The socket was full.
    blocked: bool,
    /// The client has broken the protocol.
    failed: bool,
    held: Held,
}

impl<W> Default for ServedH2<W> {
    fn default() -> Self {
        Self { wire: None, server: Server::default(), blocked: false, failed: false, held: Held::default() }
    }
}

impl<W: Wires> Service for H2Service<W> {
    type Connection = ServedH2<W::Wire>;

    fn new(spec: &Spec) -> Result<Self, Refusal> {
        if spec.size > LARGEST_PAGE {
            return Err(Refusal::BadSpec(format!("\"size\" must be at most {LARGEST_PAGE} bytes")));
        }
        let page = page(spec.size as usize);
        let content = match rpc::are_calls(spec)? {
            true => Content::call(&page, rpc::messages(spec)?),
            false => Content::page(&page),
        };
        Ok(Self { wires: W::new(spec)?, content: Arc::new(content), input: vec![0; ROOM.input].into() })
    }

    #[inline]
    fn has_progress(connection: &mut Self::Connection) -> bool {
        connection.server.take_progress()
    }

    #[inline]
    fn ready(&mut self, socket: &OwnedFd, connection: &mut Self::Connection, ended: bool) -> Fate {
        // A peer's error ends only its own connection.
        let fate = self.work(socket, connection, ended).unwrap_or_else(|kind| {
            peer_failed(kind);
            Fate::Close
        });
        if connection.held.keeps(connection.server.kept()) {
            return fate;
        }
        peer_failed(cause::too_much());
        Fate::Close
    }
}

impl<W: Wires> H2Service<W> {
    #[inline]
    fn work(
        &mut self,
        socket: &OwnedFd,
        connection: &mut ServedH2<W::Wire>,
        ended: bool,
    ) -> Result<Fate, ErrorKind> {
        let ServedH2 { wire, server, blocked, failed, .. } = connection;
        let wire = match wire {
            Some(wire) => wire,
            none => none.insert(self.wires.wire(ROOM)?),
        };
        if wire.establish(socket)? == Flow::Blocked {
            return Ok(Fate::Write);
        }
        let mut talk = H2Talk { content: &self.content, server, failed };
        // Pending output is sent before further input is read: that bounds the memory.
        *blocked = *blocked && wire.send(socket, &mut talk)? == Flow::Blocked;
        if *blocked {
            return Ok(Fate::Write);
        }
        for _ in 0..MAX_READS {
            let received = wire.receive(socket, &mut self.input, &mut talk)?;
            if received == Received::Nothing {
                return Ok(Fate::Read);
            }
            *blocked = wire.send(socket, &mut talk)? == Flow::Blocked;
            if *blocked && !*talk.failed {
                return Ok(Fate::Write);
            }
            if *talk.failed || received == Received::End {
                wire.end();
                let _ = wire.send(socket, &mut talk);
                let _ = shutdown(socket.as_raw_fd(), Shutdown::Write);
                return Ok(Fate::Close);
            }
            if received == Received::Drained && !ended {
                return Ok(Fate::Read);
            }
        }
        Ok(Fate::Again)
    }
}

/// The talk on top of the wire: requests in, responses out.
struct H2Talk<'a> {
    content: &'a Content,
    server: &'a mut Server,
    failed: &'a mut bool,
}

impl Sink for H2Talk<'_> {
    #[inline]
    fn take(&mut self, bytes: &mut [u8]) -> Result<(), ErrorKind> {
        if let (false, Err(code)) = (*self.failed, self.server.feed(bytes)) {
            // What was queued before is sent, and the reason.
            *self.failed = true;
            peer_failed(cause::broken(code, bytes));
        }
        Ok(())
    }
}

impl Source for H2Talk<'_> {
    #[inline]
    fn prepare(&mut self) -> bool {
        self.server.has_output()
    }

    /// Frames are made where they are sent from.
    fn slices(&self) -> Option<[&[u8]; 2]> {
        None
    }

    fn advance(&mut self, _count: usize) -> bool {
        false
    }

    #[inline]
    fn fill(&mut self, room: &mut [u8]) -> usize {
        self.server.fill(self.content, room)
    }
}
