//! The HTTP client, as a process on loopback: exact counts, and every way in which an operation can fail.

use crate::PROGRAM;
use crate::common::{
    Engine, answering, assert_times_out, client, dead_port, in_some_try, ok, read_request, scripted, server,
};
use linerate_contract::{Bytes, ErrorKind, Event, Nanos, Spec, page};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

const SIZE: usize = 4096;

#[test]
fn exactly_as_many_operations_as_asked_whatever_the_shape() {
    let (_server, address) = Engine::serving(&server(SIZE));
    for workload in ["crr", "rr"] {
        for (connections, threads, operations) in
            [(1, 1, 1), (5, 1, 1000), (7, 3, 1001), (50, 2, 20), (2, 8, 501)]
        {
            let mut spec = client(workload, address, SIZE, operations);
            (spec.connections, spec.threads) = (connections, threads);
            let done = Engine::start(&spec).done();
            assert_eq!((done.operations, done.errors.total(), done.verified), (operations, 0, operations));
            assert_eq!(done.bytes, Bytes(operations * SIZE as u64));
            assert_eq!(done.latency.unwrap().total(), operations);
            let connects = done.connect.unwrap().total();
            if workload == "crr" {
                assert_eq!(connects, operations);
            } else {
                assert!(connects <= u64::from(connections));
            }
            assert!(done.end_ns > done.start_ns && done.cpu_ns > Nanos::ZERO);
        }
    }
}

#[test]
fn pages_of_any_size_arrive_whole() {
    for size in [0, 1, 65_536, 3_000_000] {
        let (_server, address) = Engine::serving(&server(size));
        for workload in ["crr", "rr"] {
            let done = Engine::start(&client(workload, address, size, 40)).done();
            assert_eq!((done.operations, done.verified), (40, 40), "{workload} {size}: {:?}", done.errors);
        }
    }
}

#[test]
fn a_window_of_time_ends_by_itself() {
    let (_server, address) = Engine::serving(&server(SIZE));
    for workload in ["crr", "rr"] {
        let mut spec = client(workload, address, SIZE, 0);
        (spec.operations, spec.duration_ns) = (None, Some(Nanos(200_000_000)));
        assert!(in_some_try(|| {
            let done = Engine::start(&spec).done();
            assert_eq!((done.end_ns.since(done.start_ns), done.errors.total()), (Nanos(200_000_000), 0));
            done.operations > 0
        }));
    }
}

#[test]
fn content_is_compared_as_often_as_asked() {
    let (_server, address) = Engine::serving(&server(SIZE));
    let mut spec = client("rr", address, SIZE, 100);
    spec.connections = 1;
    spec.expect.as_mut().unwrap().every = 10;
    assert_eq!(Engine::start(&spec).done().verified, 10);
    spec.expect = None;
    let done = Engine::start(&spec).done();
    assert_eq!((done.operations, done.verified), (100, 0));
}

#[test]
fn every_server_thread_listens_at_the_same_port() {
    let mut spec = server(SIZE);
    spec.threads = 3;
    let (_server, address) = Engine::serving(&spec);
    assert_eq!(Engine::start(&client("crr", address, SIZE, 300)).done().operations, 300);
}

#[test]
fn sources_are_used_in_turn() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut spec = client("crr", listener.local_addr().unwrap(), 3, 4);
    spec.connections = 1;
    spec.sources = vec!["127.0.0.1".parse().unwrap(), "127.0.0.2".parse().unwrap()];
    spec.expect = None;
    let engine = Engine::start(&spec);
    let peers: Vec<_> = (0..4)
        .map(|_| {
            let (mut stream, peer) = listener.accept().unwrap();
            assert!(read_request(&mut stream));
            stream.write_all(&ok(b"abc")).unwrap();
            peer.ip().to_string()
        })
        .collect();
    assert_eq!(engine.done().operations, 4);
    assert_eq!(peers, ["127.0.0.1", "127.0.0.2", "127.0.0.1", "127.0.0.2"]);
}

/// Runs both workloads; every one of their operations must fail as `kind`.
fn fails_as(kind: ErrorKind, address: SocketAddr, change: impl Fn(&mut Spec)) {
    for workload in ["crr", "rr"] {
        let mut spec = client(workload, address, SIZE, 6);
        spec.connections = 2;
        change(&mut spec);
        let done = Engine::start(&spec).done();
        assert_eq!(done.operations, 0, "{workload}");
        assert_eq!(done.errors.0.get(&kind), Some(&6), "{workload}: {:?}", done.errors);
    }
}

#[test]
fn a_port_without_a_listener() {
    fails_as(ErrorKind::ConnectRefused, dead_port(), |_| {});
}

#[test]
fn the_peer_resets() {
    let address = scripted(|stream| {
        nix::sys::socket::setsockopt(
            &stream,
            nix::sys::socket::sockopt::Linger,
            &libc::linger { l_onoff: 1, l_linger: 0 },
        )
        .unwrap();
    });
    fails_as(ErrorKind::Reset, address, |_| {});
}

#[test]
fn the_peer_closes_without_a_response() {
    fails_as(ErrorKind::EmptyResponse, answering(""), |_| {});
}

#[test]
fn the_response_is_cut() {
    let whole = ok(&page(SIZE));
    for length in [1, 20, whole.len() - 1] {
        fails_as(ErrorKind::Truncated, answering(&whole[..length]), |_| {});
    }
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\nabc";
    fails_as(ErrorKind::Truncated, answering(chunked), |_| {});
}

#[test]
fn the_response_is_not_http() {
    fails_as(ErrorKind::Malformed, answering("SSH-2.0-OpenSSH_9.2\r\n"), |_| {});
    fails_as(ErrorKind::Malformed, answering([ok(&page(SIZE)), b"more".to_vec()].concat()), |_| {});
}

#[test]
fn the_status_is_another() {
    let response = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 100\r\n\r\n";
    fails_as(ErrorKind::WrongStatus, answering(response), |_| {});
    fails_as(ErrorKind::WrongStatus, answering(response), |spec| spec.expect = None);
}

#[test]
fn the_length_is_another() {
    fails_as(ErrorKind::WrongLength, answering(ok(&page(SIZE - 1))), |_| {});
    let until_close = [b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), page(SIZE - 1)].concat();
    fails_as(ErrorKind::WrongLength, answering(until_close), |_| {});
}

#[test]
fn the_content_is_another() {
    let mut body = page(SIZE);
    body[SIZE - 1] ^= 1;
    fails_as(ErrorKind::WrongContent, answering(ok(&body)), |_| {});
}

#[test]
fn the_response_does_not_come_in_time() {
    let address = scripted(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4096\r\n\r\nabc");
        // Until the client gives up.
        let _ = stream.read(&mut [0]);
    });
    for workload in ["crr", "rr"] {
        let spec = client(workload, address, SIZE, 6);
        assert_times_out(&Spec { connections: 2, timeout_ns: Nanos(60_000_000), ..spec }, 6);
    }
}

#[test]
fn the_handshake_does_not_end_in_time() {
    // Without an accept, the queue of one is full after two; later connections get no response (listen(2)).
    let listener = nix::sys::socket::socket(
        nix::sys::socket::AddressFamily::Inet,
        nix::sys::socket::SockType::Stream,
        nix::sys::socket::SockFlag::empty(),
        None,
    )
    .unwrap();
    use std::os::fd::AsRawFd;
    let any = nix::sys::socket::SockaddrStorage::from(crate::common::local());
    nix::sys::socket::bind(listener.as_raw_fd(), &any).unwrap();
    nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(0).unwrap()).unwrap();
    let listener = TcpListener::from(listener);
    let address = listener.local_addr().unwrap();
    let _queued: Vec<_> =
        (0..8).map_while(|_| TcpStream::connect_timeout(&address, Duration::from_millis(200)).ok()).collect();
    fails_as(ErrorKind::ConnectTimeout, address, |spec| spec.timeout_ns = Nanos(60_000_000));
}

#[test]
fn more_connections_than_descriptors_are_refused_with_the_limit_by_name() {
    let (_server, address) = Engine::serving(&server(SIZE));
    let mut spec = client("rr", address, SIZE, 3000);
    spec.connections = 300;
    let mut command = Command::new(PROGRAM);
    command.arg(spec.to_json());
    let limit = || {
        use nix::sys::resource::{Resource, setrlimit};
        setrlimit(Resource::RLIMIT_NOFILE, 40, 40).map_err(std::io::Error::from)
    };
    #[allow(unsafe_code, reason = "a limit for the child alone can be set only between fork and exec")]
    // SAFETY: setrlimit(2) is async-signal-safe and the closure allocates nothing.
    unsafe {
        command.pre_exec(limit);
    }
    let mut engine = Engine::start_command(&mut command);
    assert_eq!(engine.wait().code(), Some(1));
    let reason = engine.stderr();
    assert!(reason.contains("300") && reason.contains("40 files (RLIMIT_NOFILE)"), "{reason}");
    // As many as the limit, but the process has some open already.
    spec.connections = 40;
    let mut command = Command::new(PROGRAM);
    command.arg(spec.to_json());
    #[allow(unsafe_code, reason = "as above")]
    // SAFETY: as above.
    unsafe {
        command.pre_exec(limit);
    }
    let done = Engine::start_command(&mut command).done();
    let exhausted = done.errors.0[&ErrorKind::DescriptorExhausted];
    assert!(exhausted > 0);
    assert_eq!(done.operations + exhausted, 3000, "{:?}", done.errors);
}

#[test]
fn the_generator_runs_out_of_threads() {
    let (_server, address) = Engine::serving(&server(SIZE));
    let mut spec = client("rr", address, SIZE, 3000);
    (spec.connections, spec.threads) = (200, 200);
    // A user of its own, whose processes are counted apart from those of this test.
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-user=1234", "--", "prlimit", "--nproc=20", "--"]);
    command.args([PROGRAM, &spec.to_json()]);
    let Ok(output) = command.output() else { return eprintln!("skipped: no unshare(1)") };
    let reason = String::from_utf8_lossy(&output.stderr);
    if !reason.contains("starting a thread") {
        assert!(output.status.success() || reason.contains("unshare:"), "{}: {reason}", output.status);
        return eprintln!("skipped: the limit of threads does not hold here: {reason}");
    }
    assert_eq!(output.status.code(), Some(1), "{reason}");
}

#[test]
fn the_generator_runs_out_of_ports() {
    // Needs a namespace of its own, where the range of ports can be made small.
    let script = r#"ip link set lo up && echo "40000 40009" > /proc/sys/net/ipv4/ip_local_port_range \
                    && exec 3< <("$0" "$1") && read -r ready <&3 && "$0" "$2"; kill $!"#;
    let mut server = server(SIZE);
    server.listen = Some("127.0.0.1:8080".parse().unwrap());
    let mut spec = client("rr", "127.0.0.1:8080".parse().unwrap(), SIZE, 200);
    spec.connections = 30;
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "bash", "-c", script])
        .args([PROGRAM, &server.to_json(), &spec.to_json()])
        .output();
    let output = match output {
        Ok(output) if output.stderr.is_empty() => output,
        Ok(output) => {
            return eprintln!("skipped: no namespaces: {}", String::from_utf8_lossy(&output.stderr));
        }
        Err(error) => return eprintln!("skipped: no unshare(1): {error}"),
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let Ok(Event::Done(done)) = Event::parse(text.lines().last().unwrap()) else { panic!("{text}") };
    let exhausted = done.errors.0[&ErrorKind::AddressExhausted];
    assert!(exhausted > 0);
    assert_eq!(done.operations + exhausted, 200, "{:?}", done.errors);
}

#[test]
fn a_slot_goes_on_after_a_failure() {
    let count = std::sync::atomic::AtomicU64::new(0);
    let good = ok(&page(SIZE));
    let address = scripted(move |mut stream| {
        if count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 2 == 1 {
            let _ = stream.write_all(&good);
        }
    });
    let mut spec = client("crr", address, SIZE, 100);
    spec.connections = 1;
    let done = Engine::start(&spec).done();
    assert_eq!((done.operations, done.errors.0[&ErrorKind::EmptyResponse]), (50, 50));
}

#[test]
fn responses_of_every_framing_are_read_in_any_pieces() {
    let body = page(SIZE);
    let chunked = {
        let mut bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        for chunk in body.chunks(1000) {
            bytes.extend(format!("{:x};name=value\r\n", chunk.len()).bytes());
            bytes.extend(chunk);
            bytes.extend(b"\r\n");
        }
        bytes.extend(b"0\r\nTrailer: x\r\n\r\n");
        bytes
    };
    let until_close = [&b"HTTP/1.0 200 OK\r\n\r\n"[..], &body].concat();
    let interim = [&b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"[..], &ok(&body)].concat();
    for response in [chunked, until_close, interim, ok(&body)] {
        let address = scripted(move |mut stream| {
            let _ = stream.set_nodelay(true);
            for piece in response.chunks(response.len() / 7) {
                let _ = stream.write_all(piece);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        for workload in ["crr", "rr"] {
            // A server that closes after each response without saying so cannot be kept alive.
            let operations = if workload == "crr" { 20 } else { 5 };
            let done = Engine::start(&client(workload, address, SIZE, operations)).done();
            assert_eq!((done.operations, done.verified), (operations, operations), "{:?}", done.errors);
        }
    }
}
