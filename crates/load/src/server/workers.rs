//! Assigns each new connection to the worker with the fewest.
//!
//! `SO_REUSEPORT` spreads connections by a hash of their addresses. Of 32 connections that stay, one of two
//! threads gets 20 or more every few runs, and the server's result then depends on chance. So the thread that
//! accepts a connection passes it to a thread with fewer. Threads share nothing else, and this only when a
//! connection begins or ends.

use crate::refusal::{Doing, Refusal};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// One of the threads that serve the same address.
pub(super) struct ServerWorker {
    workers: Arc<[Assigned]>,
    me: usize,
}

/// The shared part of a thread: a cache line of its own, so that counting does not slow the neighbours.
#[repr(align(64))]
struct Assigned {
    /// Connections of the thread, queued ones included.
    count: AtomicUsize,
    queue: Mutex<Vec<OwnedFd>>,
    wake_up: EventFd,
}

impl ServerWorker {
    /// One for each of `threads` threads.
    ///
    /// # Errors
    /// No descriptor for an eventfd.
    pub(super) fn all(threads: usize) -> Result<Vec<Self>, Refusal> {
        let workers = (0..threads).map(|_| Assigned::new()).collect::<Result<Vec<_>, _>>()?;
        let workers: Arc<[Assigned]> = workers.into();
        Ok((0..threads).map(|me| Self { workers: workers.clone(), me }).collect())
    }

    /// Readable when others have queued a connection for this thread.
    pub(super) fn wake_up(&self) -> BorrowedFd<'_> {
        self.workers[self.me].wake_up.as_fd()
    }

    /// Returns the connection if it is this thread's; otherwise queues it for the thread with the fewest.
    pub(super) fn assign(&self, socket: OwnedFd) -> Option<OwnedFd> {
        let count = |at: usize| self.workers[at].count.load(Ordering::Relaxed);
        let mut least = self.me;
        for at in 0..self.workers.len() {
            if count(at) < count(least) {
                least = at;
            }
        }
        let target = &self.workers[least];
        target.count.fetch_add(1, Ordering::Relaxed);
        if least == self.me {
            return Some(socket);
        }
        target.queue.lock().unwrap_or_else(PoisonError::into_inner).push(socket);
        // It fails only if the counter is full, and then the thread wakes up anyway.
        let _ = target.wake_up.write(1);
        None
    }

    /// Connections that others have queued since the last call.
    pub(super) fn queued(&self) -> Vec<OwnedFd> {
        let own = &self.workers[self.me];
        // Reset before the queue is taken: later connections set it again.
        let _ = own.wake_up.read();
        std::mem::take(&mut *own.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A connection of this thread is over.
    pub(super) fn release(&self) {
        self.workers[self.me].count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Assigned {
    fn new() -> Result<Self, Refusal> {
        let wake_up = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).doing("eventfd")?;
        Ok(Self { count: AtomicUsize::new(0), queue: Mutex::new(Vec::new()), wake_up })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket() -> OwnedFd {
        std::net::UdpSocket::bind("127.0.0.1:0").unwrap().into()
    }

    #[test]
    fn each_thread_gets_its_share_when_one_accepts_all() {
        let workers = ServerWorker::all(3).unwrap();
        let own = (0..30).filter_map(|_| workers[1].assign(socket())).count();
        assert_eq!([workers[0].queued().len(), own, workers[2].queued().len()], [10, 10, 10]);
        assert!(workers[0].queued().is_empty());
    }

    #[test]
    fn connections_that_end_at_once_stay_where_they_were_accepted() {
        let workers = ServerWorker::all(2).unwrap();
        for _ in 0..5 {
            assert!(workers[1].assign(socket()).is_some());
            workers[1].release();
        }
        assert!(workers[0].queued().is_empty());
    }
}
