//! A client's connection as the end under test.

use super::{ClientProtocol, Quic, QuicConnection};
use crate::clock;
use crate::layer::quic::fuzz::{End, datagrams};
use crate::layer::{Begun, LaneEnd, Lanes, Layer};
use bytes::BytesMut;
use quinn_proto::DatagramEvent;
use std::time::Instant;

/// Operations of an input.
const MOST: u64 = 20;

pub(in crate::layer::quic) struct Tested<P: ClientProtocol> {
    layer: Quic<P>,
    connection: QuicConnection<P>,
    begun: u64,
    ended: u64,
}

impl<P: ClientProtocol> Tested<P> {
    pub(in crate::layer::quic) fn new(mut layer: Quic<P>) -> Self {
        let connection = layer.open().expect("descriptors are left");
        Self { layer, connection, begun: 0, ended: 0 }
    }

    /// Operations that have ended.
    #[cfg(test)]
    pub(in crate::layer::quic) fn operations(&self) -> u64 {
        self.ended
    }
}

impl<P: ClientProtocol> End for Tested<P> {
    fn turn(&mut self, arrived: Vec<BytesMut>, now: Instant) -> Vec<BytesMut> {
        let Self { layer, connection, begun, ended } = self;
        for data in arrived {
            let remote = layer.shared.remote;
            let handled = connection.endpoint.handle(now, remote, None, None, data, &mut Vec::new());
            if let Some(DatagramEvent::ConnectionEvent(_, event)) = handled {
                connection.connection.handle_event(event);
            }
        }
        let outcome = layer.take_events(connection);
        while outcome.is_ok() && *begun < MOST && layer.has_room(connection) {
            layer.start(connection, Begun::at(clock::now()));
            *begun += 1;
        }
        let is_end = |end: &LaneEnd| !matches!(end, LaneEnd::Events { .. });
        *ended += layer.ended().filter(|ending| is_end(&ending.end)).count() as u64;
        datagrams(&mut connection.connection, now)
    }

    fn check(&self) {
        let QuicConnection { lanes, under_way, kept, .. } = &self.connection;
        assert_eq!(self.begun, self.ended + u64::from(*under_way), "each operation ends once");
        let in_lanes = lanes.iter().filter(|lane| lane.stream.is_some()).count();
        assert_eq!(in_lanes, *under_way as usize);
        assert_eq!(lanes.iter().map(|lane| P::kept(&lane.reader)).sum::<usize>(), *kept);
    }
}
