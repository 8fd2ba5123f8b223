//! From messages to the bytes of a stream.
//!
//! Payload is masked while it is copied into the send buffer, in one pass. Unmasked payload can be sent
//! without a copy. A message is one frame; control frames are sent between messages.

use super::frame::{FrameHead, LONGEST_CONTROL, LONGEST_HEAD, Opcode};
use super::mask::{self, Key};
use super::{End, close};
use ring::rand::{SecureRandom, SystemRandom};

/// A message that is to be sent: its kind, its length, and its bytes on demand.
pub trait Messages {
    /// Begins the next one, if there is one; the last one is out.
    fn next(&mut self) -> Option<(Opcode, u64)>;
    /// Bytes of the message under way, from `at` on: at least one, at most `most`.
    fn piece(&self, at: u64, most: usize) -> &[u8];
}

/// Bytes of control frames that wait to be sent: more than thirty of the longest.
const MOST_AHEAD: usize = 4 << 10;

/// Keys drawn per system call: one call per key would be measurable with small messages.
const KEYS: usize = 64;

/// Masking keys from the kernel's random numbers: they must be unpredictable (section 10.3).
#[derive(Debug)]
struct MaskKeys {
    drawn: [[u8; 4]; KEYS],
    left: usize,
}

impl MaskKeys {
    #[inline]
    fn next(&mut self) -> Key {
        if self.left == 0 {
            SystemRandom::new()
                .fill(self.drawn.as_flattened_mut())
                .expect("Linux has had getrandom(2) since 3.17");
            self.left = KEYS;
        }
        self.left -= 1;
        Key::new(self.drawn[self.left])
    }
}

/// The frame under way.
#[derive(Debug, Clone, Copy)]
struct Frame {
    head: [u8; LONGEST_HEAD],
    head_length: u64,
    key: Key,
    /// Bytes that are out, the head's included; and of all.
    at: u64,
    length: u64,
}

/// One direction of a connection.
#[derive(Debug)]
pub struct Encoder {
    /// The keys of a client; a server has none.
    keys: Option<MaskKeys>,
    frame: Option<Frame>,
    /// Control frames, and before them the handshake: whole, as they go out.
    ahead: Vec<u8>,
    ahead_at: usize,
    /// The payload of the last ping that arrived when [`MOST_AHEAD`] bytes waited.
    unanswered: Option<Vec<u8>>,
    closing: bool,
}

impl Encoder {
    /// An encoder of what `end` sends.
    pub fn new(end: End) -> Self {
        let keys = (end == End::Client).then_some(MaskKeys { drawn: [[0; 4]; KEYS], left: 0 });
        Self {
            keys,
            frame: None,
            ahead: Vec::with_capacity(512),
            ahead_at: 0,
            unanswered: None,
            closing: false,
        }
    }

    /// Bytes that are no frame: the handshake.
    pub fn say(&mut self, bytes: &[u8]) {
        self.ahead.extend_from_slice(bytes);
    }

    /// A control frame, to be sent as soon as no frame is under way.
    pub fn control(&mut self, opcode: Opcode, payload: &[u8]) {
        debug_assert!(opcode.is_control() && payload.len() <= LONGEST_CONTROL);
        if self.closing {
            return;
        }
        let key = self.keys.as_mut().map(MaskKeys::next);
        let mut head = [0; LONGEST_HEAD];
        let length = FrameHead { last: true, opcode, length: payload.len() as u64, key }.write(&mut head);
        self.ahead.extend_from_slice(&head[..length]);
        let from = self.ahead.len();
        self.ahead.extend_from_slice(payload);
        mask::apply(&mut self.ahead[from..], key.unwrap_or(Key::NONE));
    }

    /// Answers a ping. While many responses wait, only the last ping is answered, as section 5.5.3 allows:
    /// the pings of a peer that reads nothing use no further memory.
    pub fn pong(&mut self, payload: &[u8]) {
        if self.ahead.len() < MOST_AHEAD {
            self.control(Opcode::Pong, payload);
        } else if !self.closing {
            let unanswered = self.unanswered.get_or_insert_default();
            unanswered.clear();
            unanswered.extend_from_slice(payload);
        }
    }

    /// Ends this direction; only the first time.
    pub fn close(&mut self, code: Option<u16>) {
        let code = code.map(u16::to_be_bytes);
        self.control(Opcode::Close, code.as_ref().map_or(&[], |code| &code[..]));
        self.closing = true;
        self.unanswered = None;
    }

    /// As [`Self::close`], for a connection that has done its work.
    pub fn end(&mut self) {
        self.close(Some(close::NORMAL));
    }

    /// A control frame waits to be sent.
    pub fn owes(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// The close frame is out, or about to be.
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// Whether there is something to send; begins a frame if it has to.
    #[inline]
    pub fn prepare(&mut self, messages: &mut impl Messages) -> bool {
        if self.frame.is_some() || !self.ahead.is_empty() {
            return true;
        }
        if self.closing {
            return false;
        }
        let Some((opcode, length)) = messages.next() else { return false };
        let key = self.keys.as_mut().map(MaskKeys::next);
        let mut head = [0; LONGEST_HEAD];
        let head_length = FrameHead { last: true, opcode, length, key }.write(&mut head) as u64;
        let key = key.unwrap_or(Key::NONE);
        self.frame = Some(Frame { head, head_length, key, at: 0, length: head_length + length });
        true
    }

    /// The next bytes in place: head and payload of the frame under way. `None` if they have to be masked.
    #[inline]
    pub fn slices<'a>(&'a self, messages: &'a impl Messages) -> Option<[&'a [u8]; 2]> {
        let Some(frame) = &self.frame else { return Some([&self.ahead[self.ahead_at..], &[]]) };
        if !frame.key.is_none() {
            return None;
        }
        let head = frame.head_left();
        let at = frame.at.max(frame.head_length) - frame.head_length;
        let left = frame.length - frame.head_length - at;
        let payload =
            if left > 0 { messages.piece(at, usize::try_from(left).unwrap_or(usize::MAX)) } else { &[] };
        Some([head, payload])
    }

    /// `count` bytes of [`Self::slices`] were sent.
    #[inline]
    pub fn advance(&mut self, count: usize) {
        match &mut self.frame {
            Some(frame) => {
                frame.at += count as u64;
                if frame.at == frame.length {
                    self.frame = None;
                }
            }
            None => {
                self.ahead_at += count;
                if self.ahead_at == self.ahead.len() {
                    self.ahead.clear();
                    self.ahead_at = 0;
                    if let Some(payload) = self.unanswered.take() {
                        self.control(Opcode::Pong, &payload);
                    }
                }
            }
        }
    }

    /// Writes as much as there is, or as fits into `room`; how much that is.
    #[inline]
    pub fn fill(&mut self, messages: &mut impl Messages, room: &mut [u8]) -> usize {
        let mut used = 0;
        while used < room.len() && self.prepare(messages) {
            let room = &mut room[used..];
            let written = match &self.frame {
                None => put(room, &self.ahead[self.ahead_at..]),
                Some(frame) if frame.at < frame.head_length => put(room, frame.head_left()),
                Some(frame) => {
                    let at = frame.at - frame.head_length;
                    let left = usize::try_from(frame.length - frame.at).unwrap_or(usize::MAX);
                    let piece = messages.piece(at, left.min(room.len()));
                    let room = &mut room[..piece.len()];
                    if frame.key.is_none() {
                        room.copy_from_slice(piece);
                    } else {
                        mask::copy(room, piece, frame.key.after((at % 4) as usize));
                    }
                    piece.len()
                }
            };
            self.advance(written);
            used += written;
        }
        used
    }
}

impl Frame {
    #[inline]
    fn head_left(&self) -> &[u8] {
        &self.head[self.at.min(self.head_length) as usize..self.head_length as usize]
    }
}

/// As much of `bytes` as fits.
#[inline]
fn put(room: &mut [u8], bytes: &[u8]) -> usize {
    let count = bytes.len().min(room.len());
    room[..count].copy_from_slice(&bytes[..count]);
    count
}

#[cfg(test)]
mod tests {
    use super::super::decoder::{Decoder, Receiver};
    use super::*;
    use proptest::prelude::*;

    #[derive(Default)]
    struct Queue {
        messages: Vec<Vec<u8>>,
        next: usize,
    }

    impl Messages for Queue {
        fn next(&mut self) -> Option<(Opcode, u64)> {
            let message = self.messages.get(self.next)?;
            self.next += 1;
            Some((Opcode::Binary, message.len() as u64))
        }

        fn piece(&self, at: u64, most: usize) -> &[u8] {
            let rest = &self.messages[self.next - 1][at as usize..];
            &rest[..rest.len().min(most)]
        }
    }

    #[derive(Default)]
    struct Inbox {
        under_way: Vec<u8>,
        messages: Vec<Vec<u8>>,
        pings: Vec<Vec<u8>>,
        closed: Option<Option<u16>>,
    }

    impl Receiver for Inbox {
        fn payload(&mut self, bytes: &mut [u8], key: Key) {
            mask::apply(bytes, key);
            self.under_way.extend_from_slice(bytes);
        }

        fn end_of_message(&mut self, _: Opcode) {
            self.messages.push(std::mem::take(&mut self.under_way));
        }

        fn ping(&mut self, payload: &[u8]) {
            self.pings.push(payload.to_vec());
        }

        fn close(&mut self, code: Option<u16>) {
            self.closed = Some(code);
        }
    }

    /// Sends all, half of it by slices where that is possible, in pieces of `piece` bytes.
    fn transfer(end: End, queue: &mut Queue, encoder: &mut Encoder, piece: usize) -> Inbox {
        let other = if end == End::Client { End::Server } else { End::Client };
        let (mut decoder, mut inbox) = (Decoder::new(other), Inbox::default());
        let mut turn = 0;
        while encoder.prepare(queue) {
            turn += 1;
            let mut sent = match encoder.slices(queue).filter(|_| turn % 2 == 0) {
                Some(slices) => slices.concat().into_iter().take(piece).collect(),
                None => vec![0; piece],
            };
            if turn % 2 == 0 && encoder.slices(queue).is_some() {
                encoder.advance(sent.len());
            } else {
                sent.resize(piece, 0);
                let used = encoder.fill(queue, &mut sent);
                sent.truncate(used);
            }
            decoder.feed(&mut sent, &mut inbox).unwrap();
        }
        inbox
    }

    proptest! {
        #[test]
        fn messages_survive_both_directions(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..400), 0..6),
            piece in 1_usize..500,
        ) {
            for end in [End::Client, End::Server] {
                let mut queue = Queue { messages: messages.clone(), next: 0 };
                let mut encoder = Encoder::new(end);
                encoder.control(Opcode::Ping, b"first");
                let inbox = transfer(end, &mut queue, &mut encoder, piece);
                prop_assert_eq!(&inbox.messages, &messages);
                prop_assert_eq!(inbox.pings, vec![b"first".to_vec()]);
            }
        }
    }

    #[test]
    fn nothing_follows_a_close_frame() {
        let mut queue = Queue { messages: vec![vec![1; 100]], next: 0 };
        let mut encoder = Encoder::new(End::Client);
        encoder.end();
        encoder.close(Some(1002));
        encoder.control(Opcode::Ping, b"");
        let inbox = transfer(End::Client, &mut queue, &mut encoder, 7);
        assert_eq!((inbox.closed, inbox.messages.len()), (Some(Some(1000)), 0));
    }

    #[test]
    fn of_many_pings_without_a_send_the_last_one_is_answered_and_memory_is_bounded() {
        let mut encoder = Encoder::new(End::Client);
        for number in 0..100_000_u32 {
            encoder.pong(&[&number.to_le_bytes()[..], &[0; 121]].concat());
        }
        assert!(encoder.ahead.capacity() <= 4 * MOST_AHEAD, "{}", encoder.ahead.capacity());
        let mut sent = vec![0; 20 << 20];
        let length = encoder.fill(&mut Queue::default(), &mut sent);
        // Head, key, payload.
        let pongs = sent[..length].chunks(2 + 4 + 125).map(|pong| {
            assert_eq!(pong[..2], [0x8a, 0x80 | 125]);
            u32::from_le_bytes([0, 1, 2, 3].map(|at| pong[2 + at] ^ pong[6 + at]))
        });
        let numbers: Vec<_> = pongs.collect();
        assert!(numbers.is_sorted() && numbers.len() < 100, "{numbers:?}");
        assert_eq!((numbers[0], numbers[numbers.len() - 1]), (0, 99_999));
    }

    #[test]
    fn each_frame_of_a_client_has_a_key_of_its_own() {
        let mut keys = MaskKeys { drawn: [[0; 4]; KEYS], left: 0 };
        let all: std::collections::HashSet<[u8; 4]> = (0..1000).map(|_| keys.next().bytes()).collect();
        // Two of a thousand are alike once in 8,600 runs; three pairs never.
        assert!(all.len() > 996);
    }
}
