//! The TUN device by the crate `tun`, as the examples of stacks on tokio have it.

use crate::Task;
use futures::{Sink, SinkExt, Stream, StreamExt};
use std::io;
use tun::AsyncDevice;

/// The task's device, which the lab has set up.
///
/// # Errors
/// A device that is not there, or refuses.
pub fn open(task: &Task) -> io::Result<AsyncDevice> {
    let mut configuration = tun::Configuration::default();
    configuration.tun_name(&task.tun).mtu(task.mtu);
    configuration.platform_config(|platform| {
        platform.ensure_root_privileges(false);
    });
    tun::create_as_async(&configuration).map_err(io::Error::other)
}

/// Moves packets between device and stack, a task each way.
pub fn join<S>(device: AsyncDevice, stack: S)
where
    S: Stream<Item = io::Result<Vec<u8>>> + Sink<Vec<u8>> + Send + 'static,
    S::Error: Send,
{
    let (mut to_tun, mut from_tun) = device.into_framed().split();
    let (mut to_stack, mut from_stack) = stack.split();
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
}
