//! The endless content of streams.

use linerate_contract::page;

/// Content repeats after this number of bytes.
pub const PERIOD: usize = 65_536;

/// Content in memory, made once per process and never freed: pieces can be sent without a copy.
#[derive(Debug, Clone, Copy)]
pub struct Content(&'static [u8]);

impl Content {
    /// Content whose pieces of up to `longest` bytes are contiguous.
    #[must_use]
    pub fn new(longest: usize) -> Self {
        let bytes: Vec<u8> = page(PERIOD).into_iter().cycle().take(PERIOD + longest).collect();
        Self(Vec::leak(bytes))
    }

    /// `length` bytes from `offset`.
    #[must_use]
    pub fn at(self, offset: u64, length: usize) -> &'static [u8] {
        let start = (offset % PERIOD as u64) as usize;
        &self.0[start..start + length]
    }

    /// The number of correct bytes among those received at `offset`, however many there are.
    #[must_use]
    pub fn good(self, offset: u64, received: &[u8]) -> u64 {
        let longest = self.0.len() - PERIOD;
        let parts = received.chunks(longest.max(1)).enumerate();
        let good = parts.map(|(i, part)| {
            let correct = self.at(offset + (i * longest) as u64, part.len());
            let equal = || part.iter().zip(correct).filter(|(a, b)| a == b).count();
            if part == correct { part.len() } else { equal() }
        });
        good.sum::<usize>() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_bytes_are_not_counted() {
        let content = Content::new(PERIOD);
        let mut long = content.at(7, PERIOD).to_vec();
        long.extend_from_slice(content.at(7, 8));
        assert_eq!(content.good(7, &long), long.len() as u64);
        assert_eq!(Content::new(8).good(7, &long), long.len() as u64);
        long[PERIOD + 1] ^= 1;
        assert_eq!(content.good(7, &long), long.len() as u64 - 1);
    }
}
