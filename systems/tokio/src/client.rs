//! `rr`, `churn` and `fanout`: a task for each connection; a fan-out is one task that writes to all and reads from all.

use crate::runtime;
use linerate_contract::program::Refusal;
use linerate_contract::tally::{Tally, connect_error, stream_error};
use linerate_contract::{Done, ErrorKind, Nanos, Spec, clock, page};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Above it a client that sends all before it reads could wait for an echo server that waits for it.
const LARGEST_MESSAGE: u64 = 65_536;
/// After a failed connect, so that a dead port does not burn a CPU.
const REST: Duration = Duration::from_millis(1);
/// A connection that stands still is noticed at most 1/8 of the timeout late.
const CHECKS: u32 = 8;

/// Where to connect, what to send, and how long.
pub struct Target {
    pub address: SocketAddr,
    sources: Vec<IpAddr>,
    next: AtomicU64,
    pub timeout: Duration,
}

impl Target {
    pub fn new(spec: &Spec) -> Result<Self, Refusal> {
        let address = spec.connect.ok_or_else(|| Refusal::BadSpec("\"connect\" is missing".into()))?;
        Ok(Self {
            address,
            sources: spec.sources.clone(),
            next: AtomicU64::new(0),
            timeout: spec.timeout_ns.into(),
        })
    }

    /// The next of the local addresses; where there are none, any.
    pub fn source(&self) -> SocketAddr {
        let any =
            if self.address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let turn = self.next.fetch_add(1, Relaxed) as usize % self.sources.len().max(1);
        SocketAddr::new(self.sources.get(turn).copied().unwrap_or(any), 0)
    }

    /// A connection, from each local address in turn.
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
            Ok(outcome) => outcome.map_err(|e| connect_error(&e)),
            Err(_) => Err(ErrorKind::ConnectTimeout),
        }
    }
}

struct Task {
    target: Target,
    message: Vec<u8>,
    window: Nanos,
}

impl Task {
    fn new(spec: &Spec) -> Result<Arc<Self>, Refusal> {
        if !(1..=LARGEST_MESSAGE).contains(&spec.size) {
            return Err(Refusal::BadSpec(format!("\"size\" must be 1 to {LARGEST_MESSAGE} bytes")));
        }
        if spec.operations.is_none() && spec.duration_ns.is_none() {
            return Err(Refusal::BadSpec("a client needs \"operations\" or \"duration_ns\"".into()));
        }
        let window = spec.duration_ns.unwrap_or(Nanos(u64::MAX));
        Ok(Arc::new(Self { target: Target::new(spec)?, message: page(spec.size as usize), window }))
    }

    /// One message there and back.
    async fn exchange(&self, stream: &mut TcpStream, buffer: &mut [u8]) -> Result<(), ErrorKind> {
        stream.write_all(&self.message).await.map_err(|e| stream_error(&e))?;
        self.back(stream, buffer).await
    }

    async fn back(&self, stream: &mut TcpStream, buffer: &mut [u8]) -> Result<(), ErrorKind> {
        let mut back = 0;
        while back < buffer.len() {
            match stream.read(&mut buffer[back..]).await {
                Ok(0) if back == 0 => return Err(ErrorKind::EmptyReply),
                Ok(0) => return Err(ErrorKind::Truncated),
                Ok(n) => back += n,
                Err(error) => return Err(stream_error(&error)),
            }
        }
        if buffer == self.message { Ok(()) } else { Err(ErrorKind::WrongContent) }
    }
}

pub fn rr(spec: &Spec) -> Result<Done, Refusal> {
    let task = Task::new(spec)?;
    let (shares, connections) = (shares(spec), spec.connections);
    runtime(spec)?.block_on(async move {
        let mut streams = Vec::new();
        for _ in 0..connections {
            streams.push(task.target.connect().await.ok());
        }
        let (start, cpu) = (clock::now(), clock::process_cpu());
        let mut set = JoinSet::new();
        for (stream, share) in streams.into_iter().zip(shares) {
            set.spawn(one_pair(task.clone(), stream, share, start + task.window));
        }
        Ok(gather(set, start, cpu).await)
    })
}

pub fn churn(spec: &Spec) -> Result<Done, Refusal> {
    let task = Task::new(spec)?;
    let shares = shares(spec);
    runtime(spec)?.block_on(async move {
        let (start, cpu) = (clock::now(), clock::process_cpu());
        let mut set = JoinSet::new();
        for share in shares {
            set.spawn(one_slot(task.clone(), share, start + task.window));
        }
        Ok(gather(set, start, cpu).await)
    })
}

pub fn fanout(spec: &Spec) -> Result<Done, Refusal> {
    let task = Task::new(spec)?;
    let (operations, connections) = (spec.operations.unwrap_or(u64::MAX), spec.connections);
    runtime(spec)?.block_on(async move {
        let mut streams = open_all(&task.target, connections).await.unwrap_or_default();
        let (start, cpu) = (clock::now(), clock::process_cpu());
        let mut set = JoinSet::new();
        set.spawn(async move {
            let mut tally = Tally::default();
            let mut now = start;
            for _ in 0..operations {
                if now >= start + task.window {
                    break;
                }
                let round = async {
                    if streams.is_empty() {
                        streams = open_all(&task.target, connections).await?;
                    }
                    one_round(&task, &mut streams).await
                };
                let outcome = timeout(task.target.timeout, round).await.unwrap_or(Err(ErrorKind::Timeout));
                match outcome {
                    Ok(()) => {
                        let end = clock::now();
                        tally.succeed(now, end, task.message.len() as u64 * u64::from(connections));
                        now = end;
                    }
                    Err(kind) => {
                        tally.fail(kind);
                        streams.clear();
                        sleep(REST).await;
                        now = clock::now();
                    }
                }
            }
            tally
        });
        Ok(gather(set, start, cpu).await)
    })
}

/// One connection's operations. When one fails, the next begins on a new connection.
async fn one_pair(task: Arc<Task>, stream: Option<TcpStream>, mut left: u64, until: Nanos) -> Tally {
    let (mut tally, mut buffer) = (Tally::default(), vec![0; task.message.len()]);
    let mut stream = stream;
    while left > 0 && clock::now() < until {
        let mut open = match stream.take() {
            Some(open) => open,
            None => match task.target.connect().await {
                Ok(open) => open,
                Err(kind) => {
                    left -= 1;
                    tally.fail(kind);
                    sleep(REST).await;
                    continue;
                }
            },
        };
        let moved = AtomicU64::new(0);
        let session = async {
            let mut began = clock::now();
            while left > 0 && began < until {
                left -= 1;
                task.exchange(&mut open, &mut buffer).await?;
                let now = clock::now();
                tally.succeed(began, now, buffer.len() as u64);
                began = now;
                moved.fetch_add(1, Relaxed);
            }
            Ok(())
        };
        if let Err(kind) = watched(&moved, task.target.timeout, session).await {
            tally.fail(kind);
        }
    }
    tally
}

/// Connect, one exchange, close.
async fn one_slot(task: Arc<Task>, share: u64, until: Nanos) -> Tally {
    let (mut tally, mut buffer) = (Tally::default(), vec![0; task.message.len()]);
    for _ in 0..share {
        let began = clock::now();
        if began >= until {
            break;
        }
        let mut stream = match task.target.connect().await {
            Ok(stream) => stream,
            Err(kind) => {
                tally.fail(kind);
                sleep(REST).await;
                continue;
            }
        };
        tally.connected(clock::now().since(began));
        match timeout(task.target.timeout, task.exchange(&mut stream, &mut buffer)).await {
            Ok(Ok(())) => tally.succeed(began, clock::now(), buffer.len() as u64),
            Ok(Err(kind)) => tally.fail(kind),
            Err(_) => tally.fail(ErrorKind::Timeout),
        }
    }
    tally
}

/// The message to every connection, then back from every one.
async fn one_round(task: &Task, streams: &mut [TcpStream]) -> Result<(), ErrorKind> {
    let mut buffer = vec![0; task.message.len()];
    for stream in &mut *streams {
        stream.write_all(&task.message).await.map_err(|e| stream_error(&e))?;
    }
    for stream in streams {
        task.back(stream, &mut buffer).await?;
    }
    Ok(())
}

async fn open_all(target: &Target, connections: u32) -> Result<Vec<TcpStream>, ErrorKind> {
    let mut streams = Vec::new();
    for _ in 0..connections {
        streams.push(target.connect().await?);
    }
    Ok(streams)
}

/// `work`, unless `moved` stands still for the timeout. One timer for a connection, not one for each operation: that is
/// what a client with many requests does, and what the other systems do.
pub async fn watched(
    moved: &AtomicU64,
    timeout: Duration,
    work: impl Future<Output = Result<(), ErrorKind>>,
) -> Result<(), ErrorKind> {
    tokio::pin!(work);
    let (mut seen, mut still) = (moved.load(Relaxed), 0);
    loop {
        tokio::select! {
            biased;
            outcome = &mut work => return outcome,
            () = sleep(timeout / CHECKS) => {
                let now = moved.load(Relaxed);
                still = if now == seen { still + 1 } else { 0 };
                seen = now;
                if still >= CHECKS {
                    return Err(ErrorKind::Timeout);
                }
            }
        }
    }
}

/// Adds up what the tasks counted.
async fn gather(mut set: JoinSet<Tally>, start: Nanos, cpu: Nanos) -> Done {
    let mut sum = Tally::default();
    while let Some(tally) = set.join_next().await {
        sum.merge(&tally.expect("a panic aborts the process"));
    }
    sum.done(start, clock::process_cpu().since(cpu), |operations, _| operations)
}

/// The operations of each connection; they differ by one at most.
fn shares(spec: &Spec) -> Vec<u64> {
    let parts = u64::from(spec.connections);
    let share = |all: u64, i: u64| all / parts + u64::from(i < all % parts);
    (0..parts).map(|i| spec.operations.map_or(u64::MAX, |all| share(all, i))).collect()
}
