//! Unidirectional streams (section 6.2): the control stream of each end, and those of QPACK.

use super::Code;
use super::frame::{self, Numbers, put_frame, put_number};
use crate::fields::MOST_FIELDS;

const CONTROL: u64 = 0;
const PUSH: u64 = 1;
const ENCODER: u64 = 2;
const DECODER: u64 = 3;

/// The setting with the bytes of a message's fields (section 7.2.4.1).
const MAX_FIELD_SECTION_SIZE: u64 = 6;
/// An instruction of an encoder: the capacity of its table is 0 (RFC 9204 section 4.3.1).
const NO_TABLE: u8 = 0x20;
/// Frames that are read as a whole have a few numbers.
const LONGEST: usize = 1_024;

/// The bytes of this end's control stream: its settings. The table of QPACK has its default, no bytes.
pub fn opening() -> Vec<u8> {
    let mut settings = Vec::new();
    put_number(&mut settings, MAX_FIELD_SECTION_SIZE);
    put_number(&mut settings, MOST_FIELDS as u64);
    let mut bytes = vec![CONTROL as u8];
    put_frame(&mut bytes, frame::SETTINGS, &settings);
    bytes
}

/// One stream of the peer's.
#[derive(Debug, Default)]
pub struct PeerStream {
    kind: Option<u64>,
    numbers: Numbers,
    /// The frame under way: its kind, what is still to come of it, and its beginning.
    frame: Option<(u64, u64)>,
    begun: Vec<u8>,
    has_settings: bool,
}

impl PeerStream {
    /// Takes the next bytes. Returns the number of a GOAWAY: the first stream of this end that the peer does
    /// not look at any more (section 5.2).
    ///
    /// # Errors
    /// The reason why the connection is over.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<Option<u64>, Code> {
        let kind = match self.kind {
            Some(kind) => kind,
            None => {
                let Some([kind]) = self.numbers.take(&mut bytes) else { return Ok(None) };
                *self.kind.insert(kind)
            }
        };
        match kind {
            CONTROL => self.control(bytes),
            // Only a server pushes, and this end has allowed none.
            PUSH => Err(Code::STREAM_CREATION_ERROR),
            ENCODER if bytes.iter().any(|byte| *byte != NO_TABLE) => Err(Code::QPACK_ENCODER_STREAM_ERROR),
            _ => Ok(None),
        }
    }

    /// True if both are of a kind of which an end has one stream (section 6.2.1, RFC 9204 section 4.2).
    pub fn is_twice(&self, other: &Self) -> bool {
        matches!(self.kind, Some(CONTROL | ENCODER | DECODER)) && self.kind == other.kind
    }

    /// The peer has ended the stream.
    ///
    /// # Errors
    /// As [`Self::feed`]: control streams stay (section 6.2.1).
    pub fn finish(&self) -> Result<(), Code> {
        let is_critical = matches!(self.kind, Some(CONTROL | ENCODER | DECODER));
        if is_critical { Err(Code::CLOSED_CRITICAL_STREAM) } else { Ok(()) }
    }

    fn control(&mut self, mut bytes: &[u8]) -> Result<Option<u64>, Code> {
        let mut goaway = None;
        loop {
            let (kind, left) = match self.frame {
                Some(frame) => frame,
                None => {
                    let Some([kind, length]) = self.numbers.take(&mut bytes) else { return Ok(goaway) };
                    self.begin(kind, length)?;
                    (kind, length)
                }
            };
            let (piece, rest) = bytes.split_at((left as usize).min(bytes.len()));
            bytes = rest;
            self.frame = Some((kind, left - piece.len() as u64));
            if matches!(kind, frame::SETTINGS | frame::GOAWAY) {
                self.begun.extend_from_slice(piece);
            }
            if left > piece.len() as u64 {
                return Ok(goaway);
            }
            self.frame = None;
            let payload = std::mem::take(&mut self.begun);
            match kind {
                frame::SETTINGS => check_settings(&payload)?,
                frame::GOAWAY => {
                    let mut rest = &payload[..];
                    let first = frame::number(&mut rest).filter(|_| rest.is_empty());
                    goaway = Some(first.ok_or(Code::FRAME_ERROR)?);
                }
                _ => {}
            }
        }
    }

    fn begin(&mut self, kind: u64, length: u64) -> Result<(), Code> {
        let is_first = !std::mem::replace(&mut self.has_settings, true);
        match kind {
            frame::SETTINGS | frame::GOAWAY if length > LONGEST as u64 => Err(Code::EXCESSIVE_LOAD),
            frame::SETTINGS if is_first => Ok(()),
            _ if is_first => Err(Code::MISSING_SETTINGS),
            frame::SETTINGS | frame::DATA | frame::HEADERS | frame::PUSH_PROMISE | 2 | 6 | 8 | 9 => {
                Err(Code::FRAME_UNEXPECTED)
            }
            _ => Ok(()),
        }
    }
}

/// Pairs of numbers, each setting once; those of HTTP/2 do not exist (section 7.2.4.1).
fn check_settings(mut payload: &[u8]) -> Result<(), Code> {
    let mut seen = Vec::new();
    while !payload.is_empty() {
        let (Some(name), Some(_)) = (frame::number(&mut payload), frame::number(&mut payload)) else {
            return Err(Code::FRAME_ERROR);
        };
        if seen.contains(&name) || (2..=5).contains(&name) {
            return Err(Code::SETTINGS_ERROR);
        }
        seen.push(name);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(bytes: &[u8], size: usize) -> Result<Option<u64>, Code> {
        let mut stream = PeerStream::default();
        bytes.chunks(size).try_fold(None, |last, piece| Ok(stream.feed(piece)?.or(last)))
    }

    fn control(frames: &[(u64, &[u8])]) -> Vec<u8> {
        let mut bytes = opening();
        frames.iter().for_each(|(kind, payload)| put_frame(&mut bytes, *kind, payload));
        bytes
    }

    #[test]
    fn settings_and_the_end_of_a_connection_are_read_in_pieces_of_any_size() {
        let goaway = (frame::GOAWAY, &[0x40, 0x80][..]);
        let bytes = control(&[(0x21, b"unknown"), goaway, (frame::MAX_PUSH_ID, &[1])]);
        for size in 1..=bytes.len() {
            assert_eq!(fed(&bytes, size), Ok(Some(128)), "{size}");
        }
        assert_eq!(fed(&opening(), 3), Ok(None));
    }

    #[test]
    fn an_end_has_one_control_stream_and_two_of_qpack() {
        let of = |kind: &[u8]| {
            let mut stream = PeerStream::default();
            stream.feed(kind).unwrap();
            stream
        };
        for kind in [&[0][..], &[2], &[3]] {
            assert!(of(kind).is_twice(&of(kind)) && !of(kind).is_twice(&of(&[])), "{kind:?}");
        }
        assert!(!of(&[2]).is_twice(&of(&[3])) && !of(&[0x21]).is_twice(&of(&[0x21])));
    }

    #[test]
    fn streams_that_break_the_rules_are_refused() {
        let without = |kind: u64, payload: &[u8]| {
            let mut bytes = vec![0];
            put_frame(&mut bytes, kind, payload);
            bytes
        };
        for (bytes, code) in [
            (without(frame::GOAWAY, &[0]), Code::MISSING_SETTINGS),
            (without(frame::SETTINGS, &[6]), Code::FRAME_ERROR),
            (without(frame::SETTINGS, &[6, 1, 6, 1]), Code::SETTINGS_ERROR),
            (without(frame::SETTINGS, &[2, 0]), Code::SETTINGS_ERROR),
            (control(&[(frame::SETTINGS, &[])]), Code::FRAME_UNEXPECTED),
            (control(&[(frame::DATA, b"x")]), Code::FRAME_UNEXPECTED),
            (control(&[(frame::GOAWAY, &[])]), Code::FRAME_ERROR),
            (control(&[(frame::GOAWAY, &[0; 2_000])]), Code::EXCESSIVE_LOAD),
            (vec![1, 0], Code::STREAM_CREATION_ERROR),
            (vec![2, 0x20, 0x3f], Code::QPACK_ENCODER_STREAM_ERROR),
        ] {
            for size in [1, bytes.len()] {
                assert_eq!(fed(&bytes, size), Err(code), "{bytes:x?}");
            }
        }
        let mut stream = PeerStream::default();
        stream.feed(&[3, 0x84]).unwrap();
        assert_eq!(stream.finish(), Err(Code::CLOSED_CRITICAL_STREAM));
        assert_eq!(fed(&[0x40, 0x54, 9, 9], 1), Ok(None), "of an unknown kind");
    }
}
