//! Relaying by `splice(2)`: bytes go from socket to socket through a pipe in the kernel, as pages, without a copy.
//!
//! A pipe is taken from a pool when there is something to move and given back when it is empty, so idle connections
//! hold none.

use super::{Fate, Mode, Pair, Side};
use crate::refusal::Refusal;
use nix::errno::Errno;
use nix::fcntl::{OFlag, SpliceFFlags, splice};
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{Shutdown, shutdown};
use nix::unistd::pipe2;
use std::os::fd::{AsRawFd, OwnedFd};

/// Bytes asked for at once: what a pipe holds (64 KiB, pipe(7)).
const CHUNK: usize = 64 << 10;
/// Pipes kept when nobody uses them: 2 descriptors each.
const MOST_SPARE: usize = 512;

/// The mode, and its pipes.
#[derive(Debug)]
pub(super) struct Splice {
    pool: Pool,
}

/// Both directions of a pair, by the side that they come from.
#[derive(Debug)]
pub(super) struct Both([Stream; 2]);

impl Mode for Splice {
    type State = Both;

    fn new() -> Result<Self, Refusal> {
        Ok(Self { pool: Pool::default() })
    }

    fn begin(&mut self) -> Both {
        Both(Default::default())
    }

    fn edge(pair: &mut Pair<Both>, side: Side, flags: EpollFlags) {
        for from in Side::BOTH {
            pair.state.0[from as usize].edge(from == side, flags);
        }
    }

    fn advance(&mut self, pair: &mut Pair<Both>) -> Fate {
        let mut wanted = [INPUT; 2];
        for from in Side::BOTH {
            let stream = &mut pair.state.0[from as usize];
            let (source, target) = (&pair.sockets[from as usize], &pair.sockets[from.other() as usize]);
            match stream.pump(source, target, &mut self.pool) {
                Ok(flags) => wanted[from.other() as usize] |= flags,
                Err(_) => return Fate::Broken,
            }
        }
        if pair.state.0.iter().all(Stream::is_over) {
            Fate::Over
        } else if pair.state.0.iter().any(|stream| stream.failed) {
            Fate::Broken
        } else {
            Fate::Wait(wanted)
        }
    }

    fn end(&mut self, state: Both) {
        for stream in state.0 {
            stream.end(&mut self.pool);
        }
    }
}

/// What every socket is watched for; room to send only when it ran out.
pub(super) const INPUT: EpollFlags = EpollFlags::EPOLLIN.union(EpollFlags::EPOLLRDHUP);

/// One direction.
#[derive(Debug)]
pub(super) struct Stream {
    pipe: Option<Pipe>,
    /// Bytes in the pipe.
    held: usize,
    readable: bool,
    writable: bool,
    /// The source has no more to come; the target was told.
    ended: bool,
    told: bool,
    /// The source's connection is broken; what it had sent before is moved first.
    failed: bool,
}

impl Default for Stream {
    /// Optimistic: both sides may be ready, trying costs less than asking first.
    fn default() -> Self {
        Self { pipe: None, held: 0, readable: true, writable: true, ended: false, told: false, failed: false }
    }
}

impl Stream {
    /// Notes an edge on the source (`from_source`) or on the target.
    pub(super) fn edge(&mut self, from_source: bool, flags: EpollFlags) {
        let closed = EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR;
        if from_source {
            self.readable |= flags.intersects(INPUT | closed);
            self.failed |= flags.contains(EpollFlags::EPOLLERR);
        } else {
            self.writable |= flags.intersects(EpollFlags::EPOLLOUT | closed);
        }
    }

    /// Everything was delivered, the end of it included.
    pub(super) fn is_over(&self) -> bool {
        self.told
    }

    /// Moves bytes until one side is not ready; what the target has to be watched for in addition.
    ///
    /// # Errors
    /// Of either side, or of the pipe.
    pub(super) fn pump(
        &mut self,
        source: &OwnedFd,
        target: &OwnedFd,
        pool: &mut Pool,
    ) -> nix::Result<EpollFlags> {
        loop {
            if self.held > 0 {
                if !self.writable {
                    return Ok(EpollFlags::EPOLLOUT);
                }
                let pipe = self.pipe.as_ref().expect("bytes are held in a pipe");
                match transfer(&pipe.output, target, self.held) {
                    Ok(n) => self.held -= n,
                    Err(Errno::EAGAIN) => self.writable = false,
                    Err(errno) => return Err(errno),
                }
                continue;
            }
            if self.ended && !self.told {
                // ENOTCONN: the target's handshake is under way, which is the one thing still worth waiting for.
                match shutdown(target.as_raw_fd(), Shutdown::Write) {
                    Ok(()) => self.told = true,
                    Err(Errno::ENOTCONN) => return Ok(EpollFlags::EPOLLOUT),
                    Err(errno) => return Err(errno),
                }
            }
            if self.ended || !self.readable {
                pool.put(self.pipe.take());
                return Ok(EpollFlags::empty());
            }
            let pipe = match self.pipe.take() {
                Some(pipe) => pipe,
                None => pool.take()?,
            };
            match transfer(source, &pipe.input, CHUNK) {
                Ok(0) => self.ended = true,
                Ok(n) => self.held = n,
                Err(Errno::EAGAIN) => self.readable = false,
                // The source's handshake is under way.
                Err(Errno::ENOTCONN) => self.readable = false,
                Err(errno) => return Err(errno),
            }
            self.pipe = Some(pipe);
        }
    }

    /// Gives the pipe back, unless bytes that nobody wants are in it.
    pub(super) fn end(self, pool: &mut Pool) {
        if self.held == 0 {
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
pub(super) struct Pool(Vec<Pipe>);

impl Pool {
    fn take(&mut self) -> nix::Result<Pipe> {
        match self.0.pop() {
            Some(pipe) => Ok(pipe),
            None => pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).map(|(output, input)| Pipe { output, input }),
        }
    }

    fn put(&mut self, pipe: Option<Pipe>) {
        if self.0.len() < MOST_SPARE {
            self.0.extend(pipe);
        }
    }
}
