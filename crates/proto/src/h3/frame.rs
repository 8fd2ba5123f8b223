//! Frames (section 7), and the numbers of QUIC that they begin with (RFC 9000 section 16).

use super::Code;
use crate::fields::MOST_FIELDS;

pub(super) const DATA: u64 = 0;
pub(super) const HEADERS: u64 = 1;
pub(super) const CANCEL_PUSH: u64 = 3;
pub(super) const SETTINGS: u64 = 4;
pub(super) const PUSH_PROMISE: u64 = 5;
pub(super) const GOAWAY: u64 = 7;
pub(super) const MAX_PUSH_ID: u64 = 0xd;

/// Takes a number from the front, where the whole of it is there.
#[inline]
pub(super) fn number(bytes: &mut &[u8]) -> Option<u64> {
    let first = *bytes.first()?;
    let (encoded, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    *bytes = rest;
    Some(encoded[1..].iter().fold(u64::from(first & 0x3f), |sum, byte| sum << 8 | u64::from(*byte)))
}

/// Appends a number below 2^62.
pub(super) fn put_number(bytes: &mut Vec<u8>, value: u64) {
    match value {
        0..=0x3f => bytes.push(value as u8),
        0x40..=0x3fff => bytes.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..=0x3fff_ffff => bytes.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => bytes.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// Appends a frame.
pub(super) fn put_frame(bytes: &mut Vec<u8>, kind: u64, payload: &[u8]) {
    put_number(bytes, kind);
    put_number(bytes, payload.len() as u64);
    bytes.extend_from_slice(payload);
}

/// Numbers that may arrive in pieces: those in front of a frame or a stream.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbers {
    kept: [u8; 16],
    have: usize,
}

impl Numbers {
    /// Takes `N` numbers, at most two, from the front of `bytes` and what was kept of earlier pieces; keeps
    /// them where they are not complete.
    #[inline]
    pub(super) fn take<const N: usize>(&mut self, bytes: &mut &[u8]) -> Option<[u64; N]> {
        let several = |mut from: &[u8]| {
            let mut numbers = [0; N];
            for place in &mut numbers {
                *place = number(&mut from)?;
            }
            Some((numbers, from.len()))
        };
        if self.have == 0
            && let Some((numbers, left)) = several(bytes)
        {
            *bytes = &bytes[bytes.len() - left..];
            return Some(numbers);
        }
        while let Some((first, rest)) = bytes.split_first() {
            (self.kept[self.have], *bytes) = (*first, rest);
            self.have += 1;
            if let Some((numbers, _)) = several(&self.kept[..self.have]) {
                self.have = 0;
                return Some(numbers);
            }
        }
        None
    }

    pub(super) fn is_empty(&self) -> bool {
        self.have == 0
    }
}

/// A receiver of the frames of a message.
pub(super) trait Receiver {
    /// A section of fields.
    fn headers(&mut self, section: &[u8]) -> Result<(), Code>;
    /// A DATA frame begins.
    fn data_begins(&mut self) -> Result<(), Code>;
    fn data(&mut self, piece: &[u8]);
}

/// Splits a message into frames.
#[derive(Debug, Clone, Default)]
pub(super) struct Splitter {
    numbers: Numbers,
    /// The frame under way, and its bytes that are still to come; zero: none is.
    kind: u64,
    left: u64,
    /// The beginning of a section of fields.
    section: Vec<u8>,
}

impl Splitter {
    /// Before the first byte of another message.
    pub(super) fn reset(&mut self) {
        (self.numbers, self.left) = (Numbers::default(), 0);
        self.section.clear();
    }

    /// Bytes of memory that are kept.
    #[inline]
    pub(super) fn kept(&self) -> usize {
        self.section.capacity()
    }

    /// Whether the last frame is complete.
    pub(super) fn is_between(&self) -> bool {
        self.left == 0 && self.numbers.is_empty()
    }

    /// Takes the next bytes of the stream.
    ///
    /// # Errors
    /// The reason why the stream, or the connection, is over.
    #[inline]
    pub(super) fn feed(&mut self, mut bytes: &[u8], receiver: &mut impl Receiver) -> Result<(), Code> {
        while !bytes.is_empty() {
            if self.left == 0 {
                let Some([kind, length]) = self.numbers.take(&mut bytes) else { return Ok(()) };
                (self.kind, self.left) = (kind, length);
                begin(kind, length, receiver)?;
            }
            let count = self.left.min(bytes.len() as u64);
            let (piece, rest) = bytes.split_at(count as usize);
            (bytes, self.left) = (rest, self.left - count);
            match self.kind {
                DATA if count > 0 => receiver.data(piece),
                HEADERS if self.left == 0 && self.section.is_empty() => receiver.headers(piece)?,
                HEADERS => {
                    self.section.extend_from_slice(piece);
                    if self.left == 0 {
                        let outcome = receiver.headers(&self.section);
                        // Mostly it comes in one piece: the next one needs no room.
                        self.section = Vec::new();
                        outcome?;
                    }
                }
                // Others mean nothing here, and may come at any time (section 9).
                _ => {}
            }
        }
        Ok(())
    }
}

#[inline]
fn begin(kind: u64, length: u64, receiver: &mut impl Receiver) -> Result<(), Code> {
    match kind {
        DATA => receiver.data_begins(),
        HEADERS if length > MOST_FIELDS as u64 => Err(Code::EXCESSIVE_LOAD),
        // This end has allowed no push.
        PUSH_PROMISE => Err(Code::ID_ERROR),
        // Frames of the control stream, and those of HTTP/2 (section 11.2.1).
        CANCEL_PUSH | SETTINGS | GOAWAY | MAX_PUSH_ID | 2 | 6 | 8 | 9 => Err(Code::FRAME_UNEXPECTED),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_appendix_a_1_of_quic_are_read_and_written() {
        for (bytes, value) in [
            (&b"\xc2\x19\x7c\x5e\xff\x14\xe8\x8c"[..], 151_288_809_941_952_652),
            (b"\x9d\x7f\x3e\x7d", 494_878_333),
            (b"\x7b\xbd", 15_293),
            (b"\x25", 37),
        ] {
            let mut written = Vec::new();
            put_number(&mut written, value);
            assert_eq!((number(&mut &bytes[..]), &written[..]), (Some(value), bytes));
        }
        assert_eq!(number(&mut &b"\x40\x25"[..]), Some(37), "longer than necessary");
        assert_eq!(number(&mut &b"\x7b"[..]), None);
    }

    #[derive(Default, Debug, PartialEq)]
    struct Seen(Vec<String>);

    impl Receiver for Seen {
        fn headers(&mut self, section: &[u8]) -> Result<(), Code> {
            self.0.push(format!("headers {section:?}"));
            Ok(())
        }

        fn data_begins(&mut self) -> Result<(), Code> {
            self.0.push("data ".into());
            Ok(())
        }

        fn data(&mut self, piece: &[u8]) {
            *self.0.last_mut().unwrap() += &String::from_utf8_lossy(piece);
        }
    }

    #[test]
    fn frames_are_the_same_in_pieces_of_any_size() {
        let mut stream = Vec::new();
        put_frame(&mut stream, HEADERS, &[7; 70]);
        put_frame(&mut stream, 0x21, b"unknown");
        put_frame(&mut stream, DATA, b"");
        put_frame(&mut stream, DATA, b"one");
        put_frame(&mut stream, 0x4041, b"");
        put_frame(&mut stream, DATA, b"two");
        let mut whole = Seen::default();
        Splitter::default().feed(&stream, &mut whole).unwrap();
        assert_eq!(whole.0[1..], ["data ", "data one", "data two"]);
        for size in 1..stream.len() {
            let (mut splitter, mut seen) = (Splitter::default(), Seen::default());
            for piece in stream.chunks(size) {
                splitter.feed(piece, &mut seen).unwrap();
            }
            assert!(seen == whole && splitter.is_between(), "{size}: {seen:?}");
        }
    }

    #[test]
    fn frames_of_other_streams_and_long_sections_are_refused() {
        for (kind, length, code) in [
            (SETTINGS, 0, Code::FRAME_UNEXPECTED),
            (6, 0, Code::FRAME_UNEXPECTED),
            (PUSH_PROMISE, 1, Code::ID_ERROR),
            (HEADERS, 1 << 20, Code::EXCESSIVE_LOAD),
        ] {
            let mut stream = Vec::new();
            put_number(&mut stream, kind);
            put_number(&mut stream, length);
            assert_eq!(Splitter::default().feed(&stream, &mut Seen::default()), Err(code));
        }
        let mut cut = Splitter::default();
        cut.feed(&[0, 5, b'x'], &mut Seen::default()).unwrap();
        assert!(!cut.is_between());
    }
}
