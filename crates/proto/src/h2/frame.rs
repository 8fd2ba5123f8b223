//! Frames (section 4): made, and split where they lie.
//!
//! The payload of DATA is passed on in pieces; other frames are copied only if they come in pieces.

use super::Code;

pub(super) const HEAD: usize = 9;
/// The longest payload that is accepted: the smallest limit, which is also the usual one.
pub(super) const LONGEST: usize = 16_384;

/// Bytes of a buffer that are kept when it is empty.
const KEPT: usize = 1_024;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PUSH_PROMISE: u8 = 5;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const ACK: u8 = 1;
pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;
pub(super) const PADDED: u8 = 8;
pub(super) const WITH_PRIORITY: u8 = 0x20;

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl Head {
    #[inline]
    fn parse(bytes: &[u8; HEAD]) -> Self {
        let [high, middle, low, kind, flags, stream @ ..] = *bytes;
        Self {
            length: u32::from_be_bytes([0, high, middle, low]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & 0x7fff_ffff,
        }
    }

    #[inline]
    pub(super) fn bytes(self) -> [u8; HEAD] {
        let [_, high, middle, low] = (self.length as u32).to_be_bytes();
        let [a, b, c, d] = self.stream.to_be_bytes();
        [high, middle, low, self.kind, self.flags, a, b, c, d]
    }

    #[inline]
    pub(super) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Bytes to be sent, in frames.
#[derive(Debug, Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    from: usize,
    /// Frames that only answer the peer, since all was sent.
    pub(super) responses: u32,
}

impl Output {
    #[inline]
    pub(super) fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.bytes.extend_from_slice(&Head { length: payload.len(), kind, flags, stream }.bytes());
        self.bytes.extend_from_slice(payload);
    }

    pub(super) fn update_window(&mut self, stream: u32, increment: u32) {
        self.frame(WINDOW_UPDATE, 0, stream, &increment.to_be_bytes());
    }

    pub(super) fn reset(&mut self, stream: u32, code: Code) {
        self.frame(RST_STREAM, 0, stream, &code.0.to_be_bytes());
    }

    #[inline]
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    #[inline]
    pub(super) fn pending(&self) -> &[u8] {
        &self.bytes[self.from..]
    }

    /// Bytes of memory that are kept for a peer that does not read.
    #[inline]
    pub(super) fn kept(&self) -> usize {
        if self.responses > 0 { self.bytes.capacity() } else { 0 }
    }

    /// Gives back what a usual response does not need, when all was sent.
    #[inline]
    pub(super) fn shrink(&mut self) {
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT {
            self.bytes = Vec::new();
        }
    }

    #[inline]
    pub(super) fn advance(&mut self, count: usize) {
        self.from += count;
        if self.from == self.bytes.len() {
            self.bytes.clear();
            (self.from, self.responses) = (0, 0);
        }
    }
}

/// Takes the frames of a peer.
pub(super) trait Receiver {
    /// A whole frame that is not DATA.
    fn frame(&mut self, head: Head, payload: &[u8]) -> Result<(), Code>;
    /// The head of a DATA frame has arrived; its length includes padding.
    fn data_begins(&mut self, head: Head) -> Result<(), Code>;
    /// A piece of its content.
    fn data(&mut self, piece: &[u8]);
    fn data_ends(&mut self, head: Head) -> Result<(), Code>;
}

/// Splits what a peer sends.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    /// The beginning of a frame. It is kept for the next one while it is small.
    aside: Vec<u8>,
    data: Option<DataFrame>,
}

/// A DATA frame under way.
#[derive(Debug, Clone, Copy)]
struct DataFrame {
    head: Head,
    /// Bytes of content and padding that are missing.
    content: usize,
    padding: usize,
    /// The length of the padding is missing.
    lacks_pad: bool,
}

impl Splitter {
    /// The bytes of a frame that is not whole.
    pub(super) fn unfinished(&self) -> &[u8] {
        &self.aside
    }

    /// Bytes of memory that are kept.
    #[inline]
    pub(super) fn kept(&self) -> usize {
        self.aside.capacity()
    }

    /// # Errors
    /// A frame that is longer than it may be, or what `receiver` returns.
    #[inline]
    pub(super) fn feed(&mut self, mut bytes: &[u8], receiver: &mut impl Receiver) -> Result<(), Code> {
        loop {
            if let Some(data) = &mut self.data {
                if !data.take(&mut bytes, receiver)? {
                    return Ok(());
                }
                let head = data.head;
                self.data = None;
                receiver.data_ends(head)?;
            } else if !self.aside.is_empty() {
                if !self.feed_aside(&mut bytes, receiver)? {
                    return Ok(());
                }
            } else {
                let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else { break };
                let head = Head::parse(head);
                if head.length > LONGEST {
                    return Err(Code::FRAME_SIZE_ERROR);
                }
                if head.kind == DATA {
                    bytes = rest;
                    self.begin_data(head, receiver)?;
                } else {
                    let Some((payload, rest)) = rest.split_at_checked(head.length) else { break };
                    bytes = rest;
                    receiver.frame(head, payload)?;
                }
            }
        }
        self.aside.extend_from_slice(bytes);
        Ok(())
    }

    fn begin_data(&mut self, head: Head, receiver: &mut impl Receiver) -> Result<(), Code> {
        receiver.data_begins(head)?;
        let lacks_pad = head.has(PADDED);
        self.data = Some(DataFrame { head, content: head.length, padding: 0, lacks_pad });
        Ok(())
    }

    /// Completes the head, then the frame; false: `bytes` are used up.
    #[cold]
    fn feed_aside(&mut self, bytes: &mut &[u8], receiver: &mut impl Receiver) -> Result<bool, Code> {
        let mut move_up_to = |aside: &mut Vec<u8>, length: usize| {
            let missing = length.saturating_sub(aside.len()).min(bytes.len());
            let (moved, rest) = bytes.split_at(missing);
            aside.extend_from_slice(moved);
            *bytes = rest;
            aside.len() >= length
        };
        if !move_up_to(&mut self.aside, HEAD) {
            return Ok(false);
        }
        let head = Head::parse(self.aside.first_chunk().expect("it has its length"));
        if head.length > LONGEST {
            return Err(Code::FRAME_SIZE_ERROR);
        }
        if head.kind == DATA {
            self.aside.clear();
            self.begin_data(head, receiver)?;
            return Ok(true);
        }
        if !move_up_to(&mut self.aside, HEAD + head.length) {
            return Ok(false);
        }
        receiver.frame(head, &self.aside[HEAD..])?;
        self.aside.clear();
        self.aside.shrink_to(KEPT);
        Ok(true)
    }
}

impl DataFrame {
    /// Takes bytes of the frame; whether it is complete.
    #[inline]
    fn take(&mut self, bytes: &mut &[u8], receiver: &mut impl Receiver) -> Result<bool, Code> {
        if self.lacks_pad {
            if self.content == 0 {
                return Err(Code::FRAME_SIZE_ERROR);
            }
            let Some((pad, rest)) = bytes.split_first() else { return Ok(false) };
            *bytes = rest;
            self.lacks_pad = false;
            self.padding = usize::from(*pad);
            self.content = (self.content - 1).checked_sub(self.padding).ok_or(Code::PROTOCOL_ERROR)?;
        }
        let (piece, rest) = bytes.split_at(self.content.min(bytes.len()));
        if !piece.is_empty() {
            receiver.data(piece);
        }
        self.content -= piece.len();
        let skipped = self.padding.min(rest.len());
        if self.content == 0 {
            self.padding -= skipped;
            *bytes = &rest[skipped..];
        } else {
            *bytes = rest;
        }
        Ok(self.content == 0 && self.padding == 0)
    }
}

/// The content of a padded frame, and of one with a priority.
///
/// # Errors
/// There is more padding than frame.
pub(super) fn without_padding(head: Head, mut payload: &[u8]) -> Result<&[u8], Code> {
    let mut padding = 0;
    if head.has(PADDED) {
        let (pad, rest) = payload.split_first().ok_or(Code::FRAME_SIZE_ERROR)?;
        (padding, payload) = (usize::from(*pad), rest);
    }
    if head.has(WITH_PRIORITY) {
        payload = payload.get(5..).ok_or(Code::FRAME_SIZE_ERROR)?;
    }
    let length = payload.len().checked_sub(padding).ok_or(Code::PROTOCOL_ERROR)?;
    Ok(&payload[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Log(Vec<String>, Vec<u8>);

    impl Receiver for Log {
        fn frame(&mut self, head: Head, payload: &[u8]) -> Result<(), Code> {
            self.0.push(format!("{} {} {payload:?}", head.kind, head.stream));
            Ok(())
        }

        fn data_begins(&mut self, head: Head) -> Result<(), Code> {
            self.0.push(format!("data {}", head.length));
            Ok(())
        }

        fn data(&mut self, piece: &[u8]) {
            self.1.extend_from_slice(piece);
        }

        fn data_ends(&mut self, head: Head) -> Result<(), Code> {
            self.0.push(format!("end {} {:?}", head.flags, std::mem::take(&mut self.1)));
            Ok(())
        }
    }

    #[test]
    fn frames_are_split_in_pieces_of_any_size() {
        let mut output = Output::default();
        output.frame(PING, 0, 0, b"12345678");
        output.frame(DATA, PADDED | END_STREAM, 1, b"\x03abcxyz");
        output.frame(DATA, 0, 3, b"");
        output.frame(DATA, 0, 3, b"hello");
        output.reset(5, Code::CANCEL);
        let all = output.pending().to_vec();
        let log = |size: usize| {
            let (mut splitter, mut log) = (Splitter::default(), Log::default());
            all.chunks(size).for_each(|piece| splitter.feed(piece, &mut log).unwrap());
            assert!(splitter.aside.is_empty() && splitter.data.is_none());
            log
        };
        let whole = log(all.len());
        assert_eq!(whole.0[2], format!("end 9 {:?}", b"abc"));
        assert_eq!(whole.0.len(), 8);
        (1..all.len()).for_each(|size| assert_eq!(log(size), whole, "pieces of {size}"));
    }

    #[test]
    fn frames_that_are_too_long_or_all_padding_are_refused() {
        let refused = |bytes: &[u8]| Splitter::default().feed(bytes, &mut Log::default()).unwrap_err();
        assert_eq!(refused(&[0, 0x40, 1, 6, 0, 0, 0, 0, 0]), Code::FRAME_SIZE_ERROR);
        assert_eq!(refused(&[0, 0, 0, DATA, PADDED, 0, 0, 0, 1]), Code::FRAME_SIZE_ERROR);
        assert_eq!(refused(&[0, 0, 2, DATA, PADDED, 0, 0, 0, 1, 2, 0]), Code::PROTOCOL_ERROR);
        let head = Head { length: 3, kind: HEADERS, flags: PADDED, stream: 1 };
        assert_eq!(without_padding(head, &[1, 0x82, 0]), Ok(&[0x82][..]));
        assert_eq!(without_padding(head, &[3, 0x82, 0]), Err(Code::PROTOCOL_ERROR));
    }

    #[test]
    fn what_was_sent_is_gone() {
        let mut output = Output::default();
        output.update_window(0, 7);
        output.advance(4);
        assert_eq!(output.pending().len(), HEAD);
        output.advance(HEAD);
        assert!(output.pending().is_empty() && output.bytes.is_empty());
    }
}
