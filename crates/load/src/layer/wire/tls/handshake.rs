//! The handshake, by rustls without buffers of its own; then its keys, and how they change.

use super::super::plain::Outbox;
use linerate_proto::record::{self, Opener, Sealer};
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::kernel::KernelConnection;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use rustls::{Error, HandshakeKind, InvalidMessage, ProtocolVersion, SupportedCipherSuite};
use std::fmt;

/// The next step of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Again,
    Read,
    Done,
}

enum HandshakeSide {
    Client(UnbufferedClientConnection),
    Server(UnbufferedServerConnection),
}

/// A handshake under way.
pub(super) struct Handshake {
    side: HandshakeSide,
    /// Bytes of the input that rustls was shown and still needs. It is shown record by record, so that it
    /// never opens one of application data.
    shown: usize,
}

impl Handshake {
    pub(super) fn client(connection: UnbufferedClientConnection) -> Self {
        Self { side: HandshakeSide::Client(connection), shown: 0 }
    }

    pub(super) fn server(connection: UnbufferedServerConnection) -> Self {
        Self { side: HandshakeSide::Server(connection), shown: 0 }
    }

    /// Goes on as far as `input` and rustls let it: how many bytes of the input are done with, and what is
    /// next.
    pub(super) fn step(&mut self, input: &mut [u8], output: &mut Outbox) -> Result<(usize, Step), Error> {
        let (used, outcome) = self.process(&mut input[..self.shown], output);
        let step = match outcome {
            Ok(step) => step,
            Err(e) => {
                // The alert that rustls has for the peer. It is shown the same input: without the bytes that
                // it has counted it panics.
                let _ = self.process(&mut input[used..self.shown], output);
                return Err(e);
            }
        };
        self.shown -= used;
        if step != Step::Read {
            return Ok((used, step));
        }
        let not_tls = Error::InvalidMessage(InvalidMessage::InvalidContentType);
        match record::length(&input[used + self.shown..]) {
            None => Ok((used, Step::Read)),
            Some(Err(record::BadRecord)) => Err(not_tls),
            Some(Ok(length)) => {
                self.shown += length;
                Ok((used, Step::Again))
            }
        }
    }

    fn process(&mut self, shown: &mut [u8], output: &mut Outbox) -> (usize, Result<Step, Error>) {
        match &mut self.side {
            HandshakeSide::Client(connection) => step(connection.process_tls_records(shown), output),
            HandshakeSide::Server(connection) => step(connection.process_tls_records(shown), output),
        }
    }

    /// Whether this is a server that has had no ClientHello.
    pub(super) fn awaits_hello(&self) -> bool {
        matches!(&self.side, HandshakeSide::Server(connection) if connection.handshake_kind().is_none())
    }

    /// Whether it resumes a session, once it is over.
    pub(super) fn is_resumed(&self) -> bool {
        let kind = match &self.side {
            HandshakeSide::Client(connection) => connection.handshake_kind(),
            HandshakeSide::Server(connection) => connection.handshake_kind(),
        };
        kind == Some(HandshakeKind::Resumed)
    }

    /// The keys of both directions.
    pub(super) fn finish(self) -> Result<(Sealer, Opener, Keys), Error> {
        let (secrets, keys) = match self.side {
            HandshakeSide::Client(connection) => {
                let (secrets, kernel) = connection.dangerous_into_kernel_connection()?;
                (secrets, Keys(Box::new(kernel)))
            }
            HandshakeSide::Server(connection) => {
                let (secrets, kernel) = connection.dangerous_into_kernel_connection()?;
                (secrets, Keys(Box::new(kernel)))
            }
        };
        let version = keys.version();
        Ok((Sealer::new(secrets.tx, version)?, Opener::new(secrets.rx, version)?, keys))
    }
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handshake {{ shown: {} }}", self.shown)
    }
}

/// How many bytes of the input are done with, and what is next.
fn step<Data>(
    UnbufferedStatus { discard, state }: UnbufferedStatus<'_, '_, Data>,
    output: &mut Outbox,
) -> (usize, Result<Step, Error>) {
    (discard, state.and_then(|state| take_step(state, output)))
}

fn take_step<Data>(state: ConnectionState<'_, '_, Data>, output: &mut Outbox) -> Result<Step, Error> {
    Ok(match state {
        ConnectionState::EncodeTlsData(mut data) => {
            let mut failed = None;
            output.begin(|room| {
                data.encode(room).unwrap_or_else(|e| {
                    failed = Some(e);
                    0
                })
            });
            match failed {
                Some(e) => return Err(Error::General(e.to_string())),
                None => Step::Again,
            }
        }
        ConnectionState::TransmitTlsData(data) => {
            // It is sent before anything else is done.
            data.done();
            Step::Again
        }
        ConnectionState::BlockedHandshake => Step::Read,
        ConnectionState::WriteTraffic(_) => Step::Done,
        _ => return Err(Error::HandshakeNotComplete),
    })
}

/// The keys that follow those in use, and the negotiated version and suite.
pub(super) struct Keys(Box<dyn Later>);

impl Keys {
    #[cfg(any(test, fuzzing))]
    pub(super) fn from_later(later: Box<dyn Later>) -> Self {
        Self(later)
    }

    pub(super) fn next_sealer(&mut self) -> Result<Sealer, Error> {
        self.0.next_sealer()
    }

    pub(super) fn next_opener(&mut self) -> Result<Opener, Error> {
        self.0.next_opener()
    }

    /// A ticket of the peer's, for a session that resumes this one.
    pub(super) fn take_ticket(&mut self, ticket: &[u8]) -> Result<(), Error> {
        self.0.take_ticket(ticket)
    }

    pub(super) fn version(&self) -> ProtocolVersion {
        self.0.agreed().0
    }

    pub(super) fn security(&self) -> String {
        let (version, suite) = self.0.agreed();
        describe_security(version, suite)
    }
}

/// The negotiated version and cipher suite, and the library.
pub(super) fn describe_security(version: ProtocolVersion, suite: SupportedCipherSuite) -> String {
    // rustls prints the names of the registry with an underscore, and with its own prefix for the suites of
    // 1.3.
    let version = format!("{version:?}").replace('_', ".");
    let suite = format!("{:?}", suite.suite()).replace("TLS13_", "TLS_");
    format!("{version} {suite} rustls {} ring {}", env!("RUSTLS_VERSION"), super::RING_VERSION)
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys")
    }
}

/// A handshake of either end that goes on later.
pub(super) trait Later: Send {
    fn next_sealer(&mut self) -> Result<Sealer, Error>;
    fn next_opener(&mut self) -> Result<Opener, Error>;
    fn take_ticket(&mut self, ticket: &[u8]) -> Result<(), Error>;
    fn agreed(&self) -> (ProtocolVersion, SupportedCipherSuite);
}

/// The way in which an end takes a ticket.
pub(super) trait Tickets: Sized {
    fn take(kernel: &mut KernelConnection<Self>, ticket: &[u8]) -> Result<(), Error>;
}

impl Tickets for ClientConnectionData {
    fn take(kernel: &mut KernelConnection<Self>, ticket: &[u8]) -> Result<(), Error> {
        kernel.handle_new_session_ticket(ticket)
    }
}

impl Tickets for ServerConnectionData {
    fn take(_kernel: &mut KernelConnection<Self>, _ticket: &[u8]) -> Result<(), Error> {
        Err(Error::General("a ticket from a client".into()))
    }
}

impl<Data: Tickets + Send> Later for KernelConnection<Data> {
    fn take_ticket(&mut self, ticket: &[u8]) -> Result<(), Error> {
        Data::take(self, ticket)
    }

    fn next_sealer(&mut self) -> Result<Sealer, Error> {
        let version = self.protocol_version();
        self.update_tx_secret().and_then(|secrets| Sealer::new(secrets, version))
    }

    fn next_opener(&mut self) -> Result<Opener, Error> {
        let version = self.protocol_version();
        self.update_rx_secret().and_then(|secrets| Opener::new(secrets, version))
    }

    fn agreed(&self) -> (ProtocolVersion, SupportedCipherSuite) {
        (self.protocol_version(), self.negotiated_cipher_suite())
    }
}
