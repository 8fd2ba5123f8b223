//! Passes the locked versions of rustls and ring to the program, which reports them in `done`: neither crate
//! has a constant for its version.

use std::{env, fs, path::Path};

fn main() {
    let folder = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let path = Path::new(&folder).join("../../Cargo.lock");
    println!("cargo::rerun-if-changed={}", path.display());
    let lock = fs::read_to_string(path).expect("Cargo.lock is beside the Cargo.toml of the workspace");
    for name in ["rustls", "ring"] {
        let entry = format!("\nname = \"{name}\"\n");
        let package =
            lock.split("[[package]]").find(|package| package.contains(&entry)).expect("it is locked");
        let version = package.lines().find_map(|line| line.strip_prefix("version = "));
        let version = version.expect("a locked package has a version").trim_matches('"');
        println!("cargo::rustc-env={}_VERSION={version}", name.to_uppercase());
    }
}
