//! Code of the fuzz targets: a panic is a fault, and so is a result that depends on the pieces that bytes
//! come in.

use super::Code;
use super::client::{Response, ResponseReader};
use super::control::PeerStream;
use super::server::{self, RequestReader};
use crate::http::response::Head;

#[derive(Debug, Default, PartialEq)]
struct Taken {
    statuses: Vec<u16>,
    body: Vec<u8>,
}

impl Response for Taken {
    fn head(&mut self, head: &Head) {
        self.statuses.push(head.status);
    }

    fn body(&mut self, at: u64, bytes: &[u8]) {
        assert_eq!(at, self.body.len() as u64);
        self.body.extend_from_slice(bytes);
    }
}

/// The three kinds of streams: the first byte is the length of the pieces.
pub fn fuzz(input: &[u8]) {
    let Some((size, stream)) = input.split_first() else { return };
    let size = usize::from(*size).max(1);
    assert_eq!(answer(stream, size), answer(stream, stream.len().max(1)));
    assert_eq!(request(stream, size), request(stream, stream.len().max(1)));
    assert_eq!(control(stream, size), control(stream, stream.len().max(1)));
}

fn answer(stream: &[u8], size: usize) -> Result<(Taken, Result<u64, Code>), Code> {
    let (mut reader, mut taken) = (ResponseReader::default(), Taken::default());
    for piece in stream.chunks(size) {
        reader.feed(piece, &mut taken)?;
    }
    let end = reader.finish();
    Ok((taken, end))
}

fn request(stream: &[u8], size: usize) -> Result<server::Response, Code> {
    let mut reader = RequestReader::default();
    stream.chunks(size).try_for_each(|piece| reader.feed(piece))?;
    reader.finish()
}

fn control(stream: &[u8], size: usize) -> Result<Option<u64>, Code> {
    let mut peer = PeerStream::default();
    stream.chunks(size).try_fold(None, |last, piece| Ok(peer.feed(piece)?.or(last)))
}
