//! Random numbers as the engine draws them: from a seed, so that the same seed does the same again.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

/// In [0, 1): 53 bits, which is what a float holds.
#[inline]
pub fn uniform(random: &mut Pcg64Mcg) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}
