//! Fuzz target: both peers of a pair.

use super::{Pair, RelayLoop, Side};
use linerate_contract::{Layer, Role, Spec, Workload};
use linerate_load::listener::Listener;
use linerate_load::socket::Dialer;
use nix::sys::epoll::{EpollEvent, EpollTimeout};
use nix::sys::signal::{SigSet, Signal};
use std::cell::RefCell;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// Turns of the loop for one step: far more than any needs.
const MOST_TURNS: usize = 1_000;

/// Steps of two peers, a byte each: the side (1), the step (6), and how much it writes. At any time each peer
/// has received a beginning of what the other has sent, and after an orderly end all of it.
pub fn fuzz_relay(input: &[u8]) {
    thread_local!(static RELAY: RefCell<RelayLoop> = RefCell::new(relay()));
    RELAY.with_borrow_mut(|relay| steps(relay, input));
}

fn relay() -> RelayLoop {
    // A program in Rust ignores SIGPIPE from its start; libFuzzer's main function is C++.
    let mut set = SigSet::empty();
    set.add(Signal::SIGPIPE);
    set.thread_block().expect("a valid set");
    let mut spec = Spec::new(Role::Relay, Layer::Tcp, Workload::Relay);
    let local = "127.0.0.1:0".parse().expect("an address");
    let (listener, address) = Listener::bind(local, false).expect("a free port");
    spec.connect = Some(address);
    RelayLoop::new(Dialer::new(&spec).expect("a good spec"), listener).expect("descriptors are left")
}

fn steps(relay: &mut RelayLoop, input: &[u8]) {
    let [(client, near), (upstream, far)] = [connected(), connected()];
    let index = client.as_raw_fd() as usize;
    relay.pairs.clear();
    relay.pairs.resize_with(index + 1, || None);
    relay.advance(index, Box::new(Pair::new([client.into(), upstream.into()])));
    let mut peers = [Some(near), Some(far)];
    let (mut sent, mut received) = ([0_u64; 2], [0_u64; 2]);
    let (mut ended, mut orderly) = ([false; 2], true);
    for choice in input {
        let side = if choice & 1 == 0 { Side::Client } else { Side::Upstream };
        let (own, other) = (side as usize, side.other() as usize);
        let Some(peer) = &peers[own] else { continue };
        match choice & 6 {
            0 | 2 if !ended[own] => sent[own] += write(peer, sent[own], usize::from(choice >> 3) << 9),
            4 => check(peer, &mut received[own], sent[other]),
            6 if choice & 8 == 0 => {
                ended[own] = true;
                // Fails where the relay has closed.
                let _ = peer.shutdown(Shutdown::Write);
            }
            6 => (orderly, peers[own]) = (false, None),
            _ => {}
        }
        if choice & 16 == 0 {
            run(relay);
        }
    }
    if !orderly {
        return;
    }
    for _ in 0..MOST_TURNS {
        for (peer, own) in peers.iter().flatten().zip(0..) {
            let _ = peer.shutdown(Shutdown::Write);
            check(peer, &mut received[own], sent[1 - own]);
        }
        run(relay);
        if relay.pairs.iter().all(Option::is_none) {
            break;
        }
    }
    peers.iter().flatten().zip(0..).for_each(|(peer, own)| check(peer, &mut received[own], sent[1 - own]));
    assert_eq!(received, [sent[1], sent[0]], "all has arrived");
    assert!(relay.pairs.iter().all(Option::is_none), "the pair is closed");
}

/// Two ends of a byte stream that do not block.
fn connected() -> (UnixStream, UnixStream) {
    let ends = UnixStream::pair().expect("descriptors are left");
    for end in [&ends.0, &ends.1] {
        end.set_nonblocking(true).expect("it is open");
    }
    ends
}

/// Numbered bytes; how many the socket took.
fn write(mut peer: &UnixStream, from: u64, count: usize) -> u64 {
    let bytes: Vec<_> = (from..from + count as u64).map(|number| (number % 251) as u8).collect();
    peer.write(&bytes).unwrap_or(0) as u64
}

fn check(mut peer: &UnixStream, received: &mut u64, sent: u64) {
    let mut buffer = [0; 16 << 10];
    loop {
        let count = match peer.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        for byte in &buffer[..count] {
            assert_eq!(*byte, (*received % 251) as u8);
            *received += 1;
        }
    }
    assert!(*received <= sent);
}

/// Until nothing happens any more.
fn run(relay: &mut RelayLoop) {
    let mut events = [EpollEvent::empty(); 16];
    for _ in 0..MOST_TURNS {
        let ready = relay.epoll.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
        if ready == 0 && relay.again.is_empty() {
            return;
        }
        relay.turn(&events[..ready]);
    }
    panic!("a relay that never waits");
}

#[cfg(test)]
#[path = "../../../../fuzz/each_seed.rs"]
mod each_seed;

#[test]
fn the_relay_accepts_its_seeds_and_changes_of_them() {
    each_seed::each_seed("relay", fuzz_relay);
}
