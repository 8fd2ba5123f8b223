//! HTTP/3 (RFC 9114): one request, answered by the same page.

use super::client::{ClientProtocol, Fault};
use super::server::{Content, ServerProtocol};
use crate::cause::note;
use crate::layer::Response;
use crate::layer::h2::each_request;
use crate::layer::http::verify::{Check, Verifier};
use crate::layer::http::{STATUSES, by_status, events};
use crate::layer::order::Numbering;
use crate::refusal::Refusal;
use bytes::Bytes;
use linerate_contract::{Cause, ErrorKind, Spec, page};
use linerate_proto::events::{EventKind, Events};
use linerate_proto::fields::Rendered;
use linerate_proto::h3::client::{self, EncodedRequest, ResponseReader, VaryingRequest};
use linerate_proto::h3::control::{PeerStream, opening};
use linerate_proto::h3::server::{self, RequestReader};
use linerate_proto::h3::{ALPN, Code};
use linerate_proto::http::response::Head;
use std::collections::BTreeMap;

/// The largest page, in bytes, as over HTTP/1.1.
const LARGEST_PAGE: u64 = 1 << 30;

/// The client's end.
#[derive(Debug, Clone)]
pub(crate) struct H3 {
    /// Each with its verifier, and whether its method is HEAD.
    requests: Box<[(Bytes, Verifier, bool)]>,
    /// Each that varies.
    varying: Box<[Option<VaryingRequest>]>,
    numbers: Numbering,
    rendered: Rendered,
    opening: Bytes,
    events: Option<EventKind>,
    statuses: Box<[u64; STATUSES]>,
}

/// A response under way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reading {
    reader: ResponseReader,
    request: u32,
    check: Check,
    status: u16,
    /// The fault of the head: the rest is read all the same, for a stream that ends by itself.
    wrong: Option<ErrorKind>,
    events: Events,
    arrived: u32,
}

impl ClientProtocol for H3 {
    const ALPN: &'static [u8] = ALPN;
    const DONE: u32 = Code::NO_ERROR.0 as u32;
    const OVERLOAD: u32 = Code::EXCESSIVE_LOAD.0 as u32;
    type Reader = Reading;
    type PeerStream = PeerStream;

    fn new(spec: &Spec) -> Result<Self, Refusal> {
        let (mut requests, mut varying) = (Vec::new(), Vec::new());
        each_request(spec, |path, host, request, expect| {
            let encoded = EncodedRequest::new(path, host, request)?;
            requests.push((encoded.bytes.into(), Verifier::new(expect)?, encoded.is_head));
            varying.push(encoded.varying);
            Ok(())
        })?;
        Ok(Self {
            requests: requests.into(),
            varying: varying.into(),
            numbers: Numbering::new(spec),
            rendered: Rendered::default(),
            opening: opening().into(),
            events: events(spec)?,
            statuses: Box::new([0; STATUSES]),
        })
    }

    fn requests(&self) -> Box<[Bytes]> {
        self.requests.iter().map(|(bytes, ..)| bytes.clone()).collect()
    }

    #[inline]
    fn varied(&mut self, request: u32) -> Option<Bytes> {
        let varying = self.varying[request as usize].as_ref()?;
        Some(varying.render(&mut self.rendered, self.numbers.next(), self.numbers.seed).into())
    }

    fn opening(&self) -> Bytes {
        self.opening.clone()
    }

    #[inline]
    fn begin(&mut self, reading: &mut Reading, request: u32) {
        let (_, verifier, is_head) = &mut self.requests[request as usize];
        reading.reader.begin(*is_head);
        (reading.request, reading.check, reading.status) = (request, verifier.begin(), 0);
        reading.wrong = None;
        reading.events = Events::default();
    }

    #[inline]
    fn take_events(reading: &mut Reading) -> u32 {
        std::mem::take(&mut reading.arrived)
    }

    #[inline]
    fn feed(&mut self, reading: &mut Reading, bytes: &[u8]) -> Result<(), Fault> {
        let Reading { reader, request, check, status, wrong, events, arrived } = reading;
        let (_, verifier, _) = &self.requests[*request as usize];
        let timed = self.events.map(|kind| (kind, events, arrived));
        let mut taking = Taking { verifier, check, status, timed, wrong };
        let fed = reader.feed(bytes, &mut taking);
        fed.map_err(|code| self.fault(reading.status, code))
    }

    #[inline]
    fn kept(reading: &Reading) -> usize {
        reading.reader.kept()
    }

    #[inline]
    fn finish(&mut self, reading: &mut Reading) -> Result<Response, Fault> {
        let bytes = reading.reader.finish().map_err(|code| self.fault(reading.status, code))?;
        self.count(reading.status);
        let verifier = &self.requests[reading.request as usize].1;
        let outcome = reading.wrong.map_or(Ok(()), Err);
        let outcome = outcome.and_then(|()| verifier.response(&reading.check, bytes));
        let status = reading.status;
        let wrong = |kind| Fault { status, ..verifier.note(kind, status, bytes, &[]).into() };
        let verified = outcome.map_err(wrong)?;
        Ok(Response { bytes, verified, reusable: true, status })
    }

    fn feed_peer(&mut self, stream: &mut PeerStream, bytes: &[u8]) -> Result<Option<u64>, u32> {
        stream.feed(bytes).map_err(|code| code.0 as u32)
    }

    fn are_too_many(one: &PeerStream, other: &PeerStream) -> Option<u32> {
        one.is_twice(other).then_some(Code::STREAM_CREATION_ERROR.0 as u32)
    }

    fn finish_peer(&mut self, stream: &PeerStream) -> Result<(), u32> {
        stream.finish().map_err(|code| code.0 as u32)
    }

    fn name(code: u64) -> String {
        Code(code).to_string()
    }

    fn statuses(&self) -> BTreeMap<String, u64> {
        by_status(&self.statuses)
    }
}

impl H3 {
    #[inline]
    fn count(&mut self, status: u16) {
        if status != 0 {
            self.statuses[usize::from(status) % STATUSES] += 1;
        }
    }

    /// The kind of a breach of the protocol, in a message or for the connection.
    #[cold]
    fn fault(&mut self, status: u16, code: Code) -> Fault {
        self.count(status);
        let kind = match code {
            Code::REQUEST_INCOMPLETE if status == 0 => ErrorKind::EmptyResponse,
            Code::REQUEST_INCOMPLETE => ErrorKind::Truncated,
            _ => ErrorKind::Malformed,
        };
        note(kind, || Cause::new(format!("the server breaks the rules of HTTP/3 ({code})")));
        Fault { ends: (!code.is_of_a_message()).then_some(code.0 as u32), ..kind.into() }
    }
}

struct Taking<'a> {
    verifier: &'a Verifier,
    check: &'a mut Check,
    status: &'a mut u16,
    timed: Option<(EventKind, &'a mut Events, &'a mut u32)>,
    wrong: &'a mut Option<ErrorKind>,
}

impl client::Response for Taking<'_> {
    #[inline]
    fn head(&mut self, head: &Head) {
        *self.status = head.status;
        *self.wrong = self.verifier.wrong_head(head);
    }

    #[inline]
    fn body(&mut self, at: u64, bytes: &[u8]) {
        match *self.wrong {
            Some(kind) => _ = self.verifier.note(kind, *self.status, bytes.len() as u64, bytes),
            None => self.verifier.body(self.check, at, bytes),
        }
        if let Some((kind, events, arrived)) = &mut self.timed {
            **arrived += events.feed(*kind, bytes);
        }
    }
}

/// The server's end.
#[derive(Debug, Clone)]
pub(crate) struct H3Page {
    page: Bytes,
    head: Bytes,
    refusal: Bytes,
    opening: Bytes,
}

impl ServerProtocol for H3Page {
    const ALPN: &'static [u8] = ALPN;
    const OVERLOAD: u32 = Code::EXCESSIVE_LOAD.0 as u32;
    type Request = RequestReader;
    type PeerStream = PeerStream;

    fn new(spec: &Spec) -> Result<Self, Refusal> {
        if spec.size > LARGEST_PAGE {
            return Err(Refusal::BadSpec(format!("\"size\" must be at most {LARGEST_PAGE} bytes")));
        }
        let content = server::Content::page(&page(spec.size as usize));
        let bytes = |response| Bytes::copy_from_slice(content.bytes(response));
        let (page, head, refusal) =
            (bytes(server::Response::Page), bytes(server::Response::Head), bytes(server::Response::Refusal));
        Ok(Self { page, head, refusal, opening: opening().into() })
    }

    fn opening(&self) -> Bytes {
        self.opening.clone()
    }

    #[inline]
    fn feed(&self, request: &mut RequestReader, bytes: &[u8]) -> Result<(), u32> {
        request.feed(bytes).map_err(|code| code.0 as u32)
    }

    #[inline]
    fn kept(request: &RequestReader) -> usize {
        request.kept()
    }

    #[inline]
    fn finish(&self, request: &RequestReader) -> Result<Content, u32> {
        let piece = match request.finish().map_err(|code| code.0 as u32)? {
            server::Response::Page => &self.page,
            server::Response::Head => &self.head,
            server::Response::Refusal => &self.refusal,
        };
        Ok(Content { total: piece.len() as u64, piece: piece.clone() })
    }

    fn feed_peer(&self, stream: &mut PeerStream, bytes: &[u8]) -> Result<(), u32> {
        stream.feed(bytes).map(drop).map_err(|code| code.0 as u32)
    }

    fn are_too_many(one: &PeerStream, other: &PeerStream) -> Option<u32> {
        one.is_twice(other).then_some(Code::STREAM_CREATION_ERROR.0 as u32)
    }

    fn finish_peer(&self, stream: &PeerStream) -> Result<(), u32> {
        stream.finish().map_err(|code| code.0 as u32)
    }

    fn name(code: u64) -> String {
        Code(code).to_string()
    }

    fn is_of_a_request(code: u32) -> bool {
        Code(code.into()).is_of_a_message()
    }
}
