//! Requests: what the client sends, and how the server reads them.

use httparse::Status;
use linerate_contract::{Refusal, Request};
use std::mem::MaybeUninit;

/// RFC 9112 section 3.2.1: a target in origin form, and nothing that would end the request line early.
///
/// # Errors
/// The target is another one.
pub fn check_target(path: &str) -> Result<(), Refusal> {
    if path.starts_with('/') && path.bytes().all(|b| b.is_ascii_graphic()) {
        return Ok(());
    }
    Err(Refusal::BadSpec(format!(
        "\"path\" must begin with / and contain only printable ASCII without spaces: {path:?}"
    )))
}

/// The bytes of a request: a plain GET unless `request` sets something else. `persistent`: the connection
/// stays open.
///
/// # Errors
/// A target, a method or a header that HTTP/1.1 cannot carry.
pub fn build(path: &str, host: &str, persistent: bool, request: &Request) -> Result<Vec<u8>, Refusal> {
    // A proxy is sent the absolute form (RFC 9112 section 3.2.2).
    let absolute = path.strip_prefix("http://").and_then(|rest| rest.find('/').map(|at| &rest[at..]));
    check_target(absolute.unwrap_or(path))?;
    let method = request.method.as_deref().unwrap_or("GET");
    if method.is_empty()
        || !method.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
    {
        return Err(Refusal::BadSpec(format!(
            "\"request.method\" must be one word, such as POST: {method:?}"
        )));
    }
    let mut lines = format!("{method} {path} HTTP/1.1\r\n");
    let given = |name: &str| {
        let is = |line: &&String| line.split(':').next().is_some_and(|n| n.eq_ignore_ascii_case(name));
        request.headers.iter().find(is)
    };
    if given("Host").is_none() {
        lines += &format!("Host: {host}\r\n");
    }
    if !persistent && given("Connection").is_none() {
        lines += "Connection: close\r\n";
    }
    let chunked = given("Transfer-Encoding").map(|line| check_coding(line)).transpose()?.is_some();
    if chunked && given("Content-Length").is_some() {
        return Err(Refusal::BadSpec(
            "\"request.headers\": Content-Length and Transfer-Encoding exclude each other (RFC 9112, 6.2)"
                .into(),
        ));
    }
    let has_body = !request.body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH");
    if has_body && !chunked && given("Content-Length").is_none() {
        lines += &format!("Content-Length: {}\r\n", request.body.len());
    }
    for line in &request.headers {
        let name = line.split_once(':').map(|(name, _)| name);
        let named = name.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_graphic()));
        if !named || line.bytes().any(|b| b == b'\r' || b == b'\n' || b == 0) {
            return Err(Refusal::BadSpec(format!(
                "\"request.headers\" are lines of `Name: value`: {line:?}"
            )));
        }
        lines += &format!("{line}\r\n");
    }
    lines += "\r\n";
    let body = &*request.body;
    Ok(if chunked {
        [lines.as_bytes(), &in_chunks(body)].concat()
    } else {
        [lines.as_bytes(), body].concat()
    })
}

/// RFC 9112 section 6.3: a request with another last coding than chunked has no end.
fn check_coding(line: &str) -> Result<(), Refusal> {
    let last = line.rsplit([',', ':']).next().unwrap_or_default();
    if last.trim().eq_ignore_ascii_case("chunked") {
        return Ok(());
    }
    Err(Refusal::BadSpec(format!(
        "\"request.headers\": the last coding must be chunked, or the request has no end: {line:?}"
    )))
}

/// The body as one chunk, and the chunk that ends it.
fn in_chunks(body: &[u8]) -> Vec<u8> {
    let mut chunks = Vec::new();
    if !body.is_empty() {
        chunks.extend(format!("{:x}\r\n", body.len()).bytes().chain(body.iter().copied()).chain(*b"\r\n"));
    }
    chunks.extend(b"0\r\n\r\n");
    chunks
}

/// The result of parsing the start of a server's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParsedRequest {
    /// A whole GET of `length` bytes; `keep`: the connection stays open after the response.
    Get { length: usize, keep: bool },
    /// An incomplete GET.
    Partial,
    /// No request that this server supports.
    Bad,
}

/// Parses the request at the start of `bytes`. A body is refused: it has no meaning in a GET (RFC 9110
/// section 9.3.1).
#[inline]
pub fn parse(bytes: &[u8]) -> ParsedRequest {
    let mut headers = [MaybeUninit::uninit(); 64];
    let mut request = httparse::Request::new(&mut []);
    let length = match request.parse_with_uninit_headers(bytes, &mut headers) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return ParsedRequest::Partial,
        Err(_) => return ParsedRequest::Bad,
    };
    if request.method != Some("GET") {
        return ParsedRequest::Bad;
    }
    let (mut close, mut keep_alive) = (false, false);
    for header in &*request.headers {
        match header.name.len() {
            10 if header.name.eq_ignore_ascii_case("connection") => {
                for token in header.value.split(|b| *b == b',').map(<[u8]>::trim_ascii) {
                    close |= token.eq_ignore_ascii_case(b"close");
                    keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if header.name.eq_ignore_ascii_case("content-length") && header.value != b"0" => {
                return ParsedRequest::Bad;
            }
            17 if header.name.eq_ignore_ascii_case("transfer-encoding") => return ParsedRequest::Bad,
            _ => {}
        }
    }
    let keep = if request.version == Some(1) { !close } else { keep_alive && !close };
    ParsedRequest::Get { length, keep }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_parses_the_requests_of_the_client() {
        for persistent in [true, false] {
            let bytes = build("/a?b=%20", "10.0.0.1:80", persistent, &Request::default()).unwrap();
            assert_eq!(parse(&bytes), ParsedRequest::Get { length: bytes.len(), keep: persistent });
            assert_eq!(parse(&bytes[..bytes.len() - 1]), ParsedRequest::Partial);
        }
        for path in ["", "a", "/a b", "/a\r\nX: y", "/ä"] {
            assert!(build(path, "h", true, &Request::default()).is_err(), "{path:?}");
        }
    }

    #[test]
    fn methods_headers_and_bodies_are_sent_as_given() {
        let mut request = Request {
            method: Some("POST".into()),
            headers: vec!["host: example.org".into(), "X-A: b".into()],
            body: "hello".into(),
            ..Request::default()
        };
        let text = String::from_utf8(build("/", "h", true, &request).unwrap()).unwrap();
        assert_eq!(text, "POST / HTTP/1.1\r\nContent-Length: 5\r\nhost: example.org\r\nX-A: b\r\n\r\nhello");
        for wrong in ["no colon", ": no name", "A: b\r\nC: d", "a b: c"] {
            request.headers = vec![wrong.into()];
            assert!(build("/", "h", true, &request).is_err(), "{wrong:?}");
        }
        request = Request { method: Some("GET / HTTP/1.1".into()), ..Request::default() };
        assert!(build("/", "h", true, &request).is_err());
    }

    #[test]
    fn a_body_is_sent_in_chunks_where_a_header_says_so() {
        let with = |headers: &[&str], body: &str| {
            let headers = headers.iter().map(|line| (*line).to_owned()).collect();
            let request =
                Request { method: Some("POST".into()), headers, body: body.into(), ..Request::default() };
            build("/", "h", true, &request).map(|bytes| String::from_utf8(bytes).unwrap())
        };
        let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
        let chunked = &["Transfer-Encoding: chunked"][..];
        assert_eq!(with(chunked, "0123456789a").unwrap(), format!("{head}b\r\n0123456789a\r\n0\r\n\r\n"));
        assert_eq!(with(chunked, "").unwrap(), format!("{head}0\r\n\r\n"));
        assert!(with(&["transfer-encoding: gzip, Chunked"], "x").unwrap().ends_with("1\r\nx\r\n0\r\n\r\n"));
        assert!(with(&["Transfer-Encoding: gzip"], "x").unwrap_err().to_string().contains("no end"));
        let both = with(&["Transfer-Encoding: chunked", "Content-Length: 1"], "x").unwrap_err();
        assert!(both.to_string().contains("exclude each other"), "{both}");
    }

    #[test]
    fn http_1_0_closes_without_keep_alive() {
        let keep = |bytes: &[u8]| matches!(parse(bytes), ParsedRequest::Get { keep: true, .. });
        assert!(!keep(b"GET / HTTP/1.0\r\n\r\n"));
        assert!(keep(b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
        assert!(keep(b"GET / HTTP/1.1\r\n\r\n"));
        assert!(!keep(b"GET / HTTP/1.1\r\nconnection: TE, Close\r\n\r\n"));
    }

    #[test]
    fn other_methods_bodies_and_noise_are_refused() {
        for bytes in [
            &b"POST / HTTP/1.1\r\n\r\n"[..],
            b"GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
            b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"\x16\x03\x01\x02\x00",
            b"GET / HTTP/9.9\r\n\r\n",
        ] {
            assert_eq!(parse(bytes), ParsedRequest::Bad, "{}", bytes.escape_ascii());
        }
    }
}
