//! `stream`, both ends: a half that writes content and one that compares what it reads, joined where both are asked for.

use crate::client::{Target, watched};
use crate::runtime;
use linerate_contract::program::Refusal;
use linerate_contract::tally::{Tally, stream_error};
use linerate_contract::{Done, ErrorKind, Nanos, Spec, clock, page};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// The contract's: content repeats with this period.
const PERIOD: usize = 65_536;
/// Buffers are held in memory, one for each connection.
const LARGEST_WRITE: u64 = 16 << 20;

/// Direction, content, and size of a read and a write.
pub struct Setting {
    client_writes: bool,
    client_reads: bool,
    content: Content,
    size: usize,
}

/// An endless stream of bytes; pieces of up to the length that it was made for are contiguous.
pub struct Content(Vec<u8>);

impl Content {
    pub fn new(longest: usize) -> Self {
        Self(page(PERIOD).into_iter().cycle().take(PERIOD + longest).collect())
    }

    pub fn at(&self, offset: u64, length: usize) -> &[u8] {
        let start = (offset % PERIOD as u64) as usize;
        &self.0[start..start + length]
    }

    /// How many of the bytes received at an offset are the right ones.
    pub fn good(&self, offset: u64, is: &[u8]) -> u64 {
        let should = self.at(offset, is.len());
        (if is == should { is.len() } else { is.iter().zip(should).filter(|(a, b)| a == b).count() }) as u64
    }
}

impl Setting {
    pub fn new(spec: &Spec) -> Result<Self, Refusal> {
        let direction = spec.options.get("direction").map_or("", String::as_str);
        if !["client-writes", "client-reads", "both"].contains(&direction) {
            let text = "\"options.direction\" must be client-writes, client-reads or both";
            return Err(Refusal::BadSpec(text.into()));
        }
        if spec.options.contains_key("transfers") {
            return Err(Refusal::Unsupported("counted streams over TCP".into()));
        }
        if !(1..=LARGEST_WRITE).contains(&spec.size) {
            return Err(Refusal::BadSpec(format!("\"size\" must be 1 to {LARGEST_WRITE} bytes")));
        }
        let size = spec.size as usize;
        Ok(Self {
            client_writes: direction != "client-reads",
            client_reads: direction != "client-writes",
            content: Content::new(size),
            size,
        })
    }

    /// Writes until the goal is reached, `size` bytes at a time; how many there were.
    async fn write(
        &self,
        half: &mut (impl AsyncWrite + Unpin),
        goal: Goal,
        moved: &AtomicU64,
    ) -> io::Result<u64> {
        let mut at = 0;
        loop {
            let length = goal.piece(at, self.size);
            if length == 0 {
                return Ok(at);
            }
            half.write_all(self.content.at(at, length)).await?;
            at += length as u64;
            moved.fetch_add(1, Relaxed);
        }
    }

    /// Reads until the goal is reached or the peer ends; how many bytes there were, and how many good ones.
    async fn read(
        &self,
        half: &mut (impl AsyncRead + Unpin),
        goal: Goal,
        moved: &AtomicU64,
    ) -> io::Result<(u64, u64)> {
        let mut buffer = vec![0; self.size];
        let (mut at, mut good) = (0, 0);
        loop {
            let length = goal.piece(at, self.size);
            if length == 0 {
                break;
            }
            let n = half.read(&mut buffer[..length]).await?;
            if n == 0 {
                break;
            }
            good += self.content.good(at, &buffer[..n]);
            at += n as u64;
            moved.fetch_add(1, Relaxed);
        }
        Ok((at, good))
    }
}

/// When a direction is over: after so many bytes, or at a point of the clock.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    bytes: u64,
    until: Nanos,
}

impl Goal {
    /// No time limit.
    fn bytes(bytes: u64) -> Self {
        Self { bytes, until: Nanos(u64::MAX) }
    }

    /// What a client is asked for.
    pub fn new(spec: &Spec) -> Result<Self, Refusal> {
        match (spec.bytes, spec.duration_ns) {
            (Some(bytes), _) if bytes > 0 => Ok(Self::bytes(bytes)),
            (None, Some(duration)) => Ok(Self { bytes: u64::MAX, until: duration }),
            _ => Err(Refusal::BadSpec("a stream needs \"bytes\" or \"duration_ns\"".into())),
        }
    }

    /// The window opens: time counts from here.
    pub fn start(&mut self, now: Nanos) {
        if self.is_by_time() {
            self.until = now + self.until;
        }
    }

    /// How long the next piece of up to `size` bytes is; 0 if the goal is reached.
    pub fn piece(self, at: u64, size: usize) -> usize {
        if self.is_reached(at) { 0 } else { (self.bytes - at).min(size as u64) as usize }
    }

    fn is_by_time(self) -> bool {
        self.until != Nanos(u64::MAX)
    }

    fn is_reached(self, at: u64) -> bool {
        at >= self.bytes || (self.is_by_time() && clock::now() >= self.until)
    }
}

pub async fn serve(mut stream: TcpStream, setting: &Setting) -> io::Result<()> {
    let moved = AtomicU64::new(0);
    let wanted = if setting.client_reads { stream.read_u64_le().await? } else { 0 };
    let (mut reader, mut writer) = stream.split();
    if !setting.client_writes {
        setting.write(&mut writer, Goal::bytes(wanted), &moved).await?;
        writer.shutdown().await?;
        // The client closes when it has all.
        return reader.read(&mut [0]).await.map(drop);
    }
    let (written, read) = tokio::join!(
        setting.write(&mut writer, Goal::bytes(wanted), &moved),
        setting.read(&mut reader, Goal::bytes(u64::MAX), &moved)
    );
    written?;
    let (_, good) = read?;
    writer.write_u64_le(good).await
}

pub fn client(spec: &Spec) -> Result<Done, Refusal> {
    let setting = Arc::new(Setting::new(spec)?);
    let target = Target::new(spec)?;
    let mut goal = Goal::new(spec)?;
    if goal.is_by_time() && setting.client_writes && setting.client_reads {
        return Err(Refusal::Unsupported("both directions by time".into()));
    }
    let (connections, timeout) = (spec.connections, target.timeout);
    runtime(spec)?.block_on(async move {
        let (mut sum, mut streams) = (Tally::default(), Vec::new());
        for _ in 0..connections {
            match target.connect().await {
                Ok(stream) => streams.push(stream),
                Err(kind) => sum.fail(kind),
            }
        }
        let (start, cpu) = (clock::now(), clock::process_cpu());
        goal.start(start);
        let mut set = JoinSet::new();
        for stream in streams {
            let setting = setting.clone();
            set.spawn(async move {
                let (moved, mut tally) = (AtomicU64::new(0), Tally::default());
                let outcome =
                    watched(&moved, timeout, transfer(stream, &setting, goal, &moved, &mut tally)).await;
                if let Err(kind) = outcome {
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

/// One connection's bytes, in each direction that is asked for.
async fn transfer(
    mut stream: TcpStream,
    setting: &Setting,
    goal: Goal,
    moved: &AtomicU64,
    tally: &mut Tally,
) -> Result<(), ErrorKind> {
    if setting.client_reads {
        stream.write_u64_le(goal.bytes).await.map_err(|e| stream_error(&e))?;
    }
    let nothing = Goal::bytes(0);
    let out = if setting.client_writes { goal } else { nothing };
    let into = if setting.client_reads { goal } else { nothing };
    let (mut reader, mut writer) = stream.split();
    let write = async {
        let written = setting.write(&mut writer, out, moved).await?;
        if setting.client_writes {
            writer.shutdown().await?;
        }
        Ok(written)
    };
    let (written, read) = tokio::join!(write, setting.read(&mut reader, into, moved));
    let (got, good) = read.map_err(|e| stream_error(&e))?;
    let written = written.map_err(|e: io::Error| stream_error(&e))?;
    if !into.is_reached(got) {
        tally.streamed(good, good, setting.size as u64);
        return Err(ErrorKind::Truncated);
    }
    let there = if setting.client_writes { reader.read_u64_le().await } else { Ok(0) };
    match there {
        Ok(there) => {
            tally.streamed(good + there, written + got, setting.size as u64);
            Ok(())
        }
        Err(error) => {
            tally.streamed(good, good, setting.size as u64);
            Err(if error.kind() == io::ErrorKind::UnexpectedEof {
                ErrorKind::Truncated
            } else {
                stream_error(&error)
            })
        }
    }
}
