//! `rr` without the kernel: two processes, and memory that both see. A message of up to 56 bytes is one cache
//! line each way.
//!
//! ```text
//! client -> TCP: pairs, size -> server creates a memfd -> TCP: its pid and descriptor
//!        -> client maps /proc/PID/fd/N
//! then, for each pair: client writes the message and its number
//!        -> server reads the number, copies the message, and writes its own number
//! ```
//!
//! The server listens at the spec's address only. The memory has no name and is freed with the processes. The
//! TCP connection stays open, so each side detects the other's exit.

pub(super) mod client;
mod region;
pub(super) mod server;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use std::net::TcpStream;
use std::os::fd::AsRawFd;

/// Looks without success before the CPU is offered to others: the peer may wait for this very CPU. Where each
/// has its own, an answer takes a few dozen.
const SPINS: u32 = 1 << 12;
/// Offers of the CPU before the peer's connection and the clock are looked at: rarely, since both are system
/// calls.
const YIELDS: u32 = 1 << 8;

/// Counts fruitless looks, and says when it is time for more than another one.
#[derive(Debug, Default)]
struct Patience {
    looks: u32,
    yields: u32,
}

impl Patience {
    /// After a look without success; true if it is time to see whether the peer is still there.
    #[inline]
    fn looked(&mut self) -> bool {
        self.looks += 1;
        if self.looks < SPINS {
            std::hint::spin_loop();
            return false;
        }
        std::thread::yield_now();
        self.yields += 1;
        if self.yields < YIELDS {
            return false;
        }
        self.yields = 0;
        true
    }

    #[inline]
    fn found(&mut self) {
        (self.looks, self.yields) = (0, 0);
    }
}

/// Whether the peer's end of the connection is closed.
fn is_gone(stream: &TcpStream) -> bool {
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_PEEK;
    !matches!(recv(stream.as_raw_fd(), &mut [0], flags), Ok(1..) | Err(Errno::EAGAIN | Errno::EINTR))
}
