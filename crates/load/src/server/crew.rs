//! Who of several threads takes a new connection: the one that holds the fewest.
//!
//! `SO_REUSEPORT` spreads connections by a hash of their addresses. Of 32 that stay, one of two threads gets 20 or more every
//! few runs, and the other then waits for it: a server would be measured by its luck. So the thread that accepts a
//! connection gives it away where another holds fewer. This is the one thing that threads share, and it is touched
//! when a connection comes and when it goes, never between.

use crate::refusal::{Doing, Refusal};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A thread's place among all that serve at the same address.
pub(super) struct Member {
    crew: Arc<[Desk]>,
    me: usize,
}

/// What the others see of a thread. A cache line of its own, or counting would slow the neighbours.
#[repr(align(64))]
struct Desk {
    /// Connections that it has, and that wait for it.
    held: AtomicUsize,
    waiting: Mutex<Vec<OwnedFd>>,
    bell: EventFd,
}

impl Member {
    /// One for each of `threads` threads.
    ///
    /// # Errors
    /// No descriptor for an eventfd.
    pub(super) fn crew(threads: usize) -> Result<Vec<Self>, Refusal> {
        let desks = (0..threads).map(|_| Desk::new()).collect::<Result<Vec<_>, _>>()?;
        let crew: Arc<[Desk]> = desks.into();
        Ok((0..threads).map(|me| Self { crew: crew.clone(), me }).collect())
    }

    /// Readable when others have given this thread a connection.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.crew[self.me].bell.as_fd()
    }

    /// The connection is this thread's, or has been given to the one that holds the fewest.
    pub(super) fn seat(&self, socket: OwnedFd) -> Option<OwnedFd> {
        let held = |at: usize| self.crew[at].held.load(Ordering::Relaxed);
        let mut least = self.me;
        for at in 0..self.crew.len() {
            if held(at) < held(least) {
                least = at;
            }
        }
        let desk = &self.crew[least];
        desk.held.fetch_add(1, Ordering::Relaxed);
        if least == self.me {
            return Some(socket);
        }
        desk.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(socket);
        // It fails only where the bell rings already.
        let _ = desk.bell.write(1);
        None
    }

    /// What others have given since the last call.
    pub(super) fn given(&self) -> Vec<OwnedFd> {
        let desk = &self.crew[self.me];
        // Silent before the list is taken: what comes after that rings again.
        let _ = desk.bell.read();
        std::mem::take(&mut *desk.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A connection of this thread is over.
    pub(super) fn rise(&self) {
        self.crew[self.me].held.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Desk {
    fn new() -> Result<Self, Refusal> {
        let bell = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).doing("eventfd")?;
        Ok(Self { held: AtomicUsize::new(0), waiting: Mutex::new(Vec::new()), bell })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket() -> OwnedFd {
        std::net::UdpSocket::bind("127.0.0.1:0").unwrap().into()
    }

    #[test]
    fn whoever_accepts_all_of_them_each_thread_gets_its_share() {
        let crew = Member::crew(3).unwrap();
        let own = (0..30).filter_map(|_| crew[1].seat(socket())).count();
        assert_eq!([crew[0].given().len(), own, crew[2].given().len()], [10, 10, 10]);
        assert!(crew[0].given().is_empty());
    }

    #[test]
    fn connections_that_end_at_once_stay_where_they_were_accepted() {
        let crew = Member::crew(2).unwrap();
        for _ in 0..5 {
            assert!(crew[1].seat(socket()).is_some());
            crew[1].rise();
        }
        assert!(crew[0].given().is_empty());
    }
}
