//! The output of KCP conversations.

use crate::packets::SendQueue;
use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

/// The output of one conversation. All outputs of a queue are on one thread.
#[derive(Debug, Clone)]
pub(super) struct Output {
    pub(super) queue: Rc<RefCell<SendQueue>>,
    pub(super) to: Option<SocketAddr>,
}

impl io::Write for Output {
    /// Queues one datagram.
    fn write(&mut self, datagram: &[u8]) -> io::Result<usize> {
        self.queue.borrow_mut().push(datagram, self.to);
        Ok(datagram.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
