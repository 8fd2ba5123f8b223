//! The last head. A server's responses to one request have the same head, byte for byte, except for a `Date`
//! that changes each second. Equal bytes have equal meaning: they are compared (10 ns) and not parsed again
//! (250 ns).

use super::{Malformed, ParsedHead, parse_head};

/// Longer heads are parsed each time, in bytes; the heads of the servers here have 150 to 300.
const LONGEST: usize = 1024;

/// The last parsed head of a thread.
#[derive(Debug, Clone)]
pub struct LastHead {
    bytes: Box<[u8; LONGEST]>,
    length: usize,
    head: Option<ParsedHead>,
}

impl Default for LastHead {
    fn default() -> Self {
        Self { bytes: Box::new([0; LONGEST]), length: 0, head: None }
    }
}

impl LastHead {
    /// As [`parse_head`].
    #[inline]
    pub(super) fn parse(&mut self, bytes: &[u8]) -> Result<Option<(usize, ParsedHead)>, Malformed> {
        match self.head {
            // A head ends with its empty line: the bytes behind it cannot change its meaning.
            Some(head) if bytes.starts_with(&self.bytes[..self.length]) => Ok(Some((self.length, head))),
            _ => self.parse_anew(bytes),
        }
    }

    fn parse_anew(&mut self, bytes: &[u8]) -> Result<Option<(usize, ParsedHead)>, Malformed> {
        let parsed = parse_head(bytes)?;
        if let Some((used, head)) = parsed
            && used <= LONGEST
        {
            self.bytes[..used].copy_from_slice(&bytes[..used]);
            self.length = used;
            self.head = Some(head);
        }
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_equals_the_last_one_only_if_all_its_bytes_are_equal() {
        let mut last = LastHead::default();
        let first = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        let expected = parse_head(first).unwrap();
        assert_eq!(last.parse(first), Ok(expected));
        assert_eq!(last.parse(first), Ok(expected));
        assert_eq!(last.parse(&first[..30]), Ok(None), "a part of the last head is not complete");
        let longer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
        assert_eq!(last.parse(longer), parse_head(longer));
        assert_eq!(last.parse(first), Ok(expected));
        assert_eq!(last.parse(b"SMTP"), Err(Malformed::NotHttp));
        assert_eq!(last.parse(first), Ok(expected));
    }

    #[test]
    fn a_long_head_is_parsed_each_time() {
        let mut last = LastHead::default();
        let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 0\r\n\r\n", "x".repeat(LONGEST));
        for _ in 0..2 {
            assert_eq!(last.parse(long.as_bytes()), parse_head(long.as_bytes()));
        }
    }
}
