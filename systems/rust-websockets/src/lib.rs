//! WebSocket libraries on tokio as systems of linerate (sdk/CONTRACT.md). `bin/` has one program per library;
//! they differ in the library only:
//!
//! ```text
//! spec -> program.rs -> server.rs | client.rs -> events
//!         over a Library's Socket, on a TcpStream or TLS (tls.rs)
//! ```

mod client;
mod program;
mod server;
mod tls;

pub use program::main;

use bytes::Bytes;
use linerate_contract::ErrorKind;
use linerate_contract::tally::stream_error;
use std::io;
use tokio::io::{AsyncRead, AsyncWrite};

/// The longest message that is accepted.
pub const LONGEST_MESSAGE: usize = 16 << 20;

/// The transport of a WebSocket.
pub trait Below: AsyncRead + AsyncWrite + Unpin + Send + 'static {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Below for T {}

/// A WebSocket library.
pub trait Library: 'static {
    const NAME: &'static str;
    const VERSION: &'static str;
    type Socket<S: Below>: Socket;

    /// Upgrades a connection: requests `/` of this host.
    fn connect<S: Below>(below: S, host: String) -> impl Future<Output = Result<Self::Socket<S>, ErrorKind>>;

    /// Answers upgrades on one connection until it ends, and serves each of its sockets.
    fn accept<S: Below>(
        below: S,
        serve: impl AsyncFnOnce(Self::Socket<S>) + 'static,
    ) -> impl Future<Output = ()>;
}

/// An open WebSocket. A message is one binary message.
pub trait Socket {
    fn send(&mut self, message: Bytes) -> impl Future<Output = Result<(), ErrorKind>>;

    /// Receives a message, and passes its bytes to `take`. The peer's close is an error.
    fn receive(&mut self, take: impl FnMut(&[u8])) -> impl Future<Output = Result<(), ErrorKind>>;

    /// Sends back each message, until the peer closes or vanishes.
    fn echo(&mut self) -> impl Future<Output = ()>;

    /// Closes with code 1000, and waits for the peer's close frame.
    fn close(&mut self) -> impl Future<Output = ()>;
}

/// The kind of an error on an established connection.
#[must_use]
pub fn kind_of(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => ErrorKind::EmptyResponse,
        _ => stream_error(error),
    }
}

/// The 8 bytes of a number on the wire.
fn number(value: u64) -> Bytes {
    Bytes::copy_from_slice(&value.to_le_bytes())
}

/// A number that may arrive in pieces.
#[derive(Default)]
struct Number(Vec<u8>);

impl Number {
    /// Takes its bytes, and returns the rest.
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
    fn a_number_may_arrive_in_pieces() {
        let mut number = Number::default();
        assert_eq!((number.take(&[1, 2, 3]), number.value()), (&[][..], None));
        assert_eq!((number.take(&[0, 0, 0, 0, 0, 9]), number.value()), (&[9][..], Some(0x03_0201)));
    }
}
