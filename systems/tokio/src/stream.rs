//! `stream`, both ends: a half that writes content and one that compares what it reads, joined where both are asked for.

use crate::client::{Target, watched};
use crate::tally::{Tally, stream_error};
use crate::{Refusal, clock, runtime};
use linerate_contract::{Done, ErrorKind, Spec, page};
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
    content: Vec<u8>,
    size: usize,
}

impl Setting {
    pub fn new(spec: &Spec) -> Result<Self, Refusal> {
        let direction = spec.options.get("direction").map_or("", String::as_str);
        if !["client-writes", "client-reads", "both"].contains(&direction) {
            let text = "\"options.direction\" must be client-writes, client-reads or both";
            return Err(Refusal::BadSpec(text.into()));
        }
        if !(1..=LARGEST_WRITE).contains(&spec.size) {
            return Err(Refusal::BadSpec(format!("\"size\" must be 1 to {LARGEST_WRITE} bytes")));
        }
        let size = spec.size as usize;
        Ok(Self {
            client_writes: direction != "client-reads",
            client_reads: direction != "client-writes",
            content: page(PERIOD).into_iter().cycle().take(PERIOD + size).collect(),
            size,
        })
    }

    fn at(&self, offset: u64, length: usize) -> &[u8] {
        let start = (offset % PERIOD as u64) as usize;
        &self.content[start..start + length]
    }

    /// Writes `total` bytes, `size` at a time.
    async fn write(
        &self,
        half: &mut (impl AsyncWrite + Unpin),
        total: u64,
        moved: &AtomicU64,
    ) -> io::Result<()> {
        let mut at = 0;
        while at < total {
            let length = (total - at).min(self.size as u64) as usize;
            half.write_all(self.at(at, length)).await?;
            at += length as u64;
            moved.fetch_add(1, Relaxed);
        }
        Ok(())
    }

    /// Reads `total` bytes or up to the end; how many there were, and how many good ones.
    async fn read(
        &self,
        half: &mut (impl AsyncRead + Unpin),
        total: u64,
        moved: &AtomicU64,
    ) -> io::Result<(u64, u64)> {
        let mut buffer = vec![0; self.size];
        let (mut at, mut good) = (0, 0);
        while at < total {
            let length = (total - at).min(self.size as u64) as usize;
            let n = half.read(&mut buffer[..length]).await?;
            if n == 0 {
                break;
            }
            let (is, should) = (&buffer[..n], self.at(at, n));
            good +=
                if is == should { n } else { is.iter().zip(should).filter(|(a, b)| a == b).count() } as u64;
            at += n as u64;
            moved.fetch_add(1, Relaxed);
        }
        Ok((at, good))
    }
}

pub async fn serve(mut stream: TcpStream, setting: &Setting) -> io::Result<()> {
    let moved = AtomicU64::new(0);
    let wanted = if setting.client_reads { stream.read_u64_le().await? } else { 0 };
    let (mut reader, mut writer) = stream.split();
    if !setting.client_writes {
        setting.write(&mut writer, wanted, &moved).await?;
        writer.shutdown().await?;
        // The client closes when it has all.
        return reader.read(&mut [0]).await.map(drop);
    }
    let (written, read) =
        tokio::join!(setting.write(&mut writer, wanted, &moved), setting.read(&mut reader, u64::MAX, &moved));
    written?;
    let (_, good) = read?;
    writer.write_u64_le(good).await
}

pub fn client(spec: &Spec) -> Result<Done, Refusal> {
    let setting = Arc::new(Setting::new(spec)?);
    let target = Target::new(spec)?;
    let bytes =
        spec.bytes.filter(|n| *n > 0).ok_or_else(|| Refusal::BadSpec("a stream needs \"bytes\"".into()))?;
    let (connections, timeout) = (spec.connections, target.timeout);
    runtime(spec)?.block_on(async move {
        let (mut sum, mut streams) = (Tally::default(), Vec::new());
        for _ in 0..connections {
            match target.connect().await {
                Ok(stream) => streams.push(stream),
                Err(kind) => sum.fail(kind),
            }
        }
        let (start, cpu) = (clock::now(), clock::cpu());
        let mut set = JoinSet::new();
        for stream in streams {
            let setting = setting.clone();
            set.spawn(async move {
                let (moved, mut tally) = (AtomicU64::new(0), Tally::default());
                let outcome =
                    watched(&moved, timeout, transfer(stream, &setting, bytes, &moved, &mut tally)).await;
                if let Err(kind) = outcome {
                    tally.fail(kind);
                }
                tally
            });
        }
        while let Some(tally) = set.join_next().await {
            sum.merge(&tally.expect("a panic aborts the process"));
        }
        Ok(sum.done(start, clock::cpu().since(cpu), |_, bytes| bytes))
    })
}

/// One connection's bytes, in each direction that is asked for.
async fn transfer(
    mut stream: TcpStream,
    setting: &Setting,
    bytes: u64,
    moved: &AtomicU64,
    tally: &mut Tally,
) -> Result<(), ErrorKind> {
    if setting.client_reads {
        stream.write_u64_le(bytes).await.map_err(|e| stream_error(&e))?;
    }
    let out = if setting.client_writes { bytes } else { 0 };
    let into = if setting.client_reads { bytes } else { 0 };
    let (mut reader, mut writer) = stream.split();
    let write = async {
        setting.write(&mut writer, out, moved).await?;
        if setting.client_writes { writer.shutdown().await } else { Ok(()) }
    };
    let (written, read) = tokio::join!(write, setting.read(&mut reader, into, moved));
    let (got, good) = read.map_err(|e| stream_error(&e))?;
    written.map_err(|e| stream_error(&e))?;
    if got < into {
        tally.streamed(good, good, setting.size as u64);
        return Err(ErrorKind::Truncated);
    }
    let there = if setting.client_writes { reader.read_u64_le().await } else { Ok(0) };
    match there {
        Ok(there) => {
            tally.streamed(good + there, out + into, setting.size as u64);
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
