//! The client's end of a connection. Requests are under way in lanes: as many streams as the connection may
//! have at the same time, whose state is used again and again.

mod request;
mod side;

pub use request::{EncodedRequest, prefixed};

use super::connection::{self, Link};
use super::frame::{self, Splitter};
use super::hpack::Encoding;
use super::window::{LARGEST, ReceiveWindow, SendWindow};
use super::{Code, PREFACE};
use crate::fields::{MOST_FIELDS, Rendered};
use crate::http::response::Head;
use side::ClientSide;

/// Bytes that a server may send before this end has read them, on a stream and on a connection: as h2load has
/// it, so that no response waits for this end.
const WINDOW: u32 = (1 << 30) - 1;
/// Bodies of requests are queued up to this many bytes.
const MOST_QUEUED: usize = 64 << 10;

/// Why a stream has no good response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The response is complete.
    Complete,
    /// The response breaks the rules for messages (section 8.1.1).
    Malformed,
    /// The peer has ended the stream.
    Reset(Code),
    /// The peer ends the connection, for this reason, and has not looked at the stream (section 6.8).
    Unprocessed(Code),
}

/// Takes responses.
pub trait Responses {
    /// The head of the response in a lane.
    fn head(&mut self, lane: usize, head: &Head);
    /// Bytes of its body, from `at` on.
    fn body(&mut self, lane: usize, at: u64, bytes: &[u8]);
    /// The content of the response is that of a call of gRPC.
    fn rpc_content(&mut self, _lane: usize) {}
    /// The response has this status of gRPC.
    fn rpc_status(&mut self, _lane: usize, _status: u32) {}
    /// The stream is over; the body had this many bytes. The lane is free then.
    fn end(&mut self, lane: usize, bytes: u64, ended: Ended);
    /// The peer has announced the end of the connection; `keeps`: it still works on a stream.
    fn goaway(&mut self, code: Code, keeps: bool);
}

/// One connection.
#[derive(Debug)]
pub struct Client {
    link: Link,
    splitter: Splitter,
    encoding: Encoding,
    streams: Streams,
}

#[derive(Debug)]
struct Streams {
    /// The stream of each lane; 0 is none.
    ids: Box<[u32]>,
    lanes: Box<[Lane]>,
    free: Vec<u16>,
    /// Bodies that vary, of the requests in the lanes.
    own: Box<[Vec<u8>]>,
    /// Lanes with a rest of a body to be sent, each in its turn.
    sending: Vec<u16>,
    /// Where the last stream was found: the next one is often beside it.
    last: usize,
    /// The lane of the DATA frame under way.
    current: Option<usize>,
    next: u32,
    /// A stream was ended from here, so that late frames of one are no fault.
    has_cancelled: bool,
    /// No further requests are sent on this connection.
    closes: bool,
    answered: u64,
}

/// A stream under way.
#[derive(Debug, Clone, Copy, Default)]
struct Lane {
    /// The final head has arrived, with this length of the body.
    head: Option<Option<u64>>,
    bodiless: bool,
    got: u64,
    receive: ReceiveWindow,
    send: SendWindow,
    /// The number of the request, and bytes of its body that were queued.
    request: u32,
    sent: usize,
}

impl Client {
    /// A connection with up to `lanes` streams at the same time; its preface is to be sent.
    pub fn new(lanes: u16) -> Self {
        let settings = [
            (connection::ENABLE_PUSH, 0),
            (connection::INITIAL_WINDOW_SIZE, WINDOW),
            (connection::MAX_HEADER_LIST_SIZE, MOST_FIELDS as u32),
        ];
        Self {
            link: Link::new(&settings, WINDOW, PREFACE),
            splitter: Splitter::default(),
            encoding: Encoding::default(),
            streams: Streams {
                ids: vec![0; lanes.into()].into(),
                lanes: vec![Lane::default(); lanes.into()].into(),
                free: (0..lanes).rev().collect(),
                own: vec![Vec::new(); lanes.into()].into(),
                sending: Vec::with_capacity(lanes.into()),
                last: 0,
                current: None,
                next: 1,
                has_cancelled: false,
                closes: false,
                answered: 0,
            },
        }
    }

    /// Bytes of memory that are kept for what the server sends.
    #[inline]
    pub fn kept(&self) -> usize {
        self.link.kept() + self.splitter.kept()
    }

    /// The last bytes of the server, which are no whole frame.
    pub fn unfinished(&self) -> &[u8] {
        self.splitter.unfinished()
    }

    /// The server's settings have arrived.
    pub fn is_open(&self) -> bool {
        self.link.is_open
    }

    /// Whether another stream can begin.
    #[inline]
    pub fn has_room(&self) -> bool {
        let Streams { closes, free, next, .. } = &self.streams;
        !closes && !free.is_empty() && *next <= LARGEST && self.under_way() < self.link.peer.streams
    }

    /// Streams under way.
    #[inline]
    pub fn under_way(&self) -> u32 {
        (self.streams.ids.len() - self.streams.free.len()) as u32
    }

    /// Whether the connection is of no use any more: the peer closes it, or its numbers are used up.
    pub fn is_over(&self) -> bool {
        (self.streams.closes || self.streams.next > LARGEST) && self.under_way() == 0
    }

    /// Complete responses so far.
    pub fn answered(&self) -> u64 {
        self.streams.answered
    }

    /// No further requests on this connection.
    pub fn retire(&mut self) {
        self.streams.closes = true;
    }

    /// Begins a stream with this request, where [`Self::has_room`]; its lane. If a connection has only one,
    /// the peer keeps its fields.
    #[inline]
    pub fn start(&mut self, request: &EncodedRequest) -> Option<usize> {
        let (lane, id) = self.begin(request)?;
        let end = if request.body.is_empty() { frame::END_STREAM } else { 0 };
        let table = if request.number.is_none() { self.link.peer.table } else { 0 };
        let block = request.blocks.next(&mut self.encoding, table);
        self.link.output.frame(frame::HEADERS, frame::END_HEADERS | end, id, block);
        if !request.body.is_empty() {
            self.streams.sending.push(lane);
        }
        Some(lane.into())
    }

    /// As [`Self::start`], with a request that varies as it was rendered.
    pub fn start_varied(&mut self, request: &EncodedRequest, rendered: &Rendered) -> Option<usize> {
        let (lane, id) = self.begin(request)?;
        let Rendered { fields, body, .. } = rendered;
        let end = if body.is_empty() { frame::END_STREAM } else { 0 };
        self.link.output.frame(frame::HEADERS, frame::END_HEADERS | end, id, fields);
        if !body.is_empty() {
            self.streams.own[usize::from(lane)].clone_from(body);
            self.streams.sending.push(lane);
        }
        Some(lane.into())
    }

    /// Takes a lane and a stream.
    #[inline]
    fn begin(&mut self, request: &EncodedRequest) -> Option<(u16, u32)> {
        if !self.has_room() {
            return None;
        }
        let lane = self.streams.free.pop()?;
        let id = self.streams.next;
        self.streams.next += 2;
        self.streams.ids[usize::from(lane)] = id;
        self.streams.lanes[usize::from(lane)] = Lane {
            bodiless: request.is_head,
            request: request.number.unwrap_or(0),
            receive: ReceiveWindow::new(WINDOW),
            send: SendWindow::new(self.link.peer.window),
            ..Lane::default()
        };
        Some((lane, id))
    }

    /// Ends a stream from here, if it is not over.
    pub fn cancel(&mut self, lane: usize) {
        if self.streams.ids[lane] != 0 {
            self.streams.reset(&mut self.link, lane, Code::CANCEL);
        }
    }

    /// The bytes to be sent; `requests` are all that streams begin with.
    #[inline]
    pub fn pending(&mut self, requests: &[EncodedRequest]) -> &[u8] {
        if !self.streams.sending.is_empty() && self.link.output.pending().len() < MOST_QUEUED {
            self.streams.queue_bodies(&mut self.link, requests);
        }
        self.link.output.pending()
    }

    /// As [`Self::pending`], without further bodies.
    #[inline]
    pub fn queued(&self) -> &[u8] {
        self.link.output.pending()
    }

    /// `count` bytes of that were sent.
    #[inline]
    pub fn advance(&mut self, count: usize) {
        self.link.output.advance(count);
    }

    /// Takes what the server has sent.
    ///
    /// # Errors
    /// The reason why the connection is over; what is to be sent next contains it.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8], responses: &mut impl Responses) -> Result<(), Code> {
        let mut side = ClientSide { streams: &mut self.streams, responses };
        let outcome = self.link.feed(&mut self.splitter, &mut side, bytes);
        outcome.inspect_err(|code| self.link.goaway(0, *code))
    }

    /// Queues the end of the connection.
    pub fn close(&mut self) {
        self.retire();
        self.link.goaway(0, Code::NO_ERROR);
    }
}

impl Streams {
    /// The lane of a stream under way. `None`: it is over.
    ///
    /// # Errors
    /// No client has begun it.
    #[inline]
    fn find(&mut self, stream: u32) -> Result<Option<usize>, Code> {
        // Responses come in about the order of requests, and lanes are taken in that of responses.
        let next = if self.last + 1 < self.ids.len() { self.last + 1 } else { 0 };
        for lane in [self.last, next] {
            if self.ids[lane] == stream {
                self.last = lane;
                return Ok(Some(lane));
            }
        }
        if let Some(lane) = self.ids.iter().position(|id| *id == stream) {
            self.last = lane;
            return Ok(Some(lane));
        }
        // A server begins no streams: push is refused.
        if stream.is_multiple_of(2) || stream >= self.next { Err(Code::PROTOCOL_ERROR) } else { Ok(None) }
    }

    /// As [`Self::find`], of a stream that the peer still may send on.
    #[inline]
    fn find_open(&mut self, stream: u32) -> Result<Option<usize>, Code> {
        match self.find(stream)? {
            None if !self.has_cancelled => Err(Code::STREAM_CLOSED),
            found => Ok(found),
        }
    }

    #[inline]
    fn free(&mut self, lane: usize) {
        self.ids[lane] = 0;
        self.free.push(lane as u16);
        if !self.sending.is_empty() {
            self.sending.retain(|sending| usize::from(*sending) != lane);
        }
    }

    #[cold]
    fn reset(&mut self, link: &mut Link, lane: usize, code: Code) {
        link.output.reset(self.ids[lane], code);
        self.has_cancelled = true;
        self.free(lane);
    }

    fn queue_bodies(&mut self, link: &mut Link, requests: &[EncodedRequest]) {
        let mut idle = 0;
        while idle < self.sending.len() && link.output.pending().len() < MOST_QUEUED {
            let at = self.sending.remove(0);
            let lane = &mut self.lanes[usize::from(at)];
            let request = &requests[lane.request as usize];
            let body = if request.varies() { &self.own[usize::from(at)][..] } else { &request.body[..] };
            let count = lane.send.room(link.room()).min(body.len() - lane.sent);
            if count == 0 {
                idle += 1;
                self.sending.push(at);
                continue;
            }
            let piece = &body[lane.sent..lane.sent + count];
            lane.sent += count;
            lane.send.spend(count);
            link.send.spend(count);
            link.has_progress();
            let is_last = lane.sent == body.len();
            let end = if is_last { frame::END_STREAM } else { 0 };
            link.output.frame(frame::DATA, end, self.ids[usize::from(at)], piece);
            idle = 0;
            if !is_last {
                self.sending.push(at);
            }
        }
    }
}

#[cfg(test)]
mod tests;
