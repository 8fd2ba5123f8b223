//! Waits for any of a thread's sockets, or until a flush is due.

use super::SPIN;
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
        Ok(Self { epoll, waiter: Waiter::spinning(spec, SPIN)? })
    }

    /// Waits for input on any socket, or until `deadline`. A signal ends it early: the caller checks again.
    pub(super) fn until(&mut self, now: Nanos, deadline: Nanos) {
        self.waiter.until(&self.epoll, &mut [EpollEvent::empty()], now, deadline);
    }
}
