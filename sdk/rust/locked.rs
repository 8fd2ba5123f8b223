// Included by build scripts: passes locked versions to `describe`, since few crates have a constant for
// theirs.

/// Sets a variable to the locked version of each package; to the newest one, where several are locked.
fn export_versions(packages: &[(&str, &str)]) {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let path = std::path::Path::new(&folder).join("../Cargo.lock");
    println!("cargo::rerun-if-changed={}", path.display());
    let lock = std::fs::read_to_string(path).expect("the workspace has a lock file");
    for (name, variable) in packages {
        let line = format!("\nname = \"{name}\"\n");
        let package = lock.split("[[package]]").filter(|package| package.contains(&line)).last();
        let version = package.expect("it is locked").lines().find_map(|line| line.strip_prefix("version = "));
        let version = version.expect("a locked package has a version").trim_matches('"');
        println!("cargo::rustc-env={variable}={version}");
    }
}
