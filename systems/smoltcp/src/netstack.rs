//! netstack-smoltcp as a system of linerate: smoltcp behind channels, on tokio, wired as its own example `forward` does it.

use futures::{SinkExt, StreamExt};
use linerate_netstack::{System, Task};
use netstack_smoltcp::StackBuilder;
use std::io;

const SYSTEM: System = System { name: "netstack-smoltcp", version: env!("NETSTACK_SMOLTCP_VERSION") };

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
    let builder = StackBuilder::default().enable_tcp(true).mtu(task.mtu.into());
    let (stack, runner, _, listener) = builder.build()?;
    let (Some(runner), Some(mut listener)) = (runner, listener) else {
        return Err(io::Error::other("the stack was built without TCP"));
    };
    let (mut to_tun, mut from_tun) = device.into_framed().split();
    let (mut to_stack, mut from_stack) = stack.split();
    tokio::spawn(runner);
    tokio::spawn(async move {
        while let Some(packet) = from_stack.next().await {
            if let Ok(packet) = packet {
                // A device that takes no packet loses it, as a link does.
                let _ = to_tun.send(packet).await;
            }
        }
    });
    tokio::spawn(async move {
        while let Some(packet) = from_tun.next().await {
            if let Ok(packet) = packet {
                // A packet that is none is dropped.
                let _ = to_stack.send(packet).await;
            }
        }
    });
    task.ready();
    while let Some((stream, _, at)) = listener.next().await {
        if at == task.listen {
            task.serve(stream);
        }
    }
    Err(io::Error::other("the stack has ended"))
}
