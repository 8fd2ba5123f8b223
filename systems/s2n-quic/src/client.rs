//! The client of layer `quic`: connections of one endpoint.

use crate::bad;
use bytes::Bytes;
use linerate_contract::program::Refusal;
use linerate_contract::{Done, ErrorKind, Spec, Tls};
use linerate_sdk::client::Target;
use linerate_sdk::missing;
use linerate_sdk::perf::{ALPN, Peer, Requests};
use linerate_sdk::server::runtime;
use s2n_quic::Client;
use s2n_quic::client::Connect;
use s2n_quic::connection::{self, Handle};
use s2n_quic::provider::event::{ConnectionInfo, ConnectionMeta, Subscriber, events};
use s2n_quic::provider::tls::rustls;
use s2n_quic::stream;
use std::io;
use std::sync::{Arc, OnceLock};
use tokio::time::timeout;

pub fn run(spec: &Spec) -> Result<Done, Refusal> {
    let requests = Requests::new(spec)?;
    let keys = spec.tls.as_ref().ok_or_else(|| missing("tls"))?;
    let (tls, target, suite) = (config(keys)?, Target::new(spec)?, Suite::default());
    runtime(spec)?.block_on(async {
        let client = Client::builder()
            .with_tls(tls)
            .and_then(|client| client.with_event(suite.clone()))
            .map_err(io::Error::other)?
            .with_io(target.source())
            .map_err(io::Error::other)?
            .start()
            .map_err(io::Error::other)?;
        let done = requests.run(spec, Server { client, target, name: keys.name.clone() }).await;
        let of_suite = |suite: &String| format!("TLSv1.3 {suite} rustls {} (aws-lc)", env!("RUSTLS_VERSION"));
        Ok(Done { tls: suite.0.get().map(of_suite), ..done })
    })
}

fn config(keys: &Tls) -> Result<rustls::Client, Refusal> {
    rustls::Client::builder()
        .with_certificate(&*keys.authority)
        .and_then(|tls| Ok(tls.with_application_protocols([ALPN].iter())?))
        .and_then(|tls| tls.build())
        .map_err(|error| bad(&*error))
}

/// The cipher suite of a connection, from the library's events. It cannot be set to one; the first that it
/// offers is the contract's.
#[derive(Clone, Default)]
struct Suite(Arc<OnceLock<String>>);

impl Subscriber for Suite {
    type ConnectionContext = ();

    fn create_connection_context(&mut self, _: &ConnectionMeta, _: &ConnectionInfo) {}

    fn on_key_update(&mut self, (): &mut (), _: &ConnectionMeta, event: &events::KeyUpdate) {
        let name = format!("{:?}", event.cipher_suite);
        let _ = self.0.set(name.split(' ').next().unwrap_or_default().to_owned());
    }
}

struct Server {
    client: Client,
    target: Target,
    name: String,
}

impl Peer for Server {
    type Connection = Handle;

    async fn connect(&self) -> Result<Handle, ErrorKind> {
        let connect = Connect::new(self.target.address).with_server_name(&*self.name);
        match timeout(self.target.timeout, self.client.connect(connect)).await {
            Ok(outcome) => outcome.map(|connection| connection.handle()).map_err(|error| match error {
                connection::Error::MaxHandshakeDurationExceeded { .. } => ErrorKind::ConnectTimeout,
                connection::Error::Transport { .. } => ErrorKind::TlsFailed,
                _ => ErrorKind::ConnectFailed,
            }),
            Err(_) => Err(ErrorKind::ConnectTimeout),
        }
    }

    fn is_open(connection: &Handle) -> bool {
        connection.remote_addr().is_ok()
    }

    fn close(connection: &Handle) {
        connection.close(0_u32.into());
    }

    async fn exchange(&self, connection: &mut Handle, request: Bytes) -> Result<u64, ErrorKind> {
        let mut stream = connection.open_bidirectional_stream().await.map_err(|error| lost(&error))?;
        stream.send(request).await.map_err(|error| broken(&error))?;
        stream.finish().map_err(|error| broken(&error))?;
        let mut received = 0;
        while let Some(bytes) = stream.receive().await.map_err(|error| broken(&error))? {
            received += bytes.len() as u64;
        }
        Ok(received)
    }
}

fn broken(error: &stream::Error) -> ErrorKind {
    match error {
        stream::Error::ConnectionError { error, .. } => lost(error),
        _ => ErrorKind::Reset,
    }
}

fn lost(error: &connection::Error) -> ErrorKind {
    match error {
        connection::Error::IdleTimerExpired { .. } => ErrorKind::Timeout,
        _ => ErrorKind::Reset,
    }
}
