//! Which connections begin: how many handshakes are under way, for how long, and what windows they have.
//!
//! A forged address costs its sender one datagram. Beyond some handshakes a client first shows that it
//! receives at its address (Retry, RFC 9000 section 8.1.2), which needs no memory here; beyond more, the
//! oldest gives way. So a flood neither fills the memory nor shuts out honest clients, which end theirs in a
//! few round trips.

use super::ServerProtocol;
use crate::layer::quic::{REQUEST_WINDOW, transport};
use crate::layer::wire::tls::server_config;
use crate::packets::Mode;
use crate::refusal::Refusal;
use linerate_contract::{Nanos, Spec};
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{ConnectionHandle, ServerConfig, VarInt};
use std::collections::VecDeque;
use std::sync::Arc;

/// Handshakes under way of all threads, above which addresses are validated.
const VALIDATED_ABOVE: usize = 1_000;
/// The most of all threads.
const MOST: usize = 4_000;
/// How long one may take: four losses in a row at the usual first timer of a second.
const LONGEST: Nanos = Nanos(15_000_000_000);

/// Connections of a thread that have the whole window; with each doubling the next ones have half. 4,000 have
/// 45 MiB together.
const WITH_WHOLE_WINDOW: usize = 5;
const SHARES: usize = 9;
/// Streams that a connection begins with. One that uses them gets more: each takes memory in advance.
const FIRST_STREAMS: u32 = 4;

/// The answer to a new handshake, by the number of those under way on its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    Accept,
    /// The client shows first that it has its address.
    Validate,
    /// The oldest handshake gives way.
    Replace,
}

/// Handshakes under way of a thread, the oldest first.
#[derive(Debug)]
pub(super) struct Handshakes {
    /// With those that have ended since.
    begun: VecDeque<(ConnectionHandle, Nanos)>,
    count: usize,
    threads: usize,
}

impl Handshakes {
    pub(super) fn of_one_of(threads: u32) -> Self {
        Self { begun: VecDeque::new(), count: 0, threads: threads as usize }
    }

    pub(super) fn admit(&self, is_validated: bool) -> Admission {
        if self.count >= VALIDATED_ABOVE.div_ceil(self.threads) && !is_validated {
            Admission::Validate
        } else if self.count >= MOST.div_ceil(self.threads) {
            Admission::Replace
        } else {
            Admission::Accept
        }
    }

    pub(super) fn begin(&mut self, handle: ConnectionHandle, at: Nanos) {
        self.begun.push_back((handle, at));
        self.count += 1;
    }

    /// A handshake is over.
    pub(super) fn end(&mut self) {
        self.count -= 1;
    }

    /// By when a handshake has begun that is late now, if there may be one.
    #[inline]
    pub(super) fn late(&self, now: Nanos) -> Option<Nanos> {
        let latest = Nanos(now.0.saturating_sub(LONGEST.0));
        self.begun.front().is_some_and(|(_, at)| *at <= latest).then_some(latest)
    }

    /// The oldest handshake that is under way and when it began; others are forgotten.
    pub(super) fn oldest(
        &mut self,
        is_under_way: impl Fn(ConnectionHandle, Nanos) -> bool,
    ) -> Option<(ConnectionHandle, Nanos)> {
        while let Some((handle, at)) = self.begun.front().copied() {
            if is_under_way(handle, at) {
                return Some((handle, at));
            }
            self.begun.pop_front();
        }
        self.begun = VecDeque::new();
        None
    }
}

/// The parameters of connections, by how many there are.
#[derive(Clone)]
pub(super) struct Configs(Arc<[Arc<ServerConfig>]>);

impl Configs {
    /// # Errors
    /// The spec lacks something.
    pub(super) fn new<P: ServerProtocol>(spec: &Spec, mode: Mode) -> Result<Self, Refusal> {
        let mut tls = server_config(spec)?;
        tls.alpn_protocols = vec![P::ALPN.to_vec()];
        let tls = QuicServerConfig::try_from(tls)
            .map_err(|e| Refusal::Unsupported(format!("QUIC without TLS_AES_128_GCM_SHA256: {e}")))?;
        let first = ServerConfig::with_crypto(Arc::new(tls));
        let configs = (0..SHARES).map(|share| {
            let mut config = first.clone();
            let mut transport = transport(spec, mode, REQUEST_WINDOW, REQUEST_WINDOW >> share)?;
            transport.max_concurrent_bidi_streams(VarInt::from_u32(FIRST_STREAMS));
            config.transport_config(Arc::new(transport));
            Ok(Arc::new(config))
        });
        configs.collect::<Result<_, _>>().map(Self)
    }

    /// The configurations of a thread's next connection, where it has `connections`.
    pub(super) fn next(&self, connections: usize, threads: usize) -> Arc<ServerConfig> {
        let several = connections * threads / WITH_WHOLE_WINDOW;
        let halvings = (usize::BITS - several.leading_zeros()) as usize;
        Arc::clone(&self.0[halvings.min(SHARES - 1)])
    }
}

/// Whether a connection with this many streams uses what it began with.
#[inline]
pub(super) fn needs_streams(open: u64) -> bool {
    open >= u64::from(FIRST_STREAMS / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_handshakes_validate_addresses_and_then_replace_the_oldest() {
        let mut handshakes = Handshakes::of_one_of(2);
        for number in 0..MOST / 2 {
            let admission =
                if number < VALIDATED_ABOVE / 2 { Admission::Accept } else { Admission::Validate };
            assert_eq!(handshakes.admit(false), admission, "{number}");
            assert_eq!(handshakes.admit(true), Admission::Accept);
            handshakes.begin(ConnectionHandle(number), Nanos(number as u64));
        }
        assert_eq!(handshakes.admit(true), Admission::Replace);
        assert_eq!(handshakes.oldest(|handle, _| handle.0 > 2), Some((ConnectionHandle(3), Nanos(3))));
        (0..MOST / 2).for_each(|_| handshakes.end());
        assert_eq!((handshakes.admit(false), handshakes.oldest(|_, _| false)), (Admission::Accept, None));
    }
}
