//! Random numbers from a seed: the same seed gives the same sequence.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

/// A number in [0, 1), with 53 random bits: the precision of an f64.
#[inline]
pub fn uniform(random: &mut Pcg64Mcg) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}
