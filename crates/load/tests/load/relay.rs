//! The relay, as a process on loopback: nothing is lost, ends are passed on, failures are seen.

use crate::common::{Engine, client, dead_port, local, relay, server};
use linerate_contract::page;
use nix::sys::signal::Signal;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

fn with_relay(to: SocketAddr, test: impl Fn(SocketAddr)) {
    let (_relay, address) = Engine::serving(&relay("splice", to));
    test(address);
}

#[test]
fn requests_and_answers_of_any_size_pass() {
    for (size, operations) in [(4096, 2000), (1 << 20, 100)] {
        let (_server, address) = Engine::serving(&server(size));
        with_relay(address, |address| {
            for workload in ["crr", "rr"] {
                for connections in [5, 50] {
                    let mut spec = client(workload, address, size, operations);
                    spec.connections = connections;
                    let done = Engine::start(&spec).done();
                    assert_eq!(
                        (done.operations, done.verified),
                        (operations, operations),
                        "{workload} {connections} {size}: {:?}",
                        done.errors
                    );
                }
            }
        });
    }
}

/// A server that reads to the end, and only then answers with the length of what it read.
fn counting() -> SocketAddr {
    let listener = TcpListener::bind(local()).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut stream = stream;
                let mut all = Vec::new();
                if stream.read_to_end(&mut all).is_ok() {
                    let _ = stream.write_all(format!("{} {}", all.len(), all == page(all.len())).as_bytes());
                }
            });
        }
    });
    address
}

#[test]
fn an_end_of_input_is_passed_on_behind_every_byte_and_the_answer_still_comes() {
    with_relay(counting(), |address| {
        for size in [0, 1, 100_000, 20_000_000] {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(&page(size)).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert_eq!(answer, format!("{size} true"));
        }
    });
}

#[test]
fn a_server_that_speaks_first_and_at_once_is_heard() {
    let listener = TcpListener::bind(local()).unwrap();
    let to = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(&page(50_000));
        }
    });
    with_relay(to, |address| {
        for _ in 0..200 {
            let mut all = Vec::new();
            TcpStream::connect(address).unwrap().read_to_end(&mut all).unwrap();
            assert!(all == page(50_000), "{} bytes", all.len());
        }
    });
}

#[test]
fn many_small_pieces_both_ways_keep_their_order() {
    let listener = TcpListener::bind(local()).unwrap();
    let to = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut buffer = [0; 777];
                let mut stream = stream;
                while let Ok(n @ 1..) = stream.read(&mut buffer) {
                    if stream.write_all(&buffer[..n]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    with_relay(to, |address| {
        let clients: Vec<_> = (0..8)
            .map(|_| {
                std::thread::spawn(move || {
                    let mut stream = TcpStream::connect(address).unwrap();
                    let mut reader = stream.try_clone().unwrap();
                    let echo = std::thread::spawn(move || {
                        let mut all = Vec::new();
                        reader.read_to_end(&mut all).unwrap();
                        all
                    });
                    stream.set_nodelay(true).unwrap();
                    page(100_000).chunks(61).for_each(|piece| stream.write_all(piece).unwrap());
                    stream.shutdown(Shutdown::Write).unwrap();
                    echo.join().unwrap() == page(100_000)
                })
            })
            .collect();
        assert!(clients.into_iter().all(|c| c.join().unwrap()));
    });
}

#[test]
fn a_reset_or_a_refusal_behind_the_relay_is_a_reset_before_it() {
    let listener = TcpListener::bind(local()).unwrap();
    let resetting = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 10]);
            let linger = libc::linger { l_onoff: 1, l_linger: 0 };
            nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::Linger, &linger).unwrap();
        }
    });
    for to in [resetting, dead_port()] {
        with_relay(to, |address| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let outcome = stream.write_all(b"hello").and_then(|()| stream.read(&mut [0; 10]));
            let kind = outcome.unwrap_err().kind();
            assert!(matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{kind}");
        });
    }
}

#[test]
fn a_client_that_goes_away_is_noticed_behind_the_relay() {
    let listener = TcpListener::bind(local()).unwrap();
    with_relay(listener.local_addr().unwrap(), |address| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"hello").unwrap();
        let mut behind = listener.accept().unwrap().0;
        behind.read_exact(&mut [0; 5]).unwrap();
        drop(stream);
        assert_eq!(behind.read(&mut [0]).unwrap(), 0);
    });
}

#[test]
fn a_signal_ends_it() {
    let (mut engine, _) = Engine::serving(&relay("splice", dead_port()));
    engine.signal(Signal::SIGTERM);
    assert!(engine.wait().success());
}
