//! lwIP as a system of linerate: the crate `lwip` on tokio, connected as in its README.

use futures::StreamExt;
use linerate_sdk::netstack::{Datagrams, System, Task, device};
use lwip::{NetStack, UdpSocket};
use std::io;

const SYSTEM: System = System { name: "lwip", version: env!("STACK_VERSION"), options: &[] };

fn main() {
    linerate_sdk::netstack::run(SYSTEM, serve);
}

async fn serve(task: Task) -> io::Result<()> {
    let (stack, listener, socket) = NetStack::new().map_err(io::Error::other)?;
    device::join(device::open(&task)?, stack);
    task.ready();
    match task.datagrams() {
        None => task.serve_all(listener).await,
        Some(datagrams) => answer(&task, socket, datagrams).await,
    }
    Err(io::Error::other("the stack has ended"))
}

async fn answer(task: &Task, socket: Box<UdpSocket>, mut datagrams: Datagrams) {
    let (to_peers, mut from_peers) = socket.split();
    while let Some((datagram, peer, at)) = from_peers.next().await {
        if at == task.listen
            && let Some(answer) = datagrams.response(peer, &datagram)
        {
            // A datagram that the stack refuses is lost, as on any path.
            let _ = to_peers.send_to(&answer, &at, &peer);
        }
    }
}
