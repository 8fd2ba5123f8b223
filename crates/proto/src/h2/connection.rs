//! The common part of both ends of a connection: settings, header blocks, the windows of the connection, and
//! the limits of what a peer may ask for.

use super::frame::{self, Head, Output, Receiver, Splitter};
use super::hpack::{Decoder, TABLE_SIZE};
use super::window::{LARGEST, ReceiveWindow, SendWindow, USUAL};
use super::{Code, PREFACE};
use crate::fields::{Fields, MOST_FIELDS};

/// CONTINUATION frames of a header block: its bytes fit into four.
const MOST_PARTS: u32 = 16;
/// Frames without progress in a row: settings, pings, priorities, empty data. A peer has no reason for a
/// tenth.
const MOST_QUIET: u32 = 1_000;
/// Responses that the peer has caused and not received. Above it, it does not read.
const MOST_RESPONSES: u32 = 10_000;

const HEADER_TABLE_SIZE: u16 = 1;
pub(super) const ENABLE_PUSH: u16 = 2;
pub(super) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(super) const INITIAL_WINDOW_SIZE: u16 = 4;
const MAX_FRAME_SIZE: u16 = 5;
pub(super) const MAX_HEADER_LIST_SIZE: u16 = 6;

/// The settings of the peer (section 6.5.2).
#[derive(Debug, Clone, Copy)]
pub(super) struct PeerSettings {
    pub(super) table: usize,
    pub(super) streams: u32,
    pub(super) window: u32,
}

/// The work of a connection that a client and a server do in their own ways.
pub(super) trait Side {
    type Fields: Fields;

    /// A whole header block. `end`: no data follows.
    fn headers(&mut self, link: &mut Link, stream: u32, fields: &Self::Fields, end: bool)
    -> Result<(), Code>;
    /// A DATA frame of this length; the window of the connection has it already.
    fn data_begins(&mut self, link: &mut Link, stream: u32, length: usize) -> Result<(), Code>;
    fn data(&mut self, piece: &[u8]);
    fn data_ends(&mut self, link: &mut Link, stream: u32, end: bool) -> Result<(), Code>;
    fn reset(&mut self, link: &mut Link, stream: u32, code: Code) -> Result<(), Code>;
    /// The window of a stream has grown.
    fn window(&mut self, stream: u32, by: u32) -> Result<(), Code>;
    /// The windows of all streams have changed.
    fn windows(&mut self, by: i64) -> Result<(), Code>;
    fn goaway(&mut self, last: u32, code: Code) -> Result<(), Code>;
}

/// The state of a connection beside its streams.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) peer: PeerSettings,
    /// The peer's first settings have arrived.
    pub(super) is_open: bool,
    pub(super) send: SendWindow,
    receive: ReceiveWindow,
    pub(super) output: Output,
    decoder: Decoder,
    /// The header block under way, where it is in several frames.
    block: Vec<u8>,
    continued: Option<Continued>,
    /// Frames without progress.
    quiet: u32,
    /// There was progress since it was asked for.
    has_moved: bool,
}

#[derive(Debug, Clone, Copy)]
struct Continued {
    stream: u32,
    end: bool,
    parts: u32,
}

impl Link {
    /// With the first frames of this end: settings, and the window of the connection.
    pub(super) fn new(settings: &[(u16, u32)], window: u32, preface: &[u8]) -> Self {
        let mut output = Output::default();
        output.extend(preface);
        let payload: Vec<u8> = settings
            .iter()
            .flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat())
            .collect();
        output.frame(frame::SETTINGS, 0, 0, &payload);
        if window > USUAL {
            output.update_window(0, window - USUAL);
        }
        Self {
            peer: PeerSettings { table: TABLE_SIZE, streams: u32::MAX, window: USUAL },
            is_open: false,
            send: SendWindow::new(USUAL),
            receive: ReceiveWindow::new(window.max(USUAL)),
            output,
            decoder: Decoder::default(),
            block: Vec::new(),
            continued: None,
            quiet: 0,
            has_moved: false,
        }
    }

    /// Takes what the peer has sent.
    ///
    /// # Errors
    /// The reason why the connection is over.
    #[inline]
    pub(super) fn feed<S: Side>(
        &mut self,
        splitter: &mut Splitter,
        side: &mut S,
        bytes: &[u8],
    ) -> Result<(), Code> {
        splitter.feed(bytes, &mut Linked { link: self, side })
    }

    /// Bytes of memory that are kept.
    #[inline]
    pub(super) fn kept(&self) -> usize {
        self.block.capacity() + self.output.kept() + self.decoder.kept()
    }

    /// Queues a GOAWAY: streams of the peer up to `last` were processed.
    pub(super) fn goaway(&mut self, last: u32, code: Code) {
        let payload = [last.to_be_bytes(), code.0.to_be_bytes()].concat();
        self.output.frame(frame::GOAWAY, 0, 0, &payload);
    }

    /// Notes a frame that brings nothing.
    ///
    /// # Errors
    /// There are too many in a row.
    pub(super) fn is_quiet(&mut self) -> Result<(), Code> {
        self.quiet += 1;
        if self.quiet > MOST_QUIET { Err(Code::ENHANCE_YOUR_CALM) } else { Ok(()) }
    }

    pub(super) fn has_progress(&mut self) {
        self.quiet = 0;
        self.has_moved = true;
    }

    /// Whether a message or a part of one has moved since the last call: pings and settings move none.
    pub(super) fn take_progress(&mut self) -> bool {
        std::mem::take(&mut self.has_moved)
    }

    /// Notes a response that is queued.
    ///
    /// # Errors
    /// The peer does not read its responses.
    pub(super) fn responds(&mut self) -> Result<(), Code> {
        self.output.responses += 1;
        if self.output.responses > MOST_RESPONSES { Err(Code::ENHANCE_YOUR_CALM) } else { Ok(()) }
    }

    /// Bytes of DATA that may be sent on the connection now, in one frame.
    #[inline]
    pub(super) fn room(&self) -> usize {
        // No peer may have a smaller limit of a frame, and a larger one is not used.
        self.send.room(frame::LONGEST)
    }

    fn settings<S: Side>(&mut self, head: Head, payload: &[u8], side: &mut S) -> Result<(), Code> {
        on_connection(head)?;
        self.is_quiet()?;
        if head.has(frame::ACK) {
            return if payload.is_empty() { Ok(()) } else { Err(Code::FRAME_SIZE_ERROR) };
        }
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Code::FRAME_SIZE_ERROR);
        }
        for [name @ .., a, b, c, d] in settings {
            let value = u32::from_be_bytes([*a, *b, *c, *d]);
            match u16::from_be_bytes(*name) {
                HEADER_TABLE_SIZE => self.peer.table = value as usize,
                ENABLE_PUSH if value > 1 => return Err(Code::PROTOCOL_ERROR),
                MAX_CONCURRENT_STREAMS => self.peer.streams = value,
                INITIAL_WINDOW_SIZE if value > LARGEST => return Err(Code::FLOW_CONTROL_ERROR),
                INITIAL_WINDOW_SIZE => {
                    side.windows(i64::from(value) - i64::from(self.peer.window))?;
                    self.peer.window = value;
                }
                MAX_FRAME_SIZE if !(1 << 14..1 << 24).contains(&value) => return Err(Code::PROTOCOL_ERROR),
                _ => {}
            }
        }
        self.is_open = true;
        self.output.frame(frame::SETTINGS, frame::ACK, 0, &[]);
        self.responds()
    }

    fn window_update<S: Side>(&mut self, head: Head, payload: &[u8], side: &mut S) -> Result<(), Code> {
        let by = number(payload)? & LARGEST;
        self.is_quiet()?;
        match (head.stream, by) {
            (_, 0) => Err(Code::PROTOCOL_ERROR),
            (0, by) => self.send.grow(by.into()),
            (stream, by) => side.window(stream, by),
        }
    }

    fn headers<S: Side>(&mut self, head: Head, payload: &[u8], side: &mut S) -> Result<(), Code> {
        let part = frame::without_padding(head, payload)?;
        let end = head.has(frame::END_STREAM);
        if head.has(frame::END_HEADERS) {
            return self.block(head.stream, part, end, side);
        }
        self.block = part.to_vec();
        self.continued = Some(Continued { stream: head.stream, end, parts: 0 });
        Ok(())
    }

    #[cold]
    fn continuation<S: Side>(&mut self, head: Head, payload: &[u8], side: &mut S) -> Result<(), Code> {
        let mut continued = self.continued.ok_or(Code::PROTOCOL_ERROR)?;
        continued.parts += 1;
        if continued.parts > MOST_PARTS || self.block.len() + payload.len() > MOST_FIELDS {
            return Err(Code::ENHANCE_YOUR_CALM);
        }
        self.block.extend_from_slice(payload);
        self.continued = Some(continued);
        if head.has(frame::END_HEADERS) {
            self.continued = None;
            let block = std::mem::take(&mut self.block);
            self.block(continued.stream, &block, continued.end, side)?;
        }
        Ok(())
    }

    #[inline]
    fn block<S: Side>(&mut self, stream: u32, block: &[u8], end: bool, side: &mut S) -> Result<(), Code> {
        let mut fields = S::Fields::default();
        self.decoder.decode(block, MOST_FIELDS, |name, value| fields.take(name, value))?;
        self.has_progress();
        side.headers(self, stream, &fields, end)
    }
}

/// An end, as the receiver of its peer's frames.
struct Linked<'a, S> {
    link: &'a mut Link,
    side: &'a mut S,
}

impl<S: Side> Receiver for Linked<'_, S> {
    #[inline]
    fn frame(&mut self, head: Head, payload: &[u8]) -> Result<(), Code> {
        let Self { link, side } = self;
        if let Some(continued) = link.continued
            && (head.kind != frame::CONTINUATION || head.stream != continued.stream)
        {
            return Err(Code::PROTOCOL_ERROR);
        }
        if !link.is_open && head.kind != frame::SETTINGS {
            return Err(Code::PROTOCOL_ERROR);
        }
        match head.kind {
            frame::HEADERS => {
                on_stream(head)?;
                link.headers(head, payload, *side)
            }
            frame::CONTINUATION => link.continuation(head, payload, *side),
            frame::SETTINGS => link.settings(head, payload, *side),
            frame::WINDOW_UPDATE => link.window_update(head, payload, *side),
            frame::PING => {
                on_connection(head)?;
                link.is_quiet()?;
                if payload.len() != 8 {
                    return Err(Code::FRAME_SIZE_ERROR);
                }
                if head.has(frame::ACK) {
                    return Ok(());
                }
                link.output.frame(frame::PING, frame::ACK, 0, payload);
                link.responds()
            }
            frame::RST_STREAM => {
                on_stream(head)?;
                link.is_quiet()?;
                side.reset(link, head.stream, Code(number(payload)?))
            }
            frame::GOAWAY => {
                on_connection(head)?;
                link.is_quiet()?;
                let (last, rest) = payload.split_first_chunk::<4>().ok_or(Code::FRAME_SIZE_ERROR)?;
                let code = rest.first_chunk::<4>().ok_or(Code::FRAME_SIZE_ERROR)?;
                side.goaway(u32::from_be_bytes(*last) & LARGEST, Code(u32::from_be_bytes(*code)))
            }
            frame::PRIORITY => {
                on_stream(head)?;
                if payload.len() == 5 { link.is_quiet() } else { Err(Code::FRAME_SIZE_ERROR) }
            }
            // A client has refused it in its settings, and no client sends it.
            frame::PUSH_PROMISE => Err(Code::PROTOCOL_ERROR),
            _ => link.is_quiet(),
        }
    }

    #[inline]
    fn data_begins(&mut self, head: Head) -> Result<(), Code> {
        on_stream(head)?;
        if self.link.continued.is_some() || !self.link.is_open {
            return Err(Code::PROTOCOL_ERROR);
        }
        self.link.receive.take(head.length)?;
        if let Some(increment) = self.link.receive.update() {
            self.link.output.update_window(0, increment);
        }
        if head.length == 0 && !head.has(frame::END_STREAM) {
            self.link.is_quiet()?;
        } else {
            self.link.has_progress();
        }
        self.side.data_begins(self.link, head.stream, head.length)
    }

    #[inline]
    fn data(&mut self, piece: &[u8]) {
        self.side.data(piece);
    }

    #[inline]
    fn data_ends(&mut self, head: Head) -> Result<(), Code> {
        self.side.data_ends(self.link, head.stream, head.has(frame::END_STREAM))
    }
}

/// The first bytes of a client.
#[derive(Debug, Default)]
pub(super) struct Preface(usize);

impl Preface {
    /// Takes it off `bytes`.
    ///
    /// # Errors
    /// They are something else.
    #[inline]
    pub(super) fn take(&mut self, bytes: &mut &[u8]) -> Result<(), Code> {
        let missing = &PREFACE[self.0..];
        let (part, rest) = bytes.split_at(missing.len().min(bytes.len()));
        if !missing.starts_with(part) {
            return Err(Code::PROTOCOL_ERROR);
        }
        self.0 += part.len();
        *bytes = rest;
        Ok(())
    }
}

fn number(payload: &[u8]) -> Result<u32, Code> {
    payload.try_into().map(u32::from_be_bytes).map_err(|_| Code::FRAME_SIZE_ERROR)
}

fn on_stream(head: Head) -> Result<(), Code> {
    if head.stream == 0 { Err(Code::PROTOCOL_ERROR) } else { Ok(()) }
}

fn on_connection(head: Head) -> Result<(), Code> {
    if head.stream == 0 { Ok(()) } else { Err(Code::PROTOCOL_ERROR) }
}
