//! Cases of Autobahn's test suite for a receiver, by its chapters.

use super::*;
use proptest::prelude::*;

/// Everything that was received, in order.
#[derive(Debug, Default, PartialEq, Eq, Clone)]
struct Log {
    under_way: Vec<u8>,
    events: Vec<Event>,
}

#[derive(Debug, PartialEq, Eq, Clone)]
enum Event {
    Text(Vec<u8>),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Close(Option<u16>),
}

impl Receiver for Log {
    fn payload(&mut self, bytes: &mut [u8], key: Key) {
        mask::apply(bytes, key);
        self.under_way.extend_from_slice(bytes);
    }

    fn end_of_message(&mut self, kind: Opcode) {
        let message = std::mem::take(&mut self.under_way);
        self.events.push(if kind == Opcode::Text { Event::Text(message) } else { Event::Binary(message) });
    }

    fn ping(&mut self, payload: &[u8]) {
        self.events.push(Event::Ping(payload.to_vec()));
    }

    fn close(&mut self, code: Option<u16>) {
        self.events.push(Event::Close(code));
    }
}

/// A masked frame, as a client sends it.
fn frame(last: bool, opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let key = Key::new([0x11, 0x22, 0x83, payload.len() as u8]);
    let mut head = [0; LONGEST_HEAD];
    let length = FrameHead { last, opcode, length: payload.len() as u64, key: Some(key) }.write(&mut head);
    let mut bytes = head[..length].to_vec();
    bytes.extend_from_slice(payload);
    mask::apply(&mut bytes[length..], key);
    bytes
}

/// The events of a server that reads this stream, which comes in pieces of `piece` bytes.
fn feed(stream: &[u8], piece: usize) -> (Vec<Event>, Result<(), Broken>) {
    let (mut decoder, mut log) = (Decoder::with_limit(End::Server, 100_000), Log::default());
    for piece in stream.chunks(piece) {
        if let Err(broken) = decoder.feed(&mut piece.to_vec(), &mut log) {
            return (log.events, Err(broken));
        }
    }
    (log.events, Ok(()))
}

/// Payload as it is passed on, and whether a key came with it.
#[derive(Default)]
struct Passed(Vec<u8>, bool);

impl Receiver for Passed {
    fn payload(&mut self, bytes: &mut [u8], key: Key) {
        self.0.extend_from_slice(bytes);
        self.1 |= !key.is_none();
    }
    fn end_of_message(&mut self, _kind: Opcode) {}
    fn ping(&mut self, _payload: &[u8]) {}
    fn close(&mut self, _code: Option<u16>) {}
}

#[test]
fn payload_is_unmasked_on_request_alone() {
    let content: Vec<u8> = (0..200).collect();
    let stream =
        [frame(false, Opcode::Binary, &content[..99]), frame(true, Opcode::Continuation, &content[99..])];
    for (unmask, piece) in [(true, 7), (true, 400), (false, 400)] {
        let (mut decoder, mut passed) = (Decoder::new(End::Server).unmasking(unmask), Passed::default());
        for piece in stream.concat().chunks(piece) {
            decoder.feed(&mut piece.to_vec(), &mut passed).unwrap();
        }
        assert_eq!((passed.0 == content, passed.1), (unmask, !unmask), "pieces of {piece}");
    }
}

/// The events of a server that reads a stream, byte by byte and at once.
fn both_ways(stream: &[u8]) -> (Vec<Event>, Result<(), Broken>) {
    let whole = feed(stream, stream.len().max(1));
    assert_eq!(feed(stream, 1), whole);
    whole
}

fn good(frames: &[Vec<u8>]) -> Vec<Event> {
    let (events, outcome) = both_ways(&frames.concat());
    outcome.unwrap();
    events
}

fn bad(frames: &[Vec<u8>]) -> Broken {
    both_ways(&frames.concat()).1.unwrap_err()
}

#[test]
fn chapter_1_messages_of_every_length() {
    for length in [0, 1, 125, 126, 127, 128, 65_535, 65_536, 70_000] {
        let payload = vec![0xfe; length];
        assert_eq!(good(&[frame(true, Opcode::Binary, &payload)]), [Event::Binary(payload)], "{length}");
        let text = vec![b'*'; length];
        assert_eq!(good(&[frame(true, Opcode::Text, &text)]), [Event::Text(text)], "{length}");
    }
}

#[test]
fn chapter_2_pings_are_answered_and_pongs_ignored() {
    let longest = vec![0xff; 125];
    assert_eq!(
        good(&[
            frame(true, Opcode::Ping, b""),
            frame(true, Opcode::Pong, b"unrequested"),
            frame(true, Opcode::Ping, &longest),
        ]),
        [Event::Ping(Vec::new()), Event::Ping(longest)]
    );
    assert_eq!(bad(&[frame(true, Opcode::Ping, &[0; 126])]), Broken::Protocol);
}

#[test]
fn chapters_3_and_4_reserved_bits_and_opcodes_end_it() {
    for bit in [0x40, 0x20, 0x10] {
        let mut broken = frame(true, Opcode::Text, b"Hello");
        broken[0] |= bit;
        let (events, outcome) = both_ways(&[frame(true, Opcode::Text, b"good"), broken].concat());
        assert_eq!((events.len(), outcome), (1, Err(Broken::Protocol)));
    }
    for opcode in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
        let mut broken = frame(true, Opcode::Text, b"");
        broken[0] = 0x80 | opcode;
        assert_eq!(bad(&[broken]), Broken::Protocol, "{opcode}");
    }
}

#[test]
fn chapter_5_fragments_and_control_frames_between_them() {
    let fragments = [
        frame(false, Opcode::Text, b"one "),
        frame(true, Opcode::Ping, b"between"),
        frame(false, Opcode::Continuation, b""),
        frame(false, Opcode::Continuation, b"two "),
        frame(true, Opcode::Continuation, b"three"),
        frame(true, Opcode::Binary, b"next"),
    ];
    let (ping, next) = (Event::Ping(b"between".to_vec()), Event::Binary(b"next".to_vec()));
    assert_eq!(good(&fragments), [ping, Event::Text(b"one two three".to_vec()), next]);
    assert_eq!(bad(&[frame(false, Opcode::Ping, b"")]), Broken::Protocol);
    assert_eq!(bad(&[frame(true, Opcode::Continuation, b"of nothing")]), Broken::Protocol);
    let within = [frame(false, Opcode::Text, b"a"), frame(true, Opcode::Text, b"b")];
    assert_eq!(bad(&within), Broken::Protocol);
    let after = [frame(true, Opcode::Text, b"a"), frame(false, Opcode::Continuation, b"b")];
    assert_eq!(bad(&after), Broken::Protocol);
}

#[test]
fn chapter_6_text_is_utf8_also_where_it_is_cut() {
    let text = "κόσμε 😀 \u{10ffff}".as_bytes();
    for cut in 0..=text.len() {
        let fragments =
            [frame(false, Opcode::Text, &text[..cut]), frame(true, Opcode::Continuation, &text[cut..])];
        assert_eq!(good(&fragments), [Event::Text(text.to_vec())]);
    }
    for wrong in [&b"\xce\xba\xe1\xbd"[..], b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xff"] {
        assert_eq!(bad(&[frame(true, Opcode::Text, wrong)]), Broken::NotUtf8, "{wrong:x?}");
    }
    // It fails with the first byte that is wrong, not with the end of the message.
    let first = frame(false, Opcode::Text, b"\xf4\x90");
    assert_eq!(bad(&[first]), Broken::NotUtf8);
    // Bytes are no text.
    assert_eq!(good(&[frame(true, Opcode::Binary, b"\xff")]), [Event::Binary(vec![0xff])]);
}

#[test]
fn chapter_7_close_frames() {
    let close = |payload: &[u8]| frame(true, Opcode::Close, payload);
    assert_eq!(good(&[close(b"")]), [Event::Close(None)]);
    assert_eq!(good(&[close(b"\x03\xe8bye")]), [Event::Close(Some(1000))]);
    // Nothing behind it is looked at.
    assert_eq!(good(&[close(b"\x0f\xa0"), vec![0xff; 9]]), [Event::Close(Some(4000))]);
    assert_eq!(bad(&[close(b"\x03")]), Broken::Protocol);
    assert_eq!(bad(&[close(b"\x03\xed")]), Broken::Protocol);
    assert_eq!(bad(&[close(b"\x03\xe8\xce")]), Broken::NotUtf8);
    assert_eq!(bad(&[close(&[3; 126])]), Broken::Protocol);
}

#[test]
fn chapter_9_the_limit_holds_for_messages_and_is_known_before_they_come() {
    let head = |last, opcode, length| {
        let mut bytes = [0; LONGEST_HEAD];
        let used = FrameHead { last, opcode, length, key: Some(Key::NONE) }.write(&mut bytes);
        bytes[..used].to_vec()
    };
    assert_eq!(bad(&[head(true, Opcode::Binary, 100_001)]), Broken::TooBig);
    assert_eq!(bad(&[head(true, Opcode::Binary, u64::MAX >> 1)]), Broken::TooBig);
    let most = frame(false, Opcode::Binary, &[0; 99_999]);
    assert_eq!(bad(&[most.clone(), head(true, Opcode::Continuation, 2)]), Broken::TooBig);
    assert_eq!(good(&[most, frame(true, Opcode::Continuation, &[0])]).len(), 1);
}

proptest! {
    #[test]
    fn any_cut_of_any_stream_means_the_same(stream: Vec<u8>, piece in 1_usize..40) {
        prop_assert_eq!(feed(&stream, piece), feed(&stream, stream.len().max(1)));
    }

    #[test]
    fn messages_come_out_as_they_went_in(
        messages in prop::collection::vec(
            prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..5),
            0..5,
        ),
        piece in 1_usize..500,
    ) {
        let mut stream = Vec::new();
        for fragments in &messages {
            for (i, fragment) in fragments.iter().enumerate() {
                let opcode = if i == 0 { Opcode::Binary } else { Opcode::Continuation };
                stream.extend(frame(i + 1 == fragments.len(), opcode, fragment));
            }
        }
        let (events, outcome) = feed(&stream, piece);
        prop_assert_eq!(outcome, Ok(()));
        let whole: Vec<Event> = messages.iter().map(|fragments| Event::Binary(fragments.concat())).collect();
        prop_assert_eq!(events, whole);
    }
}
