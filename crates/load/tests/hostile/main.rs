//! Hostile peers, as a table: each row is a peer that does to `linerate-load` what no honest one does. The
//! process lives, ends in time, uses little memory, counts the failure by its kind, and serves others.
//!
//! ```text
//! cargo test -p linerate-load --test hostile              all rows
//! cargo test -p linerate-load --test hostile -- kcp       those with this word in their name
//! ```
//!
//! | module | subject | peers |
//! |---|---|---|
//! | [`servers`] | client over tcp, tls, http, https, websocket, wss | servers |
//! | [`clients`] | server over the same layers | clients |
//! | [`h2_clients`] | server over h2c, h2, gRPC | clients |
//! | [`h2_servers`] | client over the same layers | servers |
//! | [`quic`] | client and server over h3, quic | both |
//! | [`datagram_servers`] | client over udp, kcp | servers |
//! | [`datagram_clients`] | server over udp, kcp | clients |
//!
//! A new layer adds its name to the lists of layers, and its own rows. The rows run in a network namespace of
//! their own where the system permits one.

#![allow(clippy::print_stdout, reason = "a test program prints its results")]

#[path = "../load/certified.rs"]
mod certified;
mod clients;
#[allow(dead_code, reason = "shared with the other integration tests")]
#[path = "../load/common.rs"]
mod common;
mod datagram_clients;
mod datagram_servers;
mod h2_clients;
mod h2_servers;
mod quic;
#[path = "../load/quic_peer.rs"]
mod quic_peer;
mod servers;
mod subject;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, ExitCode};
use std::slice;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate-load");
/// Rows at the same time: most of a row's time is waiting.
const WORKERS: usize = 4;
/// Set in the process inside the namespace.
const INSIDE: &str = "LINERATE_HOSTILE_INSIDE";

/// A row of the table.
pub(crate) struct Row {
    name: String,
    run: Box<dyn Fn() + Send + Sync>,
}

impl Row {
    pub(crate) fn new(name: String, run: impl Fn() + Send + Sync + 'static) -> Self {
        Self { name, run: Box::new(run) }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if std::env::var_os(INSIDE).is_none()
        && let Some(code) = in_a_namespace(&arguments)
    {
        return code;
    }
    let words: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    // The longest rows are first: they wait until connections end by themselves.
    let mut rows = quic::rows();
    rows.extend(servers::rows());
    rows.extend(clients::rows());
    rows.extend(h2_clients::rows());
    rows.extend(h2_servers::rows());
    rows.extend(datagram_servers::rows());
    rows.extend(datagram_clients::rows());
    rows.retain(|row| words.iter().all(|word| row.name.contains(*word)));
    if arguments.iter().any(|argument| argument == "--list") {
        rows.iter().for_each(|row| println!("{}: test", row.name));
        return ExitCode::SUCCESS;
    }
    // Deadlines beside other rows are missed where the machine stands still: what failed runs again alone.
    let mut failed = run(&rows, WORKERS);
    failed
        .retain(|name| rows.iter().any(|row| row.name == *name && !run(slice::from_ref(row), 1).is_empty()));
    println!("{} rows, {} failed", rows.len(), failed.len());
    failed.iter().for_each(|name| println!("failed: {name}"));
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs all rows, so many at once; returns the names of those that failed.
fn run(rows: &[Row], workers: usize) -> Vec<String> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let start = Instant::now();
                    let passed = catch_unwind(AssertUnwindSafe(|| (row.run)())).is_ok();
                    let outcome = if passed { "ok" } else { "FAILED" };
                    println!("{} ... {outcome} ({:.1} s)", row.name, start.elapsed().as_secs_f64());
                    if !passed {
                        failed.lock().unwrap().push(row.name.clone());
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap()
}

/// The test's program again, in a network namespace; `None` where the system permits none.
fn in_a_namespace(arguments: &[String]) -> Option<ExitCode> {
    let permitted = Command::new("unshare").args(["-rn", "ip", "link", "set", "lo", "up"]).output();
    if !permitted.is_ok_and(|output| output.status.success()) {
        println!("no network namespace of its own: unshare(1) or ip(8) is missing, or not permitted");
        return None;
    }
    let program = std::env::current_exe().ok()?;
    let inside = "ip link set lo up && exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-rn", "sh", "-c", inside]).arg(program).args(arguments).env(INSIDE, "1");
    let status = command.status().ok()?;
    Some(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
