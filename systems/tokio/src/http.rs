//! HTTP/1.1 on httparse, the parser of hyper. Any GET gets the page; head and body are one write. The client
//! is for both ends in one loop.

use linerate_contract::tally::stream_error;
use linerate_contract::{ErrorKind, page};
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The input read at once, and the longest request.
pub const BUFFER: usize = 16 << 10;
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
const BAD_REQUEST: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// The whole answer, for a connection that stays open and for one that closes.
pub struct Answers {
    keep: Vec<u8>,
    close: Vec<u8>,
}

impl Answers {
    pub fn new(size: usize) -> Self {
        let body = page(size);
        let answer = |connection: &str| {
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {size}\r\n\
                 Connection: {connection}\r\n\r\n"
            );
            [head.as_bytes(), &body].concat()
        };
        Self { keep: answer("keep-alive"), close: answer("close") }
    }
}

/// The start of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parsed {
    Get { length: usize, keep: bool },
    Partial,
    Bad,
}

pub async fn serve(mut stream: TcpStream, answers: &Answers) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    let mut filled = 0;
    loop {
        let n = stream.read(&mut buffer[filled..]).await?;
        if n == 0 {
            return Ok(());
        }
        filled += n;
        let mut used = 0;
        while used < filled {
            match parse(&buffer[used..filled]) {
                Parsed::Get { length, keep: true } => {
                    used += length;
                    stream.write_all(&answers.keep).await?;
                }
                Parsed::Get { keep: false, .. } => {
                    stream.write_all(&answers.close).await?;
                    return stream.shutdown().await;
                }
                Parsed::Partial if filled - used < BUFFER => break,
                Parsed::Partial | Parsed::Bad => {
                    stream.write_all(BAD_REQUEST).await?;
                    return stream.shutdown().await;
                }
            }
        }
        buffer.copy_within(used..filled, 0);
        filled -= used;
    }
}

/// Requests the page and compares it.
pub async fn fetch(stream: &mut TcpStream, buffer: &mut [u8], page: &[u8]) -> Result<(), ErrorKind> {
    stream.write_all(REQUEST).await.map_err(|e| stream_error(&e))?;
    let mut filled = 0;
    loop {
        filled += match stream.read(&mut buffer[filled..]).await {
            Ok(0) if filled == 0 => return Err(ErrorKind::EmptyResponse),
            Ok(0) => return Err(ErrorKind::Truncated),
            Ok(n) => n,
            Err(error) => return Err(stream_error(&error)),
        };
        if let Some(body) = body(&buffer[..filled])? {
            return if body == page { Ok(()) } else { Err(ErrorKind::WrongContent) };
        }
    }
}

/// The body of the answer at the start of `bytes`; `None`: more has to arrive.
fn body(bytes: &[u8]) -> Result<Option<&[u8]>, ErrorKind> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut answer = httparse::Response::new(&mut headers);
    let head = match answer.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(ErrorKind::Malformed),
    };
    if answer.code != Some(200) {
        return Err(ErrorKind::WrongStatus);
    }
    let length = answer.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|header| std::str::from_utf8(header.value).ok()?.parse::<usize>().ok());
    let body = &bytes[head..];
    length.map(|length| body.get(..length)).ok_or(ErrorKind::Malformed)
}

/// Reads the request at the start of `bytes`; one with a body is refused (RFC 9110 section 9.3.1).
fn parse(bytes: &[u8]) -> Parsed {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Parsed::Partial,
        Err(_) => return Parsed::Bad,
    };
    if request.method != Some("GET") {
        return Parsed::Bad;
    }
    let (mut close, mut keep_alive) = (false, false);
    for header in &*request.headers {
        if header.name.eq_ignore_ascii_case("connection") {
            for token in header.value.split(|b| *b == b',').map(<[u8]>::trim_ascii) {
                close |= token.eq_ignore_ascii_case(b"close");
                keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
            }
        } else if header.name.eq_ignore_ascii_case("transfer-encoding")
            || (header.name.eq_ignore_ascii_case("content-length") && header.value != b"0")
        {
            return Parsed::Bad;
        }
    }
    Parsed::Get { length, keep: if request.version == Some(1) { !close } else { keep_alive && !close } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_of_an_answer_has_the_length_of_its_head() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
        assert_eq!(body(answer), Ok(Some(&b"ab"[..])));
        assert_eq!(body(&answer[..answer.len() - 1]), Ok(None));
        assert_eq!(body(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"), Err(ErrorKind::WrongStatus));
        for malformed in ["HTTP/1.1 200 OK\r\n\r\n", "200 OK\r\n\r\n"] {
            assert_eq!(body(malformed.as_bytes()), Err(ErrorKind::Malformed));
        }
    }

    #[test]
    fn requests_are_parsed_as_get_partial_or_bad() {
        let get = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        assert_eq!(parse(get), Parsed::Get { length: get.len(), keep: true });
        assert_eq!(parse(&get[..get.len() - 1]), Parsed::Partial);
        assert!(matches!(parse(b"GET / HTTP/1.0\r\n\r\n"), Parsed::Get { keep: false, .. }));
        assert!(matches!(
            parse(b"GET / HTTP/1.1\r\nConnection: Close\r\n\r\n"),
            Parsed::Get { keep: false, .. }
        ));
        assert_eq!(parse(b"POST / HTTP/1.1\r\n\r\n"), Parsed::Bad);
        assert_eq!(parse(b"GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\n"), Parsed::Bad);
    }
}
