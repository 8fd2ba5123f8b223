//! Runs the tests of the libraries in sdk/. Without the language's compiler or interpreter a test is skipped
//! with a message.

mod common;

use common::{Folder, is_offline, skip, tests};
use linerate::lab::program::locate;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn the_cpp_library_passes_its_tests() {
    if !are_installed(&["g++"]) {
        return;
    }
    let out = Folder::new("sdk-cpp");
    std::fs::create_dir_all(out.path()).unwrap();
    let program = out.path().join("test");
    let mut compiler = Command::new("g++");
    compiler.args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pthread", "test.cpp", "-o"]).arg(&program);
    match succeeds(compiler.current_dir(sdk("cpp"))) {
        Err(why) if is_offline(&why) => skip("sdk/cpp: nlohmann-json3-dev is not installed"),
        result => {
            result.unwrap();
            succeeds(&mut Command::new(program)).unwrap();
        }
    }
}

#[test]
fn the_go_library_passes_its_tests() {
    if are_installed(&["go"]) {
        succeeds(Command::new("go").args(["test", "./..."]).current_dir(sdk("go"))).unwrap();
    }
}

#[test]
fn the_python_library_passes_its_tests() {
    if are_installed(&["python3"]) {
        // No cache of byte code beside the sources.
        let args = ["-B", "-m", "unittest", "-q"];
        succeeds(Command::new("python3").args(args).current_dir(sdk("python"))).unwrap();
    }
}

#[test]
fn the_node_library_passes_its_tests() {
    if are_installed(&["node"]) {
        succeeds(Command::new("node").arg("--test").current_dir(sdk("node"))).unwrap();
    }
}

#[test]
fn the_rust_library_passes_its_tests() {
    if !are_installed(&["cargo"]) {
        return;
    }
    // A fixed folder, so that the next test run finds the build.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sdk-rust");
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--locked", "--all-features", "--target-dir"]).arg(target).current_dir(sdk("rust"));
    match succeeds(&mut cargo) {
        Err(why) if is_offline(&why) => skip(&format!("sdk/rust: {why}")),
        result => result.unwrap(),
    }
}

fn sdk(language: &str) -> PathBuf {
    tests().join("../../../sdk").join(language)
}

fn are_installed(tools: &[&str]) -> bool {
    let missing = tools.iter().find(|tool| locate(tool).is_none());
    if let Some(tool) = missing {
        skip(&format!("sdk: {tool} is not installed"));
    }
    missing.is_none()
}

fn succeeds(command: &mut Command) -> Result<(), String> {
    let out = command.output().map_err(|e| e.to_string())?;
    let output = || String::from_utf8_lossy(&[out.stdout.clone(), out.stderr.clone()].concat()).into_owned();
    if out.status.success() { Ok(()) } else { Err(output()) }
}
