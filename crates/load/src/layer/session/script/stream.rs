//! The counted `stream` (sdk/CONTRACT.md): a transfer of content, then the next, on a connection that stays.
//!
//! A transfer is a number from the client, content one way or both ways, and a number from a server that
//! received content. Both ends have an [`Outgoing`] and an [`Incoming`] half.

use super::halves::{Outgoing, Sending, take_content, take_number};
use super::{Ended, Operation, Script};
use crate::cause::{note, peer_failed};
use crate::layer::transfer::{Content, Incoming, Number, UNTIL_TIME_IS_OVER};
use linerate_contract::{Cause, Direction, ErrorKind};
use linerate_proto::websocket::encoder::Messages;
use linerate_proto::websocket::frame::Opcode;
use linerate_proto::websocket::mask::Key;

/// One end of a stream: what it sends, what it has received, and a part that handles received bytes.
#[derive(Debug)]
pub struct StreamScript<P> {
    content: Content,
    halves: Halves,
    part: P,
    wrong: Option<ErrorKind>,
}

#[derive(Debug)]
struct Halves {
    out: Outgoing,
    input: Incoming,
    /// A number of the peer.
    number: Number,
}

impl<P> StreamScript<P> {
    fn with(content: Content, part: P) -> Self {
        let (out, input) = (Outgoing::new(), Incoming::default());
        Self { content, halves: Halves { out, input, number: Number::default() }, part, wrong: None }
    }
}

/// Handles the received bytes of one end.
trait Part: Send {
    /// Takes all of the bytes, and may queue messages.
    ///
    /// # Errors
    /// The bytes are not what the protocol requires.
    fn take(
        &mut self,
        halves: &mut Halves,
        content: &Content,
        bytes: &mut [u8],
        key: Key,
    ) -> Result<(), ErrorKind>;

    /// Whether bytes may arrive while messages are left to be sent.
    fn listens_while_sending(&self) -> bool;

    /// See [`Script::half_ended`].
    fn half_ended(&mut self, _halves: &mut Halves) -> bool {
        false
    }
}

impl<P: Send> Messages for StreamScript<P> {
    #[inline]
    fn next(&mut self) -> Option<(Opcode, u64)> {
        self.halves.out.next(self.content.size())
    }

    #[inline]
    fn piece(&self, at: u64, most: usize) -> &[u8] {
        self.halves.out.piece(&self.content, at, most)
    }
}

impl<P: Part> Script for StreamScript<P> {
    const DUPLEX: bool = true;

    #[inline]
    fn payload(&mut self, bytes: &mut [u8], key: Key) {
        if let Err(wrong) = self.part.take(&mut self.halves, &self.content, bytes, key) {
            self.wrong = Some(wrong);
        }
    }

    fn ended(&mut self, what: Ended) {
        // The contract's messages are binary.
        if what == Ended::Message(Opcode::Text) {
            self.wrong = Some(ErrorKind::Malformed);
        }
    }

    #[inline]
    fn verdict(&self) -> Result<(), ErrorKind> {
        self.wrong.map_or(Ok(()), Err)
    }

    #[inline]
    fn begin_turn(&mut self) {
        self.halves.out.left = self.halves.out.turn;
    }

    #[inline]
    fn has_more(&self) -> bool {
        self.halves.out.has_more()
    }

    #[inline]
    fn listens(&self) -> bool {
        self.part.listens_while_sending() || !self.has_more()
    }

    #[inline]
    fn place(&self) -> Option<u64> {
        if let Sending::Content { at, .. } = self.halves.out.sending { Some(at) } else { None }
    }

    #[inline]
    fn joins(&self) -> bool {
        matches!(self.halves.out.sending, Sending::Number(_)) && self.halves.out.at < self.halves.out.total
    }

    #[inline]
    fn awaited(&self) -> u64 {
        self.halves.input.total - self.halves.input.at
    }

    fn skip(&mut self, count: usize) {
        self.halves.input.add(count, count as u64);
        // Of the end of the content, nothing follows in the bytes.
        self.payload(&mut [], Key::NONE);
    }

    #[inline]
    fn takes_leave(&mut self) -> bool {
        let out = &mut self.halves.out;
        let leaves = out.is_held() && (out.at < out.total || out.tail.is_some());
        if leaves {
            out.hold = None;
        }
        leaves
    }

    fn half_ended(&mut self) -> bool {
        self.part.half_ended(&mut self.halves)
    }
}

/// The client's end: an operation is a transfer.
pub type StreamClient = StreamScript<ClientPart>;

/// The client's part.
#[derive(Debug)]
pub struct ClientPart {
    direction: Direction,
    bytes: u64,
    /// The server's number of good bytes.
    count: Option<u64>,
    /// The sending side is to be shut down, behind what is under way.
    ends_half: bool,
}

impl StreamClient {
    pub(in crate::layer) fn new(direction: Direction, content: Content, bytes: u64) -> Self {
        let part = ClientPart { direction, bytes, count: None, ends_half: false };
        let mut client = Self::with(content, part);
        if direction == Direction::Both {
            client.halves.out.turn = 1;
        }
        client.begin();
        client
    }

    fn begin(&mut self) {
        let (direction, bytes) = (self.part.direction, self.part.bytes);
        self.halves.out.send(Some(bytes), if direction.client_writes() { bytes } else { 0 });
        self.halves.input = Incoming::up_to(if direction.client_reads() { bytes } else { 0 });
        self.part.count = None;
    }
}

impl Part for ClientPart {
    #[inline]
    fn take(
        &mut self,
        Halves { out, input, number }: &mut Halves,
        content: &Content,
        mut bytes: &mut [u8],
        mut key: Key,
    ) -> Result<(), ErrorKind> {
        let is_whole = take_content(input, &mut bytes, &mut key, content);
        if input.good < input.at {
            let (wrong, at) = (input.at - input.good, input.at);
            let text = || format!("{wrong} bytes of another content within the first {at}");
            return Err(note(ErrorKind::WrongContent, || Cause::showing(text(), bytes)));
        }
        if is_whole && self.direction.client_writes() && self.count.is_none() && !bytes.is_empty() {
            if out.has_more() {
                let text = "a count of received bytes before all were sent";
                return Err(note(ErrorKind::Malformed, || Cause::showing(text, bytes)));
            }
            self.count = take_number(number, &mut bytes, &mut key);
        }
        if !bytes.is_empty() {
            let text = "more bytes than the transfer has: the server is none of --stream";
            return Err(note(ErrorKind::WrongLength, || Cause::showing(text, bytes)));
        }
        match self.count {
            Some(good) if good != out.total => Err(note(ErrorKind::WrongContent, || {
                Cause::new(format!("the server counts {good} good bytes of {}", out.total))
            })),
            _ => Ok(()),
        }
    }

    #[inline]
    fn listens_while_sending(&self) -> bool {
        self.direction.client_reads()
    }
}

impl Operation for StreamClient {
    #[inline]
    fn complete(&mut self) -> Option<u64> {
        let input = self.halves.input;
        let awaits_count = self.part.direction.client_writes() && self.part.count.is_none();
        if awaits_count || input.at < input.total || self.has_more() {
            return None;
        }
        let bytes = input.good + self.part.count.unwrap_or(0);
        self.begin();
        Some(bytes)
    }

    fn cut(&self) -> ErrorKind {
        ErrorKind::Truncated
    }

    fn progress(&self) -> String {
        let Halves { out, input, .. } = &self.halves;
        format!("within a transfer, after {} bytes to it and {} from it", out.at, input.at)
    }

    fn finish(&mut self) {
        if self.part.bytes == UNTIL_TIME_IS_OVER {
            let Halves { out, input, .. } = &mut self.halves;
            self.part.ends_half = out.total > 0;
            (out.total, input.total) = (out.at, input.at);
        }
    }

    #[inline]
    fn ends_half(&mut self) -> bool {
        std::mem::take(&mut self.part.ends_half)
    }

    #[inline]
    fn moved(&self) -> u64 {
        self.halves.out.at + self.halves.input.at
    }
}

/// The server's end: the transfers that the client requests.
pub type StreamServer = StreamScript<ServerPart>;

/// The server's part.
#[derive(Debug)]
pub struct ServerPart {
    /// Absent until the client shows it: a number alone reads, a number with content writes.
    direction: Option<Direction>,
    /// Transfers that have begun, and those of each connection.
    begun: u64,
    transfers: u64,
    size: u64,
    /// A transfer is under way.
    receives: bool,
}

impl StreamServer {
    /// `transfers`: the server takes leave within the last one of them; 0 for never.
    pub(in crate::layer) fn new(direction: Option<Direction>, content: Content, transfers: u64) -> Self {
        let size = content.size() as u64;
        let part = ServerPart { direction, begun: 0, transfers, size, receives: false };
        let mut server = Self::with(content, part);
        if direction == Some(Direction::Both) {
            server.halves.out.turn = 1;
        }
        server
    }
}

impl ServerPart {
    /// The number of a transfer has arrived.
    fn begin(&mut self, halves: &mut Halves, wanted: u64) -> Result<(), ErrorKind> {
        let direction = self.direction.expect("the caller has set it");
        if halves.out.has_more() || (direction == Direction::Both && wanted == UNTIL_TIME_IS_OVER) {
            let text =
                "a transfer before the end of another, or without an end: the client is none of --stream";
            return Err(note(ErrorKind::Malformed, || Cause::new(text)));
        }
        let (reads, writes) = (direction.client_reads(), direction.client_writes());
        halves.out.send(None, if reads { wanted } else { 0 });
        halves.input = Incoming::up_to(if writes { wanted } else { 0 });
        self.receives = writes;
        self.begun += 1;
        if self.begun == self.transfers {
            // Of content alone, the last write waits.
            halves.out.hold = Some(halves.out.total.saturating_sub(if writes { 0 } else { self.size }));
        }
        Ok(())
    }

    /// All content has arrived.
    fn answer(&mut self, Halves { out, input, .. }: &mut Halves) {
        self.receives = false;
        if input.good < input.at {
            let text = || format!("{} good bytes of {} in a transfer", input.good, input.at);
            peer_failed(note(ErrorKind::WrongContent, || Cause::new(text())));
        }
        out.tail = Some(input.good);
    }
}

impl Part for ServerPart {
    #[inline]
    fn take(
        &mut self,
        halves: &mut Halves,
        content: &Content,
        mut bytes: &mut [u8],
        mut key: Key,
    ) -> Result<(), ErrorKind> {
        loop {
            if self.receives {
                if !take_content(&mut halves.input, &mut bytes, &mut key, content) {
                    return Ok(());
                }
                self.answer(halves);
            }
            if bytes.is_empty() {
                return Ok(());
            }
            let Some(wanted) = take_number(&mut halves.number, &mut bytes, &mut key) else { return Ok(()) };
            let shown = if bytes.is_empty() { Direction::ClientReads } else { Direction::ClientWrites };
            self.direction.get_or_insert(shown);
            self.begin(halves, wanted)?;
        }
    }

    #[inline]
    fn listens_while_sending(&self) -> bool {
        self.receives
    }

    fn half_ended(&mut self, halves: &mut Halves) -> bool {
        let ends = self.receives && halves.input.total == UNTIL_TIME_IS_OVER;
        if ends {
            halves.input.total = halves.input.at;
            self.answer(halves);
        }
        ends
    }
}
