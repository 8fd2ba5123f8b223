//! The counted `stream` (sdk/CONTRACT.md): a transfer of content one way, then the next, on a connection that stays.

use super::{Ended, Operation, Script};
use crate::layer::tcp::stream::{Content, Direction, good};
use crate::layer::websocket::encoder::Messages;
use crate::layer::websocket::frame::Opcode;
use crate::layer::websocket::mask::{self, Key};
use linerate_contract::ErrorKind;

/// What is being sent.
#[derive(Debug, Clone, Copy)]
enum Sending {
    Nothing,
    Number([u8; 8]),
    /// Content from here on, so much of it.
    Content {
        at: u64,
        length: u64,
    },
}

/// A number of eight bytes, as far as it is there.
#[derive(Debug, Clone, Copy, Default)]
struct Number {
    bytes: [u8; 8],
    length: usize,
}

impl Number {
    /// Takes what belongs to it; the rest is left. The number, once it is whole.
    fn take(&mut self, bytes: &mut &mut [u8], key: &mut Key) -> Option<u64> {
        let count = (8 - self.length).min(bytes.len());
        let (own, rest) = std::mem::take(bytes).split_at_mut(count);
        mask::copy(&mut self.bytes[self.length..self.length + count], own, *key);
        (*bytes, *key) = (rest, key.after(count));
        self.length += count;
        if self.length < 8 {
            return None;
        }
        self.length = 0;
        Some(u64::from_le_bytes(self.bytes))
    }
}

/// The way out: what `next` and `piece` say, for both ends.
#[derive(Debug)]
struct Outgoing {
    direction: Direction,
    content: Content,
    sending: Sending,
    number: Option<u64>,
    /// Content that is still to be begun.
    at: u64,
    total: u64,
}

impl Outgoing {
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

/// The way in: content up to `total`, compared.
#[derive(Debug, Clone, Copy, Default)]
struct Incoming {
    at: u64,
    total: u64,
    good: u64,
}

impl Incoming {
    /// Compares as much as belongs to it; the rest is left. True once all of it is there.
    #[inline]
    fn take(&mut self, bytes: &mut &mut [u8], key: &mut Key, content: &Content) -> bool {
        while self.at < self.total && !bytes.is_empty() {
            let left = (self.total - self.at).min(content.size() as u64) as usize;
            let count = left.min(bytes.len());
            let (own, rest) = std::mem::take(bytes).split_at_mut(count);
            let wanted = content.at(self.at, count);
            self.good += if mask::matches(own, *key, wanted) {
                count as u64
            } else {
                mask::apply(own, *key);
                good(own, wanted)
            };
            (*bytes, *key) = (rest, key.after(count));
            self.at += count as u64;
        }
        self.at == self.total
    }
}

/// One end of a stream: what it sends, and by its part what it makes of what it receives.
#[derive(Debug)]
pub struct Stream<P> {
    out: Outgoing,
    part: P,
    wrong: Option<ErrorKind>,
}

/// What an end makes of what it receives.
trait Part: Send {
    /// Takes all of the bytes, and may set something going.
    ///
    /// # Errors
    /// What is wrong with them.
    fn take(&mut self, out: &mut Outgoing, bytes: &mut [u8], key: Key) -> Result<(), ErrorKind>;
}

impl<P: Send> Messages for Stream<P> {
    #[inline]
    fn next(&mut self) -> Option<(Opcode, u64)> {
        self.out.next()
    }

    #[inline]
    fn piece(&self, at: u64, most: usize) -> &[u8] {
        self.out.piece(at, most)
    }
}

impl<P: Part> Script for Stream<P> {
    #[inline]
    fn payload(&mut self, bytes: &mut [u8], key: Key) {
        if let Err(wrong) = self.part.take(&mut self.out, bytes, key) {
            self.wrong = Some(wrong);
        }
    }

    fn ended(&mut self, _what: Ended) {}

    #[inline]
    fn verdict(&self) -> Result<(), ErrorKind> {
        self.wrong.map_or(Ok(()), Err)
    }
}

/// The client's end: an operation is a transfer.
pub type StreamClient = Stream<Client>;

/// The client's part.
#[derive(Debug)]
pub struct Client {
    bytes: u64,
    input: Incoming,
    count: Number,
    /// The transfer is over, with so many good bytes.
    over: Option<u64>,
}

impl StreamClient {
    pub(in crate::layer) fn new(direction: Direction, content: Content, bytes: u64) -> Self {
        let part = Client { bytes, input: Incoming::default(), count: Number::default(), over: None };
        let mut client = Self { out: Outgoing::new(direction, content), part, wrong: None };
        client.begin();
        client
    }

    fn begin(&mut self) {
        let (writes, bytes) = (self.out.direction == Direction::ClientWrites, self.part.bytes);
        self.out.send(Some(bytes), if writes { bytes } else { 0 });
        self.part.input = Incoming { total: if writes { 0 } else { bytes }, ..Incoming::default() };
        self.part.over = None;
    }
}

impl Part for Client {
    #[inline]
    fn take(&mut self, out: &mut Outgoing, mut bytes: &mut [u8], mut key: Key) -> Result<(), ErrorKind> {
        if self.over.is_none() {
            let (left, key) = (&mut bytes, &mut key);
            self.over = if out.direction == Direction::ClientWrites {
                self.count.take(left, key)
            } else {
                self.input.take(left, key, &out.content).then_some(self.input.good)
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

/// The server's end: whatever transfers the client asks for.
pub type StreamServer = Stream<Server>;

/// The server's part.
#[derive(Debug, Default)]
pub struct Server {
    /// The transfer under way, if the client has said how much.
    input: Option<Incoming>,
    wanted: Number,
}

impl StreamServer {
    pub(in crate::layer) fn new(direction: Direction, content: Content) -> Self {
        Self { out: Outgoing::new(direction, content), part: Server::default(), wrong: None }
    }
}

impl Part for Server {
    #[inline]
    fn take(&mut self, out: &mut Outgoing, mut bytes: &mut [u8], mut key: Key) -> Result<(), ErrorKind> {
        while !bytes.is_empty() {
            match &mut self.input {
                Some(input) => {
                    if !input.take(&mut bytes, &mut key, &out.content) {
                        return Ok(());
                    }
                    out.send(Some(input.good), 0);
                    self.input = None;
                }
                None => {
                    let Some(wanted) = self.wanted.take(&mut bytes, &mut key) else { return Ok(()) };
                    if out.at < out.total {
                        // A second wish before the first one is fulfilled.
                        return Err(ErrorKind::Malformed);
                    }
                    if out.direction == Direction::ClientReads {
                        out.send(None, wanted);
                    } else if wanted == 0 {
                        out.send(Some(0), 0);
                    } else {
                        self.input = Some(Incoming { total: wanted, ..Incoming::default() });
                    }
                }
            }
        }
        Ok(())
    }
}
