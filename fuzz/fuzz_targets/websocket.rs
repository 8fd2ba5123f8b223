//! The WebSocket decoder and the handshake never panic. Input in two pieces gives the same result as in one.
//!
//! `scripts/fuzz websocket`; the first byte is the position of the cut and the end that reads.

#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_proto::websocket::decoder::{Decoder, Receiver};
use linerate_proto::websocket::frame::Opcode;
use linerate_proto::websocket::mask::{self, Key};
use linerate_proto::websocket::{Broken, End, upgrade};

#[derive(Debug, Default, PartialEq)]
struct Log {
    /// Messages with their kinds, pings, and close codes, in order; the incomplete message last.
    events: Vec<(&'static str, Vec<u8>)>,
    under_way: Vec<u8>,
}

impl Receiver for Log {
    fn payload(&mut self, bytes: &mut [u8], key: Key) {
        mask::apply(bytes, key);
        self.under_way.extend_from_slice(bytes);
    }

    fn end_of_message(&mut self, kind: Opcode) {
        let message = std::mem::take(&mut self.under_way);
        if kind == Opcode::Text {
            assert!(std::str::from_utf8(&message).is_ok());
        }
        self.events.push((if kind == Opcode::Text { "text" } else { "binary" }, message));
    }

    fn ping(&mut self, payload: &[u8]) {
        assert!(payload.len() <= 125);
        self.events.push(("ping", payload.to_vec()));
    }

    fn close(&mut self, code: Option<u16>) {
        self.events.push(("close", code.unwrap_or_default().to_be_bytes().to_vec()));
    }
}

fn decode(end: End, pieces: &[&[u8]]) -> (Vec<(&'static str, Vec<u8>)>, Result<(), Broken>) {
    let (mut decoder, mut log) = (Decoder::with_limit(end, 1 << 16), Log::default());
    for piece in pieces {
        if let Err(broken) = decoder.feed(&mut piece.to_vec(), &mut log) {
            return (log.events, Err(broken));
        }
    }
    (log.events, Ok(()))
}

fuzz_target!(|input: &[u8]| {
    let Some((choice, stream)) = input.split_first() else { return };
    let end = if choice & 1 == 0 { End::Client } else { End::Server };
    let cut = usize::from(*choice) * stream.len() / 255;
    assert_eq!(decode(end, &[&stream[..cut], &stream[cut..]]), decode(end, &[stream]));
    let _ = upgrade::respond(stream);
    let _ = upgrade::is_accepted(stream, [0; 16], "chat");
    let _ = upgrade::cannot_be_a_request(stream);
});
