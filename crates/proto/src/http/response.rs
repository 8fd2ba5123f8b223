//! An HTTP/1.1 response parser for pieces of any size (RFC 9112).
//!
//! `httparse` parses complete heads; nearly every head is complete after one read, and only an incomplete one
//! is copied. Bodies are framed here: `Content-Length`, `chunked` ([`super::chunked`]), or until the peer
//! closes. Interim responses (1xx) are skipped. The parser reports how many bytes follow a complete response:
//! they are valid only with pipelining.

mod last;

pub use last::LastHead;

use super::chunked::Chunked;
use httparse::Status;
use std::fmt;
use std::mem::MaybeUninit;

/// The longest head, in bytes; the servers here send less than a tenth. nginx refuses above 32 KiB.
const LONGEST_HEAD: usize = 64 << 10;
/// The largest number of headers: more than a head of that length usually has.
const MAX_HEADERS: usize = 1_000;

/// Why the bytes are not an HTTP response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    NotHttp,
    Header,
    LongHead,
    ManyHeaders,
    Status,
    Length,
    Lengths,
    TwoFramings,
    Chunk,
    /// Bytes behind the response to the last request.
    Excess,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotHttp => "not a response of HTTP/1.1",
            Self::Header => "a header that is none",
            Self::LongHead => "a head of more than 64 KiB",
            Self::ManyHeaders => "more than 1,000 headers",
            Self::Status => "a status below 100",
            Self::Length => "a Content-Length that is no length",
            Self::Lengths => "Content-Length twice, with two values",
            Self::TwoFramings => "Content-Length and Transfer-Encoding: the end of the body is ambiguous",
            Self::Chunk => "a chunk that is none",
            Self::Excess => "more bytes than the response has, without another request",
        })
    }
}

/// A fault that no server should have and that clients accept, because it changes no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Odd {
    /// RFC 9112 section 6.1: HTTP/1.0 has no codings.
    CodingInHttp10,
    /// Section 6.1: status 204 has no body, and no coding.
    CodingWithoutBody,
    /// Section 5.2.
    FoldedHeader,
}

impl Odd {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::CodingInHttp10, Self::CodingWithoutBody, Self::FoldedHeader];
}

impl fmt::Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CodingInHttp10 => "Transfer-Encoding in HTTP/1.0",
            Self::CodingWithoutBody => "Transfer-Encoding without a body",
            Self::FoldedHeader => "folded header",
        })
    }
}

/// Whether the response is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParserState {
    More,
    /// The last `rest` bytes of the piece are behind the response.
    Complete {
        rest: usize,
    },
}

/// How a body ends (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFraming {
    Length(u64),
    Chunked,
    UntilClose,
}

/// The parts of a head that the engine uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    pub framing: BodyFraming,
    /// The connection stays open after this response (RFC 9112 section 9.3).
    pub reusable: bool,
}

/// The state of the parser in one response; [`Default`] is before its first byte.
#[derive(Debug, Default)]
pub struct Parser {
    head: Option<Head>,
    odd: Option<Odd>,
    chunked: Chunked,
    /// Body bytes so far, without chunk framing.
    body: u64,
    /// The beginning of an incomplete head, or of the head behind an interim one.
    aside: Option<Vec<u8>>,
    /// The response answers HEAD: no body follows, regardless of its head.
    bodiless: bool,
}

impl Parser {
    /// A parser before the first byte; `bodiless`: the response is to HEAD and has no body.
    #[inline]
    pub fn new(bodiless: bool) -> Self {
        Self { bodiless, ..Self::default() }
    }

    /// Before the first byte of the next response, behind a complete one.
    #[inline]
    pub fn reset(&mut self, bodiless: bool) {
        (self.head, self.odd, self.body) = (None, None, 0);
        (self.chunked, self.bodiless) = (Chunked::default(), bodiless);
    }

    /// Takes the next bytes, and passes those of the body to `sink` with their offset. Parsers may share
    /// `last`.
    ///
    /// # Errors
    /// [`Malformed`]; the connection cannot be used any more.
    #[inline]
    pub fn feed(
        &mut self,
        bytes: &[u8],
        last: &mut LastHead,
        mut sink: impl FnMut(u64, &[u8]),
    ) -> Result<ParserState, Malformed> {
        if self.head.is_some() {
            return self.take_body(bytes, &mut sink);
        }
        if self.aside.is_some() {
            return self.feed_aside(bytes, last, &mut sink);
        }
        match self.take_head(bytes, last)? {
            Some(used) => self.take_body(&bytes[used..], &mut sink),
            None => Ok(ParserState::More),
        }
    }

    /// The head, once it is complete.
    #[inline]
    pub fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// The oddity of the head.
    #[inline]
    pub fn odd(&self) -> Option<Odd> {
        self.odd
    }

    /// Body bytes so far.
    #[inline]
    pub fn body_bytes(&self) -> u64 {
        self.body
    }

    /// No byte has arrived.
    pub fn is_fresh(&self) -> bool {
        self.head.is_none() && self.aside.is_none()
    }

    /// The peer's close completes the response: its body lasts until then.
    pub fn end_completes(&self) -> bool {
        self.head.is_some_and(|h| h.framing == BodyFraming::UntilClose)
    }

    /// Continues an incomplete head.
    #[cold]
    fn feed_aside(
        &mut self,
        bytes: &[u8],
        last: &mut LastHead,
        sink: &mut impl FnMut(u64, &[u8]),
    ) -> Result<ParserState, Malformed> {
        let mut whole = self.aside.take().expect("the caller has checked");
        whole.extend_from_slice(bytes);
        match self.take_head(&whole, last)? {
            Some(used) => self.take_body(&whole[used..], sink),
            None => Ok(ParserState::More),
        }
    }

    /// Parses the head at the start of `bytes` and skips interim ones; copies `bytes` if it is not complete.
    #[inline]
    fn take_head(&mut self, bytes: &[u8], last: &mut LastHead) -> Result<Option<usize>, Malformed> {
        let mut skipped = 0;
        loop {
            match last.parse(&bytes[skipped..])? {
                Some((used, (head, _))) if interim(head.status) => skipped += used,
                Some((used, (mut head, odd))) => {
                    if self.bodiless {
                        head.framing = BodyFraming::Length(0);
                    }
                    (self.head, self.odd) = (Some(head), odd);
                    return Ok(Some(skipped + used));
                }
                None if bytes.len() - skipped > LONGEST_HEAD => return Err(Malformed::LongHead),
                None => {
                    // Also without a byte left: the response has begun and has not ended.
                    self.aside = Some(bytes[skipped..].to_vec());
                    return Ok(None);
                }
            }
        }
    }

    #[inline]
    fn take_body(
        &mut self,
        bytes: &[u8],
        sink: &mut impl FnMut(u64, &[u8]),
    ) -> Result<ParserState, Malformed> {
        let head = self.head.as_ref().expect("a body follows its head");
        match head.framing {
            BodyFraming::Length(length) => {
                let left = (length - self.body).min(bytes.len() as u64);
                let (data, rest) = bytes.split_at(left as usize);
                sink(self.body, data);
                self.body += left;
                Ok(if self.body == length {
                    ParserState::Complete { rest: rest.len() }
                } else {
                    ParserState::More
                })
            }
            BodyFraming::UntilClose => {
                sink(self.body, bytes);
                self.body += bytes.len() as u64;
                Ok(ParserState::More)
            }
            BodyFraming::Chunked => {
                let body = &mut self.body;
                self.chunked.feed(bytes, |data| {
                    sink(*body, data);
                    *body += data.len() as u64;
                })
            }
        }
    }
}

/// 101 is final: the connection changes its protocol after it (RFC 9110 section 15.2.2).
#[inline]
fn interim(status: u16) -> bool {
    (100..200).contains(&status) && status != 101
}

/// A head, and what is odd about it.
type ParsedHead = (Head, Option<Odd>);

/// The head at the start of `bytes` and its length, or `None` if it is not complete.
fn parse_head(bytes: &[u8]) -> Result<Option<(usize, ParsedHead)>, Malformed> {
    let mut headers = [MaybeUninit::uninit(); MAX_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default()
        .allow_obsolete_multiline_headers_in_responses(true)
        .parse_response_with_uninit_headers(&mut response, bytes, &mut headers)
        .map_err(|error| match error {
            httparse::Error::TooManyHeaders => Malformed::ManyHeaders,
            httparse::Error::HeaderName | httparse::Error::HeaderValue => Malformed::Header,
            _ => Malformed::NotHttp,
        })?;
    let Status::Complete(used) = parsed else { return Ok(None) };
    let status = response.code.expect("a complete head has a status");
    let mut fields = Fields::default();
    for header in &*response.headers {
        fields.take(header)?;
    }
    Ok(Some((used, fields.head(status, response.version == Some(1))?)))
}

/// The header fields that frame a message.
#[derive(Default)]
struct Fields {
    length: Option<u64>,
    /// Whether `chunked` is the last coding of `Transfer-Encoding`, if that is present.
    coding: Option<bool>,
    close: bool,
    keep_alive: bool,
    folded: bool,
}

impl Fields {
    #[inline]
    fn take(&mut self, header: &httparse::Header<'_>) -> Result<(), Malformed> {
        self.folded |= header.value.contains(&b'\n');
        // By length first: most headers are none of the three.
        match header.name.len() {
            14 if header.name.eq_ignore_ascii_case("content-length") => {
                let length = content_length(header.value)?;
                if self.length.is_some_and(|other| other != length) {
                    return Err(Malformed::Lengths);
                }
                self.length = Some(length);
            }
            10 if header.name.eq_ignore_ascii_case("connection") => {
                for token in tokens(header.value) {
                    self.close |= token.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                // Several headers are one list; an empty one adds nothing, and is still there.
                let last = tokens(header.value).last().map(|last| last.eq_ignore_ascii_case(b"chunked"));
                self.coding = last.or(self.coding).or(Some(false));
            }
            _ => {}
        }
        Ok(())
    }

    #[inline]
    fn head(self, status: u16, version_1_1: bool) -> Result<ParsedHead, Malformed> {
        if status < 100 {
            return Err(Malformed::Status);
        }
        let framing = match (status, self.coding, self.length) {
            (101 | 204 | 304, ..) => BodyFraming::Length(0),
            // Both together are an attempt at request smuggling: an error (RFC 9112 section 6.3, item 3).
            (_, Some(_), Some(_)) => return Err(Malformed::TwoFramings),
            (_, Some(true), None) => BodyFraming::Chunked,
            (_, None, Some(length)) => BodyFraming::Length(length),
            (_, Some(false) | None, None) => BodyFraming::UntilClose,
        };
        // The framing of the first two is faulty: the connection ends with them (RFC 9112 section 6.1).
        let odd = match self.coding {
            Some(_) if !version_1_1 => Some(Odd::CodingInHttp10),
            Some(_) if status == 204 => Some(Odd::CodingWithoutBody),
            _ => self.folded.then_some(Odd::FoldedHeader),
        };
        let is_sound = matches!(odd, None | Some(Odd::FoldedHeader)) && framing != BodyFraming::UntilClose;
        let stays = if version_1_1 { !self.close } else { self.keep_alive && !self.close };
        Ok((Head { status, framing, reusable: stays && is_sound && status != 101 }, odd))
    }
}

/// Comma-separated words without the white space around them.
fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|b| *b == b',').map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
}

/// Digits, or a list of equal ones, as from several headers joined to one (RFC 9110 section 8.6).
fn content_length(value: &[u8]) -> Result<u64, Malformed> {
    let mut all = value.split(|b| *b == b',').map(|part| {
        let digits = part.trim_ascii();
        let valid = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        let text = std::str::from_utf8(digits).map_err(|_| Malformed::Length)?;
        if valid { text.parse().map_err(|_| Malformed::Length) } else { Err(Malformed::Length) }
    });
    let first = all.next().expect("split gives at least one part")?;
    if all.all(|other| other == Ok(first)) { Ok(first) } else { Err(Malformed::Lengths) }
}

#[cfg(test)]
mod tests;
