//! `stream` over KCP by the crate tokio_kcp, both ends, as in its examples: a stream with `write_all` and
//! `read`.

use crate::client::gather;
use linerate_contract::program::Refusal;
use linerate_contract::tally::{Tally, stream_error};
use linerate_contract::{Direction, Done, ErrorKind, KCP_SOCKET_BUFFER, Spec, Window};
use linerate_sdk::client::{Target, watched};
use linerate_sdk::content::Content;
use linerate_sdk::server::{ACCEPT_RETRY, runtime, serve as serve_until_terminated};
use linerate_sdk::stream::StopCondition;
use socket2::SockRef;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_kcp::{KcpConfig, KcpListener, KcpNoDelayConfig, KcpStream};

const BUFFER: usize = 64 << 10;
/// The crate raises a shorter interval to 10 ms.
const FINEST_INTERVAL_US: u64 = 10_000;
/// KCP has no close: a stream stays open for this time after its answer, until the client has acknowledged
/// it.
const LINGER: Duration = Duration::from_secs(1);

/// The settings of both ends.
struct KcpOptions {
    config: KcpConfig,
    size: usize,
    content: Content,
}

impl KcpOptions {
    fn new(spec: &Spec) -> Result<Arc<Self>, Refusal> {
        if !(1..=65_536).contains(&spec.size) {
            return Err(Refusal::BadSpec("\"size\" must be 1 to 65536 bytes".into()));
        }
        if spec.direction()? != Direction::ClientWrites {
            return Err(Refusal::Unsupported("KCP from the server".into()));
        }
        let number = |name, default, range| Ok::<_, Refusal>(spec.number(name, range)?.unwrap_or(default));
        let window = number("window", 1_024, 1..=65_535)? as u16;
        let interval = number("interval_us", 10_000, 1..=5_000_000)?;
        if interval < FINEST_INTERVAL_US {
            let text =
                format!("an interval of {interval} us: tokio_kcp supports none below {FINEST_INTERVAL_US}");
            return Err(Refusal::Unsupported(text));
        }
        let config = KcpConfig {
            mtu: number("mtu", 1_400, 50..=65_507)? as usize,
            nodelay: KcpNoDelayConfig {
                nodelay: number("nodelay", 1, 0..=1)? == 1,
                interval: (interval / 1_000) as i32,
                resend: number("resend", 2, 0..=1_000)? as i32,
                nc: number("nc", 1, 0..=1)? == 1,
            },
            wnd_size: (window, window),
            // Data and acknowledgements are sent at once, as in the other systems, and not at the interval.
            flush_write: true,
            flush_acks_input: true,
            stream: true,
            ..KcpConfig::default()
        };
        let size = spec.size as usize;
        Ok(Arc::new(Self { config, size, content: Content::new(size) }))
    }
}

/// Serves until SIGTERM.
pub fn serve(spec: &Spec) -> Result<(), Refusal> {
    let options = KcpOptions::new(spec)?;
    serve_until_terminated(spec, async |address| {
        let listener =
            KcpListener::from_socket(options.config, socket(address).await?).await.map_err(io_error)?;
        let address = listener.local_addr()?;
        tokio::spawn(accept(listener, options));
        Ok(address)
    })
}

async fn accept(mut listener: KcpListener, options: Arc<KcpOptions>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let options = options.clone();
                // A peer that vanishes ends its own stream only.
                tokio::spawn(async move {
                    let _ = receive(stream, &options).await;
                });
            }
            Err(_) => sleep(ACCEPT_RETRY).await,
        }
    }
}

/// Compares frames up to the empty one, and answers.
async fn receive(mut stream: KcpStream, options: &KcpOptions) -> io::Result<()> {
    let mut frames = Frames::default();
    let mut buffer = vec![0; BUFFER];
    while !frames.ended {
        let n = stream.read(&mut buffer).await?;
        if n == 0 {
            return Ok(());
        }
        frames.take(&buffer[..n], options.content);
    }
    stream.write_u64_le(frames.good).await?;
    stream.flush().await?;
    let _ = timeout(LINGER, stream.read(&mut buffer)).await;
    Ok(())
}

pub fn client(spec: &Spec) -> Result<Done, Refusal> {
    let options = KcpOptions::new(spec)?;
    let target = Target::new(spec)?;
    let mut stop = StopCondition::new(spec)?;
    let connections = spec.connections;
    runtime(spec)?.block_on(async move {
        let (mut sum, mut streams) = (Tally::default(), Vec::new());
        for _ in 0..connections {
            match open(&target, &options).await {
                Ok(stream) => streams.push(stream),
                Err(_) => sum.fail(ErrorKind::ConnectFailed),
            }
        }
        let window = Window::open(spec);
        stop.start(window.start());
        let mut set = JoinSet::new();
        for stream in streams {
            let options = options.clone();
            set.spawn(async move {
                let (progress, mut tally) = (AtomicU64::new(0), Tally::default());
                let work = transfer(stream, &options, stop, &progress, &mut tally);
                if let Err(kind) = watched(&progress, target.timeout, work).await {
                    tally.fail(kind);
                }
                tally
            });
        }
        Ok(gather(set, sum, &window, true).await)
    })
}

async fn open(target: &Target, options: &KcpOptions) -> io::Result<KcpStream> {
    KcpStream::connect_with_socket(&options.config, socket(target.source()).await?, target.address)
        .await
        .map_err(io_error)
}

/// A socket with the buffers of every KCP program.
async fn socket(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address).await?;
    let options = SockRef::from(&socket);
    options.set_recv_buffer_size(KCP_SOCKET_BUFFER)?;
    options.set_send_buffer_size(KCP_SOCKET_BUFFER)?;
    Ok(socket)
}

/// Writes frames until the stop condition, and reads the server's count.
async fn transfer(
    mut stream: KcpStream,
    options: &KcpOptions,
    stop: StopCondition,
    progress: &AtomicU64,
    tally: &mut Tally,
) -> Result<(), ErrorKind> {
    let (mut written, mut ended) = (0, false);
    let mut frame = Vec::with_capacity(4 + options.size);
    while !ended {
        let length = stop.piece(written, options.size);
        ended = length == 0;
        frame.clear();
        frame.extend_from_slice(&(length as u32).to_le_bytes());
        frame.extend_from_slice(options.content.at(written, length));
        stream.write_all(&frame).await.map_err(|e| stream_error(&e))?;
        written += length as u64;
        progress.fetch_add(1, Relaxed);
    }
    stream.flush().await.map_err(|e| stream_error(&e))?;
    let good = stream.read_u64_le().await.map_err(|e| stream_error(&e))?;
    if good > written {
        return Err(ErrorKind::Malformed);
    }
    tally.streamed(good, written, options.size as u64);
    Ok(())
}

fn io_error(error: impl Into<io::Error>) -> io::Error {
    error.into()
}

/// The framed stream, which may be cut anywhere: four bytes of length, content of that length, a length of 0
/// at the end.
#[derive(Default)]
struct Frames {
    prefix: Vec<u8>,
    left: usize,
    at: u64,
    good: u64,
    ended: bool,
}

impl Frames {
    fn take(&mut self, mut bytes: &[u8], content: Content) {
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
            let (piece, rest) = bytes.split_at(self.left.min(bytes.len()));
            self.good += content.good(self.at, piece);
            self.at += piece.len() as u64;
            self.left -= piece.len();
            bytes = rest;
        }
    }
}
