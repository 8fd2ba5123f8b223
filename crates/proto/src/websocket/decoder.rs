//! From the bytes of a stream, in pieces of any length, to payload.
//!
//! Payload is passed on in place, still masked, with its key: a comparison needs no write. Text is unmasked
//! here, because its encoding is checked, and so is everything on request, as libraries hand it to their
//! users. Only an incomplete head or control frame is copied.

use super::frame::{FrameHead, LONGEST_CONTROL, LONGEST_HEAD, Opcode};
use super::mask::{self, Key};
use super::utf8::Utf8;
use super::{Broken, End, LARGEST_MESSAGE, close};

/// Takes the parts of received messages.
pub trait Receiver {
    /// The next bytes of the message under way.
    fn payload(&mut self, bytes: &mut [u8], key: Key);
    /// The message is complete; `kind` is text or binary.
    fn end_of_message(&mut self, kind: Opcode);
    fn ping(&mut self, payload: &[u8]);
    /// The peer will send nothing more.
    fn close(&mut self, code: Option<u16>);
}

/// One direction of a connection.
#[derive(Debug)]
pub struct Decoder {
    end: End,
    largest: u64,
    /// Payload is passed on unmasked.
    unmask: bool,
    state: DecoderState,
    /// An incomplete head or control payload.
    cut: [u8; LONGEST_CONTROL],
    cut_length: usize,
    /// The message under way: its kind, and its length so far.
    message: Option<(Opcode, u64)>,
    text: Utf8,
}

#[derive(Debug, Clone, Copy)]
enum DecoderState {
    Head,
    Data { left: u64, key: Key, last: bool },
    Control { opcode: Opcode, length: usize, key: Key },
    Closed,
}

impl Decoder {
    /// A decoder of what is sent to `end`, with messages of at most [`LARGEST_MESSAGE`].
    pub fn new(end: End) -> Self {
        Self::with_limit(end, LARGEST_MESSAGE)
    }

    pub fn with_limit(end: End, largest: u64) -> Self {
        Self {
            end,
            largest,
            unmask: false,
            state: DecoderState::Head,
            cut: [0; LONGEST_CONTROL],
            cut_length: 0,
            message: None,
            text: Utf8::default(),
        }
    }

    /// Passes payload on unmasked if `unmask`.
    pub fn unmasking(self, unmask: bool) -> Self {
        Self { unmask, ..self }
    }

    /// The peer has sent its close frame.
    #[inline]
    pub fn is_closed(&self) -> bool {
        matches!(self.state, DecoderState::Closed)
    }

    /// Takes the next bytes of the stream, all of them.
    ///
    /// # Errors
    /// The peer broke the protocol; nothing more may be fed.
    #[inline]
    pub fn feed(&mut self, mut bytes: &mut [u8], receiver: &mut impl Receiver) -> Result<(), Broken> {
        loop {
            match self.state {
                DecoderState::Data { left, key, last } => {
                    let count = left.min(bytes.len() as u64) as usize;
                    let (piece, rest) = bytes.split_at_mut(count);
                    bytes = rest;
                    self.data(piece, key, receiver)?;
                    let left = left - count as u64;
                    if left > 0 {
                        self.state = DecoderState::Data { left, key: key.after(count), last };
                        return Ok(());
                    }
                    self.state = DecoderState::Head;
                    if last {
                        self.end_message(receiver)?;
                    }
                }
                DecoderState::Control { opcode, length, key } => {
                    let count = (length - self.cut_length).min(bytes.len());
                    let (piece, rest) = bytes.split_at_mut(count);
                    bytes = rest;
                    self.cut[self.cut_length..self.cut_length + count].copy_from_slice(piece);
                    self.cut_length += count;
                    if self.cut_length < length {
                        return Ok(());
                    }
                    self.cut_length = 0;
                    self.state = DecoderState::Head;
                    let payload = &mut self.cut[..length];
                    mask::apply(payload, key);
                    match opcode {
                        Opcode::Close => {
                            let code = close::parse(payload)?;
                            self.state = DecoderState::Closed;
                            receiver.close(code);
                        }
                        Opcode::Ping => receiver.ping(payload),
                        // A response to nothing is allowed, and means nothing (section 5.5.3).
                        _ => {}
                    }
                }
                DecoderState::Head => {
                    let Some((head, used)) = self.head(bytes)? else { return Ok(()) };
                    bytes = &mut bytes[used..];
                    self.begin(head)?;
                }
                // What comes behind a close frame is not looked at (section 5.5.1).
                DecoderState::Closed => return Ok(()),
            }
        }
    }

    /// The next head, and how many of `bytes` belong to it. What is not enough for a head is kept.
    #[inline]
    fn head(&mut self, bytes: &[u8]) -> Result<Option<(FrameHead, usize)>, Broken> {
        if self.cut_length == 0
            && let Some(found) = FrameHead::parse(bytes, self.end)?
        {
            return Ok(Some(found));
        }
        let before = self.cut_length;
        let count = (LONGEST_HEAD - before).min(bytes.len());
        self.cut[before..before + count].copy_from_slice(&bytes[..count]);
        self.cut_length += count;
        let Some((head, length)) = FrameHead::parse(&self.cut[..self.cut_length], self.end)? else {
            return Ok(None);
        };
        self.cut_length = 0;
        Ok(Some((head, length - before)))
    }

    fn begin(&mut self, head: FrameHead) -> Result<(), Broken> {
        let key = head.key.unwrap_or(Key::NONE);
        if head.opcode.is_control() {
            self.state = DecoderState::Control { opcode: head.opcode, length: head.length as usize, key };
            return Ok(());
        }
        let (kind, before) = match (head.opcode, self.message) {
            (Opcode::Continuation, Some(message)) => message,
            (Opcode::Text | Opcode::Binary, None) => (head.opcode, 0),
            // A continuation of nothing, or a new message within another (section 5.4).
            _ => return Err(Broken::Protocol),
        };
        if head.length > self.largest - before {
            return Err(Broken::TooBig);
        }
        self.message = Some((kind, before + head.length));
        self.state = DecoderState::Data { left: head.length, key, last: head.last };
        Ok(())
    }

    #[inline]
    fn data(&mut self, piece: &mut [u8], key: Key, receiver: &mut impl Receiver) -> Result<(), Broken> {
        if piece.is_empty() {
            return Ok(());
        }
        let is_text = matches!(self.message, Some((Opcode::Text, _)));
        if !is_text && !self.unmask {
            receiver.payload(piece, key);
            return Ok(());
        }
        if !key.is_none() {
            mask::apply(piece, key);
        }
        if is_text {
            self.text.feed(piece).map_err(|_| Broken::NotUtf8)?;
        }
        receiver.payload(piece, Key::NONE);
        Ok(())
    }

    fn end_message(&mut self, receiver: &mut impl Receiver) -> Result<(), Broken> {
        let (kind, _) = self.message.take().expect("data frames belong to a message");
        if kind == Opcode::Text {
            self.text.end().map_err(|_| Broken::NotUtf8)?;
        }
        receiver.end_of_message(kind);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
