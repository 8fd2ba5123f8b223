//! Masking (RFC 6455, section 5.3): XOR with a key of four bytes, repeated: in place, while copying, or while
//! comparing.
//!
//! The key is widened to a block of 64 bytes. The loops have no branch within a block, so the compiler
//! vectorises them. CPU features beyond the baseline (SSE2) are detected at run time.

#![allow(unsafe_code, reason = "a function compiled for AVX2 may only be called on a CPU that has it")]

/// Bytes of a step: two registers of AVX2, four of SSE2. With half, the loop's own cost is visible; twice as
/// many are no faster.
const BLOCK: usize = 64;

/// A key, turned so that its first byte is for the next byte of payload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Key([u8; 4]);

impl Key {
    /// The mask of unmasked bytes.
    pub const NONE: Self = Self([0; 4]);

    #[inline]
    pub fn new(bytes: [u8; 4]) -> Self {
        Self(bytes)
    }

    #[inline]
    pub fn bytes(self) -> [u8; 4] {
        self.0
    }

    #[inline]
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// The key after `count` more bytes of payload.
    #[inline]
    pub fn after(self, count: usize) -> Self {
        let mut turned = self.0;
        turned.rotate_left(count % 4);
        Self(turned)
    }

    #[inline]
    fn block(self) -> [u8; BLOCK] {
        std::array::from_fn(|i| self.0[i % 4])
    }
}

macro_rules! for_this_cpu {
    ($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? $body:block) => {
        $(#[$doc])*
        #[inline]
        pub fn $name($($argument: $type),*) $(-> $result)? {
            #[inline(always)]
            fn plain($($argument: $type),*) $(-> $result)? $body
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                #[target_feature(enable = "avx2")]
                fn wide($($argument: $type),*) $(-> $result)? {
                    plain($($argument),*)
                }
                // SAFETY: the CPU was just asked whether it has AVX2, and nothing else is required.
                return unsafe { wide($($argument),*) };
            }
            plain($($argument),*)
        }
    };
}

for_this_cpu! {
    /// Masks or unmasks in place.
    apply(bytes: &mut [u8], key: Key) {
        let block = key.block();
        let (whole, rest) = bytes.as_chunks_mut::<BLOCK>();
        for chunk in whole {
            for (byte, key) in chunk.iter_mut().zip(&block) {
                *byte ^= key;
            }
        }
        for (byte, key) in rest.iter_mut().zip(&block) {
            *byte ^= key;
        }
    }
}

for_this_cpu! {
    /// Copies `from` to `to`, masked, in one pass. Both have one length.
    copy(to: &mut [u8], from: &[u8], key: Key) {
        assert_eq!(to.len(), from.len());
        let block = key.block();
        let (to_whole, to_rest) = to.as_chunks_mut::<BLOCK>();
        let (from_whole, from_rest) = from.as_chunks::<BLOCK>();
        for (to, from) in to_whole.iter_mut().zip(from_whole) {
            for ((to, from), key) in to.iter_mut().zip(from).zip(&block) {
                *to = from ^ key;
            }
        }
        for ((to, from), key) in to_rest.iter_mut().zip(from_rest).zip(&block) {
            *to = from ^ key;
        }
    }
}

for_this_cpu! {
    /// Whether `bytes`, once unmasked, are `wanted`; nothing is written. Both have one length.
    matches(bytes: &[u8], key: Key, wanted: &[u8]) -> bool {
        assert_eq!(bytes.len(), wanted.len());
        let block = key.block();
        let (bytes_whole, bytes_rest) = bytes.as_chunks::<BLOCK>();
        let (wanted_whole, wanted_rest) = wanted.as_chunks::<BLOCK>();
        let mut differing = [0_u8; BLOCK];
        for (bytes, wanted) in bytes_whole.iter().zip(wanted_whole) {
            let expected = wanted.iter().zip(&block);
            for ((byte, (wanted, key)), differing) in bytes.iter().zip(expected).zip(&mut differing) {
                *differing |= byte ^ wanted ^ key;
            }
        }
        let rest = bytes_rest.iter().zip(wanted_rest).zip(&block);
        let rest = rest.fold(0, |sum, ((byte, wanted), key)| sum | (byte ^ wanted ^ key));
        differing.iter().fold(rest, |sum, byte| sum | byte) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slowly(bytes: &[u8], key: Key) -> Vec<u8> {
        bytes.iter().enumerate().map(|(i, byte)| byte ^ key.bytes()[i % 4]).collect()
    }

    proptest! {
        #[test]
        fn all_three_passes_are_the_xor_of_the_standard(bytes: Vec<u8>, key: [u8; 4], turn in 0_usize..100) {
            let key = Key::new(key).after(turn);
            let masked = slowly(&bytes, key);
            let mut copied = vec![0; bytes.len()];
            copy(&mut copied, &bytes, key);
            prop_assert_eq!(&copied, &masked);
            prop_assert!(matches(&masked, key, &bytes));
            apply(&mut copied, key);
            prop_assert_eq!(&copied, &bytes);
        }

        #[test]
        fn one_wrong_byte_anywhere_is_detected(
            mut bytes in prop::collection::vec(any::<u8>(), 1..300),
            at: prop::sample::Index,
        ) {
            let (wanted, key) = (bytes.clone(), Key::new([7, 8, 9, 10]));
            apply(&mut bytes, key);
            let at = at.index(bytes.len());
            bytes[at] ^= 1;
            prop_assert!(!matches(&bytes, key, &wanted));
        }
    }

    #[test]
    fn the_example_of_the_standard() {
        // RFC 6455, section 5.7: a masked "Hello".
        let mut bytes = [0x7f, 0x9f, 0x4d, 0x51, 0x58];
        apply(&mut bytes, Key::new([0x37, 0xfa, 0x21, 0x3d]));
        assert_eq!(&bytes, b"Hello");
    }
}
