//! A server's runtime, listener and echo.

use crate::missing;
use linerate_contract::program::emit;
use linerate_contract::{BACKLOG, Event, Refusal, Runtime as Kind, Spec};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

/// An echo server reads up to this many bytes at once, the same in every system.
pub const ECHO_BUFFER: usize = 64 << 10;
/// Wait after a failed accept, such as one without a free descriptor.
pub const ACCEPT_RETRY: Duration = Duration::from_millis(10);

/// The runtime of `options.runtime`: `single` is one thread, `multi` a work-stealing pool of `threads`
/// threads.
///
/// # Errors
/// [`Refusal`]: an unknown runtime, or several threads on `single`.
pub fn runtime(spec: &Spec) -> Result<Runtime, Refusal> {
    let mut builder = match spec.runtime()? {
        Kind::Single if spec.threads == 1 => Builder::new_current_thread(),
        Kind::Single => {
            return Err(Refusal::Unsupported("several threads on a single-threaded runtime".into()));
        }
        Kind::Multi => Builder::new_multi_thread(),
    };
    Ok(builder.worker_threads(spec.threads as usize).enable_all().build()?)
}

/// Runs a server until SIGTERM: `start` binds the address of the spec, spawns its tasks, and returns the
/// bound address.
///
/// # Errors
/// [`Refusal`]: no `listen`, no runtime, or the error of `start`.
pub fn serve(
    spec: &Spec,
    start: impl AsyncFnOnce(SocketAddr) -> io::Result<SocketAddr>,
) -> Result<(), Refusal> {
    let address = spec.listen.ok_or_else(|| missing("listen"))?;
    let runtime = runtime(spec)?;
    let outcome = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        emit(&Event::Ready { address: start(address).await? });
        terminate.recv().await;
        Ok(())
    });
    // Established connections are dropped.
    runtime.shutdown_background();
    outcome.map_err(Refusal::Failed)
}

/// A TCP listener.
///
/// # Errors
/// socket(2), bind(2) or listen(2) fails.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG.into())
}

/// Passes every accepted connection to `handle`, which spawns its task.
pub async fn accept(listener: TcpListener, handle: impl Fn(TcpStream)) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // It fails on a connection that has gone, which the task sees as well.
                let _ = stream.set_nodelay(true);
                handle(stream);
            }
            Err(_) => tokio::time::sleep(ACCEPT_RETRY).await,
        }
    }
}

/// Sends back what arrives, until the peer closes.
///
/// # Errors
/// The connection fails.
pub async fn echo(mut reader: impl AsyncRead + Unpin, mut writer: impl AsyncWrite + Unpin) -> io::Result<()> {
    let mut buffer = vec![0; ECHO_BUFFER];
    loop {
        let n = reader.read(&mut buffer).await?;
        if n == 0 {
            // Some stacks in a process leak a connection that is dropped without a shutdown.
            return writer.shutdown().await;
        }
        writer.write_all(&buffer[..n]).await?;
    }
}
