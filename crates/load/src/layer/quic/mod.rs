//! QUIC (RFC 9000) and what runs over it: HTTP/3, and the protocol of performance tests.
//!
//! The crate `quinn-proto` is the state machine of a connection, for both ends; sockets, datagrams and
//! waiting are linerate's. Servers and clients that are built on quinn share it.
//!
//! | module | contents |
//! |---|---|
//! | [`client`] | the engine's [`super::Layer`]: lanes are streams |
//! | [`server`] | the loop of a server |
//! | [`h3`] | HTTP/3 on the streams of both ends |
//! | `fuzz` | both ends against a peer that does what it likes, for tests and fuzzing only |
//! | [`perf`] | draft-banks-quic-performance on them: a request says how long its response is |

pub(crate) mod client;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
pub(crate) mod h3;
pub(crate) mod perf;
pub(crate) mod server;
#[cfg(test)]
mod tests;

use crate::cause::note;
use crate::layer::wire::tls::note_tls;
use crate::packets::{Mode, SendQueue};
use crate::refusal::Refusal;
use bytes::Bytes;
use linerate_contract::{Cause, ErrorKind, Nanos, Spec, TlsFailure, clock};
use quinn_proto::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use quinn_proto::{Connection, ConnectionError, Dir, TransportConfig, TransportErrorCode, VarInt};
use rustls::{AlertDescription, Error};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Datagrams of a call of the state machine: as many as a call of the kernel takes.
const MOST_DATAGRAMS: usize = crate::packets::MAX_SEGMENTS;
/// The longest datagram that is received: an Ethernet frame's.
const LONGEST: usize = 1_500;
/// Bytes that a peer may send on a stream before this end has read them; no response of a test waits for this
/// end.
const STREAM_WINDOW: u32 = 16 << 20;
/// The window of requests at a server: that of quinn, so that an upload over one stream is not held up.
const REQUEST_WINDOW: u32 = 1_250_000;

/// Unidirectional streams of a peer at the same time: HTTP/3 needs three, and some peers open others.
const MOST_PEER_STREAMS: u32 = 8;

/// A connection on which nothing arrived for as long as its ends have agreed on.
const IDLE: &str = "nothing arrived within the idle timeout of the connection, which is its end by \
                    max_idle_timeout of the server; a longer one there, or a server that responds earlier";

/// The kind of the end of a connection, whose cause is noted.
#[cold]
fn note_lost(reason: &ConnectionError, is_connected: bool) -> ErrorKind {
    let kind = match reason {
        ConnectionError::TimedOut if !is_connected => ErrorKind::ConnectTimeout,
        // Of the connection, which either end may limit: no time limit of an operation.
        ConnectionError::TimedOut => note(ErrorKind::Reset, || Cause::new(IDLE)),
        ConnectionError::TransportError(error) if is_of_tls(error.code) => {
            let cause = || Cause::of_tls(failure(&error.reason), error.reason.clone());
            note(ErrorKind::TlsFailed, cause)
        }
        ConnectionError::ConnectionClosed(close) if is_of_tls(close.error_code) => {
            let alert = AlertDescription::from(u64::from(close.error_code) as u8);
            note_tls(&Error::AlertReceived(alert), &[])
        }
        ConnectionError::ConnectionClosed(_) if !is_connected => ErrorKind::ConnectRefused,
        ConnectionError::Reset
        | ConnectionError::LocallyClosed
        | ConnectionError::ConnectionClosed(_)
        | ConnectionError::ApplicationClosed(_) => ErrorKind::Reset,
        _ => ErrorKind::Malformed,
    };
    note(kind, || Cause::new(reason.to_string()))
}

/// The state machine keeps the text of rustls's error alone.
fn failure(reason: &str) -> TlsFailure {
    match reason {
        _ if reason.contains("UnknownIssuer") || reason.contains("BadSignature") => {
            TlsFailure::UnknownAuthority
        }
        _ if reason.contains("NotValidForName") || reason.contains("not valid for name") => {
            TlsFailure::OtherName
        }
        _ if reason.contains("expired") || reason.contains("Expired") => TlsFailure::Expired,
        _ => TlsFailure::Other,
    }
}

/// Alerts of TLS are codes of QUIC (RFC 9001 section 4.8).
fn is_of_tls(code: TransportErrorCode) -> bool {
    (0x100..0x200).contains(&u64::from(code))
}

/// How datagrams leave and arrive: joined by the kernel unless the spec says something else.
fn mode(spec: &Spec) -> Result<Mode, Refusal> {
    if spec.options.contains_key("mode") { Mode::from_spec(spec) } else { Ok(Mode::Gso) }
}

/// The parameters of a connection: those of quinn, but for the windows and what `options` say. Its streams
/// together have the window of one, and at most `share`: what a peer sends with gaps is kept.
fn transport(spec: &Spec, mode: Mode, window: u32, share: u32) -> Result<TransportConfig, Refusal> {
    let mut transport = TransportConfig::default();
    let asked = spec.number("stream_window", 1..=u64::from(u32::MAX))?;
    let window = asked.map_or(window, |asked| asked as u32);
    transport.stream_receive_window(VarInt::from_u32(window));
    transport.receive_window(VarInt::from_u32(if asked.is_some() { window } else { window.min(share) }));
    transport.max_concurrent_uni_streams(VarInt::from_u32(MOST_PEER_STREAMS));
    transport.enable_segmentation_offload(mode != Mode::Single);
    match spec.options.get("congestion").map(String::as_str) {
        None | Some("cubic") => transport.congestion_controller_factory(Arc::new(CubicConfig::default())),
        Some("reno") => transport.congestion_controller_factory(Arc::new(NewRenoConfig::default())),
        Some("bbr") => transport.congestion_controller_factory(Arc::new(BbrConfig::default())),
        Some(other) => {
            return Err(Refusal::Unsupported(format!(
                "\"options.congestion\" {other:?}; supported: cubic, reno, bbr"
            )));
        }
    };
    Ok(transport)
}

/// Writes the first unidirectional stream of an end that has one.
fn open_stream(connection: &mut Connection, opening: Bytes) {
    if !opening.is_empty()
        && let Some(stream) = connection.streams().open(Dir::Uni)
    {
        // A few bytes fit any window that a peer of this protocol grants.
        let _ = connection.send_stream(stream).write_chunks(&mut [opening]);
    }
}

/// The state machines have times of the standard library.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    instant: Instant,
    at: Nanos,
}

impl Epoch {
    fn now() -> Self {
        Self { instant: Instant::now(), at: clock::now() }
    }

    #[inline]
    fn instant(self, at: Nanos) -> Instant {
        self.instant + Duration::from_nanos(at.since(self.at).0)
    }

    /// Rounded up: at this time the timer has expired.
    #[inline]
    fn nanos(self, instant: Instant) -> Nanos {
        let since = instant.saturating_duration_since(self.instant).as_nanos();
        Nanos(self.at.0.saturating_add(since.min(u128::from(u64::MAX)) as u64))
    }
}

/// The datagrams that leave through a socket.
#[derive(Debug, Default)]
struct Outgoing {
    /// Datagrams of one call of a state machine.
    batch: Vec<u8>,
    queue: SendQueue,
}

impl Outgoing {
    /// Queues all that a connection has to send.
    #[inline]
    fn take(&mut self, connection: &mut Connection, now: Instant, to: Option<SocketAddr>) {
        self.batch.clear();
        while let Some(transmit) = connection.poll_transmit(now, MOST_DATAGRAMS, &mut self.batch) {
            let size = transmit.segment_size.unwrap_or(transmit.size).max(1);
            self.batch[..transmit.size].chunks(size).for_each(|datagram| self.queue.push(datagram, to));
            self.batch.clear();
        }
    }

    /// Queues the datagram that the endpoint has made by itself.
    fn take_response(&mut self, size: usize, to: Option<SocketAddr>) {
        self.queue.push(&self.batch[..size], to);
        self.batch.clear();
    }

    #[inline]
    fn send(&mut self, socket: &OwnedFd, mode: Mode) -> nix::Result<()> {
        self.queue.send(socket, mode)
    }
}
