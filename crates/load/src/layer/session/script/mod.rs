//! What is said in a conversation, a file each.

pub mod echo;
pub mod round_trip;
pub mod stream;

use crate::layer::websocket::encoder::Messages;
use crate::layer::websocket::frame::Opcode;
use crate::layer::websocket::mask::Key;
use linerate_contract::ErrorKind;

/// What has come to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// What one read gave, where there are no messages.
    Read,
    Message(Opcode),
}

/// One end's part: the messages it sends, and what it makes of those it receives.
pub trait Script: Messages + Send {
    /// The next bytes of payload, masked with `key`.
    fn payload(&mut self, bytes: &mut [u8], key: Key);
    fn ended(&mut self, what: Ended);
    /// What is wrong with what was received so far.
    ///
    /// # Errors
    /// The kind of failure.
    fn verdict(&self) -> Result<(), ErrorKind>;
}

/// The part of a client: one operation after the other.
pub trait Operation: Script {
    /// The payload bytes of the operation, once its answer is complete. The next operation may begin.
    fn complete(&mut self) -> Option<u64>;
    /// The error if the peer closes its sending side now.
    fn cut(&self) -> ErrorKind;
}
