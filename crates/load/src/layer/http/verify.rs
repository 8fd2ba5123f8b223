//! Compares responses with the spec: status and length of every one, content of every n-th, as far as the
//! spec has them.
//!
//! Where the checksum is that of [`linerate_contract::page`], content is compared with the page, which is
//! several times cheaper than a checksum and needs no state; otherwise by a running CRC-32.

use crate::cause::note;
use crate::refusal::Refusal;
use linerate_contract::{Cause, ErrorKind, Expect, crc32, page};
use linerate_proto::http::response::{BodyFraming, Head};
use std::sync::Arc;

/// Larger pages are compared by checksum, in bytes: the page would evict everything else from the cache.
const LARGEST_PAGE: u64 = 16 << 20;

/// The expectation of a thread; a connection has only a [`Check`].
#[derive(Debug, Clone)]
pub(in crate::layer) struct Verifier {
    expect: Expect,
    page: Option<Arc<[u8]>>,
    /// Responses until the next one whose content is compared.
    countdown: u64,
}

/// The check of one response's content.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::layer) struct Check {
    wanted: bool,
    differs: bool,
    crc: u32,
}

impl Verifier {
    pub(in crate::layer) fn new(expect: Option<Expect>) -> Result<Self, Refusal> {
        if expect.is_some_and(|e| e.every == 0) {
            return Err(Refusal::BadSpec("\"expect.every\" must be at least 1 (1: every response)".into()));
        }
        let page = expect
            .and_then(|e| Some((e.bytes.filter(|bytes| *bytes <= LARGEST_PAGE)?, e.crc32?)))
            .map(|(bytes, crc)| (page(bytes as usize), crc))
            .filter(|(page, crc)| crc32(page) == *crc)
            .map(|(page, _)| page.into());
        let anything = Expect { status: None, bytes: None, crc32: None, every: 1 };
        Ok(Self { expect: expect.unwrap_or(anything), page, countdown: 0 })
    }

    /// Begins the check of the next response; the first one's content is always compared.
    #[inline]
    pub(in crate::layer) fn begin(&mut self) -> Check {
        if self.expect.crc32.is_none() {
            return Check::default();
        }
        let wanted = self.countdown == 0;
        self.countdown = if wanted { self.expect.every - 1 } else { self.countdown - 1 };
        Check { wanted, ..Check::default() }
    }

    /// Notes why a response with a body of `body` bytes is not the expected one, with its last bytes; returns
    /// the kind.
    #[cold]
    pub(in crate::layer) fn note(&self, kind: ErrorKind, status: u16, body: u64, bytes: &[u8]) -> ErrorKind {
        note(kind, || {
            let text = match (kind, self.expect.status, self.expect.bytes) {
                (ErrorKind::WrongStatus, Some(expected), _) => {
                    format!("status {status} in place of {expected}")
                }
                (ErrorKind::WrongStatus, ..) => format!("status {status} in place of 200 to 399"),
                (ErrorKind::WrongLength, _, Some(length)) => format!("{body} bytes in place of {length}"),
                _ => format!("{body} bytes of another content than expected"),
            };
            Cause::showing(text, bytes)
        })
    }

    /// Checks a head. Without an expected status any final one below 400 is good, as in wrk and ab; 101
    /// answers a request for another protocol, which this client does not send.
    #[inline]
    pub(in crate::layer) fn head(&self, head: &Head) -> Result<(), ErrorKind> {
        let is_good = match self.expect.status {
            Some(status) => head.status == status,
            None => (200..400).contains(&head.status),
        };
        match (head.framing, self.expect.bytes) {
            _ if !is_good => Err(ErrorKind::WrongStatus),
            (BodyFraming::Length(length), Some(expected)) if length != expected => {
                Err(ErrorKind::WrongLength)
            }
            _ => Ok(()),
        }
    }

    /// The fault of the head of a response that is read to its end all the same.
    #[inline]
    pub(in crate::layer) fn wrong_head(&self, head: &Head) -> Option<ErrorKind> {
        let kind = self.head(head).err()?;
        match head.framing {
            // The body's own bytes show the other kind better.
            BodyFraming::Length(length) if kind == ErrorKind::WrongLength => {
                Some(self.note(kind, head.status, length, &[]))
            }
            _ => Some(kind),
        }
    }

    /// Takes bytes of the body at offset `at`.
    #[inline]
    pub(in crate::layer) fn body(&self, check: &mut Check, at: u64, bytes: &[u8]) {
        if !check.wanted {
            return;
        }
        if let Some(page) = &self.page {
            let same = page.get(at as usize..).is_some_and(|rest| rest.starts_with(bytes));
            check.differs |= !same;
        } else {
            let mut hasher = crc32fast::Hasher::new_with_initial(check.crc);
            hasher.update(bytes);
            check.crc = hasher.finalize();
        }
    }

    /// Checks a response of `bytes` bytes; true if its content was compared.
    #[inline]
    pub(in crate::layer) fn response(&self, check: &Check, bytes: u64) -> Result<bool, ErrorKind> {
        if self.expect.bytes.is_some_and(|expected| bytes != expected) {
            return Err(ErrorKind::WrongLength);
        }
        let has_other_sum = || self.page.is_none() && Some(check.crc) != self.expect.crc32;
        if check.wanted && (check.differs || has_other_sum()) {
            return Err(ErrorKind::WrongContent);
        }
        Ok(check.wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verifier(content: &[u8], every: u64) -> Verifier {
        Verifier::new(Some(Expect::of_page(content, every))).unwrap()
    }

    fn judge(verifier: &mut Verifier, pieces: &[&[u8]]) -> Result<bool, ErrorKind> {
        let mut check = verifier.begin();
        let mut at = 0;
        for piece in pieces {
            verifier.body(&mut check, at, piece);
            at += piece.len() as u64;
        }
        verifier.response(&check, at)
    }

    #[test]
    fn the_page_and_other_content_are_verified_in_pieces() {
        for content in [page(1000), b"something else".to_vec()] {
            let mut v = verifier(&content, 1);
            assert_eq!(v.page.is_some(), content.len() == 1000);
            assert_eq!(judge(&mut v, &[&content[..3], &content[3..]]), Ok(true));
            let mut wrong = content.clone();
            wrong[5] ^= 1;
            assert_eq!(judge(&mut v, &[&wrong]), Err(ErrorKind::WrongContent));
            assert_eq!(judge(&mut v, &[&content[1..]]), Err(ErrorKind::WrongLength));
            assert_eq!(judge(&mut v, &[&content, b"x"]), Err(ErrorKind::WrongLength));
        }
    }

    #[test]
    fn every_third_content_is_compared_from_the_first_on() {
        let content = page(10);
        let mut v = verifier(&content, 3);
        let compared: Vec<_> = (0..7).map(|_| judge(&mut v, &[&content]).unwrap()).collect();
        assert_eq!(compared, [true, false, false, true, false, false, true]);
    }

    #[test]
    fn heads_are_checked_before_the_body_arrives() {
        let v = verifier(b"abc", 1);
        let head = |status, length| Head { status, framing: BodyFraming::Length(length), reusable: true };
        assert_eq!(v.head(&head(200, 3)), Ok(()));
        assert_eq!(v.head(&head(404, 3)), Err(ErrorKind::WrongStatus));
        assert_eq!(v.head(&head(200, 4)), Err(ErrorKind::WrongLength));
        let anything = Verifier::new(None).unwrap();
        assert_eq!(anything.head(&head(302, 9)), Ok(()));
        assert_eq!(anything.head(&head(500, 9)), Err(ErrorKind::WrongStatus));
    }

    #[test]
    fn parts_that_are_not_expected_may_be_anything() {
        let expect = Expect { status: Some(404), bytes: None, crc32: None, every: 1 };
        let mut v = Verifier::new(Some(expect)).unwrap();
        let head = |status| Head { status, framing: BodyFraming::Length(3), reusable: true };
        assert_eq!((v.head(&head(404)), v.head(&head(200))), (Ok(()), Err(ErrorKind::WrongStatus)));
        assert_eq!(judge(&mut v, &[b"abc"]), Ok(false));
        let mut v = Verifier::new(Some(Expect { bytes: Some(3), status: None, ..expect })).unwrap();
        assert_eq!((v.head(&head(201)), judge(&mut v, &[b"abcd"])), (Ok(()), Err(ErrorKind::WrongLength)));
    }
}
