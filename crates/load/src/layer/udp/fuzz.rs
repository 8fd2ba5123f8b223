//! Fuzz target: datagrams at a server of streams.

use super::server::FlowReceiver;
use crate::fuzz_input::FuzzInput;
use linerate_contract::{Layer, Nanos, Role, Spec, Workload};
use std::cell::RefCell;
use std::net::SocketAddr;

/// Datagrams: a byte for the sender, the length, the bytes.
pub fn fuzz_datagrams(input: &[u8]) {
    thread_local!(static SERVER: RefCell<(FlowReceiver, SocketAddr)> = RefCell::new(server()));
    SERVER.with_borrow_mut(|(receiver, own)| {
        receiver.forget();
        let (mut input, mut now) = (FuzzInput(input), Nanos(1));
        while let Some(choice) = input.byte() {
            let bytes = input.field();
            // Responses go to the server itself, where they wait and are dropped.
            let from = SocketAddr::new(own.ip(), own.port() ^ u16::from(choice & 1));
            now += Nanos(u64::from(choice) << 28);
            receiver.take(from, bytes, now);
        }
    });
}

fn server() -> (FlowReceiver, SocketAddr) {
    let mut spec = Spec::new(Role::Server, Layer::Udp, Workload::Stream);
    (spec.size, spec.listen) = (64, Some("127.0.0.1:0".parse().expect("an address")));
    let (receiver, _, address) = FlowReceiver::open(&spec).expect("a good spec");
    (receiver, address)
}
