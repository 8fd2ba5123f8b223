//! A client's sockets, watchdog and shares.

use crate::missing;
use linerate_contract::tally::connect_error;
use linerate_contract::{ErrorKind, Refusal, Spec};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

/// Wait after a failed connect, so that a dead port does not use a CPU.
pub const RETRY: Duration = Duration::from_millis(1);
/// A stall is noticed at most 1/8 of the timeout late.
const CHECKS: u32 = 8;

/// Where to connect, from which local addresses, and the timeout.
#[derive(Debug)]
pub struct Target {
    pub address: SocketAddr,
    sources: Vec<IpAddr>,
    next: AtomicU64,
    pub timeout: Duration,
}

impl Target {
    /// # Errors
    /// [`Refusal::BadSpec`]: no `connect`.
    pub fn new(spec: &Spec) -> Result<Self, Refusal> {
        Ok(Self {
            address: spec.connect.ok_or_else(|| missing("connect"))?,
            sources: spec.sources.clone(),
            next: AtomicU64::new(0),
            timeout: spec.timeout_ns.into(),
        })
    }

    /// The next local address; the unspecified address where the kernel chooses.
    pub fn source(&self) -> SocketAddr {
        let any =
            if self.address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let turn = self.next.fetch_add(1, Relaxed) as usize % self.sources.len().max(1);
        SocketAddr::new(self.sources.get(turn).copied().unwrap_or(any), 0)
    }

    /// A connection, from each local address in turn.
    ///
    /// # Errors
    /// The kind of failure; `connect_timeout` after the timeout.
    pub async fn connect(&self) -> Result<TcpStream, ErrorKind> {
        let dial = async {
            let socket = if self.address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            if !self.sources.is_empty() {
                socket.bind(self.source())?;
            }
            socket.set_nodelay(true)?;
            socket.connect(self.address).await
        };
        match timeout(self.timeout, dial).await {
            Ok(outcome) => outcome.map_err(|e: io::Error| connect_error(&e)),
            Err(_) => Err(ErrorKind::ConnectTimeout),
        }
    }
}

/// Runs `work` unless `progress` stalls for the timeout. It is one timer per connection and not one per
/// operation, as in clients with many requests and in the other systems.
///
/// # Errors
/// That of `work`, or `timeout`.
pub async fn watched(
    progress: &AtomicU64,
    timeout: Duration,
    work: impl Future<Output = Result<(), ErrorKind>>,
) -> Result<(), ErrorKind> {
    tokio::pin!(work);
    let (mut seen, mut stalled) = (progress.load(Relaxed), 0);
    loop {
        tokio::select! {
            biased;
            outcome = &mut work => return outcome,
            () = sleep(timeout / CHECKS) => {
                let now = progress.load(Relaxed);
                stalled = if now == seen { stalled + 1 } else { 0 };
                seen = now;
                if stalled >= CHECKS {
                    return Err(ErrorKind::Timeout);
                }
            }
        }
    }
}

/// The operations of each connection; they differ by one at most.
#[must_use]
pub fn shares(spec: &Spec) -> Vec<u64> {
    let parts = u64::from(spec.connections);
    let share = |all: u64, i: u64| all / parts + u64::from(i < all % parts);
    (0..parts).map(|i| spec.operations.map_or(u64::MAX, |all| share(all, i))).collect()
}
