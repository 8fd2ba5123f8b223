//! A connection of the protocol of performance tests (draft-banks-quic-performance-00).

use crate::endpoint::Service;
use bytes::Bytes;
use linerate_sdk::perf::PREFIX;
use quiche::{Connection, h3};
use std::collections::HashMap;

pub struct Performance {
    piece: Bytes,
    streams: HashMap<u64, Stream>,
    buffer: Box<[u8]>,
}

#[derive(Default)]
struct Stream {
    prefix: [u8; PREFIX],
    received: usize,
    /// Bytes of the answer that are not sent. `None`: the request has not ended.
    left: Option<u64>,
}

impl Performance {
    pub fn new(piece: Bytes) -> Self {
        let buffer = vec![0; piece.len()].into();
        Self { piece, streams: HashMap::new(), buffer }
    }
}

impl Service for Performance {
    fn turn(&mut self, connection: &mut Connection) -> Result<(), h3::Error> {
        for id in connection.readable() {
            let stream = self.streams.entry(id).or_default();
            while let Ok((count, is_last)) = connection.stream_recv(id, &mut self.buffer) {
                let wanted = count.min(PREFIX - stream.received);
                stream.prefix[stream.received..stream.received + wanted]
                    .copy_from_slice(&self.buffer[..wanted]);
                stream.received += wanted;
                stream.left = is_last.then(|| u64::from_be_bytes(stream.prefix));
            }
        }
        let Self { piece, streams, .. } = self;
        streams.retain(|id, stream| !is_answered(connection, *id, stream, piece));
        Ok(())
    }
}

/// Sends what a stream has room for. True at its end, and where the peer has given it up.
fn is_answered(connection: &mut Connection, id: u64, stream: &mut Stream, piece: &[u8]) -> bool {
    let Some(left) = &mut stream.left else { return false };
    loop {
        let count = (*left).min(piece.len() as u64);
        match connection.stream_send(id, &piece[..count as usize], count == *left) {
            Ok(sent) => *left -= sent as u64,
            Err(quiche::Error::Done) => return false,
            Err(_) => return true,
        }
        if *left == 0 {
            return true;
        }
    }
}
