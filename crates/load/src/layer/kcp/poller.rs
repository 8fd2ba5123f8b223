//! Waits for any of a thread's sockets, or until a flush is due.

use crate::refusal::{Doing, Refusal};
use crate::waiter::Waiter;
use linerate_contract::{Nanos, Spec};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use std::os::fd::OwnedFd;

/// A thread's sockets, level-triggered: unread input in one of them ends the next wait at once.
#[derive(Debug)]
pub(super) struct Poller {
    epoll: Epoll,
    waiter: Waiter,
    /// Spins before it blocks (docs/decisions, 0013), unless `options.busy` is `no`.
    spins: bool,
}

impl Poller {
    pub(super) fn of<'a>(
        spec: &Spec,
        sockets: impl IntoIterator<Item = &'a OwnedFd>,
    ) -> Result<Self, Refusal> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing("epoll_create1")?;
        for socket in sockets {
            epoll.add(socket, EpollEvent::new(EpollFlags::EPOLLIN, 0)).doing("epoll_ctl")?;
        }
        let spins = spec.options.get("busy").is_none_or(|busy| busy != "no");
        Ok(Self { epoll, waiter: Waiter::of(spec)?, spins })
    }

    /// Waits for input on any socket, or until `deadline`. A signal ends it early: the caller checks again.
    pub(super) fn until(&mut self, now: Nanos, deadline: Nanos) {
        let events = &mut [EpollEvent::empty()];
        if self.spins {
            self.waiter.spin_then_until(&self.epoll, events, now, deadline);
        } else {
            self.waiter.until(&self.epoll, events, now, deadline);
        }
    }

    /// Removes the socket of a conversation that is over.
    pub(super) fn remove(&self, socket: &OwnedFd) {
        // The socket is registered; no other error is possible.
        let _ = self.epoll.delete(socket);
    }
}
