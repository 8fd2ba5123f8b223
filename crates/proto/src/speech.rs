//! Which protocol the first bytes of a peer are of, for a message to somebody who expected another one.

/// The name of the protocol, if the bytes tell it.
pub fn spoken(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [20..=23, 3, 0..=4, ..] => Some("TLS"),
        // SETTINGS or GOAWAY of the whole connection (RFC 9113 section 4.1).
        [0, _, _, 4 | 7, 0, 0, 0, 0, 0, ..] => Some("HTTP/2"),
        _ if bytes.starts_with(b"PRI * HTTP/2") => Some("HTTP/2"),
        _ if bytes.starts_with(b"HTTP/1.") || is_request(bytes) => Some("HTTP/1.1"),
        _ if bytes.starts_with(b"SSH-") => Some("SSH"),
        _ if bytes.starts_with(b"220 ") => Some("SMTP or FTP"),
        _ => None,
    }
}

/// Whether a request line of HTTP/1 begins so.
fn is_request(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\r').next().unwrap_or(bytes);
    bytes.first().is_some_and(u8::is_ascii_uppercase) && line.windows(8).any(|part| part == b" HTTP/1.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_common_protocols_apart() {
        for (bytes, name) in [
            (&[0x15, 3, 1, 0, 2, 2, 70][..], Some("TLS")),
            (&[0, 0, 18, 4, 0, 0, 0, 0, 0, 0, 3], Some("HTTP/2")),
            (b"HTTP/1.1 400 Bad Request\r\n", Some("HTTP/1.1")),
            (b"SSH-2.0-OpenSSH_9.2\r\n", Some("SSH")),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Some("HTTP/2")),
            (b"POST /a HTTP/1.1\r\nHost: b\r\n", Some("HTTP/1.1")),
            (b"hello", None),
            (b"", None),
        ] {
            assert_eq!(spoken(bytes), name, "{}", bytes.escape_ascii());
        }
    }
}
