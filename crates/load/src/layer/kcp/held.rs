//! Segments that a session holds back, since they arrived before one that is missing. The state machine keeps
//! them, up to its window, and does not report how many they are. A server counts them over all sessions, so
//! that its memory has a limit.

/// The command of a segment with data (ikcp.c).
const PUSH: u8 = 81;
const OVERHEAD: usize = kcp::KCP_OVERHEAD;

/// A segment with data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PushSegment {
    pub(super) number: u32,
    /// Segments of the same message that follow; in stream mode always 0.
    pub(super) following: u8,
}

/// The segments with data in a datagram; parsing ends at the first header that is cut.
pub(super) fn pushes(mut datagram: &[u8]) -> impl Iterator<Item = PushSegment> {
    std::iter::from_fn(move || {
        while let Some((header, rest)) = datagram.split_first_chunk::<OVERHEAD>() {
            let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
            datagram = rest.get(word(20) as usize..)?;
            if header[4] == PUSH {
                return Some(PushSegment { number: word(12), following: header[5] });
            }
        }
        None
    })
}

/// One session's received segments.
#[derive(Debug)]
pub(super) struct HeldSegments {
    /// The number of the first missing segment.
    next: u32,
    window: u32,
    /// A bit for each number of the window, at its remainder.
    arrived: Box<[u64]>,
    count: usize,
    /// Segments that were in order since the last read: the state machine takes a window of them.
    in_order: u32,
}

impl HeldSegments {
    pub(super) fn new(window: u16) -> Self {
        // A power of two, so that numbers that wrap keep their places.
        let bits = usize::from(window).next_power_of_two().max(64);
        let arrived = vec![0; bits / 64].into();
        Self { next: 0, window: window.into(), arrived, count: 0, in_order: 0 }
    }

    /// Segments that wait for an earlier one.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Whether a datagram has nothing that would have to wait for another segment.
    pub(super) fn is_in_order(&self, datagram: &[u8]) -> bool {
        let mut next = self.next;
        pushes(datagram).all(|segment| {
            let ahead = segment.number.wrapping_sub(next);
            next = next.wrapping_add(u32::from(ahead == 0));
            // Not ahead: a repeated one, which is not kept.
            ahead == 0 || ahead > u32::MAX / 2
        })
    }

    /// Takes note of the segments of a datagram that the state machine has accepted.
    #[inline]
    pub(super) fn note(&mut self, datagram: &[u8]) {
        for PushSegment { number, .. } in pushes(datagram) {
            if number.wrapping_sub(self.next) < self.window && !self.flip(number, true) {
                self.count += 1;
                self.advance();
            }
        }
    }

    /// All that was in order has been read.
    #[inline]
    pub(super) fn read(&mut self) {
        self.in_order = 0;
        self.advance();
    }

    #[inline]
    fn advance(&mut self) {
        while self.count > 0 && self.in_order < self.window && self.flip(self.next, false) {
            (self.next, self.count, self.in_order) =
                (self.next.wrapping_add(1), self.count - 1, self.in_order + 1);
        }
    }

    /// Sets a number's bit to `arrived`; returns what it was.
    #[inline]
    fn flip(&mut self, number: u32, arrived: bool) -> bool {
        let at = number as usize % (self.arrived.len() * 64);
        let (word, bit) = (&mut self.arrived[at / 64], 1 << (at % 64));
        let before = *word & bit != 0;
        if arrived {
            *word |= bit
        } else {
            *word &= !bit
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(numbers: &[u32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in numbers {
            let mut segment = [0; OVERHEAD + 3];
            (segment[4], segment[20]) = (PUSH, 3);
            segment[12..16].copy_from_slice(&number.to_le_bytes());
            bytes.extend_from_slice(&segment);
        }
        bytes
    }

    #[test]
    fn segments_behind_a_gap_are_held_until_it_is_filled() {
        let mut held = HeldSegments::new(100);
        for (numbers, count) in [
            (&[0, 1][..], 0),
            (&[3, 4], 2),
            (&[4, 3], 2),
            (&[105], 2),
            (&[99], 3),
            (&[2], 1),
            (&[0, 1, 2], 1),
        ] {
            held.note(&datagram(numbers));
            assert_eq!(held.count(), count, "{numbers:?}");
        }
        assert!(held.is_in_order(&datagram(&[5, 6, 0])) && !held.is_in_order(&datagram(&[5, 7])));
        held.next = u32::MAX;
        held.note(&datagram(&[0, u32::MAX]));
        assert_eq!((held.count(), held.next), (1, 1), "the number wraps; the 99 of before is left");
    }

    #[test]
    fn no_more_than_a_window_is_in_order_before_it_is_read() {
        let mut held = HeldSegments::new(128);
        held.note(&datagram(&(0..200).collect::<Vec<_>>()));
        assert_eq!((held.next, held.count()), (128, 72));
        held.read();
        assert_eq!((held.next, held.count()), (200, 0));
    }

    #[test]
    fn a_cut_datagram_has_the_segments_before_the_cut() {
        let whole = datagram(&[1, 2]);
        assert_eq!(pushes(&whole).count(), 2);
        assert_eq!(pushes(&whole[..whole.len() - 1]).count(), 1);
        assert_eq!(pushes(&whole[..OVERHEAD - 1]).count(), 0);
    }
}
