//! Operations of a client allocate nothing. A program of its own: its allocator counts.

#![allow(unsafe_code, reason = "an allocator that counts is a GlobalAlloc")]

use linerate_contract::{Event, Expect, Role, Spec, Workload, page};
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: all calls go to the system's allocator as they are.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The server, in another process; killed when dropped.
struct Served(Child, SocketAddr);

impl Served {
    fn start(layer: &str) -> Self {
        let mut spec = Spec::new(Role::Server, layer.parse().unwrap(), Workload::Rr);
        (spec.listen, spec.size) = (Some("127.0.0.1:0".parse().unwrap()), 100);
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate-load"));
        let mut child = command.arg(spec.to_json()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Ok(Event::Ready { address }) = Event::parse(&line) else { panic!("not ready: {line}") };
        Self(child, address)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Allocations of a whole run of a client.
fn allocations(layer: &str, address: SocketAddr, operations: u64) -> u64 {
    let mut spec = Spec::new(Role::Client, layer.parse().unwrap(), Workload::Rr);
    (spec.connect, spec.operations, spec.connections) = (Some(address), Some(operations), 2);
    spec.expect = Some(Expect::of_page(&page(100), 1));
    if layer == "h2c" {
        spec.set_option("streams", 10);
    }
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let done = linerate_load::run(&spec).unwrap().unwrap();
    assert_eq!((done.operations, done.verified), (operations, operations), "{:?}", done.errors);
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

#[test]
fn operations_of_http_allocate_nothing() {
    for layer in ["http", "h2c"] {
        let served = Served::start(layer);
        let [few, many] = [1_000, 21_000].map(|operations| allocations(layer, served.1, operations));
        // Set-up and result allocate; the result has a line for each latency that occurred.
        assert!(many < few + 100, "{layer}: {few} allocations for 1,000 operations, {many} for 21,000");
    }
}
