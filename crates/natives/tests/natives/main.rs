//! `linerate-natives` as its users see it: processes, on loopback. One program, so that it links once.

#[allow(dead_code, reason = "shared with the tests of the load engine")]
#[path = "../../../load/tests/load/common.rs"]
mod common;
mod faults;
mod limits;
mod relay;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate-natives");
