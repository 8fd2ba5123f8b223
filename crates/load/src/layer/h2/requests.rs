//! The requests of a client.

use crate::layer::wire::Source;
use linerate_proto::h2::client::{Client, EncodedRequest};

/// Bytes to be sent: whole frames, one behind the other.
pub(super) struct Requests<'a> {
    pub(super) client: &'a mut Client,
    pub(super) requests: &'a [EncodedRequest],
}

impl Source for Requests<'_> {
    #[inline]
    fn prepare(&mut self) -> bool {
        !self.client.pending(self.requests).is_empty()
    }

    #[inline]
    fn slices(&self) -> Option<[&[u8]; 2]> {
        Some([self.client.queued(), &[]])
    }

    #[inline]
    fn advance(&mut self, count: usize) -> bool {
        self.client.advance(count);
        self.prepare()
    }

    fn fill(&mut self, room: &mut [u8]) -> usize {
        let queued = self.client.queued();
        let count = queued.len().min(room.len());
        room[..count].copy_from_slice(&queued[..count]);
        self.client.advance(count);
        count
    }
}
