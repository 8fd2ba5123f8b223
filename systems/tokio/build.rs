//! Hands the versions of tokio and tokio_kcp, as locked, to the program, which tells them in `describe`: they have no constant for it.

use std::{env, fs, path::Path};

fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    let folder = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let lock = fs::read_to_string(Path::new(&folder).join("Cargo.lock"))
        .expect("Cargo.lock stands beside Cargo.toml");
    for (name, variable) in [("tokio", "TOKIO_VERSION"), ("tokio_kcp", "TOKIO_KCP_VERSION")] {
        let is_it = |package: &&str| package.contains(&format!("\nname = \"{name}\"\n"));
        let package = lock.split("[[package]]").find(is_it).expect("it is locked");
        let version = package.lines().find_map(|l| l.strip_prefix("version = "));
        let version = version.expect("a locked package has a version");
        println!("cargo::rustc-env={variable}={}", version.trim_matches('"'));
    }
}
