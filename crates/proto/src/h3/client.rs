//! The client's end of a stream: the request, encoded once, and the response in pieces.

use super::frame::{self, Receiver, Splitter, put_frame};
use super::{Code, qpack};
use crate::fields::{Fields, MOST_FIELDS, Rendered, RequestList, ResponseFields, VaryingMessage};
use crate::http::response::{BodyFraming, Head};
use crate::http::vary::{Template, varies};
use linerate_contract::{Refusal, Request};

/// All bytes of a request's stream; and whether its method is HEAD, whose responses have no body.
#[derive(Debug, Clone)]
pub struct EncodedRequest {
    pub bytes: Vec<u8>,
    pub is_head: bool,
    /// Its bytes are others each time.
    pub varying: Option<VaryingRequest>,
}

/// A request that varies.
#[derive(Debug, Clone)]
pub struct VaryingRequest(VaryingMessage);

impl VaryingRequest {
    /// The bytes of the request with this number; `rendered` is a buffer.
    pub fn render(&self, rendered: &mut Rendered, sequence: u64, seed: u64) -> Vec<u8> {
        self.0.render(rendered, sequence, seed);
        stream(&rendered.fields, &rendered.body)
    }
}

/// All bytes of a stream.
fn stream(section: &[u8], body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_frame(&mut bytes, frame::HEADERS, section);
    if !body.is_empty() {
        put_frame(&mut bytes, frame::DATA, body);
    }
    bytes
}

impl EncodedRequest {
    /// A plain GET unless `request` sets something else.
    ///
    /// # Errors
    /// The request is one that HTTP/1.1 cannot carry.
    pub fn new(path: &str, host: &str, request: &Request) -> Result<Self, Refusal> {
        let list = RequestList::new("https", path, host, request, &[])?;
        let bytes = stream(&qpack::section(&list.fields()), &request.body);
        let varying = varies(path, request).then(|| {
            let body = Template::new(&request.body)?;
            VaryingMessage::new(qpack::START, &list.fields(), body, &qpack::WRITING).map(VaryingRequest)
        });
        Ok(Self { bytes, is_head: list.is_head(), varying: varying.transpose()? })
    }
}

/// A receiver of a response.
pub trait Response {
    /// The status and the length, where it is known.
    fn head(&mut self, head: &Head);
    /// Bytes of the body, with their offset.
    fn body(&mut self, at: u64, bytes: &[u8]);
}

/// A response under way. Readers are used again.
#[derive(Debug, Clone, Default)]
pub struct ResponseReader {
    splitter: Splitter,
    decoder: qpack::Decoder,
    stage: Stage,
    bodiless: bool,
    length: Option<u64>,
    got: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    /// Before the status, or behind an interim response.
    #[default]
    Head,
    Body,
    Trailers,
}

impl ResponseReader {
    /// Bytes of memory that are kept of a message under way.
    #[inline]
    pub fn kept(&self) -> usize {
        self.splitter.kept() + self.decoder.kept()
    }

    /// Before the first byte of another response.
    #[inline]
    pub fn begin(&mut self, bodiless: bool) {
        self.splitter.reset();
        (self.stage, self.bodiless) = (Stage::Head, bodiless);
        (self.length, self.got) = (None, 0);
    }

    /// Takes the next bytes of the stream.
    ///
    /// # Errors
    /// The reason why the stream or the connection is over.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8], response: &mut impl Response) -> Result<(), Code> {
        let Self { splitter, decoder, stage, bodiless, length, got } = self;
        let mut reading = Reading { decoder, stage, bodiless: *bodiless, length, got, response };
        splitter.feed(bytes, &mut reading)
    }

    /// The stream has ended: the bytes of the body.
    ///
    /// # Errors
    /// The response is not complete, or not as long as it said.
    #[inline]
    pub fn finish(&self) -> Result<u64, Code> {
        let is_complete = self.stage != Stage::Head && self.splitter.is_between();
        match self.length {
            _ if !is_complete => Err(Code::REQUEST_INCOMPLETE),
            Some(length) if length != self.got && !self.bodiless => Err(Code::MESSAGE_ERROR),
            _ => Ok(self.got),
        }
    }
}

struct Reading<'a, A> {
    decoder: &'a mut qpack::Decoder,
    stage: &'a mut Stage,
    bodiless: bool,
    length: &'a mut Option<u64>,
    got: &'a mut u64,
    response: &'a mut A,
}

impl<A: Response> Receiver for Reading<'_, A> {
    #[inline]
    fn headers(&mut self, section: &[u8]) -> Result<(), Code> {
        let mut fields = ResponseFields::default();
        self.decoder.decode(section, MOST_FIELDS, |name, value| fields.take(name, value))?;
        match (*self.stage, fields.status) {
            _ if fields.is_bad => return Err(Code::MESSAGE_ERROR),
            (Stage::Head, Some(100..200)) => {}
            (Stage::Head, Some(status @ 200..)) => {
                (*self.stage, *self.length) = (Stage::Body, fields.length);
                let length = if self.bodiless { Some(0) } else { fields.length };
                let framing = length.map_or(BodyFraming::UntilClose, BodyFraming::Length);
                self.response.head(&Head { status, framing, reusable: true });
            }
            (Stage::Body, None) => *self.stage = Stage::Trailers,
            (Stage::Trailers, _) => return Err(Code::FRAME_UNEXPECTED),
            _ => return Err(Code::MESSAGE_ERROR),
        }
        Ok(())
    }

    #[inline]
    fn data_begins(&mut self) -> Result<(), Code> {
        if *self.stage == Stage::Body { Ok(()) } else { Err(Code::FRAME_UNEXPECTED) }
    }

    #[inline]
    fn data(&mut self, piece: &[u8]) {
        self.response.body(*self.got, piece);
        *self.got += piece.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Seen {
        heads: Vec<(u16, BodyFraming)>,
        body: Vec<u8>,
    }

    impl Response for Seen {
        fn head(&mut self, head: &Head) {
            self.heads.push((head.status, head.framing));
        }

        fn body(&mut self, at: u64, bytes: &[u8]) {
            assert_eq!(at, self.body.len() as u64);
            self.body.extend_from_slice(bytes);
        }
    }

    fn message(parts: &[Part<'_>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in parts {
            match part {
                Part::Fields(fields) => put_frame(&mut bytes, frame::HEADERS, &qpack::section(fields)),
                Part::Data(data) => put_frame(&mut bytes, frame::DATA, data),
            }
        }
        bytes
    }

    enum Part<'a> {
        Fields(&'a [(&'a str, &'a str)]),
        Data(&'a [u8]),
    }

    use Part::{Data, Fields};

    fn read(bytes: &[u8], size: usize) -> (Seen, Result<u64, Code>) {
        let (mut reader, mut seen) = (ResponseReader::default(), Seen::default());
        for piece in bytes.chunks(size) {
            if let Err(code) = reader.feed(piece, &mut seen) {
                return (seen, Err(code));
            }
        }
        let end = reader.finish();
        (seen, end)
    }

    #[test]
    fn responses_are_the_same_in_pieces_of_any_size() {
        let bytes = message(&[
            Fields(&[(":status", "103"), ("link", "x")]),
            Fields(&[(":status", "200"), ("content-length", "6")]),
            Data(b"abc"),
            Data(b"def"),
            Fields(&[("x-trailer", "1")]),
        ]);
        for size in 1..=bytes.len() {
            let (seen, end) = read(&bytes, size);
            assert_eq!((&seen.body[..], end), (&b"abcdef"[..], Ok(6)));
            assert_eq!(seen.heads, [(200, BodyFraming::Length(6))]);
        }
    }

    #[test]
    fn responses_that_break_the_rules_are_no_responses() {
        let good = Fields(&[(":status", "200"), ("content-length", "3")]);
        for (parts, code) in [
            (vec![good, Data(b"ab")], Code::MESSAGE_ERROR),
            (vec![Fields(&[("content-length", "3")])], Code::MESSAGE_ERROR),
            (vec![Fields(&[(":status", "200"), ("Upper", "1")])], Code::MESSAGE_ERROR),
            (vec![Fields(&[(":status", "200"), ("connection", "close")])], Code::MESSAGE_ERROR),
            (vec![Fields(&[(":status", "100")])], Code::REQUEST_INCOMPLETE),
            (vec![], Code::REQUEST_INCOMPLETE),
            (vec![Data(b"x")], Code::FRAME_UNEXPECTED),
        ] {
            assert_eq!(read(&message(&parts), 1_000).1, Err(code));
        }
    }

    #[test]
    fn a_response_to_head_has_a_length_and_no_body() {
        let (mut reader, mut seen) = (ResponseReader::default(), Seen::default());
        reader.begin(true);
        reader.feed(&message(&[Fields(&[(":status", "200"), ("content-length", "3")])]), &mut seen).unwrap();
        assert_eq!((reader.finish(), seen.heads[0].1), (Ok(0), BodyFraming::Length(0)));
    }

    #[test]
    fn a_request_that_varies_has_its_numbers_in_its_fields_and_its_body() {
        let headers = vec!["Id: {seq}".into()];
        let request = Request { headers, body: "n={seq}".into(), ..Request::default() };
        let varying = EncodedRequest::new("/a/{seq}", "h:1", &request).unwrap().varying.unwrap();
        let render = |number| varying.render(&mut Rendered::default(), number, 1);
        let written = |path: &str, id: &str, body: &str| {
            let length = body.len().to_string();
            let fields = [
                (":method", "GET"),
                (":scheme", "https"),
                (":authority", "h:1"),
                (":path", path),
                ("content-length", &length),
                ("id", id),
            ];
            message(&[Fields(&fields), Data(body.as_bytes())])
        };
        assert_eq!(render(9), written("/a/9", "9", "n=9"));
        assert_eq!(render(1_000), written("/a/1000", "1000", "n=1000"));
    }

    #[test]
    fn a_request_has_its_body_behind_its_fields() {
        let request = Request { method: Some("POST".into()), body: "hello".into(), ..Request::default() };
        let encoded = EncodedRequest::new("/a", "h:1", &request).unwrap();
        assert!(encoded.bytes.ends_with(b"\x00\x05hello") && !encoded.is_head);
        let head = Request { method: Some("HEAD".into()), ..Request::default() };
        assert!(EncodedRequest::new("/a", "h:1", &head).unwrap().is_head);
    }
}
