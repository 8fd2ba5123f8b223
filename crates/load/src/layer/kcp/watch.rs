//! Waiting for any of a thread's sockets, or until a flush is due.

use crate::pause::Pause;
use crate::refusal::{Doing, Refusal};
use linerate_contract::{Nanos, Spec};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use std::os::fd::OwnedFd;

/// The sockets that are waited for, by level: what was left in one of them ends the next wait at once.
#[derive(Debug)]
pub(super) struct Watch {
    epoll: Epoll,
    pause: Pause,
}

impl Watch {
    pub(super) fn of<'a>(
        spec: &Spec,
        sockets: impl IntoIterator<Item = &'a OwnedFd>,
    ) -> Result<Self, Refusal> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing("epoll_create1")?;
        for socket in sockets {
            epoll.add(socket, EpollEvent::new(EpollFlags::EPOLLIN, 0)).doing("epoll_ctl")?;
        }
        Ok(Self { epoll, pause: Pause::of(spec)? })
    }

    /// Until something comes on any socket, or the deadline. Ended early by a signal: the caller looks again.
    pub(super) fn until(&mut self, now: Nanos, deadline: Nanos) {
        self.pause.eagerly_until(&self.epoll, &mut [EpollEvent::empty()], now, deadline);
    }

    /// A conversation that is over is no longer waited for.
    pub(super) fn forget(&self, socket: &OwnedFd) {
        // It was put there, and nothing else fails.
        let _ = self.epoll.delete(socket);
    }
}
