//! The counted `stream` (sdk/CONTRACT.md): a transfer of content one way, then the next, on a connection that
//! stays.

use super::{Ended, Operation, Script};
use crate::layer::transfer::{Content, Incoming, Number, good};
use crate::layer::websocket::encoder::Messages;
use crate::layer::websocket::frame::Opcode;
use crate::layer::websocket::mask::{self, Key};
use linerate_contract::{Direction, ErrorKind};

/// The message under way.
#[derive(Debug, Clone, Copy)]
enum Sending {
    Nothing,
    Number([u8; 8]),
    /// A range of the content.
    Content {
        at: u64,
        length: u64,
    },
}

/// Takes the bytes that belong to `number` and leaves the rest; the number, once it is complete.
fn take_number(number: &mut Number, bytes: &mut &mut [u8], key: &mut Key) -> Option<u64> {
    let count = number.rest().len().min(bytes.len());
    let (own, rest) = std::mem::take(bytes).split_at_mut(count);
    mask::copy(&mut number.rest()[..count], own, *key);
    (*bytes, *key) = (rest, key.after(count));
    number.advance(count);
    number.is_complete().then(|| std::mem::take(number).value())
}

/// Messages still to be sent, for both ends.
#[derive(Debug)]
struct SendQueue {
    direction: Direction,
    content: Content,
    sending: Sending,
    number: Option<u64>,
    /// Content that is still to be begun.
    at: u64,
    total: u64,
}

impl SendQueue {
    fn new(direction: Direction, content: Content) -> Self {
        Self { direction, content, sending: Sending::Nothing, number: None, at: 0, total: 0 }
    }

    fn send(&mut self, number: Option<u64>, content: u64) {
        (self.number, self.at, self.total) = (number, 0, content);
    }

    #[inline]
    fn next(&mut self) -> Option<(Opcode, u64)> {
        if let Some(number) = self.number.take() {
            self.sending = Sending::Number(number.to_le_bytes());
            return Some((Opcode::Binary, 8));
        }
        let length = (self.total - self.at).min(self.content.size() as u64);
        if length == 0 {
            self.sending = Sending::Nothing;
            return None;
        }
        self.sending = Sending::Content { at: self.at, length };
        self.at += length;
        Some((Opcode::Binary, length))
    }

    #[inline]
    fn piece(&self, from: u64, most: usize) -> &[u8] {
        match &self.sending {
            Sending::Nothing => &[],
            Sending::Number(bytes) => &bytes[from as usize..][..most],
            Sending::Content { at, length } => self.content.at(at + from, most.min((length - from) as usize)),
        }
    }
}

/// Compares the bytes that belong to `input` and leaves the rest; true once all of it has arrived.
#[inline]
fn take_content(input: &mut Incoming, bytes: &mut &mut [u8], key: &mut Key, content: &Content) -> bool {
    while input.at < input.total && !bytes.is_empty() {
        let count = input.next_read(content.size()).min(bytes.len());
        let (own, rest) = std::mem::take(bytes).split_at_mut(count);
        let expected = content.at(input.at, count);
        let good = if mask::matches(own, *key, expected) {
            count as u64
        } else {
            mask::apply(own, *key);
            good(own, expected)
        };
        (*bytes, *key) = (rest, key.after(count));
        input.add(count, good);
    }
    input.at == input.total
}

/// One end of a stream: its send queue, and a part that handles received bytes.
#[derive(Debug)]
pub struct StreamScript<P> {
    out: SendQueue,
    part: P,
    wrong: Option<ErrorKind>,
}

/// Handles the received bytes of one end.
trait Part: Send {
    /// Takes all of the bytes, and may queue messages.
    ///
    /// # Errors
    /// The bytes are not what the protocol requires.
    fn take(&mut self, out: &mut SendQueue, bytes: &mut [u8], key: Key) -> Result<(), ErrorKind>;
}

impl<P: Send> Messages for StreamScript<P> {
    #[inline]
    fn next(&mut self) -> Option<(Opcode, u64)> {
        self.out.next()
    }

    #[inline]
    fn piece(&self, at: u64, most: usize) -> &[u8] {
        self.out.piece(at, most)
    }
}

impl<P: Part> Script for StreamScript<P> {
    #[inline]
    fn payload(&mut self, bytes: &mut [u8], key: Key) {
        if let Err(wrong) = self.part.take(&mut self.out, bytes, key) {
            self.wrong = Some(wrong);
        }
    }

    fn ended(&mut self, what: Ended) {
        // The contract's messages are binary.
        if what == Ended::Message(Opcode::Text) {
            self.wrong = Some(ErrorKind::Malformed);
        }
    }

    #[inline]
    fn verdict(&self) -> Result<(), ErrorKind> {
        self.wrong.map_or(Ok(()), Err)
    }
}

/// The client's end: an operation is a transfer.
pub type StreamClient = StreamScript<ClientPart>;

/// The client's part.
#[derive(Debug)]
pub struct ClientPart {
    bytes: u64,
    input: Incoming,
    count: Number,
    /// The number of good bytes, once the transfer is over.
    over: Option<u64>,
}

impl StreamClient {
    pub(in crate::layer) fn new(direction: Direction, content: Content, bytes: u64) -> Self {
        let part = ClientPart { bytes, input: Incoming::default(), count: Number::default(), over: None };
        let mut client = Self { out: SendQueue::new(direction, content), part, wrong: None };
        client.begin();
        client
    }

    fn begin(&mut self) {
        let (writes, bytes) = (self.out.direction == Direction::ClientWrites, self.part.bytes);
        self.out.send(Some(bytes), if writes { bytes } else { 0 });
        self.part.input = Incoming::up_to(if writes { 0 } else { bytes });
        self.part.over = None;
    }
}

impl Part for ClientPart {
    #[inline]
    fn take(&mut self, out: &mut SendQueue, mut bytes: &mut [u8], mut key: Key) -> Result<(), ErrorKind> {
        if self.over.is_none() {
            let (left, key) = (&mut bytes, &mut key);
            self.over = if out.direction == Direction::ClientWrites {
                take_number(&mut self.count, left, key)
            } else {
                take_content(&mut self.input, left, key, &out.content).then_some(self.input.good)
            };
        }
        if !bytes.is_empty() {
            Err(ErrorKind::WrongLength)
        } else if self.over.is_some_and(|good| good != self.bytes) {
            Err(ErrorKind::WrongContent)
        } else {
            Ok(())
        }
    }
}

impl Operation for StreamClient {
    #[inline]
    fn complete(&mut self) -> Option<u64> {
        let good = self.part.over?;
        self.begin();
        Some(good)
    }

    fn cut(&self) -> ErrorKind {
        ErrorKind::Truncated
    }
}

/// The server's end: the transfers that the client requests.
pub type StreamServer = StreamScript<ServerPart>;

/// The server's part.
#[derive(Debug, Default)]
pub struct ServerPart {
    /// The transfer under way, once its length has arrived.
    input: Option<Incoming>,
    wanted: Number,
}

impl StreamServer {
    pub(in crate::layer) fn new(direction: Direction, content: Content) -> Self {
        Self { out: SendQueue::new(direction, content), part: ServerPart::default(), wrong: None }
    }
}

impl Part for ServerPart {
    #[inline]
    fn take(&mut self, out: &mut SendQueue, mut bytes: &mut [u8], mut key: Key) -> Result<(), ErrorKind> {
        while !bytes.is_empty() {
            match &mut self.input {
                Some(input) => {
                    if !take_content(input, &mut bytes, &mut key, &out.content) {
                        return Ok(());
                    }
                    out.send(Some(input.good), 0);
                    self.input = None;
                }
                None => {
                    let Some(wanted) = take_number(&mut self.wanted, &mut bytes, &mut key) else {
                        return Ok(());
                    };
                    if out.at < out.total {
                        // A second request before the first transfer is complete.
                        return Err(ErrorKind::Malformed);
                    }
                    if out.direction == Direction::ClientReads {
                        out.send(None, wanted);
                    } else if wanted == 0 {
                        out.send(Some(0), 0);
                    } else {
                        self.input = Some(Incoming::up_to(wanted));
                    }
                }
            }
        }
        Ok(())
    }
}
