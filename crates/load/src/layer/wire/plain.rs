//! Bare TCP.

use super::passage::{Copied, Passage};
use super::{Flow, Received, Room, Sink, Source, Wire, Wires};
use crate::held::{self, Held};
use crate::refusal::Refusal;
use crate::socket::{connect_error, recv, send, stream_error};
use linerate_contract::{ErrorKind, Spec};
use nix::errno::Errno;
use nix::sys::socket::MsgFlags;
use std::cell::Cell;
use std::os::fd::{AsRawFd, OwnedFd};

/// The bytes that are made before they are sent. Half takes more calls; twice leaves the cache.
const OUTPUT: usize = 128 << 10;

/// The bytes that are kept while many connections wait with bytes of their own: then each has little.
const SCARCE: usize = 4 << 10;

thread_local! {
    /// Connections have a buffer only while their sockets are full: else this one is for all of a thread.
    static SPARE: Cell<Option<Box<Outbox>>> = const { Cell::new(None) };
}

fn spare() -> Box<Outbox> {
    SPARE.take().unwrap_or_else(|| Box::new(Outbox::new(OUTPUT)))
}

/// See [`Wires`].
#[derive(Debug, Clone)]
pub struct PlainWires<P = Copied>(P);

impl<P: Passage> Wires for PlainWires<P> {
    type Wire = PlainWire<P>;

    fn new(spec: &Spec) -> Result<Self, Refusal> {
        P::new(spec).map(Self)
    }

    #[inline]
    fn wire(&self, _room: Room) -> Result<PlainWire<P>, ErrorKind> {
        Ok(PlainWire { output: None, established: false, passage: self.0.clone() })
    }
}

/// See [`Wire`].
#[derive(Debug)]
pub struct PlainWire<P = Copied> {
    /// The rest, after a full socket, of a source that cannot be sent as it lies in memory.
    output: Option<Box<Outbox>>,
    /// Something was sent: errors are no longer connect errors.
    established: bool,
    passage: P,
}

impl<P: Passage> Wire for PlainWire<P> {
    const SHAKES: bool = false;

    fn establish(&mut self, _socket: &OwnedFd) -> Result<Flow, ErrorKind> {
        Ok(Flow::Done)
    }

    #[inline]
    fn send(&mut self, socket: &OwnedFd, source: &mut impl Source) -> Result<Flow, ErrorKind> {
        loop {
            if self.output.is_some() && self.flush(socket)? == Flow::Blocked {
                return Ok(Flow::Blocked);
            }
            loop {
                if !source.prepare() {
                    return Ok(Flow::Done);
                }
                let Some(slices) = source.slices() else { break };
                match self.passage.write(socket, source, slices) {
                    Ok(count) => {
                        self.established = true;
                        if !source.advance(count) {
                            return Ok(Flow::Done);
                        }
                    }
                    Err(Errno::EAGAIN) => return Ok(Flow::Blocked),
                    Err(Errno::EINTR) => {}
                    Err(errno) if self.established => return Err(stream_error(errno)),
                    Err(errno) => return Err(connect_error(errno)),
                }
            }
            let most = if held::is_scarce(OUTPUT) { SCARCE } else { OUTPUT };
            let output = self.output.insert(spare());
            output.begin(|room| source.fill(&mut room[..most]));
        }
    }

    #[inline(always)]
    fn receive(
        &mut self,
        socket: &OwnedFd,
        input: &mut [u8],
        sink: &mut impl Sink,
    ) -> Result<Received, ErrorKind> {
        if self.passage.discards() && sink.awaited() > 0 {
            let most = sink.awaited().min(input.len() as u64) as usize;
            let received = receive(socket, &mut input[..most], MsgFlags::MSG_TRUNC)?;
            return Ok(received.map_or_else(
                |nothing| nothing,
                |count| {
                    sink.skip(count);
                    Received::from_count(count, most)
                },
            ));
        }
        match receive(socket, input, MsgFlags::empty())? {
            Ok(count) => {
                sink.take(&mut input[..count])?;
                Ok(Received::from_count(count, input.len()))
            }
            Err(nothing) => Ok(nothing),
        }
    }
}

impl<P> PlainWire<P> {
    /// Sends what was made; what the socket does not take is kept in as little as it needs.
    #[inline]
    fn flush(&mut self, socket: &OwnedFd) -> Result<Flow, ErrorKind> {
        let Some(output) = &mut self.output else { return Ok(Flow::Done) };
        let flow = output.flush(socket)?;
        match flow {
            Flow::Done => give_back(self.output.take()),
            Flow::Blocked => {
                let whole = output.keep();
                give_back(whole);
            }
        }
        Ok(flow)
    }
}

#[inline]
fn give_back(output: Option<Box<Outbox>>) {
    if let Some(mut output) = output.filter(|output| output.bytes.len() == OUTPUT) {
        output.held.keeps(0);
        (output.from, output.to) = (0, 0);
        SPARE.set(Some(output));
    }
}

/// One `recv(2)`: how many bytes, or why there are none.
#[inline]
pub(super) fn receive(
    socket: &OwnedFd,
    room: &mut [u8],
    flags: MsgFlags,
) -> Result<Result<usize, Received>, ErrorKind> {
    loop {
        match recv(socket.as_raw_fd(), room, flags) {
            Ok(0) => return Ok(Err(Received::End)),
            Ok(count) => return Ok(Ok(count)),
            Err(Errno::EAGAIN) => return Ok(Err(Received::Nothing)),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(stream_error(errno)),
        }
    }
}

/// The outcome of connect(2), once there is one: an empty send returns it, and `EAGAIN` before
/// (tcp_sendmsg()).
pub(in crate::layer) fn connected(socket: &OwnedFd) -> Result<Flow, ErrorKind> {
    loop {
        match send(socket.as_raw_fd(), &[], MsgFlags::MSG_NOSIGNAL) {
            Ok(_) => return Ok(Flow::Done),
            Err(Errno::EAGAIN) => return Ok(Flow::Blocked),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(connect_error(errno)),
        }
    }
}

/// Sends until all of it is out or the socket is full; how many bytes went.
#[inline]
fn send_all(socket: &OwnedFd, bytes: &[u8]) -> Result<(usize, Flow), ErrorKind> {
    let mut sent = 0;
    while sent < bytes.len() {
        match send(socket.as_raw_fd(), &bytes[sent..], MsgFlags::MSG_NOSIGNAL) {
            Ok(count) => sent += count,
            Err(Errno::EAGAIN) => return Ok((sent, Flow::Blocked)),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(stream_error(errno)),
        }
    }
    Ok((sent, Flow::Done))
}

/// Bytes that are made and not yet sent.
#[derive(Debug)]
pub(super) struct Outbox {
    bytes: Box<[u8]>,
    from: usize,
    to: usize,
    held: Held,
}

impl Outbox {
    pub(super) fn new(size: usize) -> Self {
        Self { bytes: vec![0; size].into(), from: 0, to: 0, held: Held::default() }
    }

    /// Keeps what waits for a full socket: little of it elsewhere, so that the whole is returned and used
    /// again; more where it is.
    #[cold]
    fn keep(self: &mut Box<Self>) -> Option<Box<Self>> {
        let rest = &self.bytes[self.from..self.to];
        if rest.len() > SCARCE {
            // If not granted, others have taken it since this was made: one buffer of a thread.
            self.held.resize(self.bytes.len());
            return None;
        }
        let rest = Self { bytes: rest.into(), from: 0, to: rest.len(), held: Held::default() };
        Some(std::mem::replace(self, Box::new(rest)))
    }

    /// Makes bytes behind those that wait: `make` writes into what room there is.
    #[inline]
    pub(super) fn begin(&mut self, make: impl FnOnce(&mut [u8]) -> usize) {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        }
        self.to += make(&mut self.bytes[self.to..]);
    }

    #[inline]
    pub(super) fn flush(&mut self, socket: &OwnedFd) -> Result<Flow, ErrorKind> {
        let (count, flow) = send_all(socket, &self.bytes[self.from..self.to])?;
        self.from += count;
        Ok(flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Layer, Role, Workload};
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socketpair, sockopt};

    /// A number of bytes, all the same.
    struct Same(u8, usize);

    impl Source for Same {
        fn prepare(&mut self) -> bool {
            self.1 > 0
        }

        fn slices(&self) -> Option<[&[u8]; 2]> {
            None
        }

        fn advance(&mut self, _count: usize) -> bool {
            false
        }

        fn fill(&mut self, room: &mut [u8]) -> usize {
            let count = self.1.min(room.len());
            room[..count].fill(self.0);
            self.1 -= count;
            count
        }
    }

    fn drained(socket: &OwnedFd) -> Vec<u8> {
        let (mut all, mut buffer) = (Vec::new(), [0; 4_096]);
        while let Ok(count @ 1..) = recv(socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
            all.extend_from_slice(&buffer[..count]);
        }
        all
    }

    #[test]
    fn each_connection_has_its_own_bytes_and_a_full_socket_keeps_no_more_than_the_rest() {
        let wires = PlainWires::<Copied>::new(&Spec::new(Role::Server, Layer::Tcp, Workload::Rr)).unwrap();
        let connect = || {
            let flags = SockFlag::SOCK_NONBLOCK;
            let ends = socketpair(AddressFamily::Unix, SockType::Stream, None, flags).unwrap();
            setsockopt(&ends.0, sockopt::SndBuf, &4_608).unwrap();
            (ends, wires.wire(Room::STREAM).unwrap())
        };
        for length in [100, 5_000, 20_000, 300_000] {
            let ((near, far), mut wire) = connect();
            let ((near2, far2), mut other) = connect();
            let (mut source, mut between) = (Same(b'a', length), Same(b'b', 1_000));
            let mut got = Vec::new();
            loop {
                let flow = wire.send(&near, &mut source).unwrap();
                between.1 = 1_000;
                assert_eq!(other.send(&near2, &mut between).unwrap(), Flow::Done);
                assert_eq!(drained(&far2), [b'b'; 1_000]);
                got.extend(drained(&far));
                if flow == Flow::Done {
                    break;
                }
                let output = wire.output.as_ref().expect("it waits");
                let rest = output.to - output.from;
                assert!(rest > SCARCE || output.bytes.len() == rest, "{rest}");
            }
            assert!(wire.output.is_none() && got == vec![b'a'; length], "{length}: {}", got.len());
        }
    }
}
