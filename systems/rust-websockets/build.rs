//! Hands the versions of the libraries, as locked, to the programs, which tell them in `describe`.

use std::{env, fs, path::Path};

fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    let folder = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let lock = fs::read_to_string(Path::new(&folder).join("Cargo.lock"))
        .expect("Cargo.lock stands beside Cargo.toml");
    for name in ["tokio-tungstenite", "fastwebsockets", "rustls"] {
        let line = format!("\nname = \"{name}\"\n");
        let package =
            lock.split("[[package]]").find(|package| package.contains(&line)).expect("it is locked");
        let version = package
            .lines()
            .find_map(|line| line.strip_prefix("version = "))
            .expect("a locked package has a version");
        println!(
            "cargo::rustc-env={}_VERSION={}",
            name.to_uppercase().replace('-', "_"),
            version.trim_matches('"')
        );
    }
}
