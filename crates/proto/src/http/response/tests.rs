//! The parser with responses of every form, complete and in pieces of any size.

use super::*;
use proptest::prelude::*;

/// The result of parsing some bytes.
#[derive(Debug, Clone, PartialEq)]
struct Outcome {
    state: Result<ParserState, ()>,
    head: Option<Head>,
    body: Vec<u8>,
    end_completes: bool,
    fresh: bool,
}

fn parse(pieces: &[&[u8]]) -> Outcome {
    let mut parser = Parser::default();
    let mut last = LastHead::default();
    let mut body = Vec::new();
    let mut state = Ok(ParserState::More);
    // A read of 0 bytes is the end of input, which the parser does not receive.
    let pieces: Vec<_> = pieces.iter().filter(|piece| !piece.is_empty()).collect();
    for (i, piece) in pieces.iter().enumerate() {
        let fed = parser.feed(piece, &mut last, |at, data| {
            assert_eq!(at, body.len() as u64);
            body.extend_from_slice(data);
        });
        state = fed.map_err(|_| ());
        match state {
            Ok(ParserState::More) => {}
            // Bytes behind a complete response are an error, in the same piece or in the next.
            Ok(ParserState::Complete { rest }) if rest > 0 || i + 1 < pieces.len() => state = Err(()),
            _ => {}
        }
        if state != Ok(ParserState::More) {
            break;
        }
    }
    if state == Err(()) {
        return Outcome { state, head: None, body: Vec::new(), end_completes: false, fresh: false };
    }
    assert_eq!(parser.body_bytes(), body.len() as u64);
    Outcome {
        state,
        head: parser.head().copied(),
        body,
        end_completes: parser.end_completes(),
        fresh: parser.is_fresh(),
    }
}

fn head(response: &str) -> Option<Head> {
    parse(&[response.as_bytes()]).head
}

#[test]
fn framing_follows_the_rules() {
    let framing = |headers: &str| head(&format!("HTTP/1.1 200 OK\r\n{headers}\r\n")).map(|h| h.framing);
    assert_eq!(framing("Content-Length: 5\r\n"), Some(BodyFraming::Length(5)));
    assert_eq!(framing("content-length:5\r\nContent-Length: 5 , 5\r\n"), Some(BodyFraming::Length(5)));
    assert_eq!(framing("Transfer-Encoding: gzip, Chunked\r\n"), Some(BodyFraming::Chunked));
    assert_eq!(framing("Transfer-Encoding: gzip\r\n"), Some(BodyFraming::UntilClose));
    assert_eq!(framing(""), Some(BodyFraming::UntilClose));
    for bad in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: \r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    ] {
        assert_eq!(framing(bad), None, "{bad}");
    }
    assert_eq!(head("HTTP/1.1 204 No Content\r\n\r\n").unwrap().framing, BodyFraming::Length(0));
    assert_eq!(
        head("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n").unwrap().framing,
        BodyFraming::Length(0)
    );
}

#[test]
fn heads_that_no_server_may_send_are_malformed() {
    for response in [
        "HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\nContent-Length: 3\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding:\r\nContent-Length: 3\r\n\r\n",
    ] {
        assert_eq!(head(response), None, "{response}");
    }
    let several = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: \r\n\r\n";
    assert_eq!(head(several).unwrap().framing, BodyFraming::Chunked);
}

#[test]
fn what_other_clients_accept_is_accepted_and_noted() {
    let odd = |response: &str| {
        let mut parser = Parser::default();
        parser.feed(response.as_bytes(), &mut LastHead::default(), |_, _| {}).unwrap();
        parser.head().map(|head| (head.framing, head.reusable, parser.odd()))
    };
    assert_eq!(
        odd("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"),
        Some((BodyFraming::Chunked, false, Some(Odd::CodingInHttp10)))
    );
    assert_eq!(
        odd("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"),
        Some((BodyFraming::Length(0), false, Some(Odd::CodingWithoutBody)))
    );
    assert_eq!(
        odd("HTTP/1.1 200 OK\r\nX: a,\r\n b\r\nContent-Length: 3\r\n\r\n"),
        Some((BodyFraming::Length(3), true, Some(Odd::FoldedHeader)))
    );
    let many = "X: y\r\n".repeat(150);
    assert_eq!(
        odd(&format!("HTTP/1.1 200 OK\r\n{many}Content-Length: 3\r\n\r\n")),
        Some((BodyFraming::Length(3), true, None))
    );
}

#[test]
fn a_response_that_is_none_has_a_reason() {
    let reason = |bytes: &str| {
        Parser::default().feed(bytes.as_bytes(), &mut LastHead::default(), |_, _| {}).unwrap_err().to_string()
    };
    for (bytes, text) in [
        ("SSH-2.0-OpenSSH_9.2\r\n", "not a response"),
        ("HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", "is no length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", "two values"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "ambiguous"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "a chunk"),
        (&format!("HTTP/1.1 200 OK\r\n{}", "X: y\r\n".repeat(1_100)), "1,000 headers"),
    ] {
        assert!(reason(bytes).contains(text), "{bytes}: {}", reason(bytes));
    }
}

#[test]
fn version_and_headers_determine_whether_a_connection_is_reusable() {
    let reusable = |version: &str, connection: &str| {
        head(&format!("HTTP/{version} 200 OK\r\nContent-Length: 0\r\n{connection}\r\n")).unwrap().reusable
    };
    assert!(reusable("1.1", ""));
    assert!(!reusable("1.1", "Connection: close\r\n"));
    assert!(!reusable("1.1", "connection: Keep-Alive, CLOSE\r\n"));
    assert!(!reusable("1.0", ""));
    assert!(reusable("1.0", "Connection: keep-alive\r\n"));
    assert!(!head("HTTP/1.1 200 OK\r\n\r\n").unwrap().reusable);
}

#[test]
fn bodies_end_as_their_framing_requires() {
    let whole = parse(&[b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"]);
    assert_eq!((whole.state, &whole.body[..]), (Ok(ParserState::Complete { rest: 0 }), &b"abc"[..]));
    assert_eq!(parse(&[b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcd"]).state, Err(()));
    let open = parse(&[b"HTTP/1.1 200 OK\r\n\r\nabc"]);
    assert_eq!((open.state, open.end_completes), (Ok(ParserState::More), true));
    let chunked = parse(&[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
        3;x=\"y\"\r\nabc\r\n0A\r\n0123456789\r\n0\r\nA: b\r\nC: d\r\n\r\n"]);
    assert_eq!(
        (chunked.state, &chunked.body[..]),
        (Ok(ParserState::Complete { rest: 0 }), &b"abc0123456789"[..])
    );
}

#[test]
fn broken_chunks_are_malformed() {
    for body in [
        "x\r\n",
        "\r\n",
        "; \r\n",
        "3\nabc",
        "3\r\nabcd\r\n",
        "3\r\nabc\n",
        "10000000000000000\r\n",
        "0\r\n\r\nx",
        "0\r\n\n",
    ] {
        let response = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        assert_eq!(parse(&[response.as_bytes()]).state, Err(()), "{body:?}");
    }
}

#[test]
fn interim_responses_are_skipped_and_an_unfinished_one_is_not_fresh() {
    let interim = b"HTTP/1.1 100 Continue\r\n\r\n";
    let outcome =
        parse(&[&[&interim[..], interim, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"].concat()]);
    assert_eq!((outcome.state, outcome.head.unwrap().status), (Ok(ParserState::Complete { rest: 0 }), 200));
    assert!(!parse(&[interim]).fresh);
    assert_eq!(head("HTTP/1.1 101 Switching Protocols\r\n\r\n").unwrap().status, 101);
}

#[test]
fn an_endless_head_is_malformed() {
    let (mut parser, mut last) = (Parser::default(), LastHead::default());
    assert_eq!(parser.feed(b"HTTP/1.1 200 OK\r\nX: ", &mut last, |_, _| {}), Ok(ParserState::More));
    let outcome = (0..100)
        .map(|_| parser.feed(&[b'x'; 1000], &mut last, |_, _| {}))
        .find(|o| *o != Ok(ParserState::More));
    assert_eq!(outcome, Some(Err(Malformed::LongHead)));
}

/// Mostly valid responses, so that cuts fall into every part.
fn responses() -> impl Strategy<Value = Vec<u8>> {
    let body = proptest::collection::vec(any::<u8>(), 0..200);
    let interim = prop_oneof![3 => Just(""), 1 => Just("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")];
    let chunks = proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..50), 0..6);
    let plain = (interim.clone(), body, -3_i64..4, any::<bool>()).prop_map(|(interim, body, off, framed)| {
        let length = body.len() as i64 + off * i64::from(off == 3 || off == -3);
        let field = if framed { format!("Content-Length: {length}\r\n") } else { String::new() };
        [format!("{interim}HTTP/1.1 200 OK\r\nServer: x\r\n{field}\r\n").as_bytes(), &body].concat()
    });
    let chunked = (interim, chunks, any::<bool>()).prop_map(|(interim, chunks, trailer)| {
        let mut response =
            format!("{interim}HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").into_bytes();
        for chunk in chunks {
            response.extend(format!("{:X};e\r\n", chunk.len()).bytes().chain(chunk).chain(*b"\r\n"));
        }
        response.extend(if trailer { &b"0\r\nT: v\r\n\r\n"[..] } else { b"0\r\n\r\n" });
        response
    });
    let noise = proptest::collection::vec(any::<u8>(), 0..100);
    prop_oneof![4 => plain, 4 => chunked, 1 => noise]
}

proptest! {
    #[test]
    fn pieces_of_any_size_give_the_result_of_the_whole(
        response in responses(),
        damage in proptest::option::of((any::<prop::sample::Index>(), any::<u8>())),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut response = response;
        if let (Some((at, byte)), false) = (damage, response.is_empty()) {
            let at = at.index(response.len());
            response[at] = byte;
        }
        let mut cuts: Vec<_> = cuts.iter().map(|c| c.index(response.len() + 1)).collect();
        cuts.extend([0, response.len()]);
        cuts.sort_unstable();
        let pieces: Vec<_> = cuts.windows(2).map(|w| &response[w[0]..w[1]]).collect();
        prop_assert_eq!(parse(&pieces), parse(&[&response]));
        let bytes: Vec<_> = response.chunks(1).collect();
        prop_assert_eq!(parse(&bytes), parse(&[&response]));
    }
}

#[test]
fn bytes_behind_a_response_are_not_consumed() {
    for first in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ] {
        let both = [first, b"HTTP/1.1 204 N"].concat();
        for cut in 1..=first.len() {
            let (mut parser, mut last) = (Parser::default(), LastHead::default());
            let mut state = parser.feed(&both[..cut], &mut last, |_, _| {});
            if cut < first.len() {
                assert_eq!(state, Ok(ParserState::More));
                state = parser.feed(&both[cut..], &mut last, |_, _| {});
                assert_eq!(state, Ok(ParserState::Complete { rest: 14 }), "{cut}");
            } else {
                assert_eq!(state, Ok(ParserState::Complete { rest: 0 }));
            }
        }
    }
}
