//! A failure has a cause, over every layer: its kind, why in words, and the bytes or the alert behind it.

use crate::certified::server_config;
use crate::common::{Engine, certificates, client, dead_port, good_certificates, local, tcp_client, with};
use crate::h2::{frame, responses};
use crate::h3::{h3_client, h3_server};
use crate::sessions::client as session;
use crate::trust::echoing;
use linerate_contract::{Done, ErrorKind, Expect, Layer, Nanos, Request, Spec, TlsFailure, page};
use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};

const SIZE: u64 = 64;

/// One connection and three operations, of which all fail.
fn failed(spec: Spec) -> Done {
    let spec = Spec { connections: 1, operations: Some(3), timeout_ns: Nanos(2_000_000_000), ..spec };
    let done = Engine::start(&spec).done();
    assert_eq!(done.operations, 0, "{}: {:?}", spec.layer, done.errors);
    done
}

fn assert_cause(done: &Done, kind: ErrorKind, text: &str, bytes: &str) {
    let cause = done.causes.0.get(&kind).unwrap_or_else(|| panic!("{:?} {:?}", done.errors, done.causes));
    assert!(cause.text.contains(text) && cause.bytes.contains(bytes), "{cause:?}");
}

fn pages(layer: &str, address: SocketAddr) -> Spec {
    let mut spec = Spec { layer: layer.parse().unwrap(), ..client("rr", address, 9, 3) };
    spec.tls = Some(good_certificates().1);
    spec
}

fn messages(layer: &str, address: SocketAddr) -> Spec {
    Spec { size: SIZE, ..session(layer, "rr", address, &good_certificates().1) }
}

#[test]
fn http_2_that_meets_another_protocol_has_its_name() {
    let bad_request = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    let done = failed(pages("h2c", scripted_at_once(bad_request)));
    assert_cause(&done, ErrorKind::Malformed, "the server speaks HTTP/1.1 there", "HTTP/1.1 400");
    // An alert has fewer bytes than the head of a frame.
    let done = failed(pages("h2c", scripted_at_once("\u{15}\u{3}\u{1}\0\u{2}\u{2}\u{46}")));
    assert_cause(&done, ErrorKind::Malformed, "the server speaks TLS there", r"\x15\x03\x01");
    let done = failed(pages("h2c", scripted_at_once("\0\0\0\u{9}\0\0\0\0\u{1}")));
    assert_cause(&done, ErrorKind::Malformed, "breaks the rules of HTTP/2 (protocol_error)", r"\x00\x00\x00");
    let done = failed(pages("h2c", scripted_at_once("")));
    assert_cause(&done, ErrorKind::EmptyResponse, "closed the connection before its settings", "");
}

#[test]
fn tls_that_fails_has_its_reason_over_every_layer() {
    let (own, _) = good_certificates();
    let (expired, trusts_expired) = certificates("linerate.test", 2001);
    for layer in ["https", "h2", "tls", "wss"] {
        let spec = |address| match layer {
            "https" | "h2" => pages(layer, address),
            _ => messages(layer, address),
        };
        let done = failed(spec(echoing(server_config(&own))));
        assert_cause(&done, ErrorKind::TlsFailed, "unknown authority", "");
        assert_eq!(done.causes.0[&ErrorKind::TlsFailed].tls, Some(TlsFailure::UnknownAuthority), "{layer}");
        let address = echoing(server_config(&expired));
        let done = failed(Spec { tls: Some(trusts_expired.clone()), ..spec(address) });
        assert_cause(&done, ErrorKind::TlsFailed, "has expired", "");
        // A server without TLS answers the handshake as it answers noise.
        let plain = scripted_at_once("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        let done = failed(spec(plain));
        assert_cause(&done, ErrorKind::TlsFailed, "not TLS: the server speaks HTTP/1.1", "HTTP/1.1 400");
        let done = failed(spec(scripted_at_once("")));
        assert_cause(&done, ErrorKind::TlsFailed, "closed the connection during the handshake", "");
    }
}

/// A server that answers the first bytes, whatever they are, and closes.
fn scripted_at_once(response: &'static str) -> SocketAddr {
    let listener = std::net::TcpListener::bind(local()).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(response.as_bytes());
        }
    });
    address
}

#[test]
fn an_alert_of_the_server_is_named() {
    let (own, trust) = good_certificates();
    let mut config = (*server_config(&own)).clone();
    config.alpn_protocols = vec![b"imap".to_vec()];
    let done = failed(Spec { tls: Some(trust), ..pages("h2", echoing(config.into())) });
    assert_cause(&done, ErrorKind::TlsFailed, "NoApplicationProtocol", "");
}

#[test]
fn a_wrong_status_or_body_of_http_2_has_its_bytes_and_costs_no_connection() {
    // :status 404 and 200 by their numbers in the static table.
    for (status, body, kind, text, bytes) in [
        (0x8d, &b"not found"[..], ErrorKind::WrongStatus, "status 404 in place of 200", "not found"),
        (0x88, b"short", ErrorKind::WrongLength, "5 bytes in place of 9", ""),
        (0x88, b"otherwise", ErrorKind::WrongContent, "9 bytes of another content", ""),
    ] {
        let address =
            responses(move |_, stream| [frame(1, 4, stream, &[status]), frame(0, 1, stream, body)].concat());
        let done = failed(pages("h2c", address));
        assert_cause(&done, kind, text, bytes);
        assert_eq!((done.errors.total(), done.connect.unwrap().total()), (3, 0), "{kind:?}");
    }
    let reset = responses(|_, stream| frame(3, 0, stream, &[0, 0, 0, 11]));
    assert_cause(&failed(pages("h2c", reset)), ErrorKind::Reset, "RST_STREAM enhance_your_calm", "");
}

#[test]
fn a_response_that_is_none_of_grpc_is_called_so() {
    let call = |address| {
        let mut spec = with(Spec { expect: None, ..pages("h2c", address) }, "grpc", "yes");
        spec.path = Some("/a.B/C".into());
        spec.request = Some(Request { body: "/wA=".into(), ..Request::default() });
        spec
    };
    let page = responses(|_, stream| [frame(1, 4, stream, &[0x88]), frame(0, 1, stream, b"hello")].concat());
    assert_cause(&failed(call(page)), ErrorKind::Malformed, "without grpc-status", "");
    let unknown = b"\x88\x00\x0bgrpc-status\x0212";
    let unknown = responses(move |_, stream| frame(1, 5, stream, unknown));
    assert_cause(&failed(call(unknown)), ErrorKind::WrongStatus, "status 12 of gRPC (UNIMPLEMENTED)", "");
}

#[test]
fn round_trips_that_end_early_or_differ_have_their_bytes() {
    let ending = |response: &'static [u8]| {
        let listener = std::net::TcpListener::bind(local()).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read_exact(&mut [0; SIZE as usize]);
                let _ = stream.write_all(response);
            }
        });
        tcp_client("rr", address, SIZE, 3)
    };
    let prefix: &'static [u8] = page(SIZE as usize)[..3].to_vec().leak();
    assert_cause(
        &failed(ending(b"")),
        ErrorKind::EmptyResponse,
        "closed the connection before the first byte",
        "",
    );
    assert_cause(&failed(ending(prefix)), ErrorKind::Truncated, "after 3 of 64 bytes of an echo", "");
    let banner = failed(ending(b"220 mail.example ESMTP\r\n"));
    assert_cause(&banner, ErrorKind::WrongContent, "other bytes than were sent", "220 mail.example");
}

#[test]
fn an_address_where_nothing_listens_has_the_words_of_the_kernel_over_every_layer() {
    for layer in ["http", "https", "h2c", "h2", "tcp", "tls", "websocket", "wss"] {
        let spec = match layer {
            "http" | "https" | "h2c" | "h2" => pages(layer, dead_port()),
            _ => messages(layer, dead_port()),
        };
        assert_cause(&failed(spec), ErrorKind::ConnectRefused, "Connection refused (ECONNREFUSED)", "");
    }
    let udp = || UdpSocket::bind(local()).unwrap().local_addr().unwrap();
    for layer in ["h3", "quic", "udp"] {
        let mut spec = h3_client(&good_certificates().1, udp(), 9, 3, 1);
        (spec.layer, spec.size) = (layer.parse().unwrap(), SIZE);
        if layer == "udp" {
            (spec.tls, spec.expect) = (None, None);
            spec.options.clear();
        }
        assert_cause(&failed(spec), ErrorKind::ConnectRefused, "Connection refused (ECONNREFUSED)", "");
    }
}

#[test]
fn datagrams_that_are_no_echo_are_shown() {
    let answering = |response: &'static [u8]| {
        let socket = UdpSocket::bind(local()).unwrap();
        let address = socket.local_addr().unwrap();
        std::thread::spawn(move || {
            while let Ok((_, from)) = socket.recv_from(&mut [0; 2048]) {
                let _ = socket.send_to(response, from);
            }
        });
        let mut spec = Spec { layer: Layer::Udp, ..tcp_client("rr", address, SIZE, 3) };
        spec.expect = None;
        spec
    };
    let short = failed(answering(b"pong"));
    assert_cause(&short, ErrorKind::WrongLength, "a datagram of 4 bytes or more in place of 64", "pong");
    let other = failed(answering(&[b'x'; SIZE as usize]));
    assert_cause(&other, ErrorKind::WrongContent, "other bytes than were sent", "xxxx");
}

#[test]
fn http_3_has_causes_too_and_reads_a_wrong_response_to_its_end() {
    let (own, trust) = good_certificates();
    let (_server, address) = Engine::serving(&h3_server(&own, 9));
    let mut spec = h3_client(&trust, address, 9, 3, 1);
    spec.expect = Some(Expect { status: Some(404), bytes: None, crc32: None, every: 1 });
    let done = failed(spec);
    assert_cause(&done, ErrorKind::WrongStatus, "status 200 in place of 404", "");
    let done = failed(Spec { tls: Some(good_certificates().1), ..h3_client(&trust, address, 9, 3, 1) });
    assert_eq!(done.causes.0[&ErrorKind::TlsFailed].tls, Some(TlsFailure::UnknownAuthority), "{done:?}");
}
