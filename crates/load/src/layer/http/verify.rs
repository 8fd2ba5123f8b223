//! Compares answers with the spec: status and length of every one, content of every n-th.
//!
//! Where the checksum is that of [`linerate_contract::page`], content is compared with the page, which is
//! several times cheaper than a checksum and needs no state; otherwise by a running CRC-32.

use crate::refusal::Refusal;
use linerate_contract::{ErrorKind, Expect, crc32, page};
use linerate_proto::http::response::{BodyFraming, Head};
use std::sync::Arc;

/// Larger pages are compared by checksum, in bytes: the page would evict everything else from the cache.
const LARGEST_PAGE: u64 = 16 << 20;

/// The expectation of a thread; a connection has only a [`Check`].
#[derive(Debug, Clone)]
pub(super) struct Verifier {
    expect: Option<Expect>,
    page: Option<Arc<[u8]>>,
    /// Answers until the next one whose content is compared.
    countdown: u64,
}

/// The check of one answer's content.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Check {
    wanted: bool,
    differs: bool,
    crc: u32,
}

impl Verifier {
    pub(super) fn new(expect: Option<Expect>) -> Result<Self, Refusal> {
        if expect.is_some_and(|e| e.every == 0) {
            return Err(Refusal::BadSpec("\"expect.every\" must be at least 1 (1: every answer)".into()));
        }
        let page = expect
            .filter(|e| e.bytes <= LARGEST_PAGE)
            .map(|e| (e, page(e.bytes as usize)))
            .filter(|(e, page)| crc32(page) == e.crc32)
            .map(|(_, page)| page.into());
        Ok(Self { expect, page, countdown: 0 })
    }

    /// Begins the check of the next answer; the first one's content is always compared.
    #[inline]
    pub(super) fn begin(&mut self) -> Check {
        let Some(expect) = self.expect else { return Check::default() };
        let wanted = self.countdown == 0;
        self.countdown = if wanted { expect.every - 1 } else { self.countdown - 1 };
        Check { wanted, ..Check::default() }
    }

    /// Checks a head. Without an expectation any final status below 400 is good, as in wrk and ab; 101
    /// answers a request for another protocol, which this client does not send.
    #[inline]
    pub(super) fn head(&self, head: &Head) -> Result<(), ErrorKind> {
        let Some(expect) = self.expect else {
            return if (200..400).contains(&head.status) { Ok(()) } else { Err(ErrorKind::WrongStatus) };
        };
        if head.status != expect.status {
            return Err(ErrorKind::WrongStatus);
        }
        match head.framing {
            BodyFraming::Length(length) if length != expect.bytes => Err(ErrorKind::WrongLength),
            _ => Ok(()),
        }
    }

    /// Takes bytes of the body at offset `at`.
    #[inline]
    pub(super) fn body(&self, check: &mut Check, at: u64, bytes: &[u8]) {
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

    /// Checks an answer of `bytes` bytes; true if its content was compared.
    #[inline]
    pub(super) fn answer(&self, check: &Check, bytes: u64) -> Result<bool, ErrorKind> {
        let Some(expect) = self.expect else { return Ok(false) };
        if bytes != expect.bytes {
            return Err(ErrorKind::WrongLength);
        }
        if check.wanted && (check.differs || (self.page.is_none() && check.crc != expect.crc32)) {
            return Err(ErrorKind::WrongContent);
        }
        Ok(check.wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verifier(content: &[u8], every: u64) -> Verifier {
        let expect = Expect { status: 200, bytes: content.len() as u64, crc32: crc32(content), every };
        Verifier::new(Some(expect)).unwrap()
    }

    fn judge(verifier: &mut Verifier, pieces: &[&[u8]]) -> Result<bool, ErrorKind> {
        let mut check = verifier.begin();
        let mut at = 0;
        for piece in pieces {
            verifier.body(&mut check, at, piece);
            at += piece.len() as u64;
        }
        verifier.answer(&check, at)
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
}
