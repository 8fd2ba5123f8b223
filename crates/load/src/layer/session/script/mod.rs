//! The scripts of conversations, a file each.

pub mod echo;
mod halves;
pub mod round_trip;
pub mod stream;

use linerate_contract::ErrorKind;
use linerate_proto::websocket::encoder::Messages;
use linerate_proto::websocket::frame::Opcode;
use linerate_proto::websocket::mask::{self, Key};

/// The thing that has come to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The end of one read, where there are no messages.
    Read,
    Message(Opcode),
}

/// One end's part: the messages it sends, and what it makes of those it receives.
pub trait Script: Messages + Send {
    /// Whether it goes on sending while it receives, a turn at a time: a stream, and no echo.
    const DUPLEX: bool = false;
    /// Whether no message follows another one before something was received.
    const SINGLE: bool = false;

    /// The next bytes of payload, masked with `key`.
    fn payload(&mut self, bytes: &mut [u8], key: Key);
    fn ended(&mut self, what: Ended);
    /// Checks what was received so far.
    ///
    /// # Errors
    /// The kind of failure.
    fn verdict(&self) -> Result<(), ErrorKind>;
    /// Begins a turn: how much is sent in it is limited.
    fn begin_turn(&mut self) {}
    /// Whether messages are left for another turn.
    fn has_more(&self) -> bool {
        false
    }
    /// Whether the peer may say something now.
    fn listens(&self) -> bool {
        true
    }
    /// Where in the content of a stream the message under way begins, if it is content.
    fn place(&self) -> Option<u64> {
        None
    }
    /// Whether content follows the message under way at once.
    fn joins(&self) -> bool {
        false
    }
    /// Bytes of content that come next.
    fn awaited(&self) -> u64 {
        0
    }
    /// `count` of those have arrived and are not taken yet.
    fn skip(&mut self, _count: usize) {}
    /// All of a connection's transfers are over but for what the peer waits for: true once, and the rest is
    /// sent only after that.
    fn takes_leave(&mut self) -> bool {
        false
    }
    /// The peer has ended its half; true if that is no end of the conversation.
    fn half_ended(&mut self) -> bool {
        false
    }
}

/// The part of a client: one operation after the other.
pub trait Operation: Script {
    /// The payload bytes of the operation, once its response is complete. The next operation may begin.
    fn complete(&mut self) -> Option<u64>;
    /// The error if the peer closes its sending side now.
    fn cut(&self) -> ErrorKind;
    /// The progress of the operation, in words behind "the server closed the connection".
    fn progress(&self) -> String;
    /// The time is over: an operation without another end ends.
    fn finish(&mut self) {}
    /// Whether the sending side is to be shut down now; true once.
    fn ends_half(&mut self) -> bool {
        false
    }
    /// Bytes of the operation that were sent and received so far.
    fn moved(&self) -> u64 {
        0
    }
}

/// Bytes that are not masked are compared by `memcmp(3)`, which is faster for short ones.
#[inline]
fn same(bytes: &[u8], key: Key, wanted: &[u8]) -> bool {
    if key.is_none() { bytes == wanted } else { mask::matches(bytes, key, wanted) }
}
