//! Habits of servers in the field, as others have reported them: each is good, or fails with a cause
//! (docs/evidence/habits.md).

use crate::common::{Engine, client, local, ok, read_request, scripted, tcp_client};
use linerate_contract::{Done, ErrorKind, Expect, Nanos, Request, Spec, page};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

const REQUESTS: u64 = 6;

/// One connection; any content of this length is good.
fn asking(address: SocketAddr, bytes: u64) -> Spec {
    let mut spec = Spec { connections: 1, ..client("rr", address, 0, REQUESTS) };
    spec.expect = Some(Expect { status: None, bytes: Some(bytes), crc32: None, every: 1 });
    spec.timeout_ns = Nanos(2_000_000_000);
    spec
}

/// A server that answers every request on a connection with these bytes, in pieces.
fn keeping(response: impl Into<Vec<u8>>, piece: usize) -> SocketAddr {
    let response = response.into();
    scripted(move |mut stream| {
        let _ = stream.set_nodelay(true);
        loop {
            if response.chunks(piece).any(|part| stream.write_all(part).is_err())
                || !read_request(&mut stream)
            {
                return;
            }
        }
    })
}

#[test]
fn heads_and_bodies_that_curl_accepts_are_good() {
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 2\r\n\r\nok", "y".repeat(60_000));
    let many = format!("HTTP/1.1 200 OK\r\n{}Content-Length: 2\r\n\r\nok", "X: y\r\n".repeat(900));
    let links = format!(
        "{}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 103 Early\r\nLink: x\r\n\r\n".repeat(5)
    );
    for (what, response, bytes) in [
        ("no reason phrase", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", 2),
        ("an empty reason phrase", "HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok", 2),
        ("line feeds alone", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", 2),
        ("a length twice", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\ncontent-length: 2\r\n\r\nok", 2),
        ("a length as a list", "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok", 2),
        ("an empty header", "HTTP/1.1 200 OK\r\nX-Empty:\r\nContent-Length: 2\r\n\r\nok", 2),
        ("latin letters in a header", "HTTP/1.1 200 OK\r\nX: caf\u{e9}\r\nContent-Length: 2\r\n\r\nok", 2),
        (
            "a chunk with an extension",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nok\r\n0\r\n\r\n",
            2,
        ),
        (
            "a length of a chunk with zeros",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: CHUNKED\r\n\r\n0002\r\nok\r\n00\r\n\r\n",
            2,
        ),
        (
            "trailers",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n",
            2,
        ),
        ("no body by length", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0),
        ("no body by chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0),
        ("304 with a length", "HTTP/1.1 304 Not Modified\r\nContent-Length: 0\r\n\r\n", 0),
        ("100 before it", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 2),
        ("102 and 103 before it", &links, 2),
        (
            "HTTP/1.0 that keeps",
            "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nok",
            2,
        ),
        (
            "Keep-Alive in a list",
            "HTTP/1.1 200 OK\r\nConnection: foo, Keep-Alive\r\nContent-Length: 2\r\n\r\nok",
            2,
        ),
        ("a header of 60 KB", &long, 2),
        ("900 headers", &many, 2),
        ("an unknown status", "HTTP/1.1 299 Whatever\r\nContent-Length: 2\r\n\r\nok", 2),
    ] {
        for piece in [1 << 20, 1] {
            if piece == 1 && response.len() > 1_000 {
                continue;
            }
            let done = Engine::start(&asking(keeping(response, piece), bytes)).done();
            let good = (done.operations, done.errors.total(), done.closed_idle);
            assert_eq!(good, (REQUESTS, 0, 0), "{what}, pieces of {piece}: {:?}", done.causes);
        }
    }
}

#[test]
fn what_would_change_a_number_fails_with_its_cause() {
    for (what, response, kind, text) in [
        (
            "two lengths",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
            ErrorKind::Malformed,
            "twice",
        ),
        (
            "a negative length",
            "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
            ErrorKind::Malformed,
            "no length",
        ),
        (
            "a length with a sign",
            "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok",
            ErrorKind::Malformed,
            "no length",
        ),
        (
            "a length beside chunks",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            ErrorKind::Malformed,
            "ambiguous",
        ),
        (
            "a chunk of no length",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
            ErrorKind::Malformed,
            "a chunk",
        ),
        (
            "a chunk longer than it says",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nok\r\n0\r\n\r\n",
            ErrorKind::Malformed,
            "a chunk",
        ),
        (
            "more than the length",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokay",
            ErrorKind::Malformed,
            "more bytes",
        ),
        ("no version", "200 OK\r\n\r\n", ErrorKind::Malformed, "not a response of HTTP/1.1"),
        (
            "HTTP/2.0 in words",
            "HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
            ErrorKind::Malformed,
            "not a response",
        ),
        ("HTML alone", "<html>hello</html>\r\n\r\n", ErrorKind::Malformed, "not a response of HTTP/1.1"),
        ("a server of Redis", "-ERR unknown command\r\n", ErrorKind::Malformed, "not a response of HTTP/1.1"),
        (
            "503 while it warms up",
            "HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nok",
            ErrorKind::WrongStatus,
            "status 503",
        ),
        (
            "another length",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\noky",
            ErrorKind::WrongLength,
            "3 bytes in place of 2",
        ),
    ] {
        let done = Engine::start(&asking(keeping(response, 1 << 20), 2)).done();
        assert_eq!(done.operations, 0, "{what}");
        let cause = done.causes.0.get(&kind).unwrap_or_else(|| panic!("{what}: {:?}", done.errors));
        assert!(cause.text.contains(text) && !cause.bytes.is_empty(), "{what}: {cause:?}");
    }
}

#[test]
fn a_body_until_the_end_of_the_connection_is_whole_and_the_end_no_failure() {
    for response in [
        "HTTP/1.1 200 OK\r\n\r\nok",
        "HTTP/1.0 200 OK\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok",
    ] {
        let address = scripted(move |mut stream| {
            let _ = stream.write_all(response.as_bytes());
        });
        let done = Engine::start(&asking(address, 2)).done();
        assert_eq!((done.operations, done.errors.total()), (REQUESTS, 0), "{response}: {:?}", done.causes);
    }
}

#[test]
fn a_server_may_end_its_half_or_reset_when_it_owes_nothing() {
    for resets in [false, true] {
        let address = scripted(move |mut stream| {
            let _ = stream.write_all(&ok(b"ok"));
            if resets {
                // What is unread makes the end a reset: the next request.
                std::thread::sleep(Duration::from_millis(5));
            } else {
                let _ = stream.shutdown(Shutdown::Write);
                let _ = stream.read(&mut [0]);
            }
        });
        let done = Engine::start(&asking(address, 2)).done();
        assert_eq!((done.operations, done.errors.total()), (REQUESTS, 0), "{resets}: {:?}", done.causes);
        assert!(done.closed_idle >= REQUESTS - 1, "{}", done.closed_idle);
    }
}

#[test]
fn a_response_before_its_request_is_that_of_the_request() {
    let listener = TcpListener::bind(local()).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // Before it has read a byte.
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
            std::thread::spawn(move || _ = std::io::copy(&mut stream, &mut std::io::sink()));
        }
    });
    let done = Engine::start(&asking(address, 2)).done();
    assert_eq!((done.operations, done.errors.total()), (REQUESTS, 0), "{:?}", done.causes);
}

#[test]
fn a_body_is_sent_after_an_interim_response_that_came_early() {
    let address = scripted(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
        let mut body = [0; 5];
        let got = stream.read_exact(&mut body).is_ok() && &body == b"hello";
        let body = if got { "ok" } else { "" };
        let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
        let _ = stream.write_all((head + body).as_bytes());
    });
    let mut spec = asking(address, 2);
    let headers = vec!["Expect: 100-continue".to_owned(), "Connection: close".into()];
    spec.request =
        Some(Request { method: Some("POST".into()), body: "hello".into(), headers, ..Request::default() });
    let done = Engine::start(&spec).done();
    assert_eq!((done.operations, done.errors.total()), (REQUESTS, 0), "{:?}", done.causes);
}

#[test]
fn the_response_to_head_has_no_body_whatever_its_length() {
    let mut spec = asking(keeping("HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n", 7), 0);
    spec.expect = None;
    spec.request = Some(Request { method: Some("HEAD".into()), ..Request::default() });
    let done = Engine::start(&spec).done();
    assert_eq!((done.operations, done.errors.total()), (REQUESTS, 0), "{:?}", done.causes);
}

/// Round trips of 16 bytes over this layer.
fn echoes(layer: &str, address: SocketAddr) -> Done {
    let mut spec =
        Spec { layer: layer.parse().unwrap(), connections: 1, ..tcp_client("rr", address, 16, REQUESTS) };
    spec.timeout_ns = Nanos(2_000_000_000);
    Engine::start(&spec).done()
}

#[test]
fn an_echo_may_come_in_any_pieces_and_its_server_may_close_between_two() {
    for (piece, each) in [(16, usize::MAX), (1, usize::MAX), (16, 1), (5, 2)] {
        let listener = TcpListener::bind(local()).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.set_nodelay(true);
                let mut message = [0; 16];
                for _ in 0..each {
                    if stream.read_exact(&mut message).is_err() {
                        break;
                    }
                    message.chunks(piece).for_each(|part| _ = stream.write_all(part));
                }
            }
        });
        let done = echoes("tcp", address);
        assert_eq!(
            (done.operations, done.errors.total()),
            (REQUESTS, 0),
            "{piece} {each}: {:?}",
            done.causes
        );
        let closed = if each == usize::MAX { 0 } else { REQUESTS / each as u64 };
        assert!(
            (closed.saturating_sub(1)..=closed).contains(&done.closed_idle),
            "{each}: {}",
            done.closed_idle
        );
    }
}

#[test]
fn datagrams_that_come_twice_late_or_from_elsewhere_are_told_apart() {
    let socket = UdpSocket::bind(local()).unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let other = UdpSocket::bind(local()).unwrap();
        let mut datagram = [0; 64];
        while let Ok((length, from)) = socket.recv_from(&mut datagram) {
            let _ = other.send_to(b"noise of another port", from);
            let _ = socket.send_to(&datagram[..length], from);
            let _ = socket.send_to(&datagram[..length], from);
        }
    });
    let done = echoes("udp", address);
    assert_eq!((done.operations, done.errors.total()), (REQUESTS, 0), "{:?}", done.causes);
}

#[test]
fn an_address_of_ipv4_in_ipv6_is_that_address() {
    let address = keeping(ok(&page(3)), 100);
    let mapped = SocketAddr::new("::ffff:127.0.0.1".parse().unwrap(), address.port());
    let done = Engine::start(&asking(mapped, 3)).done();
    assert_eq!((done.operations, done.errors.total()), (REQUESTS, 0), "{:?}", done.causes);
}
