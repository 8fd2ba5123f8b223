//! The pairs of [`Counts`](crate::Counts), packed: most of a journal, and of a report in memory.

/// For each value the difference from the one before it, and its count. Neighbouring values are near each
/// other and most counts are small, so most numbers have one byte or two (LEB128 of the DWARF standard).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedPairs {
    bytes: Box<[u8]>,
    /// Of all counts; `None` if it exceeds a number, as in a damaged journal.
    total: Option<u64>,
    /// Of all values, each as often as it was counted.
    sum: u128,
}

impl PackedPairs {
    /// Nothing is lost: pairs come out as they went in.
    #[must_use]
    pub fn of(pairs: &[(u64, u64)]) -> Self {
        let (mut bytes, mut before) = (Vec::with_capacity(pairs.len() * 3), 0_u64);
        for (value, count) in pairs {
            put(&mut bytes, value.wrapping_sub(before));
            put(&mut bytes, *count);
            before = *value;
        }
        Self::from_bytes(bytes)
    }

    /// What [`Self::bytes`] returned; pairs that are cut off at the end are left out.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        let pairs = Self { bytes: bytes.into(), total: None, sum: 0 };
        let (total, sum) = pairs.iter().fold((Some(0_u64), 0_u128), |(total, sum), (value, count)| {
            (
                total.and_then(|total| total.checked_add(count)),
                sum.saturating_add(u128::from(value) * u128::from(count)),
            )
        });
        Self { total, sum, ..pairs }
    }

    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    #[must_use]
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    #[must_use]
    pub fn to_vec(&self) -> Vec<(u64, u64)> {
        self.iter().collect()
    }

    /// As [`Counts::percentile`](crate::Counts::percentile).
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let rank = ((percent / 100.0 * self.total? as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let is_reached = |(_, count): &(u64, u64)| {
            seen += count;
            seen >= rank
        };
        self.iter().find(is_reached).map(|(value, _)| value)
    }

    /// Of all values, each as often as it was counted.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.sum as f64
    }

    fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        let (mut rest, mut value) = (&*self.bytes, 0_u64);
        std::iter::from_fn(move || {
            value = value.wrapping_add(take(&mut rest)?);
            Some((value, take(&mut rest)?))
        })
    }
}

/// Seven bits a byte, the lowest first; all bytes but the last have the eighth bit.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        // Ten bytes are the longest number; a damaged journal may have more.
        if byte & 0x80 == 0 || shift == 63 {
            return Some(number);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recorder;

    #[test]
    fn pairs_come_out_as_they_went_in_whatever_their_order_and_size() {
        for pairs in [vec![], vec![(1, 1)], vec![(u64::MAX, 3), (0, u64::MAX / 8), (127, 128), (128, 127)]] {
            let packed = PackedPairs::of(&pairs);
            assert_eq!(packed.to_vec(), pairs);
            assert_eq!(PackedPairs::from_bytes(packed.bytes().to_vec()), packed);
        }
    }

    #[test]
    fn percentiles_and_sum_are_those_of_the_counts() {
        let mut recorder = Recorder::default();
        (0..5_000_u64).for_each(|i| recorder.record(100_000 + i * i * 31 % 900_000));
        let counts = recorder.counts();
        let packed = PackedPairs::of(&counts.pairs);
        for percent in [0.0, 1.0, 50.0, 99.9, 100.0] {
            assert_eq!(packed.percentile(percent), counts.percentile(percent));
        }
        assert_eq!(Some(packed.sum() / packed.total().unwrap() as f64), counts.mean());
    }

    /// Five times, so that a report of a hundred thousand trials fits into memory.
    #[test]
    fn recorded_pairs_have_a_fifth_of_their_size() {
        let mut recorder = Recorder::default();
        (0..5_000_u64).for_each(|i| recorder.record(100_000 + i * i * 31 % 900_000));
        let pairs = recorder.counts().pairs;
        let plain = pairs.len() * size_of::<(u64, u64)>();
        assert!(PackedPairs::of(&pairs).bytes().len() * 5 <= plain, "{plain} bytes");
    }

    #[test]
    fn a_total_beyond_every_number_is_none_and_so_are_its_percentiles() {
        let packed = PackedPairs::of(&[(1, u64::MAX), (2, 1)]);
        assert_eq!((packed.total(), packed.percentile(50.0)), (None, None));
    }

    #[test]
    fn damaged_bytes_have_fewer_pairs() {
        for damaged in [vec![0xff; 12], vec![1]] {
            assert!(PackedPairs::from_bytes(damaged.clone()).to_vec().len() < 2, "{damaged:?}");
        }
    }
}
