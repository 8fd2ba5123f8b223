//! A server's connection as the end under test.

use super::admission::{Configs, Handshakes};
use super::served::Served;
use super::{ServerProtocol, mode};
use crate::layer::quic::fuzz::{ADDRESS, End, datagrams};
use bytes::BytesMut;
use linerate_contract::{Nanos, Spec};
use quinn_proto::{ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, ServerConfig};
use std::sync::Arc;
use std::time::Instant;

/// The parameters of a server's first connection.
pub(in crate::layer::quic) fn config<P: ServerProtocol>(spec: &Spec) -> Arc<ServerConfig> {
    let mode = mode(spec).expect("a good spec");
    Configs::new::<P>(spec, mode).expect("a good spec").next(0, 1)
}

pub(in crate::layer::quic) struct Tested<P: ServerProtocol> {
    endpoint: Endpoint,
    protocol: P,
    handshakes: Handshakes,
    served: Option<(ConnectionHandle, Served<P>)>,
}

impl<P: ServerProtocol> Tested<P> {
    pub(in crate::layer::quic) fn new(spec: &Spec) -> Self {
        let config = Some(config::<P>(spec));
        let endpoint = Endpoint::new(Arc::<EndpointConfig>::default(), config, true, None);
        let protocol = P::new(spec).expect("a good spec");
        Self { endpoint, protocol, handshakes: Handshakes::of_one_of(1), served: None }
    }
}

impl<P: ServerProtocol> End for Tested<P> {
    fn turn(&mut self, arrived: Vec<BytesMut>, now: Instant) -> Vec<BytesMut> {
        let mut batch = Vec::new();
        for data in arrived {
            match self.endpoint.handle(now, ADDRESS, None, None, data, &mut batch) {
                Some(DatagramEvent::ConnectionEvent(_, event)) => {
                    let (_, served) = self.served.as_mut().expect("a connection");
                    served.connection.handle_event(event);
                }
                Some(DatagramEvent::NewConnection(incoming)) if self.served.is_none() => {
                    if let Ok((handle, new)) = self.endpoint.accept(incoming, now, &mut batch, None) {
                        self.handshakes.begin(handle, Nanos::ZERO);
                        self.served = Some((handle, Served::new(new, Nanos::ZERO)));
                    }
                }
                Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
                _ => {}
            }
        }
        let Some((handle, served)) = &mut self.served else { return Vec::new() };
        while let Some(event) = served.connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                served.connection.handle_event(event);
            }
        }
        served.take_events(&self.protocol, &mut self.handshakes, now);
        datagrams(&mut served.connection, now)
    }

    fn check(&self) {
        self.served.iter().for_each(|(_, served)| served.check());
    }
}
