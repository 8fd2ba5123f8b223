//! compio's TCP echo server on io_uring as a system of linerate (sdk/CONTRACT.md): `compio-system SPEC`.
//!
//! After the TCP examples of compio: a task for each connection, and a buffer that moves into each operation
//! and back.

use compio::buf::{BufResult, IntoInner, IoBuf};
use compio::io::{AsyncRead, AsyncWriteExt};
use compio::net::{TcpListener, TcpSocket, TcpStream};
use compio::runtime::{Runtime, spawn, time};
use linerate_contract::program::{self, Refusal, emit};
use linerate_contract::{BACKLOG, Describe, Done, Event, Role, Spec};
use linerate_sdk::server::{ACCEPT_RETRY, ECHO_BUFFER};
use linerate_sdk::{missing, unsupported};
use std::io;

/// signal(7).
const SIGTERM: i32 = 15;

fn main() {
    program::run("compio-system", &[], describe, run);
}

fn describe(_: &Spec) -> Describe {
    linerate_sdk::describe("compio", env!("COMPIO_VERSION"), &[Role::Server], &["tcp"], &["crr", "rr"])
}

fn run(spec: &Spec) -> Result<Option<Done>, Refusal> {
    match (spec.role, spec.layer.as_str(), spec.workload.as_str()) {
        (Role::Server, "tcp", "rr" | "crr") if spec.threads == 1 => serve(spec).map(|()| None),
        _ => Err(unsupported(spec)),
    }
}

fn serve(spec: &Spec) -> Result<(), Refusal> {
    let address = spec.listen.ok_or_else(|| missing("listen"))?;
    let outcome: io::Result<()> = Runtime::new()?.block_on(async {
        let socket = if address.is_ipv4() { TcpSocket::new_v4().await? } else { TcpSocket::new_v6().await? };
        socket.set_reuseaddr(true)?;
        socket.bind(address).await?;
        let listener = socket.listen(BACKLOG.into()).await?;
        emit(&Event::Ready { address: listener.local_addr()? });
        spawn(accept(listener)).detach();
        compio::signal::unix::signal(SIGTERM).await
    });
    outcome.map_err(Refusal::Failed)
}

async fn accept(listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // It fails on a connection that has gone, which the task sees as well.
                let _ = stream.set_nodelay(true);
                // A peer that vanishes ends its own connection only.
                spawn(async { drop(echo(stream).await) }).detach();
            }
            Err(_) => time::sleep(ACCEPT_RETRY).await,
        }
    }
}

/// Sends back what arrives, until the peer closes.
async fn echo(mut stream: TcpStream) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(ECHO_BUFFER);
    loop {
        let BufResult(outcome, filled) = stream.read(buffer).await;
        let n = outcome?;
        if n == 0 {
            return Ok(());
        }
        let BufResult(outcome, sent) = stream.write_all(filled.slice(..n)).await;
        outcome?;
        buffer = sent.into_inner();
        buffer.clear();
    }
}
