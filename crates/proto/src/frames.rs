//! The framed stream in a conversation: four bytes of length, then that much content; a length of 0 ends it.
//!
//! The reader accepts the stream in pieces of any size.

use linerate_contract::page;

/// Content repeats with this period (sdk/CONTRACT.md).
const PERIOD: usize = 65_536;
const PREFIX: usize = 4;

/// Content at any offset as one slice.
#[derive(Debug, Clone)]
pub struct FrameContent(Box<[u8]>);

impl FrameContent {
    /// Content for slices of up to `longest` bytes.
    pub fn new(longest: usize) -> Self {
        Self(page(PERIOD).into_iter().cycle().take(PERIOD + longest).collect())
    }

    /// `length` bytes of it, from `offset` on.
    #[inline]
    pub fn at(&self, offset: u64, length: usize) -> &[u8] {
        let start = (offset % PERIOD as u64) as usize;
        &self.0[start..start + length]
    }

    fn longest(&self) -> usize {
        self.0.len() - PERIOD
    }
}

/// The prefix of `length` bytes of content; 0 ends the stream.
#[inline]
pub fn prefix(length: usize) -> [u8; PREFIX] {
    (length as u32).to_le_bytes()
}

/// The reading end.
#[derive(Debug, Default)]
pub struct FrameReader {
    prefix: [u8; PREFIX],
    has: usize,
    /// Bytes of the frame that are still missing.
    left: usize,
    at: u64,
    /// Bytes that were as expected.
    pub good: u64,
    /// The stream has ended.
    pub ended: bool,
}

impl FrameReader {
    /// Takes the next bytes; those behind the end are ignored.
    #[inline]
    pub fn take(&mut self, mut bytes: &[u8], content: &FrameContent) {
        while !bytes.is_empty() && !self.ended {
            if self.left == 0 {
                let taken = (PREFIX - self.has).min(bytes.len());
                self.prefix[self.has..self.has + taken].copy_from_slice(&bytes[..taken]);
                self.has += taken;
                bytes = &bytes[taken..];
                if self.has == PREFIX {
                    self.has = 0;
                    self.left = u32::from_le_bytes(self.prefix) as usize;
                    self.ended = self.left == 0;
                }
                continue;
            }
            let length = self.left.min(bytes.len()).min(content.longest());
            let (piece, rest) = bytes.split_at(length);
            let wanted = content.at(self.at, length);
            self.good += if piece == wanted {
                length as u64
            } else {
                piece.iter().zip(wanted).filter(|(is, should)| is == should).count() as u64
            };
            self.at += length as u64;
            self.left -= length;
            bytes = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_in_pieces_of_any_size() {
        let content = FrameContent::new(700);
        let mut stream = Vec::new();
        for (offset, length) in [(0, 700), (700, 1), (701, 650), (1_351, 0)] {
            stream.extend_from_slice(&prefix(length));
            stream.extend_from_slice(content.at(offset, length));
        }
        for cut in [1, 3, 5, 64, 701, 5_000] {
            let mut reader = FrameReader::default();
            for piece in stream.chunks(cut) {
                assert!(!reader.ended);
                reader.take(piece, &content);
            }
            assert!(reader.ended);
            assert_eq!(reader.good, 1_351, "cut into {cut}");
        }
        let mut reader = FrameReader::default();
        stream[10] ^= 1;
        reader.take(&stream, &content);
        assert_eq!(reader.good, 1_350);
    }

    #[test]
    fn the_largest_length_does_not_break_the_reader() {
        let content = FrameContent::new(100);
        let mut reader = FrameReader::default();
        reader.take(&u32::MAX.to_le_bytes(), &content);
        reader.take(&[b'x'; 1_000], &content);
        assert!(!reader.ended);
    }
}
