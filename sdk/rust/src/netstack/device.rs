//! The TUN device by the crate `tun`, as in the examples of stacks on tokio.

use crate::netstack::Task;
use futures::{Sink, SinkExt, Stream, StreamExt};
use std::io;
use tun::AsyncDevice;

/// Opens the task's device, which the lab has configured.
///
/// # Errors
/// The device does not exist or cannot be opened.
pub fn open(task: &Task) -> io::Result<AsyncDevice> {
    let mut configuration = tun::Configuration::default();
    configuration.tun_name(&task.tun).mtu(task.mtu);
    configuration.platform_config(|platform| {
        platform.ensure_root_privileges(false);
    });
    tun::create_as_async(&configuration).map_err(io::Error::other)
}

/// Moves packets between device and stack, with one task per direction.
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
                // A packet that the device refuses is lost, as on a link.
                let _ = to_tun.send(packet).await;
            }
        }
    });
    tokio::spawn(async move {
        while let Some(packet) = from_tun.next().await {
            if let Ok(packet) = packet {
                // An invalid packet is dropped.
                let _ = to_stack.send(packet).await;
            }
        }
    });
}
