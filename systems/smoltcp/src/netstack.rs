//! smoltcp as a system of linerate: the crate `netstack-smoltcp` on tokio, connected as in its example
//! `forward`.

use futures::{SinkExt, StreamExt};
use linerate_sdk::netstack::{Datagrams, System, Task, device};
use netstack_smoltcp::{StackBuilder, UdpSocket};
use std::io;

const SYSTEM: System = System {
    name: "netstack-smoltcp",
    version: env!("NETSTACK_SMOLTCP_VERSION"),
    options: &["stack_buffer", "tcp_buffer"],
};

fn main() {
    linerate_sdk::netstack::run(SYSTEM, serve);
}

async fn serve(task: Task) -> io::Result<()> {
    let datagrams = task.datagrams();
    let mut builder = StackBuilder::default().enable_tcp(datagrams.is_none()).enable_udp(datagrams.is_some());
    if let Some(packets) = number(&task, "stack_buffer")? {
        builder = builder.stack_buffer_size(packets);
    }
    if let Some(packets) = number(&task, "tcp_buffer")? {
        builder = builder.tcp_buffer_size(packets);
    }
    let (stack, runner, socket, listener) = builder.mtu(task.mtu.into()).build()?;
    device::join(device::open(&task)?, stack);
    task.ready();
    match (datagrams, socket, runner, listener) {
        (Some(datagrams), Some(socket), ..) => answer(&task, socket, datagrams).await,
        (None, _, Some(runner), Some(listener)) => {
            tokio::spawn(runner);
            task.serve_all(listener).await;
        }
        _ => return Err(io::Error::other("the stack was built without the requested layer")),
    }
    Err(io::Error::other("the stack has ended"))
}

/// An option of the program; `None` where it is not given.
fn number(task: &Task, name: &str) -> io::Result<Option<usize>> {
    let wrong = |e| io::Error::new(io::ErrorKind::InvalidInput, format!("option {name}: {e}"));
    task.option(name).map(|text| text.parse().map_err(wrong)).transpose()
}

async fn answer(task: &Task, socket: UdpSocket, mut datagrams: Datagrams) {
    let (mut from_peers, mut to_peers) = socket.split();
    while let Some((datagram, peer, at)) = from_peers.next().await {
        if at == task.listen
            && let Some(answer) = datagrams.response(peer, &datagram)
        {
            // A datagram that the stack refuses is lost, as on any path.
            let _ = to_peers.send((answer.into_owned(), at, peer)).await;
        }
    }
}
