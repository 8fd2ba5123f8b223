//! Forwarding by `splice(2)`: bytes pass from socket to socket through a pipe in the kernel, as pages,
//! without a copy.
//!
//! A pipe is taken from a pool when there are bytes to move and returned when it is empty: idle connections
//! have none.

use super::{Advance, Pair, Side};
use nix::errno::Errno;
use nix::fcntl::{OFlag, SpliceFFlags, splice};
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{Shutdown, shutdown};
use nix::unistd::pipe2;
use std::os::fd::{AsRawFd, OwnedFd};

/// Bytes per call: the capacity of a pipe (64 KiB, pipe(7)).
const CHUNK: usize = 64 << 10;
/// Reads per direction and turn, 1 MiB: then other pairs have their turn. Half as many make no difference to
/// them, and the price of a turn, one `epoll_wait(2)`, is below 1 % of the calls.
const MAX_READS: u32 = 16;
/// Unused pipes in the pool: 2 descriptors each.
const MAX_SPARE: usize = 512;

impl Pair {
    /// The upstream's handshake may still be in progress.
    pub(super) fn new(sockets: [OwnedFd; 2]) -> Self {
        let interest = [EpollFlags::empty(); 2];
        Self { sockets, directions: Default::default(), interest, queued: false }
    }

    /// Notes an edge, `flags` on `side`; a call of [`Self::advance`] follows.
    pub(super) fn edge(&mut self, side: Side, flags: EpollFlags) {
        for from in Side::BOTH {
            self.directions[from as usize].edge(from == side, flags);
        }
    }

    /// Moves bytes without waiting.
    pub(super) fn advance(&mut self, pool: &mut PipePool) -> Advance {
        let (mut wanted, mut next) = ([INPUT; 2], Next::Edge);
        for from in Side::BOTH {
            let (source, target) = (&self.sockets[from as usize], &self.sockets[from.other() as usize]);
            match self.directions[from as usize].forward(source, target, pool) {
                Ok((flags, of_stream)) => {
                    wanted[from.other() as usize] |= flags;
                    next = next.max(of_stream);
                }
                Err(_) => return Advance::Broken,
            }
        }
        if self.directions.iter().all(SplicedStream::is_over) {
            Advance::Over
        } else if self.directions.iter().any(|stream| stream.failed) {
            Advance::Broken
        } else {
            next.advance(wanted)
        }
    }

    pub(super) fn end(self, pool: &mut PipePool) {
        for stream in self.directions {
            stream.end(pool);
        }
    }
}

/// The events that every socket waits for; EPOLLOUT is added only when a send buffer is full.
const INPUT: EpollFlags = EpollFlags::EPOLLIN.union(EpollFlags::EPOLLRDHUP);

/// When a direction is forwarded again; of several, the greatest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    /// After an edge.
    Edge,
    /// Soon, without an edge.
    Soon,
    /// In the next turn: both sides are still ready.
    Turn,
}

impl Next {
    fn advance(self, wanted: [EpollFlags; 2]) -> Advance {
        match self {
            Self::Edge => Advance::Wait(wanted),
            Self::Soon => Advance::Recheck(wanted),
            Self::Turn => Advance::Yield(wanted),
        }
    }
}

/// One direction.
#[derive(Debug)]
pub(super) struct SplicedStream {
    pipe: Option<Pipe>,
    /// Bytes in the pipe.
    in_pipe: usize,
    readable: bool,
    writable: bool,
    /// The source has sent its end; the target's sending side is shut down.
    ended: bool,
    shut: bool,
    /// The source's connection is broken; the bytes that it sent before are moved first.
    failed: bool,
}

impl Default for SplicedStream {
    /// Both sides count as ready at first: to try costs less than to wait for an event.
    fn default() -> Self {
        Self {
            pipe: None,
            in_pipe: 0,
            readable: true,
            writable: true,
            ended: false,
            shut: false,
            failed: false,
        }
    }
}

impl SplicedStream {
    /// Notes an edge on the source (`from_source`) or on the target.
    fn edge(&mut self, from_source: bool, flags: EpollFlags) {
        let closed = EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR;
        if from_source {
            self.readable |= flags.intersects(INPUT | closed);
            self.failed |= flags.contains(EpollFlags::EPOLLERR);
        } else {
            self.writable |= flags.intersects(EpollFlags::EPOLLOUT | closed);
        }
    }

    /// Everything was delivered, including the end of input.
    fn is_over(&self) -> bool {
        self.shut
    }

    /// Moves bytes until one side is not ready, or up to [`MAX_READS`] times. Returns the additional events
    /// that the target waits for, and when to call it again.
    ///
    /// # Errors
    /// An error of either socket.
    fn forward(
        &mut self,
        source: &OwnedFd,
        target: &OwnedFd,
        pool: &mut PipePool,
    ) -> nix::Result<(EpollFlags, Next)> {
        let mut reads = 0;
        loop {
            if self.in_pipe > 0 {
                if !self.writable {
                    return Ok((EpollFlags::EPOLLOUT, Next::Edge));
                }
                let pipe = self.pipe.as_ref().expect("the bytes are in a pipe");
                match transfer(&pipe.output, target, self.in_pipe) {
                    Ok(n) => self.in_pipe -= n,
                    Err(Errno::EAGAIN) => self.writable = false,
                    Err(errno) => return Err(errno),
                }
                continue;
            }
            if self.ended && !self.shut {
                // ENOTCONN: the target's handshake is in progress; the shutdown follows it.
                match shutdown(target.as_raw_fd(), Shutdown::Write) {
                    Ok(()) => self.shut = true,
                    Err(Errno::ENOTCONN) => return Ok((EpollFlags::EPOLLOUT, Next::Edge)),
                    Err(errno) => return Err(errno),
                }
            }
            if self.ended || !self.readable {
                pool.put(self.pipe.take());
                return Ok((EpollFlags::empty(), Next::Edge));
            }
            if reads == MAX_READS {
                pool.put(self.pipe.take());
                return Ok((EpollFlags::empty(), Next::Turn));
            }
            reads += 1;
            let pipe = match self.pipe.take() {
                Some(pipe) => pipe,
                None => match pool.take() {
                    Err(Errno::EMFILE | Errno::ENFILE) => return Ok((EpollFlags::empty(), Next::Soon)),
                    pipe => pipe?,
                },
            };
            match transfer(source, &pipe.input, CHUNK) {
                Ok(0) => self.ended = true,
                Ok(n) => self.in_pipe = n,
                Err(Errno::EAGAIN) => self.readable = false,
                // The source's handshake is in progress.
                Err(Errno::ENOTCONN) => self.readable = false,
                Err(errno) => return Err(errno),
            }
            self.pipe = Some(pipe);
        }
    }

    /// Returns the pipe to the pool, unless it contains undelivered bytes.
    fn end(self, pool: &mut PipePool) {
        if self.in_pipe == 0 {
            pool.put(self.pipe);
        }
    }
}

fn transfer(from: &OwnedFd, to: &OwnedFd, bytes: usize) -> nix::Result<usize> {
    let flags = SpliceFFlags::SPLICE_F_MOVE | SpliceFFlags::SPLICE_F_NONBLOCK;
    loop {
        match splice(from, None, to, None, bytes, flags) {
            Err(Errno::EINTR) => {}
            outcome => return outcome,
        }
    }
}

#[derive(Debug)]
struct Pipe {
    output: OwnedFd,
    input: OwnedFd,
}

/// Empty pipes.
#[derive(Debug, Default)]
pub(super) struct PipePool(Vec<Pipe>);

impl PipePool {
    fn take(&mut self) -> nix::Result<Pipe> {
        match self.0.pop() {
            Some(pipe) => Ok(pipe),
            None => pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).map(|(output, input)| Pipe { output, input }),
        }
    }

    fn put(&mut self, pipe: Option<Pipe>) {
        if self.0.len() < MAX_SPARE {
            self.0.extend(pipe);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_source_that_is_always_ready_does_not_occupy_the_loop() {
        let source = OwnedFd::from(File::open("/dev/zero").unwrap());
        let target = OwnedFd::from(File::options().write(true).open("/dev/null").unwrap());
        let (mut stream, mut pool) = (SplicedStream::default(), PipePool::default());
        for _ in 0..3 {
            assert_eq!(stream.forward(&source, &target, &mut pool), Ok((EpollFlags::empty(), Next::Turn)));
        }
    }
}
