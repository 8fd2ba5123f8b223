//! The pairs of [`Counts`](crate::Counts), packed: most of a journal, and of a report in memory.

/// The difference of each value from the one before it, and its count. Neighbouring values are near each
/// other and most counts are small, so most numbers have one byte (LEB128 of the DWARF standard).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedPairs {
    bytes: Box<[u8]>,
    form: PackedForm,
    /// The sum of all counts; `None` if it exceeds a number, as in a damaged journal.
    total: Option<u64>,
    /// The sum of all values, each as often as it was counted.
    sum: u128,
}

/// The form of packed pairs: values whose differences are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackedForm {
    /// The values themselves.
    Values,
    /// The numbers of the recorder's buckets: neighbouring ones differ by 1, however wide they are.
    Buckets,
}

impl PackedForm {
    /// Bits of a bucket's number beside its width: [`crate::Recorder`] has three digits, so 2,048 values of
    /// a width of 1, and 1,024 buckets of each greater power of two (HdrHistogram).
    const BITS: u32 = 10;

    fn number(self, value: u64) -> u64 {
        match self {
            Self::Values => value,
            Self::Buckets => {
                let width = (u64::BITS - value.leading_zeros()).saturating_sub(Self::BITS + 1);
                (u64::from(width) << Self::BITS) + (value >> width)
            }
        }
    }

    /// The highest value of a bucket; of a number that no bucket has, any value.
    fn value(self, number: u64) -> u64 {
        match self {
            Self::Values => number,
            Self::Buckets => {
                let width = (number >> Self::BITS).saturating_sub(1);
                let above = number.wrapping_sub(width << Self::BITS).wrapping_add(1);
                above.wrapping_shl(width as u32).wrapping_sub(1)
            }
        }
    }
}

impl PackedPairs {
    /// Nothing is lost: pairs come out as they went in.
    #[must_use]
    pub fn pack(pairs: &[(u64, u64)]) -> Self {
        let is_highest =
            |&(value, _): &(u64, u64)| PackedForm::Buckets.value(PackedForm::Buckets.number(value)) == value;
        let form = if pairs.iter().all(is_highest) { PackedForm::Buckets } else { PackedForm::Values };
        let (mut bytes, mut before) = (Vec::with_capacity(pairs.len() * 2), 0_u64);
        for (value, count) in pairs {
            let number = form.number(*value);
            put(&mut bytes, number.wrapping_sub(before));
            put(&mut bytes, *count);
            before = number;
        }
        Self::from_bytes(bytes, form)
    }

    /// Reads what [`Self::bytes`] returned; pairs that are cut off at the end are left out.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>, form: PackedForm) -> Self {
        let pairs = Self { bytes: bytes.into(), form, total: None, sum: 0 };
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
    pub fn form(&self) -> PackedForm {
        self.form
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

    /// The sum of all values, each as often as it was counted.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.sum as f64
    }

    fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        let (mut rest, mut number, form) = (&*self.bytes, 0_u64, self.form);
        std::iter::from_fn(move || {
            number = number.wrapping_add(take(&mut rest)?);
            Some((form.value(number), take(&mut rest)?))
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
            let packed = PackedPairs::pack(&pairs);
            assert_eq!(packed.to_vec(), pairs);
            assert_eq!(PackedPairs::from_bytes(packed.bytes().to_vec(), packed.form()), packed);
        }
    }

    #[test]
    fn what_a_recorder_returns_is_packed_by_buckets_of_every_width() {
        let mut recorder = Recorder::default();
        for bits in 0..42 {
            [1_u64 << bits, (3_u64 << bits) / 2, (1 << bits) - 1]
                .into_iter()
                .for_each(|v| recorder.record(v));
        }
        let pairs = recorder.counts().pairs;
        let packed = PackedPairs::pack(&pairs);
        assert_eq!((packed.form(), packed.to_vec()), (PackedForm::Buckets, pairs));
    }

    #[test]
    fn percentiles_and_sum_are_those_of_the_counts() {
        let mut recorder = Recorder::default();
        (0..5_000_u64).for_each(|i| recorder.record(100_000 + i * i * 31 % 900_000));
        let counts = recorder.counts();
        let packed = PackedPairs::pack(&counts.pairs);
        for percent in [0.0, 1.0, 50.0, 99.9, 100.0] {
            assert_eq!(packed.percentile(percent), counts.percentile(percent));
        }
        assert_eq!(Some(packed.sum() / packed.total().unwrap() as f64), counts.mean());
    }

    /// Seven times, so that a report of a hundred thousand trials fits into memory.
    #[test]
    fn recorded_pairs_have_a_seventh_of_their_size() {
        let mut recorder = Recorder::default();
        (0..5_000_u64).for_each(|i| recorder.record(100_000 + i * i * 31 % 900_000));
        let pairs = recorder.counts().pairs;
        let plain = pairs.len() * size_of::<(u64, u64)>();
        assert!(PackedPairs::pack(&pairs).bytes().len() * 7 <= plain, "{plain} bytes");
    }

    #[test]
    fn a_total_beyond_every_number_is_none_and_so_are_its_percentiles() {
        let packed = PackedPairs::pack(&[(1, u64::MAX), (2, 1)]);
        assert_eq!((packed.total(), packed.percentile(50.0)), (None, None));
    }

    #[test]
    fn damaged_bytes_have_fewer_pairs() {
        for damaged in [vec![0xff; 12], vec![1]] {
            for form in [PackedForm::Values, PackedForm::Buckets] {
                assert!(PackedPairs::from_bytes(damaged.clone(), form).to_vec().len() < 2, "{damaged:?}");
            }
        }
    }
}
