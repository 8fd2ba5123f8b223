//! Fuzz target: datagrams at both ends of conversations.

use super::output::Output;
use super::server::KcpServer;
use crate::fuzz_input::FuzzInput;
use crate::packets::{DatagramService, SendQueue};
use linerate_contract::Nanos;
use linerate_proto::frames::prefix;
use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;

/// Bytes that a server may queue for a datagram that it received: its response, and acknowledgements.
const MOST_QUEUED: usize = 1 << 20;

const OWN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4_000);

/// Datagrams: a byte for the sender, the length, the bytes. Each goes to a server, and to a client's
/// conversation.
pub fn fuzz_kcp(input: &[u8]) {
    thread_local!(static SERVER: RefCell<KcpServer> = RefCell::new(KcpServer::at(OWN)));
    SERVER.with_borrow_mut(|server| datagrams(server, FuzzInput(input)));
}

fn datagrams(server: &mut KcpServer, mut input: FuzzInput<'_>) {
    server.forget();
    let config = *server.config();
    let queue = Rc::<RefCell<SendQueue>>::default();
    let mut client =
        config.conversation(7, Output { queue: queue.clone(), to: None }, 32).expect("it is valid");
    client.send(&prefix(0)).expect("it is short");
    let mut now = Nanos(1);
    while let Some(choice) = input.byte() {
        let bytes = input.field();
        let from = SocketAddr::from(([127, 0, 0, 1], u16::from(choice & 3) + 1));
        server.feed(from, bytes, now);
        let _ = client.input(bytes);
        now += Nanos(u64::from(choice >> 2) * 10_000_000);
        if choice & 4 == 0 {
            assert!(server.answers(now) <= MOST_QUEUED);
            let _ = client.update((now.0 / 1_000_000) as u32);
            let _ = client.flush();
            let mut buffer = [0; 2_000];
            while client.recv(&mut buffer).is_ok() {}
            assert!(queue.borrow().bytes().len() <= MOST_QUEUED);
            queue.borrow_mut().clear();
        }
    }
}
