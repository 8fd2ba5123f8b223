//! Both ends of a `stream` (sdk/CONTRACT.md): transfers one after the other, each after its number of bytes.

use crate::content::Content;
use linerate_contract::tally::{Tally, stream_error};
use linerate_contract::{Direction, ErrorKind, Nanos, Refusal, Spec, clock};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Buffers stay in memory, one per connection.
const LARGEST_WRITE: u64 = 16 << 20;

/// The stream of a spec.
#[derive(Debug)]
pub struct Stream {
    pub client_writes: bool,
    pub client_reads: bool,
    /// Bytes of a write and of a read.
    pub size: usize,
    pub transfers: u64,
    pub content: Content,
}

/// The end of one direction of a stream: a number of bytes, or a point of the clock. With both, the clock
/// ends the sequence of transfers.
#[derive(Debug, Clone, Copy)]
pub struct StopCondition {
    pub bytes: u64,
    until: Nanos,
}

impl StopCondition {
    #[must_use]
    pub fn after(bytes: u64) -> Self {
        Self { bytes, until: Nanos(u64::MAX) }
    }

    /// The stop condition of a client's spec.
    ///
    /// # Errors
    /// [`Refusal::BadSpec`]: neither `bytes` nor `duration_ns`.
    pub fn new(spec: &Spec) -> Result<Self, Refusal> {
        match (spec.bytes, spec.duration_ns) {
            (Some(0), _) | (None, None) => {
                Err(Refusal::BadSpec("a stream needs \"bytes\" or \"duration_ns\"".into()))
            }
            (bytes, duration) => {
                Ok(Self { bytes: bytes.unwrap_or(u64::MAX), until: duration.unwrap_or(Nanos(u64::MAX)) })
            }
        }
    }

    /// Starts the time of the stream.
    pub fn start(&mut self, now: Nanos) {
        self.until = now + self.until;
    }

    /// The length of the next piece, at most `size` bytes; 0 if the stream is over.
    #[must_use]
    pub fn piece(self, at: u64, size: usize) -> usize {
        let is_over = at >= self.bytes || (self.is_by_time() && clock::now() >= self.until);
        if is_over { 0 } else { (self.bytes - at).min(size as u64) as usize }
    }

    /// Whether the clock ends the stream and not a number of bytes.
    #[must_use]
    pub fn is_by_time(self) -> bool {
        self.bytes == u64::MAX && self.has_time()
    }

    fn has_time(self) -> bool {
        self.until != Nanos(u64::MAX)
    }

    /// Whether a transfer follows the first `made` of a connection: one of `transfers`, or with bytes and a
    /// duration any until the time is over.
    fn another(self, made: u64, transfers: u64) -> bool {
        match self.has_time() && !self.is_by_time() {
            true => made == 0 || clock::now() < self.until,
            false => made < transfers,
        }
    }
}

impl Stream {
    /// # Errors
    /// [`Refusal::BadSpec`]: `direction`, `transfers` or `size` is missing or out of range.
    pub fn new(spec: &Spec) -> Result<Self, Refusal> {
        let direction = spec.direction()?;
        if !(1..=LARGEST_WRITE).contains(&spec.size) {
            return Err(Refusal::BadSpec(format!("\"size\" must be 1 to {LARGEST_WRITE} bytes")));
        }
        let size = spec.size as usize;
        Ok(Self {
            client_writes: direction != Direction::ClientReads,
            client_reads: direction != Direction::ClientWrites,
            size,
            transfers: spec.transfers()?,
            content: Content::new(size),
        })
    }

    /// The stop condition of a client.
    ///
    /// # Errors
    /// [`Refusal`]: none, or a stream by time in a form that the contract does not have.
    pub fn stop_condition(&self, spec: &Spec) -> Result<StopCondition, Refusal> {
        let stop = StopCondition::new(spec)?;
        if stop.is_by_time() && self.client_writes && self.client_reads {
            return Err(Refusal::Unsupported("both directions by time".into()));
        }
        if stop.is_by_time() && self.transfers > 1 {
            return Err(Refusal::BadSpec("a stream by time is one transfer".into()));
        }
        Ok(stop)
    }

    /// Serves transfers until the client closes.
    ///
    /// # Errors
    /// The connection fails, or the content ends early.
    pub async fn serve(
        &self,
        mut reader: impl AsyncRead + Unpin,
        mut writer: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        let (mut buffer, progress) = (vec![0; self.size], AtomicU64::new(0));
        // A client that has closed sends no further number.
        while let Ok(bytes) = reader.read_u64_le().await {
            let stop = StopCondition::after(bytes);
            let (out, into) = self.directions(stop);
            let (_, (received, good)) = tokio::try_join!(
                self.write(&mut writer, into, &progress),
                self.read(&mut reader, out, &mut buffer, &progress)
            )?;
            if self.client_writes {
                // The end of the client's side ends a transfer by time, and no other.
                if received < bytes && bytes != u64::MAX {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                writer.write_u64_le(good).await?;
            }
        }
        writer.shutdown().await
    }

    /// Makes all transfers of one connection of a client.
    ///
    /// # Errors
    /// The kind of failure.
    pub async fn drive(
        &self,
        mut reader: impl AsyncRead + Unpin,
        mut writer: impl AsyncWrite + Unpin,
        stop: StopCondition,
        progress: &AtomicU64,
        tally: &mut Tally,
    ) -> Result<(), ErrorKind> {
        let (mut buffer, mut made) = (vec![0; self.size], 0);
        while stop.another(made, self.transfers) {
            made += 1;
            self.transfer(&mut reader, &mut writer, stop, &mut buffer, progress, tally)
                .await
                .map_err(|e| error_kind(&e))?;
        }
        Ok(())
    }

    async fn transfer(
        &self,
        reader: &mut (impl AsyncRead + Unpin),
        writer: &mut (impl AsyncWrite + Unpin),
        stop: StopCondition,
        buffer: &mut [u8],
        progress: &AtomicU64,
        tally: &mut Tally,
    ) -> io::Result<()> {
        let (began, size) = (clock::now(), self.size as u64);
        writer.write_u64_le(stop.bytes).await?;
        let (out, into) = self.directions(stop);
        let write = async {
            let written = self.write(writer, out, progress).await?;
            if self.client_writes && stop.is_by_time() {
                writer.shutdown().await?;
            }
            Ok(written)
        };
        let (written, (received, good)) = tokio::try_join!(write, self.read(reader, into, buffer, progress))?;
        if self.client_reads && received < stop.bytes && !stop.is_by_time() {
            tally.streamed(good, good, size);
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let accepted = if self.client_writes { reader.read_u64_le().await? } else { 0 };
        let (good, wanted) = (good + accepted, received + written);
        if stop.is_by_time() {
            tally.streamed(good, wanted, size);
            return Ok(());
        }
        tally.transferred(began, clock::now(), good.div_ceil(size), good);
        if good != wanted {
            tally.fail(ErrorKind::WrongContent);
        }
        Ok(())
    }

    /// The conditions of the client's and of the server's content: an unused direction is over at once.
    fn directions(&self, stop: StopCondition) -> (StopCondition, StopCondition) {
        let unless = |used| if used { stop } else { StopCondition::after(0) };
        (unless(self.client_writes), unless(self.client_reads))
    }

    /// Writes content until the stop condition; returns its length.
    async fn write(
        &self,
        writer: &mut (impl AsyncWrite + Unpin),
        stop: StopCondition,
        progress: &AtomicU64,
    ) -> io::Result<u64> {
        let mut at = 0;
        loop {
            let length = stop.piece(at, self.size);
            if length == 0 {
                return Ok(at);
            }
            writer.write_all(self.content.at(at, length)).await?;
            at += length as u64;
            progress.fetch_add(1, Relaxed);
        }
    }

    /// Reads until the stop condition or the peer's end; returns the number of bytes, and of good ones.
    async fn read(
        &self,
        reader: &mut (impl AsyncRead + Unpin),
        stop: StopCondition,
        buffer: &mut [u8],
        progress: &AtomicU64,
    ) -> io::Result<(u64, u64)> {
        let (mut at, mut good) = (0, 0);
        loop {
            let length = stop.piece(at, self.size);
            let n = if length == 0 { 0 } else { reader.read(&mut buffer[..length]).await? };
            if n == 0 {
                return Ok((at, good));
            }
            good += self.content.good(at, &buffer[..n]);
            at += n as u64;
            progress.fetch_add(1, Relaxed);
        }
    }
}

fn error_kind(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => ErrorKind::Truncated,
        _ => stream_error(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Done, Layer, Role, Window, Workload, page};
    use std::time::Duration;

    fn spec(direction: &str) -> Spec {
        let mut spec = Spec::new(Role::Client, Layer::Tcp, Workload::Stream);
        spec.size = 1000;
        spec.bytes = Some(2500);
        spec.set_option("direction", direction);
        spec.set_option("transfers", 3);
        spec
    }

    /// Runs both ends of a spec.
    async fn run(spec: &Spec) -> Done {
        let stream = Stream::new(spec).unwrap();
        let mut stop = stream.stop_condition(spec).unwrap();
        let window = Window::open(spec);
        stop.start(window.start());
        let (client, server) = tokio::io::duplex(512);
        let ((client_in, client_out), (server_in, server_out)) =
            (tokio::io::split(client), tokio::io::split(server));
        let (progress, mut tally) = (AtomicU64::new(0), Tally::default());
        let both = async {
            let drive = stream.drive(client_in, client_out, stop, &progress, &mut tally);
            tokio::join!(stream.serve(server_in, server_out), drive)
        };
        let (served, driven) = tokio::time::timeout(Duration::from_secs(5), both).await.expect("it ends");
        assert_eq!((served.is_ok(), driven), (true, Ok(())));
        window.done(&tally, |_, bytes| bytes)
    }

    #[tokio::test]
    async fn transfers_follow_one_another_in_each_direction() {
        for (direction, sum) in [("client-writes", 7500), ("client-reads", 7500), ("both", 15_000)] {
            let done = run(&spec(direction)).await;
            assert_eq!((done.verified, done.errors.total()), (sum, 0), "{direction}");
        }
    }

    #[tokio::test]
    async fn transfers_for_a_time_are_whole_and_their_number_does_not_apply() {
        const MILLIS_20: u64 = 20_000_000;
        for (direction, duration) in [("client-writes", 1), ("client-reads", MILLIS_20), ("both", MILLIS_20)]
        {
            let (mut spec, began) = (spec(direction), clock::now());
            spec.duration_ns = Some(Nanos(duration));
            let done = run(&spec).await;
            let (transfers, each) =
                (done.latency.unwrap().total(), if direction == "both" { 5000 } else { 2500 });
            assert_eq!((done.verified, done.errors.total()), (transfers * each, 0), "{direction}");
            assert_eq!((transfers == 1, transfers > 3), (duration == 1, duration > 1), "{direction}");
            assert!(clock::now() >= began + Nanos(duration));
        }
    }

    /// The server's output to this input, which ends with the client's side.
    async fn output(direction: &str, input: Vec<u8>) -> (io::Result<()>, Vec<u8>) {
        let (mut client, server) = tokio::io::duplex(1 << 16);
        let stream = Stream::new(&spec(direction)).unwrap();
        client.write_all(&input).await.unwrap();
        client.shutdown().await.unwrap();
        let (reader, writer) = tokio::io::split(server);
        let served = stream.serve(reader, writer).await;
        let mut output = Vec::new();
        client.read_to_end(&mut output).await.unwrap();
        (served, output)
    }

    #[tokio::test]
    async fn a_server_counts_good_bytes_up_to_the_end_of_a_stream_by_time() {
        let mut content = page(2500);
        content[7] ^= 1;
        let input = [u64::MAX.to_le_bytes().as_slice(), &content].concat();
        let (served, counted) = output("client-writes", input).await;
        assert_eq!((served.is_ok(), counted), (true, 2499_u64.to_le_bytes().to_vec()));
    }

    #[tokio::test]
    async fn an_early_end_is_an_error() {
        let input = [3000_u64.to_le_bytes().as_slice(), &page(2500)].concat();
        let (served, counted) = output("client-writes", input).await;
        assert_eq!((served.unwrap_err().kind(), counted.len()), (io::ErrorKind::UnexpectedEof, 0));
    }
}
