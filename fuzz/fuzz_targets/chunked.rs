//! A chunked body: no panic; in pieces it is the same as whole, and never longer than its input.
//!
//! `scripts/fuzz chunked`; the first byte is the length of the pieces.

#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_proto::http::response::{LastHead, Malformed, Parser, ParserState};

/// The body, and the number of bytes behind it once it is complete.
fn parse(pieces: &[&[u8]]) -> Result<(Vec<u8>, Option<usize>), Malformed> {
    let (mut parser, mut last, mut body) = (Parser::default(), LastHead::default(), Vec::new());
    parser.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &mut last, |_, _| {})?;
    let mut left: usize = pieces.iter().map(|piece| piece.len()).sum();
    for piece in pieces {
        left -= piece.len();
        let state = parser.feed(piece, &mut last, |at, data| {
            assert_eq!(at, body.len() as u64);
            body.extend_from_slice(data);
        })?;
        if let ParserState::Complete { rest } = state {
            return Ok((body, Some(left + rest)));
        }
    }
    Ok((body, None))
}

fuzz_target!(|input: &[u8]| {
    let Some((length, chunks)) = input.split_first() else { return };
    let whole = parse(&[chunks]);
    assert!(whole.as_ref().is_ok_and(|(body, _)| body.len() <= chunks.len()) || whole.is_err());
    let pieces: Vec<_> = chunks.chunks(usize::from(*length).max(1)).collect();
    assert_eq!(parse(&pieces), whole);
});
