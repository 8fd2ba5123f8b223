//! ipstack as a system of linerate: the stack takes the device as it is, as in its own example `tun`.

use ipstack::{IpStack, IpStackConfig, IpStackStream, TcpConfig, TcpOptions};
use linerate_netstack::{System, Task};
use std::io;

const SYSTEM: System = System { name: "ipstack", version: env!("STACK_VERSION") };
/// Of IPv4 and TCP, without options.
const HEADERS: u16 = 40;

fn main() {
    linerate_netstack::run(SYSTEM, serve);
}

async fn serve(task: Task) -> io::Result<()> {
    let mut configuration = tun::Configuration::default();
    configuration.tun_name(&task.tun).mtu(task.mtu);
    // The lab has set the device up.
    configuration.platform_config(|platform| {
        platform.ensure_root_privileges(false);
    });
    let device = tun::create_as_async(&configuration).map_err(io::Error::other)?;
    let mut tcp = TcpConfig::default();
    // Without it peers must assume 536 bytes (RFC 9293, 3.7.1).
    tcp.options = Some(vec![TcpOptions::MaximumSegmentSize(task.mtu - HEADERS)]);
    let mut configuration = IpStackConfig::default();
    configuration.mtu(task.mtu).map_err(io::Error::other)?.with_tcp_config(tcp);
    let mut stack = IpStack::new(configuration, device);
    task.ready();
    loop {
        if let IpStackStream::Tcp(stream) = stack.accept().await.map_err(io::Error::other)?
            && stream.peer_addr() == task.listen
        {
            task.serve(stream);
        }
    }
}
