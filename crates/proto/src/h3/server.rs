//! The server's end of a stream: a request in pieces, and the same page for each GET.

use super::frame::{self, Receiver, Splitter, put_frame};
use super::{Code, qpack};
use crate::fields::{Fields, MOST_FIELDS, Method, RequestFields};

/// The content that is served: all bytes of a response's stream.
#[derive(Debug, Clone)]
pub struct Content {
    page: Vec<u8>,
    /// Bytes of `page` that answer HEAD.
    head: usize,
    refusal: Vec<u8>,
}

impl Content {
    /// A page for each GET.
    pub fn page(page: &[u8]) -> Self {
        let size = page.len().to_string();
        let fields = [
            (":status", "200"),
            ("server", "linerate"),
            ("content-type", "text/plain"),
            ("content-length", &size),
        ];
        let mut bytes = Vec::new();
        put_frame(&mut bytes, frame::HEADERS, &qpack::section(&fields));
        let head = bytes.len();
        put_frame(&mut bytes, frame::DATA, page);
        let mut refusal = Vec::new();
        put_frame(&mut refusal, frame::HEADERS, &qpack::section(&[(":status", "400")]));
        Self { page: bytes, head, refusal }
    }

    /// All bytes of a response's stream.
    pub fn bytes(&self, response: Response) -> &[u8] {
        match response {
            Response::Page => &self.page,
            Response::Head => &self.page[..self.head],
            Response::Refusal => &self.refusal,
        }
    }
}

/// The response to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Response {
    Page,
    /// The fields of the page alone.
    Head,
    /// The method is none that is served.
    Refusal,
}

/// A request under way. Its body is accepted and ignored. Readers are used again.
#[derive(Debug, Clone, Default)]
pub struct RequestReader {
    splitter: Splitter,
    decoder: qpack::Decoder,
    /// Once its fields are there.
    method: Option<Method>,
    has_trailers: bool,
}

impl RequestReader {
    /// Bytes of memory that are kept of a message under way.
    #[inline]
    pub fn kept(&self) -> usize {
        self.splitter.kept() + self.decoder.kept()
    }

    /// Before the first byte of another request.
    pub fn begin(&mut self) {
        self.splitter.reset();
        (self.method, self.has_trailers) = (None, false);
    }

    /// Takes the next bytes of the stream.
    ///
    /// # Errors
    /// The reason why the stream or the connection is over.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), Code> {
        let Self { splitter, decoder, method, has_trailers } = self;
        splitter.feed(bytes, &mut Reading { decoder, method, has_trailers })
    }

    /// The stream has ended.
    ///
    /// # Errors
    /// The request is not complete.
    #[inline]
    pub fn finish(&self) -> Result<Response, Code> {
        match self.method {
            _ if !self.splitter.is_between() => Err(Code::REQUEST_INCOMPLETE),
            Some(Method::Get) => Ok(Response::Page),
            Some(Method::Head) => Ok(Response::Head),
            Some(Method::Post | Method::Other) => Ok(Response::Refusal),
            None => Err(Code::REQUEST_INCOMPLETE),
        }
    }
}

struct Reading<'a> {
    decoder: &'a mut qpack::Decoder,
    method: &'a mut Option<Method>,
    has_trailers: &'a mut bool,
}

impl Receiver for Reading<'_> {
    #[inline]
    fn headers(&mut self, section: &[u8]) -> Result<(), Code> {
        let mut fields = RequestFields::default();
        self.decoder.decode(section, MOST_FIELDS, |name, value| fields.take(name, value))?;
        if self.method.is_none() {
            *self.method = Some(fields.method);
            return if fields.is_request() { Ok(()) } else { Err(Code::MESSAGE_ERROR) };
        }
        match std::mem::replace(self.has_trailers, true) {
            true => Err(Code::FRAME_UNEXPECTED),
            false if fields.is_bad || fields.has_pseudo() => Err(Code::MESSAGE_ERROR),
            false => Ok(()),
        }
    }

    #[inline]
    fn data_begins(&mut self) -> Result<(), Code> {
        let is_due = self.method.is_some() && !*self.has_trailers;
        if is_due { Ok(()) } else { Err(Code::FRAME_UNEXPECTED) }
    }

    fn data(&mut self, _piece: &[u8]) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h3::client::EncodedRequest;
    use linerate_contract::Request;

    fn answer(bytes: &[u8], size: usize) -> Result<Response, Code> {
        let mut reader = RequestReader::default();
        bytes.chunks(size).try_for_each(|piece| reader.feed(piece))?;
        reader.finish()
    }

    #[test]
    fn requests_are_answered_by_their_method_in_pieces_of_any_size() {
        for (method, body, response) in
            [("GET", "", Response::Page), ("HEAD", "", Response::Head), ("POST", "body", Response::Refusal)]
        {
            let request = Request { method: Some(method.into()), body: body.into(), ..Request::default() };
            let bytes = EncodedRequest::new("/", "h", &request).unwrap().bytes;
            for size in 1..=bytes.len() {
                assert_eq!(answer(&bytes, size), Ok(response), "{method}");
            }
            assert_eq!(answer(&bytes[..bytes.len() - 1], 100), Err(Code::REQUEST_INCOMPLETE));
        }
        let content = Content::page(b"page");
        let (page, head) = (content.bytes(Response::Page), content.bytes(Response::Head));
        assert!(page.starts_with(head) && page.ends_with(b"\0\x04page"));
    }

    #[test]
    fn requests_that_break_the_rules_are_refused() {
        let fields = |fields: &[(&str, &str)]| {
            let mut bytes = Vec::new();
            put_frame(&mut bytes, frame::HEADERS, &qpack::section(fields));
            bytes
        };
        let good = fields(&[(":method", "GET"), (":scheme", "https"), (":path", "/")]);
        for (bytes, code) in [
            (fields(&[(":method", "GET")]), Code::MESSAGE_ERROR),
            (vec![0, 1, b'x'], Code::FRAME_UNEXPECTED),
            ([&good[..], &good].concat(), Code::MESSAGE_ERROR),
            (vec![], Code::REQUEST_INCOMPLETE),
        ] {
            assert_eq!(answer(&bytes, 100), Err(code));
        }
    }
}
