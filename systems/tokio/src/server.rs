//! The servers: accept, a task for each connection, `read` and `write_all` in it, as tokio's tutorial writes an echo server.

use crate::{http, ready, runtime, stream};
use linerate_contract::Spec;
use linerate_contract::program::Refusal;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::signal::unix::{SignalKind, signal};

/// Input that is read at once, as in every echo server here.
const BUFFER: usize = 64 << 10;
/// What systems/README.md sets for all.
const BACKLOG: u32 = 511;
/// When there is no descriptor for a waiting connection.
const REST: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Copy)]
pub enum Serve {
    Echo,
    Http,
    Stream,
}

/// What a connection's task works with.
enum Work {
    Echo,
    Http(http::Answers),
    Stream(stream::Setting),
}

/// Serves until SIGTERM.
pub fn run(spec: &Spec, what: Serve) -> Result<(), Refusal> {
    let address = spec.listen.ok_or_else(|| Refusal::BadSpec("\"listen\" is missing".into()))?;
    let work = Arc::new(match what {
        Serve::Echo => Work::Echo,
        Serve::Http => Work::Http(http::Answers::new(spec.size as usize)),
        Serve::Stream => Work::Stream(stream::Setting::new(spec)?),
    });
    let runtime = runtime(spec)?;
    let outcome = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let listener = listen(address)?;
        ready(listener.local_addr()?);
        tokio::spawn(accept(listener, work));
        terminate.recv().await;
        Ok(())
    });
    // Connections that stand are not waited for.
    runtime.shutdown_background();
    outcome.map_err(Refusal::Failed)
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn accept(listener: TcpListener, work: Arc<Work>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let work = work.clone();
                // A peer that vanishes ends its connection and nothing else.
                tokio::spawn(async move {
                    let _ = serve(stream, &work).await;
                });
            }
            Err(_) => tokio::time::sleep(REST).await,
        }
    }
}

async fn serve(stream: TcpStream, work: &Work) -> io::Result<()> {
    stream.set_nodelay(true)?;
    match work {
        Work::Echo => echo(stream).await,
        Work::Http(answers) => http::serve(stream, answers).await,
        Work::Stream(setting) => stream::serve(stream, setting).await,
    }
}

async fn echo(mut stream: TcpStream) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let n = stream.read(&mut buffer).await?;
        if n == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..n]).await?;
    }
}
