//! A listening TCP socket in an event loop.

#![allow(unsafe_code, reason = "accept4(2) returns a bare descriptor")]

use crate::refusal::{Doing, Refusal};
use crate::socket::{NONBLOCKING, socket_address};
use linerate_contract::{BACKLOG, Nanos};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{
    Backlog, SockType, SockaddrLike, SockaddrStorage, accept4, bind, getsockname, listen, setsockopt, socket,
    sockopt,
};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The interval of attempts to accept, while no descriptor is left and nothing else happens.
const RETRY_MILLIS: u16 = 10;

/// A listening socket. While no descriptor is left, its connections wait in the kernel and it is not watched:
/// a pending connection that cannot be accepted would end every wait at once.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    full: bool,
}

impl Listener {
    /// The listener's token in epoll. Descriptors, and what is derived from them, are smaller.
    pub const TOKEN: u64 = u64::MAX - 2;

    /// A listening socket at `address`, and its address (port 0: the kernel's choice).
    ///
    /// # Errors
    /// The address is in use or not of this host.
    pub fn bind(address: SocketAddr, shared: bool) -> Result<(Self, SocketAddr), Refusal> {
        let storage = SockaddrStorage::from(address);
        let family = storage.family().expect("an IP address has a family");
        let open = || {
            let fd = socket(family, SockType::Stream, NONBLOCKING, None)?;
            setsockopt(&fd, sockopt::ReuseAddr, &true)?;
            if shared {
                setsockopt(&fd, sockopt::ReusePort, &true)?;
            }
            // Accepted connections inherit it, at no cost.
            setsockopt(&fd, sockopt::TcpNoDelay, &true)?;
            bind(fd.as_raw_fd(), &storage)?;
            listen(&fd, Backlog::new(BACKLOG)?)?;
            let bound = getsockname::<SockaddrStorage>(fd.as_raw_fd())?;
            Ok((Self { socket: fd, full: false }, socket_address(&bound)))
        };
        open().doing(&format!("listening at {address}"))
    }

    /// Watches it, level-triggered: the next turn sees connections that this one did not accept.
    ///
    /// # Errors
    /// No memory for another registration.
    pub fn watch(&self, epoll: &Epoll) -> Result<(), Refusal> {
        epoll.add(&self.socket, EpollEvent::new(EpollFlags::EPOLLIN, Self::TOKEN)).doing("epoll_ctl")
    }

    /// No descriptor is left: call [`Self::accept`] after every wait, and wait no longer than
    /// [`Self::timeout`].
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// How long an event loop waits that has nothing else to do.
    pub fn timeout(&self) -> EpollTimeout {
        if self.full { RETRY_MILLIS.into() } else { EpollTimeout::NONE }
    }

    /// When to try again, for a loop with a time of its own.
    pub fn retry(&self) -> Option<Nanos> {
        self.full.then_some(Nanos(u64::from(RETRY_MILLIS) * 1_000_000))
    }

    /// The next pending connection.
    #[inline]
    pub fn accept(&mut self, epoll: &Epoll) -> Option<OwnedFd> {
        loop {
            match accept4(self.socket.as_raw_fd(), NONBLOCKING) {
                // SAFETY: accept4 has just created this descriptor; nothing else owns or closes it.
                Ok(fd) => return Some(unsafe { OwnedFd::from_raw_fd(fd) }),
                // The peer closed while it waited.
                Err(Errno::ECONNABORTED | Errno::EINTR) => {}
                Err(Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::ENOBUFS) => {
                    self.pause(epoll);
                    return None;
                }
                Err(_) => {
                    self.set_full(epoll, false);
                    return None;
                }
            }
        }
    }

    /// No descriptor is left for what a connection needs besides its own.
    #[cold]
    pub fn pause(&mut self, epoll: &Epoll) {
        self.set_full(epoll, true);
    }

    fn set_full(&mut self, epoll: &Epoll, full: bool) {
        if self.full == full {
            return;
        }
        self.full = full;
        let interest = if full { EpollFlags::empty() } else { EpollFlags::EPOLLIN };
        if let Err(errno) = epoll.modify(&self.socket, &mut EpollEvent::new(interest, Self::TOKEN)) {
            unreachable!("a registered descriptor can be registered anew: {errno}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::epoll::EpollCreateFlags;

    #[test]
    fn a_listener_returns_its_port_and_accepts() {
        let (mut listener, address) = Listener::bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let epoll = Epoll::new(EpollCreateFlags::empty()).unwrap();
        listener.watch(&epoll).unwrap();
        assert_ne!(address.port(), 0);
        assert!(listener.accept(&epoll).is_none());
        let _client = std::net::TcpStream::connect(address).unwrap();
        listener.accept(&epoll).unwrap();
    }

    #[test]
    fn a_paused_listener_is_not_watched_until_nothing_waits() {
        let (mut listener, address) = Listener::bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let epoll = Epoll::new(EpollCreateFlags::empty()).unwrap();
        listener.watch(&epoll).unwrap();
        let ready = || epoll.wait(&mut [EpollEvent::empty()], EpollTimeout::ZERO).unwrap();
        let _client = std::net::TcpStream::connect(address).unwrap();
        assert_eq!(ready(), 1);
        listener.pause(&epoll);
        assert_eq!((ready(), listener.is_full()), (0, true));
        listener.accept(&epoll).unwrap();
        assert!(listener.accept(&epoll).is_none());
        assert!(!listener.is_full());
        let _second = std::net::TcpStream::connect(address).unwrap();
        assert_eq!(ready(), 1);
    }
}
