//! The server's end of a connection: the same page for each GET, or the same message for each call of gRPC.
//!
//! Bodies of requests are accepted and ignored. Responses are made frame by frame into what room there is,
//! each stream in its turn.

mod content;

pub use content::{Content, rpc_response};

use super::Code;
use super::connection::{self, Link, Preface, Side};
use super::frame::{self, HEAD, Head, Splitter};
use super::hpack::{Encoding, TABLE_SIZE};
use super::window::{SendWindow, USUAL};
use crate::fields::{MOST_FIELDS, Method, RequestFields};
use content::RPC_DONE;
use std::collections::VecDeque;

/// Streams of a client at the same time; nginx and h2o accept about as many.
const MOST_STREAMS: u32 = 256;
/// Streams that a client may end before their responses, in a row: with each it makes work that it does not
/// receive (rapid reset).
const MOST_RESETS: u32 = 1_000;

/// Streams that were refused last: what the client has sent of them by then is ignored.
const REFUSED: usize = 64;

/// Status 400 alone, from the static table; and the same for a peer whose dynamic table is small, which first
/// reads that it is not used.
const BAD_REQUEST: [&[u8]; 2] = [&[0x8c], &[0x20, 0x8c]];

/// One connection.
#[derive(Debug)]
pub struct Server {
    preface: Preface,
    link: Link,
    splitter: Splitter,
    encoding: Encoding,
    streams: ServerStreams,
}

#[derive(Debug, Default)]
struct ServerStreams {
    /// The last stream that the client has begun.
    last: u32,
    /// Requests whose bodies are under way.
    open: Vec<Open>,
    refused: VecDeque<u32>,
    /// Responses that are due, in turns.
    due: VecDeque<Due>,
    current: Option<u32>,
    resets: u32,
}

/// A request whose body is under way.
#[derive(Debug, Clone, Copy)]
struct Open {
    stream: u32,
    method: Method,
    /// Bytes of its body that are to come, where the client has said how many.
    left: Option<u64>,
}

/// A response.
#[derive(Debug, Clone, Copy)]
struct Due {
    stream: u32,
    method: Method,
    has_head: bool,
    sent: usize,
    /// Trailers alone are left.
    awaits_trailers: bool,
    is_over: bool,
    window: SendWindow,
}

impl Default for Server {
    fn default() -> Self {
        let settings = [
            (connection::MAX_CONCURRENT_STREAMS, MOST_STREAMS),
            (connection::MAX_HEADER_LIST_SIZE, MOST_FIELDS as u32),
        ];
        Self {
            preface: Preface::default(),
            link: Link::new(&settings, USUAL, &[]),
            splitter: Splitter::default(),
            encoding: Encoding::default(),
            streams: ServerStreams::default(),
        }
    }
}

impl Server {
    /// Takes what the client has sent.
    ///
    /// # Errors
    /// The reason why the connection is over; what is to be sent next contains it.
    #[inline]
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<(), Code> {
        let outcome = self.preface.take(&mut bytes).and_then(|()| {
            let mut side = ServerSide { streams: &mut self.streams };
            self.link.feed(&mut self.splitter, &mut side, bytes)
        });
        outcome.inspect_err(|code| {
            self.streams.due.clear();
            self.link.goaway(self.streams.last, *code);
        })
    }

    /// Whether a request or a part of a message has moved since the last call; pings are no use of a
    /// connection.
    #[inline]
    pub fn take_progress(&mut self) -> bool {
        self.link.take_progress()
    }

    /// Bytes of memory that are kept.
    #[inline]
    pub fn kept(&self) -> usize {
        let ServerStreams { open, refused, due, .. } = &self.streams;
        let streams = open.capacity() * size_of::<Open>() + due.capacity() * size_of::<Due>();
        self.link.kept() + self.splitter.kept() + streams + refused.capacity() * size_of::<u32>()
    }

    /// Whether [`Self::fill`] has something to write.
    #[inline]
    pub fn has_output(&self) -> bool {
        let has_room =
            |due: &Due| !due.has_head || due.awaits_trailers || due.window.room(self.link.room()) > 0;
        !self.link.output.pending().is_empty() || self.streams.due.iter().any(has_room)
    }

    /// Writes the next frames into `room`, as far as windows let them; how many bytes. `room` has a frame's
    /// head and a byte at least, and that of the first response.
    #[inline]
    pub fn fill(&mut self, content: &Content, room: &mut [u8]) -> usize {
        let pending = self.link.output.pending();
        let mut used = pending.len().min(room.len());
        room[..used].copy_from_slice(&pending[..used]);
        self.link.output.advance(used);
        self.link.output.shrink();
        if !self.link.output.pending().is_empty() {
            return used;
        }
        let mut idle = 0;
        while used + HEAD < room.len() {
            let Some(mut due) = self.streams.due.pop_front() else { break };
            let written = self.answer(&mut due, content, &mut room[used..]);
            used += written;
            idle = if written == 0 { idle + 1 } else { 0 };
            if due.is_over {
                self.streams.resets = 0;
                continue;
            }
            self.streams.due.push_back(due);
            if idle >= self.streams.due.len() {
                break;
            }
        }
        used
    }

    /// The next frames of a response: its head, up to one of its body, its trailers.
    #[inline]
    fn answer(&mut self, due: &mut Due, content: &Content, room: &mut [u8]) -> usize {
        let (body, has_trailers) = content.response_to(due.method);
        let mut used = 0;
        if !due.has_head {
            if room.len() < HEAD + content.head.longest() {
                return 0;
            }
            let table = self.link.peer.table;
            let block = if content.answers(due.method) {
                content.head.next(&mut self.encoding, table)
            } else {
                BAD_REQUEST[usize::from(table < TABLE_SIZE)]
            };
            let end = if body.is_empty() && !has_trailers { frame::END_STREAM } else { 0 };
            let flags = frame::END_HEADERS | end;
            let head = Head { length: block.len(), kind: frame::HEADERS, flags, stream: due.stream };
            used += put(room, head, block);
            due.has_head = true;
        }
        let most = room.len().saturating_sub(used + HEAD);
        let count = due.window.room(self.link.room()).min(most).min(body.len() - due.sent);
        if count > 0 {
            let piece = &body[due.sent..due.sent + count];
            due.sent += count;
            due.window.spend(count);
            self.link.send.spend(count);
            self.link.has_progress();
            let is_end = due.sent == body.len() && !has_trailers;
            let flags = if is_end { frame::END_STREAM } else { 0 };
            let head = Head { length: count, kind: frame::DATA, flags, stream: due.stream };
            used += put(&mut room[used..], head, piece);
        }
        let is_sent = due.sent == body.len();
        (due.is_over, due.awaits_trailers) = (is_sent && !has_trailers, is_sent && has_trailers);
        if due.awaits_trailers && room.len() - used >= HEAD + RPC_DONE.len() {
            let flags = frame::END_HEADERS | frame::END_STREAM;
            let head = Head { length: RPC_DONE.len(), kind: frame::HEADERS, flags, stream: due.stream };
            used += put(&mut room[used..], head, RPC_DONE);
            due.is_over = true;
        }
        used
    }
}

#[inline]
fn put(room: &mut [u8], head: Head, payload: &[u8]) -> usize {
    let length = HEAD + payload.len();
    room[..HEAD].copy_from_slice(&head.bytes());
    room[HEAD..length].copy_from_slice(payload);
    length
}

struct ServerSide<'a> {
    streams: &'a mut ServerStreams,
}

impl ServerSide<'_> {
    /// Whether the request with this body is under way.
    fn open(&self, stream: u32) -> Option<usize> {
        self.streams.open.iter().position(|open| open.stream == stream)
    }

    fn answer(&mut self, link: &Link, stream: u32, method: Method) {
        let window = SendWindow::new(link.peer.window);
        self.streams.due.push_back(Due {
            stream,
            method,
            has_head: false,
            sent: 0,
            awaits_trailers: false,
            is_over: false,
            window,
        });
    }

    /// The request is complete with its body, or its body is not as long as it was to be.
    fn complete(&mut self, link: &mut Link, at: usize) -> Result<(), Code> {
        let Open { stream, method, left } = self.streams.open[at];
        if left.is_some_and(|left| left > 0) {
            return self.refuse(link, stream, Code::PROTOCOL_ERROR);
        }
        self.streams.open.swap_remove(at);
        self.answer(link, stream, method);
        Ok(())
    }

    fn refuse(&mut self, link: &mut Link, stream: u32, code: Code) -> Result<(), Code> {
        self.streams.open.retain(|open| open.stream != stream);
        self.streams.due.retain(|due| due.stream != stream);
        if self.streams.refused.len() == REFUSED {
            self.streams.refused.pop_front();
        }
        self.streams.refused.push_back(stream);
        link.output.reset(stream, code);
        link.responds()
    }

    /// A stream that the client cannot know yet to be refused.
    fn is_refused(&self, stream: u32) -> bool {
        self.streams.refused.contains(&stream)
    }

    /// A stream that the client has begun.
    fn check(&self, stream: u32) -> Result<(), Code> {
        let is_known = !stream.is_multiple_of(2) && stream <= self.streams.last;
        if is_known { Ok(()) } else { Err(Code::PROTOCOL_ERROR) }
    }
}

impl Side for ServerSide<'_> {
    type Fields = RequestFields;

    #[inline]
    fn headers(
        &mut self,
        link: &mut Link,
        stream: u32,
        fields: &RequestFields,
        end: bool,
    ) -> Result<(), Code> {
        if stream.is_multiple_of(2) {
            return Err(Code::PROTOCOL_ERROR);
        }
        if stream <= self.streams.last {
            // Trailers, or late ones of a stream that was refused. No other stream is open to its client.
            return match self.open(stream) {
                Some(_) if !end || fields.is_bad || fields.has_pseudo() => {
                    self.refuse(link, stream, Code::PROTOCOL_ERROR)
                }
                Some(at) => self.complete(link, at),
                None if self.is_refused(stream) => link.is_quiet(),
                None => Err(Code::STREAM_CLOSED),
            };
        }
        self.streams.last = stream;
        let under_way = self.streams.due.len() + self.streams.open.len();
        if under_way >= MOST_STREAMS as usize {
            return self.refuse(link, stream, Code::REFUSED_STREAM);
        }
        if !fields.is_request() || end && fields.length.is_some_and(|length| length > 0) {
            return self.refuse(link, stream, Code::PROTOCOL_ERROR);
        }
        if end {
            self.answer(link, stream, fields.method);
        } else {
            self.streams.open.push(Open { stream, method: fields.method, left: fields.length });
        }
        Ok(())
    }

    fn data_begins(&mut self, link: &mut Link, stream: u32, length: usize) -> Result<(), Code> {
        self.check(stream)?;
        match self.open(stream) {
            Some(_) => {
                self.streams.current = Some(stream);
                if length > 0 {
                    link.output.update_window(stream, length as u32);
                    link.responds()?;
                }
                Ok(())
            }
            None if self.is_refused(stream) => link.is_quiet(),
            // The client has ended or reset it.
            None => self.refuse(link, stream, Code::STREAM_CLOSED),
        }
    }

    fn data(&mut self, piece: &[u8]) {
        let current = self.streams.current.and_then(|stream| self.open(stream));
        if let Some(left) = current.and_then(|at| self.streams.open[at].left.as_mut()) {
            // More than was announced is never complete.
            *left = left.checked_sub(piece.len() as u64).unwrap_or(u64::MAX);
        }
    }

    fn data_ends(&mut self, link: &mut Link, _stream: u32, end: bool) -> Result<(), Code> {
        match self.streams.current.take().and_then(|stream| self.open(stream)) {
            Some(at) if end => self.complete(link, at),
            _ => Ok(()),
        }
    }

    fn reset(&mut self, _link: &mut Link, stream: u32, _code: Code) -> Result<(), Code> {
        self.check(stream)?;
        self.streams.open.retain(|open| open.stream != stream);
        self.streams.due.retain(|due| due.stream != stream);
        self.streams.resets += 1;
        if self.streams.resets > MOST_RESETS { Err(Code::ENHANCE_YOUR_CALM) } else { Ok(()) }
    }

    fn window(&mut self, stream: u32, by: u32) -> Result<(), Code> {
        self.check(stream)?;
        let due = self.streams.due.iter_mut().find(|due| due.stream == stream);
        due.map_or(Ok(()), |due| due.window.grow(by.into()))
    }

    fn windows(&mut self, by: i64) -> Result<(), Code> {
        self.streams.due.iter_mut().try_for_each(|due| due.window.grow(by))
    }

    fn goaway(&mut self, _last: u32, _code: Code) -> Result<(), Code> {
        // What was begun is answered; the client closes.
        Ok(())
    }
}

#[cfg(test)]
mod tests;
