//! The bytes that every server sends and every client checks.
//!
//! A page is the same from nginx's disk and from a Go program's memory, and a byte that is missing, doubled
//! or out of place is detected. So byte `i` depends on `i` alone and looks random: it is letter
//! `(splitmix64(i / 8) >> (8 * (i % 8))) & 63` of a 64-letter alphabet (Steele, Lea and Flood, "Fast
//! splittable pseudorandom number generators", 2014).

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The page of `size` bytes: printable ASCII, no line breaks.
#[must_use]
pub fn page(size: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size.next_multiple_of(8));
    for word in 0..size.div_ceil(8) as u64 {
        bytes.extend(splitmix64(word).to_le_bytes().map(|b| ALPHABET[usize::from(b & 63)]));
    }
    bytes.truncate(size);
    bytes
}

/// CRC-32 (ISO-HDLC, as in zlib) of `bytes`; the value in [`crate::Expect`].
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

fn splitmix64(index: u64) -> u64 {
    let z = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_gives_the_published_sequence_of_seed_zero() {
        assert_eq!(splitmix64(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(splitmix64(1), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn a_short_page_is_the_start_of_a_long_one() {
        let long = page(4096);
        for size in [0, 1, 7, 8, 9, 100] {
            assert_eq!(page(size), long[..size]);
        }
    }

    #[test]
    fn a_shifted_page_is_another_page() {
        let p = page(4097);
        assert_ne!(crc32(&p[1..]), crc32(&p[..4096]));
    }
}
