//! The HTTP server as a peer sees it that writes what it likes. Over TLS: `tls.rs`.

use crate::common::{Engine, server};
use linerate_contract::page;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

fn ask(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).unwrap();
    response
}

#[test]
fn the_server_answers_pipelined_and_cut_requests_and_refuses_others() {
    let (_server, address) = Engine::serving(&server(7));
    let count = |response: &[u8], what: &str| String::from_utf8_lossy(response).matches(what).count();
    let get = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let response = ask(address, &get.repeat(100));
    assert_eq!(count(&response, "200 OK"), 100);
    assert!(response.ends_with(&page(7)));

    let mut stream = TcpStream::connect(address).unwrap();
    for piece in get.chunks(5) {
        stream.write_all(piece).unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
    stream.shutdown(Shutdown::Write).unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).unwrap();
    assert_eq!(count(&response, "200 OK"), 1);

    let refused = ask(address, &[&get[..], b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"].concat());
    assert_eq!((count(&refused, "200 OK"), count(&refused, "400 Bad Request")), (1, 1));
    let endless = ask(address, &[&b"GET / HTTP/1.1\r\nX: "[..], &[b'x'; 20_000]].concat());
    assert_eq!(count(&endless, "400 Bad Request"), 1);
}

#[test]
fn the_server_closes_when_it_is_asked_to_or_the_client_is_old() {
    let (_server, address) = Engine::serving(&server(7));
    for request in [&b"GET / HTTP/1.0\r\n\r\n"[..], b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n"] {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request).unwrap();
        let mut response = Vec::new();
        // Ends without our end.
        stream.read_to_end(&mut response).unwrap();
        assert!(String::from_utf8_lossy(&response).contains("Connection: close"));
    }
}
