//! The TCP clients: one task per connection; `fanout` is one task that writes to all and reads from all.

use crate::http;
use crate::server::beside;
use linerate_contract::program::Refusal;
use linerate_contract::tally::{Tally, stream_error};
use linerate_contract::{Done, ErrorKind, Layer, Spec, Window, clock, page};
use linerate_sdk::client::{RETRY, Target, shares, watched};
use linerate_sdk::server::runtime;
use linerate_sdk::stream::Stream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// A client that sends a larger message before it reads can deadlock with an echo server: both wait on full
/// socket buffers.
const LARGEST_MESSAGE: u64 = 65_536;

/// Until both ends of all connections are in their loop: the wait for an event lets the server accept.
const SETTLE: Duration = Duration::from_millis(1);

struct Task {
    target: Target,
    /// The message that comes back, or the page.
    message: Vec<u8>,
    is_http: bool,
}

impl Task {
    fn new(spec: &Spec) -> Result<Arc<Self>, Refusal> {
        if !(1..=LARGEST_MESSAGE).contains(&spec.size) {
            return Err(Refusal::BadSpec(format!("\"size\" must be 1 to {LARGEST_MESSAGE} bytes")));
        }
        if spec.operations.is_none() && spec.duration_ns.is_none() {
            return Err(Refusal::BadSpec("a client needs \"operations\" or \"duration_ns\"".into()));
        }
        let message = page(spec.size as usize);
        Ok(Arc::new(Self { target: Target::new(spec)?, message, is_http: spec.layer == Layer::Http }))
    }

    fn buffer(&self) -> Vec<u8> {
        vec![0; self.message.len() + if self.is_http { http::BUFFER } else { 0 }]
    }

    /// Sends the message and receives it back, or fetches the page.
    async fn exchange(&self, stream: &mut TcpStream, buffer: &mut [u8]) -> Result<(), ErrorKind> {
        if self.is_http {
            return http::fetch(stream, buffer, &self.message).await;
        }
        stream.write_all(&self.message).await.map_err(|e| stream_error(&e))?;
        self.receive(stream, buffer).await
    }

    async fn receive(&self, stream: &mut TcpStream, buffer: &mut [u8]) -> Result<(), ErrorKind> {
        let mut received = 0;
        while received < buffer.len() {
            match stream.read(&mut buffer[received..]).await {
                Ok(0) if received == 0 => return Err(ErrorKind::EmptyResponse),
                Ok(0) => return Err(ErrorKind::Truncated),
                Ok(n) => received += n,
                Err(error) => return Err(stream_error(&error)),
            }
        }
        if buffer == self.message { Ok(()) } else { Err(ErrorKind::WrongContent) }
    }
}

pub fn rr(spec: &Spec) -> Result<Done, Refusal> {
    let runtime = runtime(spec)?;
    let spec = &beside(spec, &runtime)?;
    let task = Task::new(spec)?;
    let (shares, connections) = (shares(spec), spec.connections);
    runtime.block_on(async move {
        let mut streams = Vec::new();
        for _ in 0..connections {
            streams.push(task.target.connect().await.ok());
        }
        sleep(SETTLE).await;
        let window = Arc::new(Window::open(spec));
        let mut set = JoinSet::new();
        for (stream, share) in streams.into_iter().zip(shares) {
            set.spawn(one_pair(task.clone(), stream, share, window.clone()));
        }
        Ok(gather(set, Tally::default(), &window, false).await)
    })
}

pub fn crr(spec: &Spec) -> Result<Done, Refusal> {
    let task = Task::new(spec)?;
    let shares = shares(spec);
    runtime(spec)?.block_on(async move {
        let window = Arc::new(Window::open(spec));
        let mut set = JoinSet::new();
        for share in shares {
            set.spawn(one_slot(task.clone(), share, window.clone()));
        }
        Ok(gather(set, Tally::default(), &window, false).await)
    })
}

pub fn fanout(spec: &Spec) -> Result<Done, Refusal> {
    let task = Task::new(spec)?;
    let (operations, connections) = (spec.operations.unwrap_or(u64::MAX), spec.connections);
    runtime(spec)?.block_on(async move {
        let mut streams = open_all(&task.target, connections).await.unwrap_or_default();
        let window = Arc::new(Window::open(spec));
        let (mut set, time) = (JoinSet::new(), window.clone());
        set.spawn(async move {
            let (mut tally, mut now) = (time.tally(), time.start());
            for _ in 0..operations {
                if time.is_over(now) {
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
                        sleep(RETRY).await;
                        now = clock::now();
                    }
                }
            }
            tally
        });
        Ok(gather(set, Tally::default(), &window, false).await)
    })
}

/// One connection's operations. After a failure the next one has a new connection.
async fn one_pair(task: Arc<Task>, stream: Option<TcpStream>, mut left: u64, window: Arc<Window>) -> Tally {
    let (mut tally, mut buffer) = (window.tally(), task.buffer());
    let mut stream = stream;
    while left > 0 && !window.is_over(clock::now()) {
        let mut open = match stream.take() {
            Some(open) => open,
            None => match task.target.connect().await {
                Ok(open) => open,
                Err(kind) => {
                    left -= 1;
                    tally.fail(kind);
                    sleep(RETRY).await;
                    continue;
                }
            },
        };
        let progress = AtomicU64::new(0);
        let session = async {
            let mut began = clock::now();
            while left > 0 && !window.is_over(began) {
                left -= 1;
                task.exchange(&mut open, &mut buffer).await?;
                let now = clock::now();
                tally.succeed(began, now, task.message.len() as u64);
                began = now;
                progress.fetch_add(1, Relaxed);
            }
            Ok(())
        };
        if let Err(kind) = watched(&progress, task.target.timeout, session).await {
            tally.fail(kind);
        }
    }
    tally
}

/// Connect, one exchange, close.
async fn one_slot(task: Arc<Task>, share: u64, window: Arc<Window>) -> Tally {
    let (mut tally, mut buffer) = (window.tally(), vec![0; task.message.len()]);
    for _ in 0..share {
        let began = clock::now();
        if window.is_over(began) {
            break;
        }
        let mut stream = match task.target.connect().await {
            Ok(stream) => stream,
            Err(kind) => {
                tally.fail(kind);
                sleep(RETRY).await;
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

/// Sends the message on every connection, then receives it from every one.
async fn one_round(task: &Task, streams: &mut [TcpStream]) -> Result<(), ErrorKind> {
    let mut buffer = vec![0; task.message.len()];
    for stream in &mut *streams {
        stream.write_all(&task.message).await.map_err(|e| stream_error(&e))?;
    }
    for stream in streams {
        task.receive(stream, &mut buffer).await?;
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

/// Merges the tallies of all tasks; `verified` counts bytes of a stream, else operations.
pub async fn gather(mut set: JoinSet<Tally>, mut sum: Tally, window: &Window, is_stream: bool) -> Done {
    while let Some(tally) = set.join_next().await {
        sum.merge(&tally.expect("a panic aborts the process"));
    }
    let verified = |operations, bytes| if is_stream { bytes } else { operations };
    window.done(&sum, verified)
}

pub fn stream(spec: &Spec) -> Result<Done, Refusal> {
    let stream = Arc::new(Stream::new(spec)?);
    let mut stop = stream.stop_condition(spec)?;
    let runtime = runtime(spec)?;
    let spec = &beside(spec, &runtime)?;
    let target = Target::new(spec)?;
    runtime.block_on(async move {
        let (mut sum, mut sockets) = (Tally::default(), Vec::new());
        for _ in 0..spec.connections {
            match target.connect().await {
                Ok(socket) => sockets.push(socket),
                Err(kind) => sum.fail(kind),
            }
        }
        sleep(SETTLE).await;
        let window = Window::open(spec);
        stop.start(window.start());
        let mut set = JoinSet::new();
        for mut socket in sockets {
            let stream = stream.clone();
            set.spawn(async move {
                let (progress, mut tally) = (AtomicU64::new(0), Tally::default());
                let (reader, writer) = socket.split();
                let work = stream.drive(reader, writer, stop, &progress, &mut tally);
                if let Err(kind) = watched(&progress, target.timeout, work).await {
                    tally.fail(kind);
                }
                tally
            });
        }
        Ok(gather(set, sum, &window, true).await)
    })
}
