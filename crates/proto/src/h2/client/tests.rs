use super::*;
use crate::h2::frame::{ACK, Output};
use crate::h2::hpack::{Blocks, Decoder};
use linerate_contract::Request;

/// The end of each lane's response.
#[derive(Debug, Default)]
struct Log {
    heads: Vec<(usize, u16)>,
    bodies: Vec<(usize, Vec<u8>)>,
    ends: Vec<(usize, u64, Ended)>,
    goaways: Vec<Code>,
}

impl Responses for Log {
    fn head(&mut self, lane: usize, head: &Head) {
        self.heads.push((lane, head.status));
    }

    fn body(&mut self, lane: usize, at: u64, bytes: &[u8]) {
        match self.bodies.iter_mut().find(|body| body.0 == lane && body.1.len() as u64 == at) {
            Some((_, body)) => body.extend_from_slice(bytes),
            None => self.bodies.push((lane, bytes.to_vec())),
        }
    }

    fn end(&mut self, lane: usize, bytes: u64, ended: Ended) {
        self.ends.push((lane, bytes, ended));
    }

    fn goaway(&mut self, code: Code, _keeps: bool) {
        self.goaways.push(code);
    }
}

fn get() -> EncodedRequest {
    EncodedRequest::new("http", "/a", "h:80", &Request::default()).unwrap()
}

/// A client whose server has sent its settings, and the server's output.
fn opened(lanes: u16) -> (Client, Output) {
    let (mut client, mut server) = (Client::new(lanes), Output::default());
    server.frame(frame::SETTINGS, 0, 0, &[]);
    assert!(client.queued().starts_with(PREFACE));
    let count = client.queued().len();
    client.advance(count);
    feed(&mut client, &mut server, &mut Log::default()).unwrap();
    assert!(client.is_open());
    (client, server)
}

fn feed(client: &mut Client, server: &mut Output, log: &mut Log) -> Result<(), Code> {
    let bytes = server.pending().to_vec();
    server.advance(bytes.len());
    client.feed(&bytes, log)
}

fn head(server: &mut Output, stream: u32, fields: &[(&str, &str)], flags: u8) {
    let block = Blocks::new(fields);
    let block = block.next(&mut Encoding::Plain, 0).to_vec();
    server.frame(frame::HEADERS, frame::END_HEADERS | flags, stream, &block);
}

/// The response to a frame of a server with one request under way, stream 1.
fn answered(send: impl FnOnce(&mut Output)) -> (Result<(), Code>, Log) {
    let (mut client, mut server) = opened(2);
    client.start(&get()).unwrap();
    send(&mut server);
    let mut log = Log::default();
    let outcome = feed(&mut client, &mut server, &mut log);
    if let Err(code) = outcome {
        let goaway = client.queued();
        let last = &goaway[goaway.len() - 17..];
        assert_eq!((last[3], last[16]), (frame::GOAWAY, code.0 as u8));
    }
    (outcome, log)
}

#[test]
fn streams_are_answered_in_any_order_and_their_lanes_are_used_again() {
    let (mut client, mut server) = opened(3);
    let mut log = Log::default();
    for first in [1, 7, 13] {
        let lanes: Vec<_> = (0..3).map(|_| client.start(&get()).unwrap()).collect();
        assert!(!client.has_room() && client.start(&get()).is_none());
        for stream in [first + 4, first, first + 2] {
            head(&mut server, stream, &[(":status", "200"), ("content-length", "5")], 0);
            server.frame(frame::DATA, 0, stream, b"he");
            server.frame(frame::DATA, frame::PADDED | frame::END_STREAM, stream, b"\x02llo..");
        }
        feed(&mut client, &mut server, &mut log).unwrap();
        let ends: Vec<_> = log.ends.drain(..).collect();
        assert_eq!(ends, [lanes[2], lanes[0], lanes[1]].map(|lane| (lane, 5, Ended::Complete)));
        assert!(log.bodies.drain(..).all(|(_, body)| body == b"hello"));
        assert_eq!(client.under_way(), 0);
    }
    assert_eq!(client.answered(), 9);
}

#[test]
fn later_requests_have_a_byte_for_each_field() {
    let (mut client, _) = opened(2);
    let size = |client: &mut Client| {
        let before = client.queued().len();
        client.start(&get());
        client.queued().len() - before - frame::HEAD
    };
    assert!(size(&mut client) > 10);
    assert_eq!(size(&mut client), 4);
}

#[test]
fn interim_responses_and_trailers_are_part_of_a_response() {
    let (outcome, log) = answered(|server| {
        head(server, 1, &[(":status", "103"), ("link", "x")], 0);
        head(server, 1, &[(":status", "200")], 0);
        server.frame(frame::DATA, 0, 1, b"abc");
        head(server, 1, &[("x-sum", "1")], frame::END_STREAM);
    });
    assert_eq!(outcome, Ok(()));
    assert_eq!((log.heads, log.ends), (vec![(0, 200)], vec![(0, 3, Ended::Complete)]));
}

#[test]
fn responses_that_break_the_rules_end_their_streams_alone() {
    let good = (":status", "200");
    for (fields, flags) in [
        (&[("server", "x")][..], 0),
        (&[("server", "x"), good], 0),
        (&[good, good], 0),
        (&[(":status", "2x0")], 0),
        (&[(":status", "103")], frame::END_STREAM),
        (&[good, ("Server", "x")], 0),
        (&[good, ("connection", "close")], 0),
        (&[good, ("content-length", "1"), ("content-length", "2")], 0),
        (&[good, ("content-length", "+1")], 0),
        (&[good, ("content-length", "3")], frame::END_STREAM),
        (&[good, (":path", "/")], 0),
    ] {
        let (outcome, log) = answered(|server| head(server, 1, fields, flags));
        let ended: Vec<_> = log.ends.iter().map(|end| end.2).collect();
        assert_eq!((outcome, ended), (Ok(()), vec![Ended::Malformed]), "{fields:?}");
    }
    let (outcome, log) = answered(|server| server.frame(frame::DATA, 0, 1, b"body without a head"));
    assert_eq!((outcome, log.ends.len()), (Ok(()), 1));
}

#[test]
fn a_stream_with_any_status_is_read_to_its_end_and_is_not_reset() {
    let (mut client, mut server) = opened(1);
    let mut log = Log::default();
    client.start(&get()).unwrap();
    let sent = client.queued().len();
    client.advance(sent);
    head(&mut server, 1, &[(":status", "404")], 0);
    server.frame(frame::DATA, frame::END_STREAM, 1, b"not found");
    feed(&mut client, &mut server, &mut log).unwrap();
    client.start(&get()).unwrap();
    let sent = client.queued().len();
    client.advance(sent);
    head(&mut server, 3, &[(":status", "404")], frame::END_STREAM);
    feed(&mut client, &mut server, &mut log).unwrap();
    assert_eq!((client.under_way(), log.heads.len()), (0, 2));
    assert_eq!(log.bodies, [(0, b"not found".to_vec())]);
    assert_eq!(client.queued(), b"", "nothing is said about streams that are over");
}

#[test]
fn what_still_comes_of_a_stream_that_was_cancelled_is_no_fault() {
    let (mut client, mut server) = opened(1);
    let mut log = Log::default();
    let lane = client.start(&get()).unwrap();
    client.cancel(lane);
    head(&mut server, 1, &[(":status", "200")], 0);
    server.frame(frame::DATA, frame::END_STREAM, 1, b"late");
    feed(&mut client, &mut server, &mut log).unwrap();
    assert_eq!((client.under_way(), log.heads.len(), log.bodies.len()), (0, 0, 0));
}

#[test]
fn resets_and_the_end_of_a_connection_end_their_streams() {
    let (mut client, mut server) = opened(4);
    let mut log = Log::default();
    (0..3).for_each(|_| assert!(client.start(&get()).is_some()));
    server.reset(3, Code::REFUSED_STREAM);
    server.frame(frame::GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0, b'x']);
    feed(&mut client, &mut server, &mut log).unwrap();
    let ends: Vec<_> = log.ends.iter().map(|end| end.2).collect();
    assert_eq!(ends, [Ended::Reset(Code::REFUSED_STREAM), Ended::Unprocessed(Code::NO_ERROR)]);
    assert_eq!((log.goaways.len(), client.has_room(), client.is_over()), (1, false, false));
    head(&mut server, 1, &[(":status", "204")], frame::END_STREAM);
    feed(&mut client, &mut server, &mut log).unwrap();
    assert!(client.is_over());
}

#[test]
fn pings_and_settings_are_answered_and_the_limit_of_streams_holds() {
    let (mut client, mut server) = opened(8);
    let count = client.queued().len();
    client.advance(count);
    server.frame(frame::PING, 0, 0, b"12345678");
    server.frame(frame::SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 2]);
    feed(&mut client, &mut server, &mut Log::default()).unwrap();
    assert_eq!(client.queued()[..frame::HEAD], [0, 0, 8, frame::PING, ACK, 0, 0, 0, 0]);
    assert_eq!(client.queued()[frame::HEAD + 8..], [0, 0, 0, frame::SETTINGS, ACK, 0, 0, 0, 0]);
    assert_eq!((0..8).filter(|_| client.start(&get()).is_some()).count(), 2);
}

#[test]
fn bodies_of_requests_wait_for_the_windows_of_stream_and_connection() {
    let (mut client, mut server) = opened(2);
    let body = "b".repeat(50_000);
    let request = Request { method: Some("POST".into()), body: body.as_str().into(), ..Request::default() };
    let request = EncodedRequest::new("http", "/", "h", &request).unwrap();
    (0..2).for_each(|_| assert!(client.start(&request).is_some()));
    let take = |client: &mut Client| {
        let mut data = 0;
        loop {
            let bytes = client.pending(std::slice::from_ref(&request)).to_vec();
            if bytes.is_empty() {
                return data;
            }
            client.advance(bytes.len());
            let mut rest = &bytes[..];
            while let Some((head, more)) = rest.split_first_chunk::<9>() {
                let length = usize::from(head[1]) << 8 | usize::from(head[2]);
                data += if head[3] == frame::DATA { length } else { 0 };
                rest = &more[length..];
            }
        }
    };
    let mut log = Log::default();
    assert_eq!(take(&mut client), 65_535, "the window of the connection");
    server.update_window(0, 100_000);
    server.frame(frame::SETTINGS, 0, 0, &[0, 4, 0, 0, 0x75, 0x30]);
    feed(&mut client, &mut server, &mut log).unwrap();
    assert_eq!(take(&mut client), 0, "the windows of the streams are below zero");
    [1, 3].iter().for_each(|stream| server.update_window(*stream, 100_000));
    feed(&mut client, &mut server, &mut log).unwrap();
    assert_eq!(take(&mut client), 100_000 - 65_535);
}

#[test]
fn a_peer_that_breaks_the_protocol_loses_the_connection_with_the_right_code() {
    let expect = |code: Code, send: &dyn Fn(&mut Output)| {
        assert_eq!(answered(|server| send(server)).0, Err(code), "{code}");
    };
    let settings = |name: u16, value: u32| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
    for send in [
        &(|server: &mut Output| server.frame(frame::DATA, 0, 0, b"x")) as &dyn Fn(&mut Output),
        &|server| server.frame(frame::HEADERS, 4, 2, &[0x88]),
        &|server| server.frame(frame::HEADERS, 4, 3, &[0x88]),
        &|server| server.reset(5, Code::CANCEL),
        &|server| server.update_window(1, 0),
        &|server| server.frame(frame::PUSH_PROMISE, 4, 1, &[0, 0, 0, 2, 0x82]),
        &|server| server.frame(frame::CONTINUATION, 4, 1, &[]),
        &|server| server.frame(frame::SETTINGS, 0, 1, &[]),
        &|server| server.frame(frame::SETTINGS, 0, 0, &settings(5, 1)),
        &|server| {
            server.frame(frame::HEADERS, 0, 1, &[0x88]);
            server.frame(frame::PING, 0, 0, b"12345678");
        },
    ] {
        expect(Code::PROTOCOL_ERROR, send);
    }
    expect(Code::FRAME_SIZE_ERROR, &|server| server.frame(frame::PING, 0, 0, b"1234567"));
    expect(Code::FRAME_SIZE_ERROR, &|server| server.frame(frame::SETTINGS, 0, 0, b"1234567"));
    expect(Code::FRAME_SIZE_ERROR, &|server| server.frame(frame::SETTINGS, ACK, 0, b"123456"));
    expect(Code::FRAME_SIZE_ERROR, &|server| server.frame(frame::RST_STREAM, 0, 1, b"123"));
    expect(Code::FRAME_SIZE_ERROR, &|server| server.frame(frame::GOAWAY, 0, 0, b"1234567"));
    expect(Code::COMPRESSION_ERROR, &|server| server.frame(frame::HEADERS, 4, 1, &[0xff]));
    expect(Code::FLOW_CONTROL_ERROR, &|server| server.update_window(0, LARGEST));
    expect(Code::FLOW_CONTROL_ERROR, &|server| server.update_window(1, LARGEST));
    expect(Code::FLOW_CONTROL_ERROR, &|server| server.frame(frame::SETTINGS, 0, 0, &settings(4, 1 << 31)));
    expect(Code::STREAM_CLOSED, &|server| {
        head(server, 1, &[(":status", "200")], frame::END_STREAM);
        server.frame(frame::DATA, 0, 1, b"x");
    });
}

#[test]
fn floods_end_the_connection() {
    for send in [
        &(|server: &mut Output| server.frame(frame::SETTINGS, 0, 0, &[])) as &dyn Fn(&mut Output),
        &|server| server.frame(frame::PING, 0, 0, b"12345678"),
        &|server| server.frame(frame::PRIORITY, 0, 9, &[0; 5]),
        &|server| server.frame(frame::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]),
        &|server| server.frame(200, 0, 0, &[]),
    ] {
        let (outcome, _) = answered(|server| (0..1_100).for_each(|_| send(server)));
        assert_eq!(outcome, Err(Code::ENHANCE_YOUR_CALM));
    }
    let (outcome, _) = answered(|server| {
        head(server, 1, &[(":status", "200")], 0);
        (0..1_100).for_each(|_| server.frame(frame::DATA, 0, 1, &[]));
    });
    assert_eq!(outcome, Err(Code::ENHANCE_YOUR_CALM), "empty data");
    for part in [&[][..], &[0; 16_000]] {
        let (outcome, _) = answered(|server| {
            server.frame(frame::HEADERS, 0, 1, &[0x88]);
            (0..100).for_each(|_| server.frame(frame::CONTINUATION, 0, 1, part));
        });
        assert_eq!(outcome, Err(Code::ENHANCE_YOUR_CALM), "continuations");
    }
    // A short block with long fields: 200 times 4,000 bytes out of the table.
    let (outcome, _) = answered(|server| {
        let entry = [&[0x40, 1, b'a', 0x7f, 0xa1, 0x1e][..], &[b'v'; 4_000]].concat();
        server.frame(frame::HEADERS, 4, 1, &[&[0x88][..], &entry, &[0xbe; 200]].concat());
    });
    assert_eq!(outcome, Err(Code::ENHANCE_YOUR_CALM), "a list of fields");
}

#[test]
fn a_server_of_another_protocol_is_no_server() {
    let mut client = Client::new(1);
    assert!(client.feed(b"HTTP/1.1 400 Bad Request\r\n\r\n", &mut Log::default()).is_err());
    let mut client = Client::new(1);
    // Settings come first.
    assert_eq!(client.feed(&[0, 0, 0, 6, 0, 0, 0, 0, 0], &mut Log::default()), Err(Code::PROTOCOL_ERROR));
}

#[test]
fn a_request_that_varies_has_its_numbers_in_its_fields() {
    let headers = vec!["Id: {seq}".into()];
    let request = Request { headers, body: "n={seq}".into(), ..Request::default() };
    let encoded = EncodedRequest::new("http", "/a/{seq}", "h", &request).unwrap();
    let mut rendered = Rendered::default();
    for (number, body) in [(9, "n=9"), (1_000, "n=1000")] {
        encoded.render(&mut rendered, number, 1);
        let mut fields = Vec::new();
        let take = |name: &[u8], value: &[u8]| {
            fields.push([name, value].map(|text| String::from_utf8_lossy(text).into_owned()).join("="));
        };
        Decoder::default().decode(&rendered.fields, 10_000, take).unwrap();
        let length = format!("content-length={}", body.len());
        let path = format!(":path=/a/{number}");
        let expected =
            [":method=GET", ":scheme=http", ":authority=h", &path, &length, &format!("id={number}")];
        assert_eq!(fields, expected);
        assert_eq!(rendered.body, body.as_bytes());
    }
    assert!(!get().varies() && EncodedRequest::new("http", "/{rand:2:1}", "h", &Request::default()).is_err());
}
