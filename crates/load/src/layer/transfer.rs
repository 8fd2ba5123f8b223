//! Parts of a `stream` that both ends and every layer share: content, numbers, and the check of received
//! content.
//!
//! sdk/CONTRACT.md has the protocol: a number N of eight bytes from the client, then N bytes of content one
//! way or both ways, then the receiving server's number of good bytes.

use crate::refusal::Refusal;
use linerate_contract::{Spec, page};
use std::sync::Arc;

/// Content repeats with this period (sdk/CONTRACT.md).
pub(super) const PERIOD: usize = 65_536;
/// N of a stream that ends by time (sdk/CONTRACT.md).
pub(super) const UNTIL_TIME_IS_OVER: u64 = u64::MAX;
/// The largest write, in bytes (sdk/CONTRACT.md).
const LARGEST_WRITE: u64 = 1 << 20;

/// Content at any offset as one slice, and the size of a read and a write.
#[derive(Debug, Clone)]
pub(super) struct Content {
    bytes: Arc<[u8]>,
    size: usize,
}

impl Content {
    pub(super) fn new(spec: &Spec) -> Result<Self, Refusal> {
        if !(1..=LARGEST_WRITE).contains(&spec.size) {
            return Err(Refusal::BadSpec(format!("\"size\" must be 1 to {LARGEST_WRITE} bytes")));
        }
        let size = spec.size as usize;
        Ok(Self { bytes: page(PERIOD).into_iter().cycle().take(PERIOD + size).collect(), size })
    }

    /// Bytes of a write.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// One period and one write.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    #[inline]
    pub(super) fn at(&self, offset: u64, length: usize) -> &[u8] {
        let start = (offset % PERIOD as u64) as usize;
        &self.bytes[start..start + length]
    }
}

/// Content that is received: how much of `total` has arrived, and how many bytes of that were good.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Incoming {
    pub(super) at: u64,
    pub(super) total: u64,
    pub(super) good: u64,
}

impl Incoming {
    pub(super) fn up_to(total: u64) -> Self {
        Self { total, ..Self::default() }
    }

    /// The length of the next read: at most `size`.
    #[inline]
    pub(super) fn next_read(&self, size: usize) -> usize {
        (self.total - self.at).min(size as u64) as usize
    }

    #[inline]
    pub(super) fn add(&mut self, length: usize, good: u64) {
        self.at += length as u64;
        self.good += good;
    }
}

/// A number of eight bytes, little-endian, as far as it has been received.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Number {
    bytes: [u8; 8],
    at: usize,
}

impl Number {
    pub(super) fn value(self) -> u64 {
        u64::from_le_bytes(self.bytes)
    }

    pub(super) fn is_complete(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Where the bytes go that are missing.
    pub(super) fn rest(&mut self) -> &mut [u8] {
        &mut self.bytes[self.at..]
    }

    pub(super) fn advance(&mut self, count: usize) {
        self.at += count;
    }
}

/// The number of bytes that are equal.
#[inline]
pub(super) fn good(bytes: &[u8], expected: &[u8]) -> u64 {
    if bytes == expected {
        return bytes.len() as u64;
    }
    bytes.iter().zip(expected).filter(|(is, should)| is == should).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Layer, Role, Workload};

    #[test]
    fn content_repeats_and_is_one_slice_at_any_offset() {
        let mut spec = Spec::new(Role::Client, Layer::Tcp, Workload::Stream);
        spec.size = 1000;
        let content = Content::new(&spec).unwrap();
        let page = page(PERIOD);
        assert_eq!(content.at(0, 1000), &page[..1000]);
        assert_eq!(content.at(PERIOD as u64 * 3 + 7, 1000), &page[7..1007]);
        let across = content.at(PERIOD as u64 - 1, 2);
        assert_eq!(across, [page[PERIOD - 1], page[0]]);
    }

    #[test]
    fn only_equal_bytes_are_good() {
        assert_eq!(good(b"abcd", b"abcd"), 4);
        assert_eq!(good(b"abXd", b"abcd"), 3);
    }

    #[test]
    fn a_number_arrives_in_pieces() {
        let mut received = Number::default();
        for piece in [&[8][..], &[7, 6, 5], &[4, 3, 2, 1]] {
            assert!(!received.is_complete());
            received.rest()[..piece.len()].copy_from_slice(piece);
            received.advance(piece.len());
        }
        assert!(received.is_complete());
        assert_eq!(received.value(), 0x0102_0304_0506_0708);
    }
}
