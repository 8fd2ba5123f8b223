//! WebSocket libraries on tokio as systems of linerate (sdk/CONTRACT.md). A program for each library, in `bin/`; what it is
//! made of is the same for all, so that the library is what differs:
//!
//! ```text
//! spec -> program.rs -> server.rs | client.rs over a Library's Socket, on a TcpStream or TLS (tls.rs) -> events
//! ```

mod client;
mod program;
mod server;
mod tls;

pub use program::main;

use bytes::Bytes;
use linerate_contract::{ErrorKind, page};
use std::io;
use tokio::io::{AsyncRead, AsyncWrite};

/// The longest message that is accepted.
pub const LONGEST_MESSAGE: usize = 16 << 20;
/// Period of a stream's content.
const PERIOD: usize = 65_536;

/// What lies below a WebSocket.
pub trait Below: AsyncRead + AsyncWrite + Unpin + Send + 'static {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Below for T {}

/// A WebSocket library.
pub trait Library: 'static {
    const NAME: &'static str;
    const VERSION: &'static str;
    type Socket<S: Below>: Socket;

    /// Asks for `/` of this host.
    fn connect<S: Below>(below: S, host: String) -> impl Future<Output = Result<Self::Socket<S>, ErrorKind>>;

    /// Answers upgrades of one connection until it is over, and has each of its sockets served.
    fn accept<S: Below>(
        below: S,
        serve: impl AsyncFnOnce(Self::Socket<S>) + 'static,
    ) -> impl Future<Output = ()>;
}

/// An open WebSocket. A message is one binary message.
pub trait Socket {
    fn send(&mut self, message: Bytes) -> impl Future<Output = Result<(), ErrorKind>>;

    /// Waits for a message, of which `take` has the bytes. The peer's close is an error here.
    fn receive(&mut self, take: impl FnMut(&[u8])) -> impl Future<Output = Result<(), ErrorKind>>;

    /// Sends back what comes, until the peer closes or is gone.
    fn echo(&mut self) -> impl Future<Output = ()>;

    /// Closes with 1000, and waits for the peer's answer.
    fn close(&mut self) -> impl Future<Output = ()>;
}

/// What an error means on a connection that stood.
#[must_use]
pub fn kind_of(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted => {
            ErrorKind::Reset
        }
        io::ErrorKind::UnexpectedEof => ErrorKind::EmptyReply,
        io::ErrorKind::TimedOut => ErrorKind::Timeout,
        _ => ErrorKind::Failed,
    }
}

/// The endless content of streams, made once for the process: pieces of it are sent without a copy of ours.
struct Content(&'static [u8]);

impl Content {
    fn new(longest: usize) -> Self {
        let page = page(PERIOD);
        let bytes: Vec<u8> = page.iter().copied().cycle().take(PERIOD + longest).collect();
        Self(Vec::leak(bytes))
    }

    fn piece(&self, at: u64, length: usize) -> &'static [u8] {
        let start = (at % PERIOD as u64) as usize;
        &self.0[start..start + length]
    }

    /// How many of the bytes received at a position are the right ones.
    fn good(&self, at: u64, received: &[u8]) -> u64 {
        let mut good = 0;
        for (i, part) in received.chunks(PERIOD).enumerate() {
            let right = self.piece(at + (i * PERIOD) as u64, part.len());
            good += if right == part {
                part.len()
            } else {
                right.iter().zip(part).filter(|(a, b)| a == b).count()
            };
        }
        good as u64
    }
}

/// The 8 bytes of a number on the wire.
fn number(value: u64) -> Bytes {
    Bytes::copy_from_slice(&value.to_le_bytes())
}

/// A number that may come in pieces.
#[derive(Default)]
struct Number(Vec<u8>);

impl Number {
    /// Takes what belongs to it, and leaves the rest.
    fn take<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let (mine, rest) = bytes.split_at(bytes.len().min(8 - self.0.len()));
        self.0.extend_from_slice(mine);
        rest
    }

    fn value(&self) -> Option<u64> {
        self.0.as_slice().try_into().ok().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_in_pieces() {
        let mut number = Number::default();
        assert_eq!((number.take(&[1, 2, 3]), number.value()), (&[][..], None));
        assert_eq!((number.take(&[0, 0, 0, 0, 0, 9]), number.value()), (&[9][..], Some(0x03_0201)));
    }

    #[test]
    fn wrong_bytes_are_not_counted() {
        let content = Content::new(8);
        let mut long = content.piece(7, PERIOD).to_vec();
        long.extend_from_slice(content.piece(7, 8));
        assert_eq!(content.good(7, &long), long.len() as u64);
        long[PERIOD + 1] ^= 1;
        assert_eq!(content.good(7, &long), long.len() as u64 - 1);
    }
}
