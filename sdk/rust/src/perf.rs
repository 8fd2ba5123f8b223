//! The protocol of performance tests over QUIC (draft-banks-quic-performance-00): a request begins with the
//! length of its response, in eight bytes; all else may be anything.

use crate::client::{RETRY, shares, watched};
use bytes::Bytes;
use linerate_contract::tally::Tally;
use linerate_contract::{Done, ErrorKind, Refusal, Spec, Window, Workload, clock, page};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

pub const ALPN: &[u8] = b"perf";
/// The options of a program that has this protocol. They are the client's; a server ignores them.
pub const OPTIONS: &[&str] = &["response", "streams"];
/// Bytes of the length that a request begins with.
pub const PREFIX: usize = 8;
/// The longest request, in bytes.
const LONGEST: u64 = 1 << 30;
/// Streams under way on a connection; servers allow 100 by default.
const MOST_STREAMS: u64 = 1_000;
/// The size of the piece that responses consist of, again and again.
const PIECE: usize = 64 << 10;

/// The piece that responses are made of.
#[must_use]
pub fn piece() -> Bytes {
    page(PIECE).into()
}

/// The pieces of a response to a request with this prefix.
pub fn pieces(prefix: [u8; PREFIX], piece: &Bytes) -> impl Iterator<Item = Bytes> + use<> {
    let (mut left, piece) = (u64::from_be_bytes(prefix), piece.clone());
    std::iter::from_fn(move || {
        let count = left.min(piece.len() as u64);
        left -= count;
        (count > 0).then(|| piece.slice(..count as usize))
    })
}

/// A server, as the client's library reaches it.
pub trait Peer: Send + Sync + 'static {
    type Connection: Clone + Send + 'static;

    fn connect(&self) -> impl Future<Output = Result<Self::Connection, ErrorKind>> + Send;

    fn is_open(connection: &Self::Connection) -> bool;

    fn close(connection: &Self::Connection);

    /// Opens a stream, sends the request, and returns the bytes of the response at its end.
    fn exchange(
        &self,
        connection: &mut Self::Connection,
        request: Bytes,
    ) -> impl Future<Output = Result<u64, ErrorKind>> + Send;
}

/// Requests of `size` bytes and responses of as many, or of `options.response`.
#[derive(Debug)]
pub struct Requests {
    request: Bytes,
    /// Bytes.
    response: u64,
    /// Streams under way on a connection.
    streams: u32,
}

impl Requests {
    /// # Errors
    /// [`Refusal::BadSpec`]: a size or an option out of range, or no end.
    pub fn new(spec: &Spec) -> Result<Self, Refusal> {
        if !(PREFIX as u64..=LONGEST).contains(&spec.size) {
            return Err(Refusal::BadSpec(format!("\"size\" must be {PREFIX} to {LONGEST} bytes")));
        }
        if spec.operations.is_none() && spec.duration_ns.is_none() {
            return Err(Refusal::BadSpec("a client needs \"operations\" or \"duration_ns\"".into()));
        }
        let response = spec.number("response", 0..=u64::MAX)?.unwrap_or(spec.size);
        let most = if spec.workload == Workload::Rr { MOST_STREAMS } else { 1 };
        let streams = spec.number("streams", 1..=most)?.unwrap_or(1) as u32;
        let mut request = page(spec.size as usize);
        request[..PREFIX].copy_from_slice(&response.to_be_bytes());
        Ok(Self { request: request.into(), response, streams })
    }

    /// The client: on each connection a task for every stream that is under way (`rr`), or a connection for
    /// each request (`crr`).
    pub async fn run<P: Peer>(self, spec: &Spec, peer: P) -> Done {
        let (requests, peer, persists) = (Arc::new(self), Arc::new(peer), spec.workload == Workload::Rr);
        let mut shared = Vec::new();
        for _ in 0..spec.connections {
            let connection = if persists { peer.connect().await.ok() } else { None };
            shared.push(Arc::new(Mutex::new(connection)));
        }
        let window = Arc::new(Window::open(spec));
        let shares = shares(&Spec { connections: spec.connections * requests.streams, ..spec.clone() });
        let mut set = JoinSet::new();
        for (index, share) in shares.into_iter().enumerate() {
            let slot = Slot {
                requests: requests.clone(),
                peer: peer.clone(),
                shared: shared[index % shared.len()].clone(),
                timeout: spec.timeout_ns.into(),
                window: window.clone(),
            };
            match persists {
                true => set.spawn(slot.run(share)),
                false => set.spawn(slot.connect_each(share)),
            };
        }
        let mut sum = Tally::default();
        while let Some(tally) = set.join_next().await {
            sum.merge(&tally.expect("a panic aborts the process"));
        }
        // The content of a response may be anything.
        window.done(&sum, |_, _| 0)
    }

    /// As of an echo, the bytes of one direction count: the longer one.
    fn bytes(&self) -> u64 {
        self.response.max(self.request.len() as u64)
    }

    async fn exchange<P: Peer>(&self, peer: &P, connection: &mut P::Connection) -> Result<(), ErrorKind> {
        match peer.exchange(connection, self.request.clone()).await? {
            received if received == self.response => Ok(()),
            0 => Err(ErrorKind::EmptyResponse),
            _ => Err(ErrorKind::WrongLength),
        }
    }
}

/// One request after the other.
struct Slot<P: Peer> {
    requests: Arc<Requests>,
    peer: Arc<P>,
    shared: Arc<Mutex<Option<P::Connection>>>,
    timeout: Duration,
    window: Arc<Window>,
}

impl<P: Peer> Slot<P> {
    /// On a connection that others use as well.
    async fn run(self, mut left: u64) -> Tally {
        let (requests, window, mut tally) = (&self.requests, &self.window, self.window.tally());
        let bytes = requests.bytes();
        while left > 0 && !window.is_over(clock::now()) {
            let mut connection = match self.reach().await {
                Ok(connection) => connection,
                Err(kind) => {
                    left -= 1;
                    tally.fail(kind);
                    sleep(RETRY).await;
                    continue;
                }
            };
            let progress = AtomicU64::new(0);
            let streams = async {
                let mut began = clock::now();
                while left > 0 && !window.is_over(began) {
                    left -= 1;
                    requests.exchange(&*self.peer, &mut connection).await?;
                    let now = clock::now();
                    tally.succeed(began, now, bytes);
                    began = now;
                    progress.fetch_add(1, Relaxed);
                }
                Ok(())
            };
            if let Err(kind) = watched(&progress, self.timeout, streams).await {
                tally.fail(kind);
            }
        }
        tally
    }

    async fn connect_each(self, share: u64) -> Tally {
        let mut tally = self.window.tally();
        for _ in 0..share {
            let began = clock::now();
            if self.window.is_over(began) {
                break;
            }
            let mut connection = match self.peer.connect().await {
                Ok(connection) => connection,
                Err(kind) => {
                    tally.fail(kind);
                    sleep(RETRY).await;
                    continue;
                }
            };
            tally.connected(clock::now().since(began));
            let exchange = self.requests.exchange(&*self.peer, &mut connection);
            match timeout(self.timeout, exchange).await {
                Ok(Ok(())) => tally.succeed(began, clock::now(), self.requests.bytes()),
                Ok(Err(kind)) => tally.fail(kind),
                Err(_) => tally.fail(ErrorKind::Timeout),
            }
            P::close(&connection);
        }
        tally
    }

    /// The connection, or a new one in place of one that has ended.
    async fn reach(&self) -> Result<P::Connection, ErrorKind> {
        let mut shared = self.shared.lock().await;
        match &*shared {
            Some(open) if P::is_open(open) => Ok(open.clone()),
            _ => Ok(shared.insert(self.peer.connect().await?).clone()),
        }
    }
}
