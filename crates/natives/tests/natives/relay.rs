//! The relay, as a process on loopback: nothing is lost, ends are passed on, failures are seen.

use crate::PROGRAM;
use crate::common::{Engine, client, dead_port, local, server};
use linerate_contract::{Event, Layer, Role, Spec, Workload, page};
use nix::sys::signal::Signal;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

/// The buffers of some dozen connections, and no more.
const MOST_MEMORY: u64 = 128 << 20;

fn relay(mode: &str, to: SocketAddr) -> Spec {
    let mut spec = Spec::new(Role::Relay, Layer::Tcp, Workload::Relay);
    spec.listen = Some(local());
    spec.connect = Some(to);
    spec.options.insert("mode".into(), mode.into());
    spec
}

fn with_relay(to: SocketAddr, test: impl Fn(SocketAddr)) {
    let (_relay, address) = Engine::serving(&relay("splice", to));
    test(address);
}

#[test]
fn requests_and_responses_of_any_size_pass() {
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
fn an_end_of_input_is_passed_on_behind_every_byte_and_the_response_still_comes() {
    with_relay(counting(), |address| {
        for size in [0, 1, 100_000, 20_000_000] {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(&page(size)).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut response = String::new();
            stream.read_to_string(&mut response).unwrap();
            assert_eq!(response, format!("{size} true"));
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

/// With so many descriptors that some of 60 connections wait.
fn limited(spec: &Spec) -> (Engine, SocketAddr) {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 40; exec \"$0\" \"$1\"", PROGRAM]);
    Engine::ready(Engine::start_command(command.arg(spec.to_json())))
}

#[test]
fn connections_that_wait_for_a_descriptor_do_not_slow_the_others() {
    let echo = Spec { listen: Some(local()), ..Spec::new(Role::Server, Layer::Tcp, Workload::Rr) };
    let (_upstream, upstream) = Engine::serving(&echo);
    for (what, spec) in [("server", &echo), ("relay", &relay("splice", upstream))] {
        let (_engine, address) = limited(spec);
        let mut active = TcpStream::connect(address).unwrap();
        active.set_nodelay(true).unwrap();
        active.write_all(b"x").unwrap();
        active.read_exact(&mut [0]).unwrap();
        let waiting: Vec<_> = (0..60).map(|_| TcpStream::connect(address).unwrap()).collect();
        std::thread::sleep(Duration::from_millis(100));
        let mut prompt = 0;
        for _ in 0..300 {
            let start = Instant::now();
            active.write_all(b"x").unwrap();
            active.read_exact(&mut [0]).unwrap();
            prompt += u32::from(start.elapsed() < Duration::from_millis(8));
        }
        // With a pause of 10 ms for each event there are none.
        assert!(prompt > 150, "{what}: {prompt} of 300");
        drop(waiting);
        let mut late = TcpStream::connect(address).unwrap();
        late.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        late.write_all(b"x").unwrap();
        late.read_exact(&mut [0]).unwrap();
    }
}

#[test]
fn a_relay_survives_peers_that_never_read_and_memory_is_bounded() {
    let (_server, upstream) = Engine::serving(&server(1 << 20));
    let (mut engine, address) = Engine::serving(&relay("splice", upstream));
    let mut streams: Vec<_> = (0..8).map(|_| TcpStream::connect(address).unwrap()).collect();
    for stream in &mut streams {
        stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        while stream.write_all(&b"GET / HTTP/1.1\r\nHost: h\r\n\r\n".repeat(1_000)).is_ok() {}
    }
    let done = Engine::start(&client("crr", address, 1 << 20, 20)).done();
    assert_eq!((done.operations, done.errors.total()), (20, 0), "{:?}", done.errors);
    assert!(engine.most_memory() < MOST_MEMORY, "{}", engine.most_memory());
}

#[test]
fn a_relay_of_another_kind_is_refused_by_its_name() {
    let other_mode = relay("telepathy", local());
    for (spec, name) in [(Spec { layer: Layer::Udp, ..other_mode.clone() }, "udp"), (other_mode, "telepathy")]
    {
        let mut engine = Engine::start(&spec);
        assert_eq!(engine.wait().code(), Some(127), "{name}");
        assert!(engine.stderr().contains(name), "{name}");
    }
}

#[test]
fn the_program_describes_what_the_engine_lacks() {
    let mut engine = Engine::start(&Spec::new(Role::Describe, Layer::Unnamed, Workload::Unnamed));
    let Some(Event::Describe(described)) = engine.event() else { panic!() };
    assert_eq!(described.roles, [Role::Client, Role::Relay, Role::Server]);
    assert!([Layer::None, Layer::Http].iter().all(|layer| described.layers.contains(layer)));
    let all = [Workload::Dispatch, Workload::Relay, Workload::Rr];
    assert!(all.iter().all(|workload| described.workloads.contains(workload)));
}
