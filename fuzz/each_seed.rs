//! Shared by the tests of the crates that have fuzz targets: a finding becomes a seed, and stays mended.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use std::path::Path;

/// Each seed of a target, and a hundred changed copies of it: a byte, a cut, a part twice.
pub(crate) fn each_seed(target: &str, run: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let mut files: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{target} has no seeds");
    for file in files {
        let seed = std::fs::read(file).unwrap();
        run(&seed);
        for _ in 0..100 {
            let mut changed = seed.clone();
            let mut at = || (random.next_u64() % (seed.len() as u64 + 1)) as usize;
            let (from, to, cut) = (at(), at(), at());
            match from % 3 {
                0 => changed.truncate(cut),
                1 => changed.extend_from_slice(&seed[from.min(to)..from.max(to)]),
                _ => {}
            }
            if let Some(byte) = changed.get_mut(to) {
                *byte = random.next_u64() as u8;
            }
            run(&changed);
        }
    }
}
