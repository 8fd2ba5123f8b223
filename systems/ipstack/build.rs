//! Hands the stack's version, as locked, to the program, which tells it in `describe`: the crate has no constant for it.

use std::{env, fs, path::Path};

fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    let folder = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let lock = fs::read_to_string(Path::new(&folder).join("Cargo.lock"))
        .expect("Cargo.lock stands beside Cargo.toml");
    let package =
        lock.split("[[package]]").find(|p| p.contains("\nname = \"ipstack\"\n")).expect("it is locked");
    let version =
        package.lines().find_map(|l| l.strip_prefix("version = ")).expect("a locked package has a version");
    println!("cargo::rustc-env=STACK_VERSION={}", version.trim_matches('"'));
}
