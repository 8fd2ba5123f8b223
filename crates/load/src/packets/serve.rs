//! The loop of a server that has many connections on one socket, on one thread: KCP and QUIC.

use super::Inbox;
use crate::clock;
use crate::refusal::{Doing, Refusal};
use crate::waiter::{Waiter, without_timer_slack};
use linerate_contract::Nanos;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// A wait without a timer ends after this, so that the loop is never late for long.
const LONGEST_WAIT: Nanos = Nanos(1_000_000_000);

/// A layer's part of such a server.
pub(crate) trait DatagramService {
    /// Takes a datagram that arrived at `now`.
    fn feed(&mut self, from: SocketAddr, bytes: &[u8], now: Nanos);

    /// Does what is due at `now`, for input and by timers; when something is due again.
    fn turn(&mut self, now: Nanos) -> Nanos;

    /// Sends what the turn has made. What the kernel does not take is lost, as on a path.
    fn send(&mut self, socket: &OwnedFd);
}

/// A bound socket, and what waits for its datagrams.
pub(crate) struct DatagramServer {
    socket: OwnedFd,
    epoll: Epoll,
    waiter: Waiter,
    inbox: Inbox,
}

impl DatagramServer {
    /// # Errors
    /// No descriptor is left.
    pub(crate) fn new(socket: OwnedFd, waiter: Waiter, inbox: Inbox) -> Result<Self, Refusal> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing("epoll_create1")?;
        // Level-triggered: unread input ends the next wait at once.
        epoll.add(&socket, EpollEvent::new(EpollFlags::EPOLLIN, 0)).doing("epoll_ctl")?;
        Ok(Self { socket, epoll, waiter, inbox })
    }

    /// Serves until the process ends.
    pub(crate) fn run(mut self, mut service: impl DatagramService) {
        without_timer_slack();
        let mut events = [EpollEvent::empty()];
        loop {
            let now = clock::now();
            // Errors are ICMP messages about clients that have exited; the socket remains usable.
            if self.inbox.receive(&self.socket, false).is_ok() {
                self.inbox.each(|from, bytes| service.feed(from, bytes, now));
            }
            let due = service.turn(now);
            service.send(&self.socket);
            let now = clock::now();
            self.waiter.until(&self.epoll, &mut events, now, due.min(now + LONGEST_WAIT));
        }
    }
}
