//! `linerate lab-ask`: a few requests over one connection, from inside the lab. Each response is a line of
//! JSON; the first bytes of its body are in it, to be shown where responses differ.

use crate::measurement::{Expectation, PlannedRequest};
use linerate_contract::crc32;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The hidden subcommand.
pub const ASK: &str = "lab-ask";
/// A server that answers later is not measured.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a body that are shown.
const SHOWN: usize = 120;
/// A longer body is refused: it would fill the memory.
const LONGEST: u64 = 1 << 30;

/// What to ask, in JSON, the only argument.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    pub address: SocketAddr,
    /// The `Host` header.
    pub host: String,
    /// One after the other.
    pub requests: Vec<PlannedRequest>,
    /// Each of them.
    pub times: u32,
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
    /// What is the same in all; `None` without one.
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
pub fn ask(question: &Question, mut answered: impl FnMut(&Response)) -> Result<(), String> {
    let address = question.address;
    let failed = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {
            format!("{address}: no response within {TIMEOUT:?}")
        }
        std::io::ErrorKind::UnexpectedEof => {
            format!("{address}: it closed the connection without a response")
        }
        _ => format!("{address}: {e}"),
    };
    let mut open: Option<BufReader<TcpStream>> = None;
    let each = |request| std::iter::repeat_n(request, question.times as usize);
    for request in question.requests.iter().flat_map(each) {
        let mut stream = match open.take() {
            Some(stream) => stream,
            None => connect(address).map_err(failed)?,
        };
        stream.get_mut().write_all(text(&question.host, request).as_bytes()).map_err(failed)?;
        let (response, stays_open) = read(&mut stream, &request.method).map_err(failed)?;
        answered(&response);
        open = stays_open.then_some(stream);
    }
    Ok(())
}

fn connect(address: SocketAddr) -> std::io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(BufReader::new(stream))
}

/// As the load engine writes it.
fn text(host: &str, request: &PlannedRequest) -> String {
    let PlannedRequest { method, path, headers, body, .. } = request;
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n");
    headers.iter().for_each(|header| text.push_str(&format!("{header}\r\n")));
    if !body.is_empty() || matches!(method.as_str(), "POST" | "PUT" | "PATCH") {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    text + "\r\n" + body
}

/// A response, and whether another request may follow on its connection.
fn read(stream: &mut impl BufRead, method: &str) -> std::io::Result<(Response, bool)> {
    let invalid = |what: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_owned());
    let first = line(stream)?;
    let no_http = || invalid(&format!("this is no HTTP/1 server: it sent {:?}", shown(first.as_bytes())));
    let status = first.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse::<u16>().ok());
    let status = status.ok_or_else(no_http)?;
    let (mut length, mut is_chunked, mut closes) = (None, false, first.starts_with("HTTP/1.0"));
    loop {
        let header = line(stream)?;
        let Some((name, value)) = header.split_once(':') else { break };
        let value = value.trim().to_ascii_lowercase();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse::<u64>().ok(),
            "transfer-encoding" => is_chunked = value.ends_with("chunked"),
            "connection" => closes = value.contains("close"),
            _ => {}
        }
    }
    let mut body = Vec::new();
    let has_none = method == "HEAD" || status == 204 || status == 304;
    match length {
        _ if has_none => {}
        _ if is_chunked => loop {
            let size = line(stream)?;
            let size = size.split(';').next().unwrap_or_default().trim();
            let size = u64::from_str_radix(size, 16).map_err(|_| invalid("a chunk has no size"))?;
            if size == 0 {
                while !line(stream)?.is_empty() {}
                break;
            }
            take(stream, size, &mut body)?;
            line(stream)?;
        },
        Some(length) => take(stream, length, &mut body)?,
        None => {
            closes = true;
            stream.take(LONGEST).read_to_end(&mut body)?;
        }
    }
    let json = serde_json::from_slice::<serde::de::IgnoredAny>(&body).is_ok();
    let (bytes, crc32) = (body.len() as u64, crc32(&body));
    Ok((Response { status, bytes, crc32, json, start: shown(&body) }, !closes))
}

fn take(stream: &mut impl BufRead, length: u64, body: &mut Vec<u8>) -> std::io::Result<()> {
    if body.len() as u64 + length > LONGEST {
        return Err(std::io::Error::other("a response of more than 1 GiB"));
    }
    match stream.take(length).read_to_end(body)? as u64 {
        read if read == length => Ok(()),
        _ => Err(std::io::ErrorKind::UnexpectedEof.into()),
    }
}

/// A line without its end; the end of the stream is an error.
fn line(stream: &mut impl BufRead) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    stream.take(64 << 10).read_until(b'\n', &mut bytes)?;
    if bytes.is_empty() {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned())
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(response: &str) -> Result<(Response, bool), String> {
        read(&mut response.as_bytes(), "GET").map_err(|e| e.to_string())
    }

    #[test]
    fn bodies_end_by_length_by_chunks_and_by_the_end_of_the_connection() {
        let with_length = response("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloX").unwrap();
        let (content, stays_open) = with_length.clone();
        assert_eq!((content.status, content.bytes, content.start.as_str()), (200, 5, "hello"));
        assert!(stays_open);
        let chunked =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n";
        assert_eq!(response(chunked).unwrap(), with_length);
        let until_closed = response("HTTP/1.0 200 OK\r\n\r\nhello").unwrap();
        assert_eq!(until_closed, (with_length.0, false));
        assert_eq!(response("HTTP/1.1 204 No Content\r\n\r\n").unwrap().0.bytes, 0);
    }

    #[test]
    fn what_is_no_http_is_shown() {
        assert!(response("SSH-2.0-OpenSSH_9\r\n").unwrap_err().contains("SSH-2.0-OpenSSH_9"));
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
