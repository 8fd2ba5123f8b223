//! Connections before the window.

use super::{Engine, Workload};
use crate::clock;
use crate::layer::{Flow, Layer};
use crate::socket::connect_all;
use linerate_contract::Nanos;
use nix::poll::{PollFd, PollFlags, poll};
use std::os::fd::AsFd;

impl<L: Layer, W: Workload<L>> Engine<L, W> {
    /// Persistent connections are established before the first operation (the contract's `connections`),
    /// including handshakes. One that fails is opened again by its first operation, which then fails with the
    /// right kind. With `options.patience_ms` one that is not there by then is opened again by its first
    /// operation, too: a full queue of the server drops it, and the kernel tries again only after a second.
    pub(super) fn connect(&mut self) {
        let deadline = clock::now() + self.context.meter.timeout();
        for slot in &mut self.slots {
            slot.connection = self.context.layer.open().ok();
        }
        let established = connect_all(
            self.slots.iter().filter_map(|slot| slot.connection.as_ref()),
            self.context.meter.connects_within(),
        );
        let opened = self.slots.iter_mut().filter(|slot| slot.connection.is_some());
        opened.zip(established).filter(|(_, result)| result.is_err()).for_each(|(slot, _)| slot.close());
        for slot in &mut self.slots {
            if let Some(connection) = &mut slot.connection
                && !establish(&mut self.context.layer, connection, deadline)
            {
                slot.close();
            }
        }
    }
}

/// Establishes a connection before the window; false if that fails. Waits for input only: the messages of a
/// handshake fit any send buffer.
fn establish<L: Layer>(layer: &mut L, connection: &mut L::Connection, deadline: Nanos) -> bool {
    loop {
        match layer.establish(connection) {
            Ok(Flow::Done) => return true,
            Ok(Flow::Blocked) => {}
            Err(_) => return false,
        }
        let now = clock::now();
        if now >= deadline {
            return false;
        }
        let until = deadline.min(layer.due(connection));
        let left = until.since(now).0.div_ceil(1_000_000).min(60_000) as u16;
        // After an interruption the handshake simply continues.
        let _ = poll(&mut [PollFd::new(connection.as_fd(), PollFlags::POLLIN)], left);
    }
}
