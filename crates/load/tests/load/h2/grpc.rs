//! Calls of gRPC.

use super::{assert_good, frame, h2_client, h2_server, responses};
use crate::common::Engine;
use linerate_contract::{Done, ErrorKind, Request, Spec};

fn call(mut spec: Spec) -> Spec {
    spec.set_option("grpc", "yes");
    spec.path = Some("/shop.Items/Get".into());
    // The bytes ff 00.
    spec.request = Some(Request { body: "/wA=".into(), ..Request::default() });
    spec
}

#[test]
fn every_call_has_a_message_each_way_and_a_status() {
    for size in [0, 100, 70_000] {
        let mut server = h2_server("h2c", size);
        server.set_option("grpc", "yes");
        let (_server, address) = Engine::serving(&server);
        let mut spec = call(h2_client("h2c", address, size, 500, 7));
        // The prefix of a message is no part of a page.
        spec.expect = None;
        let done = Engine::start(&spec).done();
        assert_eq!((done.operations, done.errors.total()), (500, 0), "{:?}", done.errors);
        // The prefix, and the field that has the page.
        let field = if size < 128 { 2 } else { 4 };
        assert_eq!(done.bytes.0, 500 * (5 + field + size as u64));
        assert_eq!(done.statuses, [("200".to_owned(), 500), ("grpc-0".to_owned(), 500)].into());
        // Calls are no requests of pages, and the other way round.
        let get = Engine::start(&Spec { expect: None, ..h2_client("h2c", address, size, 10, 2) }).done();
        assert_eq!(get.errors.0.get(&ErrorKind::WrongStatus), Some(&10), "{:?}", get.errors);
    }
    let (_server, address) = Engine::serving(&h2_server("h2c", 10));
    assert_good(&Engine::start(&h2_client("h2c", address, 10, 20, 3)).done(), 20, 10);
}

#[test]
fn streams_of_messages_are_sent_and_counted() {
    for (sent, received) in [(1, 40), (30, 1), (500, 500)] {
        let mut server = h2_server("h2c", 300);
        server.set_option("grpc", "yes");
        server.set_option("messages", received);
        let (_server, address) = Engine::serving(&server);
        let mut spec = Spec { expect: None, ..call(h2_client("h2c", address, 300, 60, 5)) };
        spec.set_option("messages", sent);
        let done = Engine::start(&spec).done();
        assert_eq!((done.operations, done.errors.total()), (60, 0), "{:?}", done.errors);
        assert_eq!(done.bytes.0, 60 * received * (5 + 3 + 300));
        assert_eq!(done.streams.unwrap().messages, 60 * received);
    }
}

/// A field as a literal.
fn field(name: &str, value: &str) -> Vec<u8> {
    [&[0, name.len() as u8], name.as_bytes(), &[value.len() as u8], value.as_bytes()].concat()
}

/// `grpc-status` as a literal.
fn status(value: &str) -> Vec<u8> {
    field("grpc-status", value)
}

/// Status 200, with a content type.
fn head(content: &str) -> Vec<u8> {
    [vec![0x88], field("content-type", content)].concat()
}

const CONTENT: &str = "application/grpc";

fn against(end: impl Fn(u32) -> Vec<u8> + Send + Sync + 'static) -> Done {
    let mut spec = call(h2_client("h2c", responses(move |_, stream| end(stream)), 0, 12, 4));
    (spec.connections, spec.expect) = (1, None);
    Engine::start(&spec).done()
}

#[test]
fn a_call_fails_by_the_status_in_its_trailers_or_without_one() {
    let with = |trailers: Vec<u8>| {
        move |stream| {
            let message = frame(0, 0, stream, &[0; 5]);
            [frame(1, 4, stream, &head(CONTENT)), message, frame(1, 5, stream, &trailers)].concat()
        }
    };
    assert_eq!(against(with(status("0"))).operations, 12);
    let not_found = against(with(status("5")));
    assert_eq!(not_found.errors.0.get(&ErrorKind::WrongStatus), Some(&12), "{:?}", not_found.errors);
    assert_eq!(not_found.statuses.get("grpc-5"), Some(&12));
    let late = against(with(status("4")));
    assert_eq!(late.errors.0.get(&ErrorKind::Timeout), Some(&12), "{:?}", late.errors);
    let cause = &late.causes.0[&ErrorKind::Timeout];
    assert!(cause.text.contains("DEADLINE_EXCEEDED"), "{cause:?}");
    for value in ["", "x", "-1", "+0", "000"] {
        let malformed = against(with(status(value)));
        assert_eq!(malformed.errors.0.get(&ErrorKind::Malformed), Some(&12), "{:?}", malformed.errors);
    }
    let large = against(with(status("4000000000")));
    assert_eq!(large.statuses.get("grpc-17"), Some(&12), "{:?}", large.statuses);
    // A response without a body has its status in the only block.
    let alone = against(|stream| frame(1, 5, stream, &[head(CONTENT), status("14")].concat()));
    assert_eq!(alone.errors.0.get(&ErrorKind::WrongStatus), Some(&12), "{:?}", alone.errors);
    // A message of two bytes, of which one arrives; and one that is compressed.
    for prefix in [[0, 0, 0, 0, 2], [1, 0, 0, 0, 1]] {
        let cut = against(move |stream| {
            let message = frame(0, 0, stream, &[&prefix[..], b"x"].concat());
            [frame(1, 4, stream, &head(CONTENT)), message, frame(1, 5, stream, &status("0"))].concat()
        });
        assert_eq!(cut.errors.0.get(&ErrorKind::Malformed), Some(&12), "{:?}", cut.errors);
    }
    // A page is no message.
    let page = against(super::good);
    assert_eq!(page.errors.0.get(&ErrorKind::Malformed), Some(&12), "{:?}", page.errors);
}

#[test]
fn a_call_that_a_library_would_refuse_has_failed() {
    let response = |head: Vec<u8>, messages: usize, trailers: Vec<u8>| {
        against(move |stream| {
            let message = frame(0, 0, stream, &[0; 5].repeat(messages));
            [frame(1, 4, stream, &head), message, frame(1, 5, stream, &trailers)].concat()
        })
    };
    let both = [status("13"), status("0")].concat();
    let begun = [head(CONTENT), status("13")].concat();
    for (head, messages, trailers, what) in [
        (head(CONTENT), 0, status("0"), "OK without a message"),
        (head("text/html"), 1, status("0"), "a page"),
        (vec![0x88], 1, status("0"), "no content type"),
        (head(CONTENT), 1, both, "two statuses"),
        (begun, 1, status("0"), "a status at each end"),
    ] {
        let done = response(head, messages, trailers);
        assert_eq!(done.errors.0.get(&ErrorKind::Malformed), Some(&12), "{what}: {:?}", done.errors);
    }
    assert_eq!(response(head("application/grpc+proto"), 1, status("0")).operations, 12);
}

#[test]
fn what_is_no_base64_and_another_value_of_the_option_are_refused() {
    let wrong = |change: fn(&mut Spec)| {
        let mut spec = call(h2_client("h2c", super::dead_port(), 0, 1, 1));
        change(&mut spec);
        let mut engine = Engine::start(&spec);
        assert_eq!(engine.wait().code(), Some(2));
        engine.stderr()
    };
    let body = wrong(|spec| spec.request.as_mut().unwrap().body = "?".into());
    assert!(body.contains("\"request.body\" of a call of gRPC is Base64"), "{body}");
    let option = wrong(|spec| spec.set_option("grpc", "no"));
    assert!(option.contains("\"options.grpc\" is \"yes\", \"unary\" or absent"), "{option}");
}
