//! Hands the stacks' versions, as locked, to the programs, which tell them in `describe`: they have no constants for it.

use std::{env, fs, path::Path};

fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    let folder = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let lock = fs::read_to_string(Path::new(&folder).join("Cargo.lock"))
        .expect("Cargo.lock stands beside Cargo.toml");
    let versions = lock.split("[[package]]").filter_map(|package| {
        let value = |key: &str| package.lines().find_map(|l| l.strip_prefix(key)?.strip_suffix('"'));
        Some((value("name = \"")?, value("version = \"")?))
    });
    for (name, version) in versions.filter(|(name, _)| name.ends_with("smoltcp")) {
        // Where two versions of a crate are locked, the last one is the newest.
        println!("cargo::rustc-env={}_VERSION={version}", name.to_uppercase().replace('-', "_"));
    }
}
