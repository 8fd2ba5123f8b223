//! The HTTP/1.1 handshake (RFC 6455, section 4), both ends, by httparse. No extension; a server takes the
//! first subprotocol that is offered.

use crate::http::request::build;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use linerate_contract::{Refusal, Request};
use ring::digest;

/// A head that is longer is no head of a handshake.
pub const LONGEST_HEAD: usize = 8 << 10;
/// Header lines of a handshake; browsers send a third of it.
const MOST_HEADERS: usize = 64;
const PROTOCOL: &str = "sec-websocket-protocol";
/// Section 1.3.
const MAGIC: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Why there will be no WebSocket, as a complete response of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused(pub &'static str);

pub const BAD_REQUEST: Refused =
    Refused("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
const OTHER_VERSION: Refused = Refused(
    "HTTP/1.1 426 Upgrade Required\r\nSec-WebSocket-Version: 13\r\n\
     Connection: close\r\nContent-Length: 0\r\n\r\n",
);

/// A client's request for `path`, with the header lines `more`; `nonce` is new for each connection.
///
/// # Errors
/// A target or a header that HTTP/1.1 cannot carry.
pub fn request(host: &str, path: &str, nonce: [u8; 16], more: &[String]) -> Result<Vec<u8>, Refusal> {
    let mut headers = vec![
        "Upgrade: websocket".to_owned(),
        "Connection: Upgrade".into(),
        format!("Sec-WebSocket-Key: {}", STANDARD.encode(nonce)),
        "Sec-WebSocket-Version: 13".into(),
    ];
    headers.extend_from_slice(more);
    build(path, host, true, &Request { headers, ..Request::default() })
}

/// The subprotocols that these header lines offer, in the form of a header's value.
pub fn offered(headers: &[String]) -> Option<&str> {
    let mut named = headers.iter().filter_map(|line| line.split_once(':'));
    named.find(|(name, _)| name.eq_ignore_ascii_case(PROTOCOL)).map(|(_, value)| value.trim())
}

/// Where the head ends in `bytes`: behind its empty line.
pub fn end_of_head(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

/// Whether a head that is not whole is none already: somebody speaks TLS here, or nothing that is known.
pub fn cannot_be_a_request(part: &[u8]) -> bool {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    httparse::Request::new(&mut headers).parse(part).is_err()
}

/// The response of a server to a whole request head.
///
/// # Errors
/// The response that says no.
pub fn respond(head: &[u8]) -> Result<Vec<u8>, Refused> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let complete = request.parse(head).is_ok_and(|status| status.is_complete());
    if !complete || request.method != Some("GET") || request.version != Some(1) {
        return Err(BAD_REQUEST);
    }
    let headers = &*request.headers;
    if !has_token(headers, "upgrade", "websocket") || !has_token(headers, "connection", "upgrade") {
        return Err(BAD_REQUEST);
    }
    if !has_token(headers, "sec-websocket-version", "13") {
        return Err(OTHER_VERSION);
    }
    // 16 bytes in base64.
    let key = only(headers, "sec-websocket-key").filter(|key| key.len() == 24).ok_or(BAD_REQUEST)?;
    let first = only(headers, PROTOCOL).and_then(|offered| offered.split(',').next());
    let chosen =
        first.map_or_else(String::new, |name| format!("Sec-WebSocket-Protocol: {}\r\n", name.trim()));
    Ok(format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {}\r\n{chosen}\r\n",
        accept(key)
    )
    .into_bytes())
}

/// The status of a whole response head, if it is one.
pub fn status(head: &[u8]) -> Option<u16> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    response.parse(head).ok()?;
    response.code
}

/// Whether a whole response head opens the connection that was asked for with `nonce`, and with subprotocols
/// where some were `offered`.
pub fn is_accepted(head: &[u8], nonce: [u8; 16], offered: &str) -> bool {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let complete = response.parse(head).is_ok_and(|status| status.is_complete());
    let headers = &*response.headers;
    complete
        && response.code == Some(101)
        && has_token(headers, "upgrade", "websocket")
        && has_token(headers, "connection", "upgrade")
        && only(headers, "sec-websocket-accept").is_some_and(|value| value == accept(&STANDARD.encode(nonce)))
        // What was not asked for may not be given (section 4.1).
        && only(headers, "sec-websocket-extensions").is_none()
        && only(headers, PROTOCOL).is_none_or(|chosen| offered.split(',').any(|one| one.trim() == chosen))
}

fn accept(key: &str) -> String {
    let digest = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, [key, MAGIC].concat().as_bytes());
    STANDARD.encode(digest)
}

/// The value of the first such header.
fn only<'a>(headers: &[httparse::Header<'a>], name: &str) -> Option<&'a str> {
    let header = headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
    std::str::from_utf8(header.value).ok().map(str::trim)
}

/// Whether a header that is a list has this token, in whatever case.
fn has_token(headers: &[httparse::Header<'_>], name: &str, token: &str) -> bool {
    let named = headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
    let mut values = named.filter_map(|header| std::str::from_utf8(header.value).ok());
    values.any(|value| value.split(',').any(|one| one.trim().eq_ignore_ascii_case(token)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_response_to_a_key_is_that_of_rfc_6455_section_1_3() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn both_ends_agree() {
        let asked = request("linerate.test:80", "/chat", [7; 16], &[]).unwrap();
        assert_eq!(end_of_head(&asked), Some(asked.len()));
        assert!((0..asked.len()).all(|part| !cannot_be_a_request(&asked[..part])));
        assert!(cannot_be_a_request(&[0x16, 3, 1, 0, 200]));
        let response = respond(&asked).unwrap();
        assert!(is_accepted(&response, [7; 16], ""));
        assert!(!is_accepted(&response, [8; 16], ""));
    }

    #[test]
    fn a_subprotocol_is_one_of_those_that_were_offered() {
        let headers = ["X-Token: 1".to_owned(), "sec-websocket-protocol: chat.v2, chat".into()];
        let asked = request("a", "/", [7; 16], &headers).unwrap();
        let response = respond(&asked).unwrap();
        assert!(String::from_utf8(response.clone()).unwrap().contains("Sec-WebSocket-Protocol: chat.v2\r\n"));
        let offered = offered(&headers).unwrap();
        assert!(is_accepted(&response, [7; 16], offered));
        assert!(!is_accepted(&response, [7; 16], "") && !is_accepted(&response, [7; 16], "chat"));
        assert!(request("a", "/", [7; 16], &["no header".into()]).is_err());
    }

    #[test]
    fn what_is_missing_is_refused() {
        let asked = String::from_utf8(request("a", "/", [7; 16], &[]).unwrap()).unwrap();
        for (from, to) in [
            ("GET", "POST"),
            ("HTTP/1.1", "HTTP/1.0"),
            ("Upgrade: websocket", "Upgrade: h2c"),
            ("Connection: Upgrade", "Connection: close"),
            ("Sec-WebSocket-Key: ", "Sec-WebSocket-Key: x"),
        ] {
            assert_eq!(respond(asked.replacen(from, to, 1).as_bytes()), Err(BAD_REQUEST), "{to}");
        }
        assert_eq!(respond(asked.replace("Version: 13", "Version: 8").as_bytes()), Err(OTHER_VERSION));
        let browser = asked.replace("Connection: Upgrade", "Connection: keep-alive, Upgrade");
        assert!(respond(browser.as_bytes()).is_ok());
        let response = String::from_utf8(respond(asked.as_bytes()).unwrap()).unwrap();
        for (from, to) in [
            ("101", "200"),
            ("Upgrade: websocket\r\n", ""),
            ("\r\n\r\n", "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"),
        ] {
            assert!(!is_accepted(response.replacen(from, to, 1).as_bytes(), [7; 16], ""), "{to}");
        }
        assert_eq!((status(b"HTTP/1.1 401 No\r\n\r\n"), status(b"SSH-2.0\r\n\r\n")), (Some(401), None));
    }

    proptest! {
        #[test]
        fn no_head_makes_it_panic(head: Vec<u8>) {
            let _ = respond(&head);
            let _ = is_accepted(&head, [0; 16], "");
        }
    }
}
