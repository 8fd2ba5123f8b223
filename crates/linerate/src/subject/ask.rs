//! `linerate lab-ask`: a few requests over one connection, from inside the lab. Each response is a line of
//! JSON; the first bytes of its body are in it, to be shown where responses differ. The last line may be why
//! there are no more.

use super::sent;
use crate::measurement::{Expectation, PlannedRequest};
use linerate_contract::{Nanos, WeightedRequest, crc32};
use linerate_proto::http::request::build;
use linerate_proto::http::response::{BodyFraming, LastHead, Parser, ParserState};
use linerate_proto::speech::spoken;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The hidden subcommand.
pub const ASK: &str = "lab-ask";
/// The time for a response where no other one is given.
pub const USUAL: Nanos = Nanos(10_000_000_000);
/// A server that speaks another protocol answers its hello at once.
const HELLO: Duration = Duration::from_millis(300);
/// Bytes of a body that are shown.
const SHOWN: usize = 120;
/// A longer body is refused: it would fill the memory.
const LONGEST: usize = 1 << 30;
/// Bytes of a read.
const PIECE: usize = 64 << 10;

/// The question, in JSON, the only argument.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    pub address: SocketAddr,
    /// The `Host` header.
    pub host: String,
    /// One after the other.
    pub requests: Vec<PlannedRequest>,
    /// Each of them.
    pub times: u32,
    /// A response that has not ended by then is none.
    pub within: Nanos,
}

/// The outcome of one request: a line of the output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Response(Response),
    None { reason: String },
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    pub status: u16,
    pub bytes: u64,
    pub crc32: u32,
    /// The whole body is JSON.
    pub json: bool,
    /// As text.
    pub start: String,
}

impl Response {
    /// The common part of all responses; `None` without one.
    pub fn common(all: &[Self]) -> Option<Expectation> {
        let first = all.first()?;
        let same = |is_same: fn(&Self, &Self) -> bool| all.iter().all(|response| is_same(response, first));
        let has_length = same(|a, b| a.bytes == b.bytes);
        let is_same = has_length && same(|a, b| a.crc32 == b.crc32);
        Some(Expectation {
            status: same(|a, b| a.status == b.status).then_some(first.status),
            bytes: has_length.then_some(first.bytes),
            crc32: is_same.then_some(first.crc32),
            json: all.iter().all(|response| response.json),
        })
    }
}

/// Asks, and calls `answered` for each response.
///
/// # Errors
/// The server closed the connection, or what it sent is no response of HTTP/1.
pub fn ask(question: &Question, mut answered: impl FnMut(Response)) -> Result<(), String> {
    let (address, within) = (question.address, Duration::from(question.within));
    let failed = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {
            format!("{address}: no response within {within:?}")
        }
        std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::ConnectionReset => match protocol(address) {
            Some(protocol) => format!("{address}: it speaks {protocol}{}", option(protocol)),
            None => format!("{address}: it closed the connection without a response"),
        },
        _ => format!("{address}: {e}"),
    };
    let mut open: Option<TcpStream> = None;
    let each = |request| std::iter::repeat_n(request, question.times as usize);
    for request in question.requests.iter().flat_map(each) {
        let mut stream = match open.take() {
            Some(stream) => stream,
            None => connect(address, within).map_err(failed)?,
        };
        // As the load engine writes it.
        let WeightedRequest { path, request: sent, .. } = sent(request);
        let bytes = build(&path, &question.host, true, &sent).map_err(|refusal| refusal.to_string())?;
        stream.write_all(&bytes).map_err(failed)?;
        let mut bounded = Bounded { stream: &mut stream, end: Instant::now() + within, within, began: false };
        let (response, stays_open) = read(&mut bounded, &request.method, LONGEST).map_err(failed)?;
        answered(response);
        open = stays_open.then_some(stream);
    }
    Ok(())
}

/// Hellos of other protocols: of TLS 1.2 with one cipher suite, and the preface of HTTP/2 without settings.
const TLS_HELLO: [u8; 50] = {
    let mut hello = [0; 50];
    // A record of a handshake message, which is a hello of TLS 1.2.
    let head = [22, 3, 1, 0, 45, 1, 0, 0, 41, 3, 3];
    let mut at = 0;
    while at < head.len() {
        hello[at] = head[at];
        at += 1;
    }
    // After 32 bytes of randomness and no session: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, no compression.
    (hello[45], hello[46], hello[47], hello[48]) = (2, 0xc0, 0x2f, 1);
    hello
};
const H2_HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// The protocol of a server that answers no request of HTTP/1, if that is found out.
fn protocol(address: SocketAddr) -> Option<&'static str> {
    let spoken_after = |hello: &[u8]| {
        let mut stream = connect(address, HELLO).ok()?;
        stream.write_all(hello).ok()?;
        let mut start = [0; 16];
        let n = stream.read(&mut start).ok()?;
        spoken(&start[..n])
    };
    spoken_after(&TLS_HELLO).or_else(|| spoken_after(H2_HELLO)).filter(|protocol| *protocol != "HTTP/1.1")
}

/// The options for a protocol.
pub(super) fn option(protocol: &str) -> &'static str {
    match protocol {
        "TLS" => ": --https",
        "HTTP/2" => ": --h2, and for gRPC --grpc METHOD",
        "HTTP/1.1" => ": leave out --h2 and --grpc",
        _ => "",
    }
}

fn connect(address: SocketAddr, within: Duration) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(within))?;
    stream.set_write_timeout(Some(within))?;
    Ok(stream)
}

/// A connection on which a response has to end in time, also one that never ends and never rests.
struct Bounded<'a> {
    stream: &'a mut TcpStream,
    end: Instant,
    within: Duration,
    /// A part of the response has come.
    began: bool,
}

impl Bounded<'_> {
    fn late(&self) -> std::io::Error {
        match self.began {
            true => {
                std::io::Error::other(format!("a response began and did not end within {:?}", self.within))
            }
            false => std::io::ErrorKind::TimedOut.into(),
        }
    }
}

impl Read for Bounded<'_> {
    fn read(&mut self, piece: &mut [u8]) -> std::io::Result<usize> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(self.late());
        }
        self.stream.set_read_timeout(Some(left))?;
        match self.stream.read(piece) {
            Err(e) if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                Err(self.late())
            }
            other => {
                self.began = true;
                other
            }
        }
    }
}

/// A response whose body has at most `longest` bytes, and whether another request may follow.
fn read(stream: &mut impl Read, method: &str, longest: usize) -> std::io::Result<(Response, bool)> {
    let invalid = |what: String| std::io::Error::new(std::io::ErrorKind::InvalidData, what);
    let too_long = || invalid(format!("a body of more than {longest} bytes"));
    let (mut parser, mut last) = (Parser::new(method == "HEAD"), LastHead::default());
    let (mut body, mut received, mut piece) = (Vec::new(), Vec::new(), vec![0; PIECE]);
    let rest = loop {
        let n = stream.read(&mut piece)?;
        if n == 0 && parser.end_completes() {
            break 0;
        } else if n == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        received.extend_from_slice(&piece[..n.min(SHOWN - received.len())]);
        let fed = parser.feed(&piece[..n], &mut last, |_, content| body.extend_from_slice(content));
        let no_http = |_| {
            invalid(match spoken(&received) {
                Some(protocol) => format!("it speaks {protocol}{}", option(protocol)),
                None => format!("this is no HTTP/1 server: it sent {:?}", shown(&received)),
            })
        };
        if let ParserState::Complete { rest } = fed.map_err(no_http)? {
            break rest;
        }
        // A length that is too large is known from the head.
        let announced = match parser.head().map(|head| head.framing) {
            Some(BodyFraming::Length(length)) => length,
            _ => 0,
        };
        if announced > longest as u64 || body.len() > longest {
            return Err(too_long());
        }
    };
    if body.len() > longest {
        return Err(too_long());
    }
    let head = parser.head().expect("the response is complete");
    let json = serde_json::from_slice::<serde::de::IgnoredAny>(&body).is_ok();
    let (bytes, crc32) = (body.len() as u64, crc32(&body));
    let response = Response { status: head.status, bytes, crc32, json, start: shown(&body) };
    Ok((response, head.reusable && rest == 0))
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(response: &str) -> Result<(Response, bool), String> {
        read(&mut response.as_bytes(), "GET", LONGEST).map_err(|e| e.to_string())
    }

    #[test]
    fn a_body_that_is_too_long_is_refused_and_not_cut() {
        let huge = "HTTP/1.1 200 OK\r\nContent-Length: 1073741825\r\n\r\n";
        assert_eq!(response(huge).unwrap_err(), "a body of more than 1073741824 bytes");
        let head = read(&mut huge.as_bytes(), "HEAD", LONGEST).unwrap().0;
        assert_eq!(head.bytes, 0, "a length of HEAD is that of no body");
        let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
        for whole in
            [chunks, "HTTP/1.1 200 OK\r\n\r\nhello", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"]
        {
            // Byte by byte, and at once.
            let one_by_one = whole.bytes().map(|byte| [byte]).collect::<Vec<_>>();
            let read_with = |longest| {
                let slow =
                    one_by_one.iter().fold(Box::new(std::io::empty()) as Box<dyn Read>, |before, byte| {
                        Box::new(before.chain(&byte[..]))
                    });
                [Box::new(whole.as_bytes()) as Box<dyn Read + '_>, slow]
                    .map(|mut from| read(&mut from, "GET", longest))
            };
            assert!(read_with(5).iter().all(|got| got.as_ref().unwrap().0.bytes == 5), "{whole}");
            assert!(read_with(4).iter().all(Result::is_err), "{whole}");
        }
    }

    #[test]
    fn bodies_end_by_length_by_chunks_and_by_the_end_of_the_connection() {
        let with_length = response("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").unwrap();
        let (content, stays_open) = with_length.clone();
        assert_eq!((content.status, content.bytes, content.start.as_str()), (200, 5, "hello"));
        assert!(stays_open);
        let more = response("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloX").unwrap();
        assert_eq!(more, (content, false), "what follows is the response to nothing");
        let chunked =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n";
        assert_eq!(response(chunked).unwrap(), with_length);
        let until_closed = response("HTTP/1.0 200 OK\r\n\r\nhello").unwrap();
        assert_eq!(until_closed, (with_length.0, false));
        assert_eq!(response("HTTP/1.1 204 No Content\r\n\r\n").unwrap().0.bytes, 0);
    }

    #[test]
    fn a_response_that_never_ends_is_told_from_none() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut silent = listener.accept().unwrap().0;
            assert!(silent.read(&mut [0; 1024]).unwrap() > 0);
            let mut endless = listener.accept().unwrap().0;
            endless.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
            while endless.write_all(b"1\r\nx\r\n").is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let request = serde_json::from_value(serde_json::json!({"method": "GET", "path": "/"})).unwrap();
        let mut question =
            Question { address, host: "x".into(), requests: vec![request], times: 1, within: Nanos::ZERO };
        for (within, words) in [
            (Nanos(100_000_000), "no response within 100ms"),
            (Nanos(1_100_000_000), "a response began and did not end within 1.1s"),
        ] {
            question.within = within;
            let reason = ask(&question, |_| {}).unwrap_err();
            assert!(reason.ends_with(words), "{reason}");
        }
    }

    #[test]
    fn what_is_no_http_is_shown() {
        assert_eq!(response("SSH-2.0-OpenSSH_9\r\n").unwrap_err(), "it speaks SSH");
        assert!(response("hello\r\n").unwrap_err().contains("it sent \"hello"));
        assert!(response("\u{15}\u{3}\u{1}\0\u{2}\u{2}F").unwrap_err().ends_with("TLS: --https"));
        assert!(response("").is_err() && response("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx").is_err());
    }

    #[test]
    fn what_differs_between_responses_is_not_expected() {
        let of = |bytes, crc32| Response { status: 200, bytes, crc32, json: false, start: String::new() };
        let expect = |bytes, crc32| Some(Expectation { status: Some(200), bytes, crc32, json: false });
        assert_eq!(Response::common(&[of(5, 1), of(5, 1)]), expect(Some(5), Some(1)));
        assert_eq!(Response::common(&[of(5, 1), of(5, 2)]), expect(Some(5), None));
        assert_eq!(Response::common(&[of(5, 1), of(6, 1)]), expect(None, None));
    }
}
