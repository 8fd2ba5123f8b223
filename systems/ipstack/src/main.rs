//! ipstack as a system of linerate: the stack gets the device, as in its own example `tun`.

use ipstack::{IpStack, IpStackConfig, IpStackStream, IpStackUdpStream, TcpConfig, TcpOptions};
use linerate_sdk::netstack::{Datagrams, System, Task, device};
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const SYSTEM: System = System { name: "ipstack", version: env!("STACK_VERSION"), options: &["config"] };
/// Headers of IPv4 and TCP, without options.
const HEADERS: u16 = 40;
/// Bytes in flight: as in the example; the crate's default is 16 KiB.
const MAX_UNACKED: u32 = 256 << 10;
/// The largest datagram.
const LARGEST_DATAGRAM: usize = 65_535;

fn main() {
    linerate_sdk::netstack::run(SYSTEM, serve);
}

async fn serve(task: Task) -> io::Result<()> {
    let mut tcp = TcpConfig::default();
    if task.option("config") != Some("defaults") {
        // Without it peers must assume 536 bytes (RFC 9293, 3.7.1).
        tcp.options = Some(vec![TcpOptions::MaximumSegmentSize(task.mtu - HEADERS)]);
        tcp.max_unacked_bytes = MAX_UNACKED;
    }
    let mut configuration = IpStackConfig::default();
    configuration.mtu(task.mtu).map_err(io::Error::other)?.with_tcp_config(tcp);
    let mut stack = IpStack::new(configuration, device::open(&task)?);
    task.ready();
    loop {
        match (stack.accept().await.map_err(io::Error::other)?, task.datagrams()) {
            (IpStackStream::Tcp(stream), None) if stream.peer_addr() == task.listen => task.serve(stream),
            (IpStackStream::Udp(flow), Some(datagrams)) if flow.peer_addr() == task.listen => {
                tokio::spawn(answer(flow, datagrams));
            }
            _ => {}
        }
    }
}

/// The stack has a stream for each peer. Each read returns one datagram; an idle stream ends.
async fn answer(mut flow: IpStackUdpStream, mut datagrams: Datagrams) {
    let (peer, mut buffer) = (flow.local_addr(), vec![0; LARGEST_DATAGRAM]);
    while let Ok(n @ 1..) = flow.read(&mut buffer).await {
        if let Some(answer) = datagrams.response(peer, &buffer[..n]) {
            // A datagram that the stack refuses is lost, as on any path.
            let _ = flow.write(&answer).await;
        }
    }
}
