//! The server's end of a connection: the same page for each GET.
//!
//! Bodies of requests are accepted and ignored. Answers are made frame by frame into what room there is,
//! each stream in its turn.

use super::Code;
use super::connection::{self, Fields, Link, Preface, Side};
use super::frame::{self, HEAD, Head, Splitter};
use super::hpack::{Blocks, Encoding, TABLE_SIZE};
use super::window::{SendWindow, USUAL};
use std::collections::VecDeque;

/// Streams of a client at the same time; nginx and h2o accept about as many.
const MOST_STREAMS: u32 = 256;
/// Streams that a client may end before their answers, in a row: with each it makes work that it does not
/// receive (rapid reset).
const MOST_RESETS: u32 = 1_000;

/// Status 400 alone, from the static table; and the same for a peer whose dynamic table is small, which first
/// reads that it is not used.
const BAD_REQUEST: [&[u8]; 2] = [&[0x8c], &[0x20, 0x8c]];

/// The head of a page of `size` bytes.
pub fn page_head(size: usize) -> Blocks {
    let size = size.to_string();
    Blocks::new(&[
        (":status", "200"),
        ("server", "linerate"),
        ("content-type", "text/plain"),
        ("content-length", &size),
    ])
}

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
    open: Vec<(u32, bool)>,
    /// Answers that are due, in turns.
    due: VecDeque<Due>,
    current: Option<u32>,
    resets: u32,
}

/// An answer.
#[derive(Debug, Clone, Copy)]
struct Due {
    stream: u32,
    is_good: bool,
    has_head: bool,
    is_head: bool,
    sent: usize,
    window: SendWindow,
}

impl Default for Server {
    fn default() -> Self {
        let settings = [
            (connection::MAX_CONCURRENT_STREAMS, MOST_STREAMS),
            (connection::MAX_HEADER_LIST_SIZE, connection::MOST_FIELDS as u32),
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

    /// Whether [`Self::fill`] has something to write.
    #[inline]
    pub fn has_output(&self) -> bool {
        let has_room = |due: &Due| !due.has_head || due.window.room(self.link.room()) > 0;
        !self.link.output.pending().is_empty() || self.streams.due.iter().any(has_room)
    }

    /// Writes the next frames into `room`, as far as windows let them; how many bytes. `room` has a frame's
    /// head and a byte at least, and that of the first answer.
    #[inline]
    pub fn fill(&mut self, head: &Blocks, page: &[u8], room: &mut [u8]) -> usize {
        let pending = self.link.output.pending();
        let mut used = pending.len().min(room.len());
        room[..used].copy_from_slice(&pending[..used]);
        self.link.output.advance(used);
        if !self.link.output.pending().is_empty() {
            return used;
        }
        let mut idle = 0;
        while used + HEAD < room.len() {
            let Some(mut due) = self.streams.due.pop_front() else { break };
            let written = self.answer(&mut due, head, page, &mut room[used..]);
            used += written;
            idle = if written == 0 { idle + 1 } else { 0 };
            let is_over = due.has_head && due.sent == due.page(page).len();
            if is_over {
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

    /// The next frames of an answer: its head, and up to one of its page.
    #[inline]
    fn answer(&mut self, due: &mut Due, head: &Blocks, page: &[u8], room: &mut [u8]) -> usize {
        let page = due.page(page);
        let mut used = 0;
        if !due.has_head {
            if room.len() < HEAD + head.longest() {
                return 0;
            }
            let table = self.link.peer.table;
            let block = if due.is_good {
                head.next(&mut self.encoding, table)
            } else {
                BAD_REQUEST[usize::from(table < TABLE_SIZE)]
            };
            let end = if page.is_empty() { frame::END_STREAM } else { 0 };
            let flags = frame::END_HEADERS | end;
            let head = Head { length: block.len(), kind: frame::HEADERS, flags, stream: due.stream };
            used += put(room, head, block);
            due.has_head = true;
        }
        let most = room.len().saturating_sub(used + HEAD);
        let count = due.window.room(self.link.room()).min(most).min(page.len() - due.sent);
        if count > 0 {
            let piece = &page[due.sent..due.sent + count];
            due.sent += count;
            due.window.spend(count);
            self.link.send.spend(count);
            self.link.has_progress();
            let flags = if due.sent == page.len() { frame::END_STREAM } else { 0 };
            let head = Head { length: count, kind: frame::DATA, flags, stream: due.stream };
            used += put(&mut room[used..], head, piece);
        }
        used
    }
}

impl Due {
    fn page(self, page: &[u8]) -> &[u8] {
        if self.is_good && !self.is_head { page } else { &[] }
    }
}

#[inline]
fn put(room: &mut [u8], head: Head, payload: &[u8]) -> usize {
    let length = HEAD + payload.len();
    room[..HEAD].copy_from_slice(&head.bytes());
    room[HEAD..length].copy_from_slice(payload);
    length
}

/// The fields of a request that a server needs.
#[derive(Debug, Default)]
struct RequestFields {
    method: Method,
    /// Pseudo-fields so far: method, scheme and path are necessary, each once.
    pseudo: [bool; 4],
    has_regular: bool,
    is_bad: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Method {
    Get,
    Head,
    #[default]
    Other,
}

impl RequestFields {
    fn is_request(&self) -> bool {
        !self.is_bad && self.pseudo[..3] == [true; 3]
    }
}

impl Fields for RequestFields {
    #[inline]
    fn take(&mut self, name: &[u8], value: &[u8]) {
        let pseudo = [&b":method"[..], b":scheme", b":path", b":authority"];
        if let Some(at) = pseudo.iter().position(|known| *known == name) {
            self.is_bad |= self.has_regular || std::mem::replace(&mut self.pseudo[at], true);
            if at == 0 {
                self.method = match value {
                    b"GET" => Method::Get,
                    b"HEAD" => Method::Head,
                    _ => Method::Other,
                };
            }
            return;
        }
        self.has_regular = true;
        self.is_bad |= name.is_empty() || name[0] == b':' || name.iter().any(u8::is_ascii_uppercase);
        self.is_bad |= matches!(name, b"connection" | b"transfer-encoding" | b"upgrade" | b"keep-alive")
            || name == b"te" && value != b"trailers";
    }
}

struct ServerSide<'a> {
    streams: &'a mut ServerStreams,
}

impl ServerSide<'_> {
    /// Whether the request with this body is under way.
    fn open(&self, stream: u32) -> Option<usize> {
        self.streams.open.iter().position(|(open, _)| *open == stream)
    }

    fn answer(&mut self, link: &Link, stream: u32, is_good: bool, is_head: bool) {
        let window = SendWindow::new(link.peer.window);
        self.streams.due.push_back(Due { stream, is_good, has_head: false, is_head, sent: 0, window });
    }

    /// The request is complete with its body.
    fn complete(&mut self, link: &Link, at: usize) {
        let (stream, is_good) = self.streams.open.swap_remove(at);
        self.answer(link, stream, is_good, false);
    }

    fn refuse(&mut self, link: &mut Link, stream: u32, code: Code) -> Result<(), Code> {
        self.streams.open.retain(|(open, _)| *open != stream);
        link.output.reset(stream, code);
        link.replies()
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
            // Trailers, or late ones of a stream that was refused.
            return match self.open(stream) {
                Some(_) if !end || fields.is_bad || fields.pseudo != [false; 4] => {
                    self.refuse(link, stream, Code::PROTOCOL_ERROR)
                }
                Some(at) => {
                    self.complete(link, at);
                    Ok(())
                }
                None => link.is_quiet(),
            };
        }
        self.streams.last = stream;
        let under_way = self.streams.due.len() + self.streams.open.len();
        if under_way >= MOST_STREAMS as usize {
            return self.refuse(link, stream, Code::REFUSED_STREAM);
        }
        if !fields.is_request() {
            return self.refuse(link, stream, Code::PROTOCOL_ERROR);
        }
        let is_good = fields.method != Method::Other;
        if end {
            self.answer(link, stream, is_good, fields.method == Method::Head);
        } else {
            self.streams.open.push((stream, is_good));
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
                    link.replies()?;
                }
                Ok(())
            }
            // It was refused or answered, which the client may not know yet.
            None => link.is_quiet(),
        }
    }

    fn data(&mut self, _piece: &[u8]) {}

    fn data_ends(&mut self, link: &mut Link, _stream: u32, end: bool) -> Result<(), Code> {
        if let Some(stream) = self.streams.current.take()
            && end
            && let Some(at) = self.open(stream)
        {
            self.complete(link, at);
        }
        Ok(())
    }

    fn reset(&mut self, _link: &mut Link, stream: u32, _code: Code) -> Result<(), Code> {
        self.check(stream)?;
        self.streams.open.retain(|(open, _)| *open != stream);
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
