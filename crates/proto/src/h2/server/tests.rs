use super::*;
use crate::h2::client::{self, Client, EncodedRequest, Ended, Responses};
use crate::h2::frame::Output;
use crate::h2::{PREFACE, hpack};
use crate::http::response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use linerate_contract::Request;

const PAGE: &[u8] = &[b'p'; 100_000];

#[derive(Debug, Default)]
struct Count {
    bytes: u64,
    ends: Vec<Ended>,
    statuses: Vec<u16>,
    rpc_statuses: Vec<u32>,
    content: Vec<u8>,
}

impl Responses for Count {
    fn head(&mut self, _lane: usize, head: &response::Head) {
        self.statuses.push(head.status);
    }

    fn body(&mut self, _lane: usize, at: u64, bytes: &[u8]) {
        assert!(at as usize + bytes.len() <= PAGE.len());
        self.bytes += bytes.len() as u64;
        self.content.extend_from_slice(bytes);
    }

    fn rpc_status(&mut self, _lane: usize, status: u32) {
        self.rpc_statuses.push(status);
    }

    fn end(&mut self, _lane: usize, _bytes: u64, ended: Ended) {
        self.ends.push(ended);
    }

    fn goaway(&mut self, _code: Code, _keeps: bool) {}
}

/// Moves bytes in pieces of this size until both ends are silent.
fn exchange(
    client: &mut Client,
    server: &mut Server,
    request: &EncodedRequest,
    page: &[u8],
    piece: usize,
) -> Count {
    exchanged(client, server, request, &Content::page(page), piece)
}

fn exchanged(
    client: &mut Client,
    server: &mut Server,
    request: &EncodedRequest,
    content: &Content,
    piece: usize,
) -> Count {
    let (mut count, mut room) = (Count::default(), vec![0; piece.max(200)]);
    loop {
        let sent = client.pending(std::slice::from_ref(request)).to_vec();
        client.advance(sent.len());
        sent.chunks(piece).for_each(|piece| server.feed(piece).unwrap());
        let mut silent = sent.is_empty();
        while server.has_output() {
            let written = server.fill(content, &mut room);
            assert!(written > 0);
            room[..written].chunks(piece).for_each(|piece| client.feed(piece, &mut count).unwrap());
            silent = false;
        }
        if silent {
            return count;
        }
    }
}

fn request(request: &Request) -> EncodedRequest {
    EncodedRequest::new("http", "/", "h", request).unwrap()
}

#[test]
fn client_and_server_understand_each_other_in_pieces_of_any_size() {
    for (piece, size) in [(1, 10), (7, 300), (1_000, 100_000), (16_384, 100_000), (64, 0)] {
        let (mut client, mut server) = (Client::new(10), Server::default());
        let get = request(&Request::default());
        exchange(&mut client, &mut server, &get, &PAGE[..size], piece);
        assert!(client.is_open());
        for _ in 0..5 {
            (0..10).for_each(|_| assert!(client.start(&get).is_some()));
            let count = exchange(&mut client, &mut server, &get, &PAGE[..size], piece);
            assert_eq!((count.ends, count.bytes), (vec![Ended::Complete; 10], 10 * size as u64));
            assert!(count.content.iter().all(|byte| *byte == b'p') && count.rpc_statuses.is_empty());
            assert_eq!(count.statuses, [200; 10]);
        }
    }
}

#[test]
fn calls_of_grpc_have_a_message_each_way_and_a_status_in_trailers() {
    for (piece, size) in [(1, 10), (7, 0), (1_000, 70_000)] {
        let (mut client, mut server) = (Client::new(10), Server::default());
        let (message, content) = (vec![0xff; size], Content::call(&PAGE[..size], 1));
        let request = Request { body: STANDARD.encode(&message).into(), ..Request::default() };
        let call = EncodedRequest::grpc("http", "/shop.Items/Get", "h", &request, 1).unwrap();
        assert_eq!(call.body(), client::prefixed(&message));
        exchanged(&mut client, &mut server, &call, &content, piece);
        for _ in 0..3 {
            (0..4).for_each(|_| assert!(client.start(&call).is_some()));
            let count = exchanged(&mut client, &mut server, &call, &content, piece);
            assert_eq!((count.ends, count.rpc_statuses), (vec![Ended::Complete; 4], vec![0; 4]));
            let response = rpc_response(&PAGE[..size]);
            assert_eq!(count.bytes, 4 * response.len() as u64);
            assert_eq!(response.len(), 5 + 1 + [1, 3][usize::from(size > 16_383)] + size);
        }
    }
}

#[test]
fn a_get_is_no_call_and_a_call_is_no_get() {
    let call = EncodedRequest::grpc("http", "/a.B/C", "h", &Request::default(), 1).unwrap();
    let get = request(&Request::default());
    for (request, content) in [(get, Content::call(b"", 1)), (call, Content::page(b""))] {
        let (mut client, mut server) = (Client::new(1), Server::default());
        exchanged(&mut client, &mut server, &request, &content, 100);
        client.start(&request);
        let count = exchanged(&mut client, &mut server, &request, &content, 100);
        assert_eq!((count.statuses, count.rpc_statuses), (vec![400], vec![]));
    }
}

#[test]
fn bodies_are_accepted_and_methods_other_than_get_and_head_are_refused() {
    for (method, body, status, bytes) in [
        ("GET", "", 200, PAGE.len() as u64),
        ("HEAD", "", 200, 0),
        ("POST", "", 400, 0),
        ("GET", "with a body", 200, PAGE.len() as u64),
        ("PUT", &"x".repeat(200_000), 400, 0),
        ("GET", "", 200, PAGE.len() as u64),
    ] {
        let (mut client, mut server) = (Client::new(4), Server::default());
        let asked = Request { method: Some(method.into()), body: body.into(), ..Request::default() };
        let asked = request(&asked);
        exchange(&mut client, &mut server, &asked, PAGE, 1_000);
        client.start(&asked).unwrap();
        let count = exchange(&mut client, &mut server, &asked, PAGE, 1_000);
        assert_eq!((count.statuses, count.bytes), (vec![status], bytes), "{method}");
        assert_eq!(count.ends, [Ended::Complete]);
    }
}

/// A server behind the preface and settings of a client, and the client's output.
fn begun(settings: &[u8]) -> (Server, Output) {
    let (mut server, mut client) = (Server::default(), Output::default());
    client.extend(PREFACE);
    client.frame(frame::SETTINGS, 0, 0, settings);
    feed(&mut server, &mut client).unwrap();
    (server, client)
}

fn feed(server: &mut Server, client: &mut Output) -> Result<(), Code> {
    let bytes = client.pending().to_vec();
    client.advance(bytes.len());
    server.feed(&bytes)
}

/// `GET http:///` out of the static table.
const GET: &[u8] = &[0x82, 0x86, 0x84];

/// Data that the server sends now, and whether it then has nothing to send.
fn data(server: &mut Server, page: &[u8]) -> usize {
    let (content, mut room, mut data) = (Content::page(page), [0; 4_096], 0);
    while server.has_output() {
        let written = server.fill(&content, &mut room);
        let mut rest = &room[..written];
        while let Some((head, more)) = rest.split_first_chunk::<9>() {
            let length = usize::from(head[1]) << 8 | usize::from(head[2]);
            data += if head[3] == frame::DATA { length } else { 0 };
            rest = &more[length..];
        }
    }
    data
}

#[test]
fn pages_wait_for_the_windows_of_stream_and_connection() {
    // Windows of 10,000 bytes for each stream.
    let (mut server, mut client) = begun(&[0, 4, 0, 0, 0x27, 0x10]);
    for stream in [1, 3, 5, 7, 9, 11, 13] {
        client.frame(frame::HEADERS, 5, stream, GET);
    }
    feed(&mut server, &mut client).unwrap();
    assert_eq!(data(&mut server, PAGE), 65_535);
    client.update_window(0, 1 << 20);
    feed(&mut server, &mut client).unwrap();
    assert_eq!(data(&mut server, PAGE), 70_000 - 65_535);
    client.update_window(5, 90_000);
    client.frame(frame::SETTINGS, 0, 0, &[0, 4, 0, 0, 0x27, 0x11]);
    feed(&mut server, &mut client).unwrap();
    assert_eq!(data(&mut server, PAGE), 90_000 + 6);
}

#[test]
fn clients_that_ask_for_too_much_are_refused() {
    let (mut server, mut client) = begun(&[]);
    (0..300_u32).for_each(|n| client.frame(frame::HEADERS, 5, 2 * n + 1, GET));
    feed(&mut server, &mut client).unwrap();
    assert_eq!(server.streams.due.len(), MOST_STREAMS as usize);
    let refused =
        server.link.output.pending().windows(4).filter(|part| *part == [0, 4, frame::RST_STREAM, 0]);
    assert_eq!(refused.count(), 300 - MOST_STREAMS as usize);

    // Rapid reset.
    let (mut server, mut client) = begun(&[]);
    for n in 0..1_100 {
        client.frame(frame::HEADERS, 5, 2 * n + 1, GET);
        client.reset(2 * n + 1, Code::CANCEL);
    }
    assert_eq!(feed(&mut server, &mut client), Err(Code::ENHANCE_YOUR_CALM));

    type Send<'a> = &'a dyn Fn(&mut Output);
    let rows: [(Code, Send<'_>); 6] = [
        (Code::PROTOCOL_ERROR, &|client| client.frame(frame::HEADERS, 5, 2, GET)),
        (Code::PROTOCOL_ERROR, &|client| client.frame(frame::DATA, 1, 1, b"x")),
        (Code::PROTOCOL_ERROR, &|client| client.update_window(1, 1)),
        (Code::FLOW_CONTROL_ERROR, &|client| client.update_window(0, (1 << 31) - 1)),
        (Code::FLOW_CONTROL_ERROR, &|client| {
            client.frame(frame::HEADERS, 5, 1, GET);
            client.update_window(1, (1 << 31) - 1);
        }),
        (Code::ENHANCE_YOUR_CALM, &|client| {
            (0..1_100).for_each(|_| client.frame(frame::PING, 0, 0, b"12345678"));
        }),
    ];
    for (code, send) in rows {
        let (mut server, mut client) = begun(&[]);
        send(&mut client);
        assert_eq!(feed(&mut server, &mut client), Err(code));
        assert!(server.has_output(), "a frame with the reason is to be sent");
    }
    assert_eq!(Server::default().feed(b"GET / HTTP/1.1\r\n"), Err(Code::PROTOCOL_ERROR));
}

#[test]
fn requests_that_break_the_rules_end_their_streams_alone() {
    for block in [
        &[0x82, 0x86][..],                        // no path
        &[0x82, 0x86, 0x04, 0],                   // an empty one
        &[0x82, 0x86, 0x84, 0x0f, 0x0d, 1, b'5'], // a length without a body
        &[0x82, 0x86, 0x84, 0x0f, 0x0d, 1, b'x'], // a length that is no number
        &[0x82, 0x82, 0x86, 0x84],                // two methods
        &[0x82, 0x86, 0x84, 0x88],                // a status
        &[0x82, 0x86, 0x84, 0, 1, b'A', 0],       // a name in upper case
        &[0x82, 0x86, 0, 1, b'a', 0, 0x84],       // a pseudo-field behind others
    ] {
        let (mut server, mut client) = begun(&[]);
        client.frame(frame::HEADERS, 5, 1, block);
        client.frame(frame::HEADERS, 5, 3, GET);
        feed(&mut server, &mut client).unwrap();
        assert_eq!(server.streams.due.len(), 1, "{block:x?}");
        assert_eq!(data(&mut server, &PAGE[..5]), 5);
    }
}

/// A POST whose body has five bytes.
const POST: &[u8] = &[0x83, 0x86, 0x84, 0x0f, 0x0d, 1, b'5'];

#[test]
fn bodies_have_the_length_that_their_requests_announce() {
    for (body, is_answered) in [(&b"12345"[..], true), (b"1234", false), (b"123456", false), (b"", false)] {
        let (mut server, mut client) = begun(&[]);
        client.frame(frame::HEADERS, 4, 1, POST);
        let (first, last) = body.split_at(body.len() / 2);
        client.frame(frame::DATA, 0, 1, first);
        client.frame(frame::DATA, 1, 1, last);
        feed(&mut server, &mut client).unwrap();
        assert_eq!(server.streams.due.len(), usize::from(is_answered), "{body:?}");
        assert_eq!(server.streams.refused.len(), usize::from(!is_answered), "{body:?}");
    }
}

#[test]
fn nothing_follows_on_a_stream_that_its_client_has_ended() {
    // Data: that stream is over, the others go on.
    let (mut server, mut client) = begun(&[]);
    client.frame(frame::HEADERS, 5, 1, GET);
    client.frame(frame::HEADERS, 5, 3, GET);
    client.frame(frame::DATA, 1, 1, b"late");
    client.reset(3, Code::CANCEL);
    client.frame(frame::DATA, 1, 3, b"late");
    client.frame(frame::HEADERS, 5, 5, GET);
    feed(&mut server, &mut client).unwrap();
    assert_eq!(server.streams.due.iter().map(|due| due.stream).collect::<Vec<_>>(), [5]);
    assert_eq!(server.streams.refused, [1, 3]);
    // What was under way to a stream that was refused is none of that.
    client.frame(frame::DATA, 1, 1, b"later");
    client.frame(frame::HEADERS, 5, 3, GET);
    feed(&mut server, &mut client).unwrap();
    assert_eq!(server.streams.refused, [1, 3]);
    // Headers: the connection is over.
    client.frame(frame::HEADERS, 5, 5, GET);
    assert_eq!(feed(&mut server, &mut client), Err(Code::STREAM_CLOSED));
}

#[test]
fn a_small_table_of_the_peer_is_respected() {
    let (mut server, mut client) = begun(&[0, 1, 0, 0, 0, 0]);
    let mut decoder = hpack::Decoder::default();
    for stream in [1, 3] {
        client.frame(frame::HEADERS, 5, stream, GET);
        feed(&mut server, &mut client).unwrap();
        let mut room = [0; 500];
        let pending = server.link.output.pending().len();
        let written = server.fill(&Content::page(&PAGE[..5]), &mut room);
        let block = &room[pending + HEAD..written - HEAD - 5];
        let mut names = 0;
        decoder.decode(block, 1_000, |_, _| names += 1).unwrap();
        assert_eq!((names, block.contains(&0x40)), (4, false));
    }
}
