//! Clients of WebSocket beyond messages of bytes: headers, subprotocols and texts; and servers that speak
//! first.

use crate::common::{Engine, good_certificates, local};
use crate::sessions::client as session;
use linerate_contract::{ErrorKind, Layer, Request, Role, Spec, Workload};
use linerate_proto::websocket::upgrade;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

const SIZE: usize = 10;

fn echoes(address: SocketAddr, headers: &[&str]) -> Spec {
    let mut spec = session("websocket", "rr", address, &good_certificates().1);
    (spec.connections, spec.operations, spec.size) = (1, Some(4), SIZE as u64);
    let headers = headers.iter().map(|line| (*line).to_owned()).collect();
    spec.request = Some(Request { headers, ..Request::default() });
    spec
}

/// A server that answers the upgrade with this subprotocol, says `first`, and sends messages back; and the
/// head that it got.
fn speaking(protocol: Option<&'static str>, first: &'static [u8]) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind(local()).unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, heads) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let head = head(&mut stream);
            let response = upgrade::respond(head.as_bytes()).unwrap();
            let response = String::from_utf8(response).unwrap();
            let lines = response.lines().filter(|line| !line.starts_with("Sec-WebSocket-Protocol"));
            let mut response = lines.collect::<Vec<_>>().join("\r\n") + "\r\n";
            if let Some(protocol) = protocol {
                response.insert_str(response.len() - 2, &format!("Sec-WebSocket-Protocol: {protocol}\r\n"));
            }
            let _ = sender.send(head);
            let _ = stream.write_all(&[response.as_bytes(), first].concat());
            let mut frame = [0; 6 + SIZE];
            while stream.read_exact(&mut frame).is_ok() {
                let key = [frame[2], frame[3], frame[4], frame[5]];
                let text = frame[6..].iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key);
                let back = [frame[0], SIZE as u8].into_iter().chain(text).collect::<Vec<u8>>();
                let _ = stream.write_all(&back);
            }
        }
    });
    (address, heads)
}

fn head(stream: &mut TcpStream) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

#[test]
fn an_upgrade_has_the_headers_and_subprotocols_of_the_user() {
    let headers = ["Authorization: Bearer x", "Sec-WebSocket-Protocol: graphql-ws, mqtt"];
    for (chosen, good) in [(Some("mqtt"), true), (None, true), (Some("soap"), false)] {
        let (address, heads) = speaking(chosen, b"");
        let done = Engine::start(&echoes(address, &headers)).done();
        let head = heads.recv().unwrap();
        assert!(headers.iter().all(|line| head.contains(&format!("{line}\r\n"))), "{head}");
        assert_eq!((done.operations, done.errors.total()), if good { (4, 0) } else { (0, 4) }, "{chosen:?}");
        if !good {
            let cause = &done.causes.0[&ErrorKind::Malformed];
            assert!(cause.text.contains("not asked for"), "{cause:?}");
        }
    }
    let wrong = Engine::start(&echoes(local(), &["no header"])).wait();
    assert_eq!(wrong.code(), Some(2));
}

#[test]
fn messages_may_be_texts_and_come_back_as_such() {
    let mut server = Spec::new(Role::Server, Layer::WebSocket, Workload::Rr);
    server.listen = Some(local());
    let (_server, address) = Engine::serving(&server);
    let mut spec = echoes(address, &["Sec-WebSocket-Protocol: chat"]);
    spec.set_option("text", "yes");
    let done = Engine::start(&spec).done();
    assert_eq!((done.operations, done.errors.total(), done.verified), (4, 0, 4), "{:?}", done.causes);
}

#[test]
fn a_server_may_speak_first_as_often_as_the_user_says() {
    // A text, and a message of bytes in two parts.
    let first = b"\x81\x07welcome\x02\x01a\x80\x01b";
    for (greetings, good) in [(Some(2), 4), (None, 0), (Some(1), 0)] {
        let (address, _heads) = speaking(None, first);
        let mut spec = echoes(address, &[]);
        spec.options.extend(greetings.map(|count: u32| ("greetings".to_owned(), count.to_string())));
        let done = Engine::start(&spec).done();
        assert_eq!(done.operations, good, "{greetings:?}: {:?} {:?}", done.errors, done.causes);
    }
}
