//! `stream`: what systems/tokio does with a socket, with any stream.

use linerate_contract::{Spec, page};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The contract's: content repeats with this period.
const PERIOD: usize = 65_536;
/// Buffers are held in memory, one for each connection.
const LARGEST_WRITE: u64 = 16 << 20;

/// Direction, content, and size of a read and a write.
#[derive(Debug)]
pub struct Setting {
    pub client_writes: bool,
    pub client_reads: bool,
    /// Transfers follow one another, each behind its length, and no end of input marks an end.
    pub counted: bool,
    content: Vec<u8>,
    pub size: usize,
}

impl Setting {
    pub(crate) fn new(spec: &Spec) -> Result<Self, String> {
        let direction = spec.options.get("direction").map_or("", String::as_str);
        if !["client-writes", "client-reads", "both"].contains(&direction) {
            return Err("\"options.direction\" must be client-writes, client-reads or both".into());
        }
        if !(1..=LARGEST_WRITE).contains(&spec.size) {
            return Err(format!("\"size\" must be 1 to {LARGEST_WRITE} bytes"));
        }
        let counted = spec.options.contains_key("transfers");
        if counted && direction == "both" {
            return Err("counted streams go one way at a time".into());
        }
        let size = spec.size as usize;
        Ok(Self {
            counted,
            client_writes: direction != "client-reads",
            client_reads: direction != "client-writes",
            content: page(PERIOD).into_iter().cycle().take(PERIOD + size).collect(),
            size,
        })
    }

    pub(crate) async fn serve(
        &self,
        mut reader: impl AsyncRead + Unpin,
        mut writer: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        if self.counted {
            return self.serve_counted(reader, writer).await;
        }
        let wanted = if self.client_reads { reader.read_u64_le().await? } else { 0 };
        if !self.client_writes {
            self.write(&mut writer, wanted).await?;
            writer.shutdown().await?;
            // The client closes when it has all.
            return reader.read(&mut [0]).await.map(drop);
        }
        let (written, good) = tokio::join!(self.write(&mut writer, wanted), self.read(&mut reader, u64::MAX));
        written?;
        writer.write_u64_le(good?).await?;
        writer.shutdown().await
    }

    async fn serve_counted(
        &self,
        mut reader: impl AsyncRead + Unpin,
        mut writer: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        // Without another number the client has closed.
        while let Ok(bytes) = reader.read_u64_le().await {
            if self.client_reads {
                self.write(&mut writer, bytes).await?;
            } else {
                writer.write_u64_le(self.read(&mut reader, bytes).await?).await?;
            }
        }
        writer.shutdown().await
    }

    /// Writes `total` bytes, `size` at a time.
    async fn write(&self, writer: &mut (impl AsyncWrite + Unpin), total: u64) -> io::Result<()> {
        let mut at = 0;
        while at < total {
            let length = (total - at).min(self.size as u64) as usize;
            writer.write_all(self.at(at, length)).await?;
            at += length as u64;
        }
        Ok(())
    }

    /// Reads `total` bytes, or up to the end; how many good ones there were.
    async fn read(&self, reader: &mut (impl AsyncRead + Unpin), total: u64) -> io::Result<u64> {
        let mut buffer = vec![0; self.size];
        let (mut at, mut good) = (0, 0);
        while at < total {
            let length = (total - at).min(self.size as u64) as usize;
            let n = reader.read(&mut buffer[..length]).await?;
            if n == 0 {
                break;
            }
            good += self.good(at, &buffer[..n]);
            at += n as u64;
        }
        Ok(good)
    }

    /// How many of these bytes, at most `size`, are what they should be from `offset` on.
    #[must_use]
    pub fn good(&self, offset: u64, bytes: &[u8]) -> u64 {
        let should = self.at(offset, bytes.len());
        let equal = || bytes.iter().zip(should).filter(|(a, b)| a == b).count();
        (if bytes == should { bytes.len() } else { equal() }) as u64
    }

    /// Content from `offset` on, at most `size` bytes.
    #[must_use]
    pub fn at(&self, offset: u64, length: usize) -> &[u8] {
        let start = (offset % PERIOD as u64) as usize;
        &self.content[start..start + length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Role;
    use std::time::Duration;

    fn setting(direction: &str) -> Setting {
        let mut spec = Spec::new(Role::Server, "tcp", "stream");
        spec.size = 1000;
        spec.options.insert("direction".into(), direction.into());
        Setting::new(&spec).unwrap()
    }

    /// What a server of `direction` answers to `said`.
    async fn answer(direction: &str, said: &[u8]) -> Vec<u8> {
        let (mut client, server) = tokio::io::duplex(4096);
        let setting = setting(direction);
        let (reader, writer) = tokio::io::split(server);
        let mut back = Vec::new();
        let dialogue = async {
            client.write_all(said).await.unwrap();
            if direction == "client-writes" {
                client.shutdown().await.unwrap();
            }
            client.read_to_end(&mut back).await.unwrap();
            drop(client);
        };
        let both = async { tokio::join!(setting.serve(reader, writer), dialogue).0 };
        tokio::time::timeout(Duration::from_secs(5), both).await.expect("it ends").unwrap();
        back
    }

    #[tokio::test]
    async fn a_client_that_writes_learns_how_many_bytes_were_good() {
        let mut content = page(2500);
        content[7] ^= 1;
        assert_eq!(answer("client-writes", &content).await, 2499_u64.to_le_bytes());
    }

    #[tokio::test]
    async fn counted_transfers_follow_one_another_on_a_connection() {
        let mut setting = setting("client-writes");
        setting.counted = true;
        let (mut client, server) = tokio::io::duplex(4096);
        let (reader, writer) = tokio::io::split(server);
        let served = tokio::spawn(async move { setting.serve(reader, writer).await });
        for length in [2500, 7] {
            client.write_u64_le(length).await.unwrap();
            client.write_all(&page(length as usize)).await.unwrap();
            assert_eq!(client.read_u64_le().await.unwrap(), length);
        }
        drop(client);
        let _ = tokio::time::timeout(Duration::from_secs(5), served).await.expect("it ends");
    }

    #[tokio::test]
    async fn a_client_that_reads_gets_what_it_asks_for() {
        assert_eq!(answer("client-reads", &2500_u64.to_le_bytes()).await, page(2500));
    }
}
