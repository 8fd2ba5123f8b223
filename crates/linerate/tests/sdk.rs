//! What programs in C++, Go and Rust link, by its own tests. Where a compiler is missing it is skipped aloud.

mod common;

use common::{Folder, is_offline, skip, tests};
use linerate::system::probe::locate;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn cpp() {
    if !there(&["g++"]) {
        return;
    }
    let out = Folder::new("sdk-cpp");
    std::fs::create_dir_all(out.path()).unwrap();
    let program = out.path().join("test");
    let mut compiler = Command::new("g++");
    compiler.args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pthread", "test.cpp", "-o"]).arg(&program);
    match succeeds(compiler.current_dir(sdk("cpp"))) {
        Err(why) if is_offline(&why) => skip("sdk/cpp: nlohmann-json3-dev is not installed"),
        told => {
            told.unwrap();
            succeeds(&mut Command::new(program)).unwrap();
        }
    }
}

#[test]
fn go() {
    if there(&["go"]) {
        succeeds(Command::new("go").args(["test", "./..."]).current_dir(sdk("go"))).unwrap();
    }
}

#[test]
fn rust() {
    if !there(&["cargo"]) {
        return;
    }
    // Always the same place, so that what is built is found again by the next test run.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sdk-rust");
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--locked", "--target-dir"]).arg(target).current_dir(sdk("rust"));
    match succeeds(&mut cargo) {
        Err(why) if is_offline(&why) => skip(&format!("sdk/rust: {why}")),
        told => told.unwrap(),
    }
}

fn sdk(language: &str) -> PathBuf {
    tests().join("../../../sdk").join(language)
}

fn there(tools: &[&str]) -> bool {
    let missing = tools.iter().find(|tool| locate(tool).is_none());
    if let Some(tool) = missing {
        skip(&format!("sdk: {tool} is not installed"));
    }
    missing.is_none()
}

fn succeeds(command: &mut Command) -> Result<(), String> {
    let out = command.output().map_err(|e| e.to_string())?;
    let told = || String::from_utf8_lossy(&[out.stdout.clone(), out.stderr.clone()].concat()).into_owned();
    if out.status.success() { Ok(()) } else { Err(told()) }
}
