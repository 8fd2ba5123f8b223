//! The response parser never panics. Input in two pieces gives the same result as in one, also when the
//! parser recognises the previous head.
//!
//! `scripts/fuzz http_response`; the first byte is the position of the cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_proto::http::response::{Head, LastHead, Parser, ParserState};

fn parse(pieces: &[&[u8]], last: &mut LastHead) -> Result<(ParserState, Option<Head>, Vec<u8>), ()> {
    let mut parser = Parser::default();
    let mut body = Vec::new();
    let mut state = ParserState::More;
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        if matches!(state, ParserState::Complete { .. }) {
            // Bytes after a complete response, which the parser refuses in one piece.
            return Err(());
        }
        let fed = parser.feed(piece, last, |at, data| {
            assert_eq!(at, body.len() as u64);
            body.extend_from_slice(data);
        });
        state = fed.map_err(|_| ())?;
        if matches!(state, ParserState::Complete { rest } if rest > 0) {
            return Err(());
        }
    }
    assert_eq!(parser.body_bytes(), body.len() as u64);
    Ok((state, parser.head().copied(), body))
}

fuzz_target!(|input: &[u8]| {
    let Some((cut, response)) = input.split_first() else { return };
    let cut = usize::from(*cut) * response.len() / 255;
    // In the second pass each head may be equal to the previous one.
    let mut last = LastHead::default();
    let pieces = parse(&[&response[..cut], &response[cut..]], &mut last);
    assert_eq!(pieces, parse(&[response], &mut last));
    assert_eq!(pieces, parse(&[response], &mut last));
});
