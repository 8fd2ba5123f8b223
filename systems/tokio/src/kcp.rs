//! `stream` over KCP by the crate tokio_kcp, both ends, written as its examples are: a stream with `write_all` and `read`.

use crate::client::{Target, watched};
use crate::stream::{Content, Goal};
use crate::{ready, runtime};
use linerate_contract::program::Refusal;
use linerate_contract::tally::{Tally, stream_error};
use linerate_contract::{Done, ErrorKind, Spec, clock};
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_kcp::{KcpConfig, KcpListener, KcpNoDelayConfig, KcpStream};

const BUFFER: usize = 64 << 10;
/// The crate makes 10 ms of anything shorter.
const FINEST_INTERVAL_US: u64 = 10_000;
/// KCP has no end of a connection: a stream is kept so long after its answer, for the client to acknowledge it.
const LINGER: Duration = Duration::from_secs(1);
const REST: Duration = Duration::from_millis(10);

/// What both ends have in common.
struct Setting {
    config: KcpConfig,
    size: usize,
    content: Content,
}

impl Setting {
    fn new(spec: &Spec) -> Result<Arc<Self>, Refusal> {
        if !(1..=65_536).contains(&spec.size) {
            return Err(Refusal::BadSpec("\"size\" must be 1 to 65536 bytes".into()));
        }
        match spec.options.get("direction").map(String::as_str) {
            Some("client-writes") => {}
            Some(other @ ("client-reads" | "both")) => {
                return Err(Refusal::Unsupported(format!("KCP in the direction {other}")));
            }
            _ => return Err(Refusal::BadSpec("\"options.direction\" must be client-writes".into())),
        }
        let window = number(spec, "window", 1_024, 1..=65_535)? as u16;
        let interval = number(spec, "interval_us", 10_000, 1..=5_000_000)?;
        if interval < FINEST_INTERVAL_US {
            let text =
                format!("an interval of {interval} us: tokio_kcp keeps none below {FINEST_INTERVAL_US}");
            return Err(Refusal::Unsupported(text));
        }
        let config = KcpConfig {
            mtu: number(spec, "mtu", 1_400, 50..=65_507)? as usize,
            nodelay: KcpNoDelayConfig {
                nodelay: number(spec, "nodelay", 1, 0..=1)? == 1,
                interval: (interval / 1_000) as i32,
                resend: number(spec, "resend", 2, 0..=1_000)? as i32,
                nc: number(spec, "nc", 1, 0..=1)? == 1,
            },
            wnd_size: (window, window),
            // What is written or acknowledged leaves at once and not with the interval, as with the other systems.
            flush_write: true,
            flush_acks_input: true,
            stream: true,
            ..KcpConfig::default()
        };
        let size = spec.size as usize;
        Ok(Arc::new(Self { config, size, content: Content::new(size) }))
    }
}

fn number(spec: &Spec, name: &str, otherwise: u64, range: RangeInclusive<u64>) -> Result<u64, Refusal> {
    let Some(text) = spec.options.get(name) else { return Ok(otherwise) };
    text.parse().ok().filter(|n| range.contains(n)).ok_or_else(|| {
        let (low, high) = range.into_inner();
        Refusal::BadSpec(format!("\"options.{name}\" must be {low} to {high}, not {text}"))
    })
}

/// Serves until SIGTERM.
pub fn serve(spec: &Spec) -> Result<(), Refusal> {
    let address = spec.listen.ok_or_else(|| Refusal::BadSpec("\"listen\" is missing".into()))?;
    let setting = Setting::new(spec)?;
    let runtime = runtime(spec)?;
    let outcome = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let listener = KcpListener::bind(setting.config, address).await.map_err(io_error)?;
        ready(listener.local_addr()?);
        tokio::spawn(accept(listener, setting));
        terminate.recv().await;
        Ok(())
    });
    runtime.shutdown_background();
    outcome.map_err(Refusal::Failed)
}

async fn accept(mut listener: KcpListener, setting: Arc<Setting>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let setting = setting.clone();
                // A peer that vanishes ends its stream and nothing else.
                tokio::spawn(async move {
                    let _ = receive(stream, &setting).await;
                });
            }
            Err(_) => sleep(REST).await,
        }
    }
}

/// Compares frames until the one that is empty, and answers.
async fn receive(mut stream: KcpStream, setting: &Setting) -> io::Result<()> {
    let mut frames = Frames::default();
    let mut buffer = vec![0; BUFFER];
    while !frames.ended {
        let n = stream.read(&mut buffer).await?;
        if n == 0 {
            return Ok(());
        }
        frames.take(&buffer[..n], &setting.content, setting.size);
    }
    stream.write_u64_le(frames.good).await?;
    stream.flush().await?;
    let _ = timeout(LINGER, stream.read(&mut buffer)).await;
    Ok(())
}

pub fn client(spec: &Spec) -> Result<Done, Refusal> {
    let setting = Setting::new(spec)?;
    let target = Target::new(spec)?;
    let mut goal = Goal::new(spec)?;
    let connections = spec.connections;
    runtime(spec)?.block_on(async move {
        let (mut sum, mut streams) = (Tally::default(), Vec::new());
        for _ in 0..connections {
            match open(&target, &setting).await {
                Ok(stream) => streams.push(stream),
                Err(_) => sum.fail(ErrorKind::ConnectFailed),
            }
        }
        let (start, cpu) = (clock::now(), clock::process_cpu());
        goal.start(start);
        let mut set = JoinSet::new();
        for stream in streams {
            let setting = setting.clone();
            set.spawn(async move {
                let (moved, mut tally) = (AtomicU64::new(0), Tally::default());
                let work = transfer(stream, &setting, goal, &moved, &mut tally);
                if let Err(kind) = watched(&moved, target.timeout, work).await {
                    tally.fail(kind);
                }
                tally
            });
        }
        while let Some(tally) = set.join_next().await {
            sum.merge(&tally.expect("a panic aborts the process"));
        }
        Ok(sum.done(start, clock::process_cpu().since(cpu), |_, bytes| bytes))
    })
}

async fn open(target: &Target, setting: &Setting) -> io::Result<KcpStream> {
    let socket = UdpSocket::bind(target.source()).await?;
    KcpStream::connect_with_socket(&setting.config, socket, target.address).await.map_err(io_error)
}

/// Writes frames until the goal is reached, and takes the server's count.
async fn transfer(
    mut stream: KcpStream,
    setting: &Setting,
    goal: Goal,
    moved: &AtomicU64,
    tally: &mut Tally,
) -> Result<(), ErrorKind> {
    let (mut written, mut ended) = (0, false);
    let mut frame = Vec::with_capacity(4 + setting.size);
    while !ended {
        let length = goal.piece(written, setting.size);
        ended = length == 0;
        frame.clear();
        frame.extend_from_slice(&(length as u32).to_le_bytes());
        frame.extend_from_slice(setting.content.at(written, length));
        stream.write_all(&frame).await.map_err(|e| stream_error(&e))?;
        written += length as u64;
        moved.fetch_add(1, Relaxed);
    }
    stream.flush().await.map_err(|e| stream_error(&e))?;
    let good = stream.read_u64_le().await.map_err(|e| stream_error(&e))?;
    tally.streamed(good, written, setting.size as u64);
    Ok(())
}

fn io_error(error: impl Into<io::Error>) -> io::Error {
    error.into()
}

/// The framed stream: four bytes of length, so much content, and a length of 0 at the end. It comes cut anywhere.
#[derive(Default)]
struct Frames {
    prefix: Vec<u8>,
    left: usize,
    at: u64,
    good: u64,
    ended: bool,
}

impl Frames {
    fn take(&mut self, mut bytes: &[u8], content: &Content, longest: usize) {
        while let (Some(first), false) = (bytes.first(), self.ended) {
            if self.left == 0 {
                self.prefix.push(*first);
                bytes = &bytes[1..];
                if let Ok(prefix) = <[u8; 4]>::try_from(&self.prefix[..]) {
                    self.prefix.clear();
                    self.left = u32::from_le_bytes(prefix) as usize;
                    self.ended = self.left == 0;
                }
                continue;
            }
            let (piece, rest) = bytes.split_at(self.left.min(bytes.len()).min(longest));
            self.good += content.good(self.at, piece);
            self.at += piece.len() as u64;
            self.left -= piece.len();
            bytes = rest;
        }
    }
}
