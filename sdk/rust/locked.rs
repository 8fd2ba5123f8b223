// For build scripts, which include it: hands versions, as locked, to a program that tells them in `describe`, since few crates have a
// constant for theirs.

/// The version of each package by the variable that the program reads it from. Where two versions are locked, the last one is the newest.
fn tell_versions(packages: &[(&str, &str)]) {
    println!("cargo::rerun-if-changed=Cargo.lock");
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let lock = std::fs::read_to_string(std::path::Path::new(&folder).join("Cargo.lock"))
        .expect("Cargo.lock stands beside Cargo.toml");
    for (name, variable) in packages {
        let line = format!("\nname = \"{name}\"\n");
        let package = lock.split("[[package]]").filter(|package| package.contains(&line)).last();
        let version = package.expect("it is locked").lines().find_map(|line| line.strip_prefix("version = "));
        let version = version.expect("a locked package has a version").trim_matches('"');
        println!("cargo::rustc-env={variable}={version}");
    }
}
