//! A server: threads, each with its own listener (`SO_REUSEPORT`), epoll and buffer, that share nothing but
//! the assignment of connections ([`workers`]).
//!
//! A layer's [`Service`] handles connections; this file accepts, waits and closes. A new connection is read
//! at once, since its request has usually arrived: a connection with one request never touches epoll.

mod workers;

use crate::process::{Signals, emit};
use crate::refusal::{Doing, Refusal};
use crate::socket;

use linerate_contract::{Event, Spec};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::os::fd::{AsRawFd, OwnedFd};
use workers::ServerWorker;

/// Edges taken per wait.
const BATCH: usize = 256;
/// Connections accepted per wait, so that a flood of new ones does not starve the others.
const ACCEPTS: usize = 64;
/// The pause of a listener without a descriptor for a waiting connection.
const REST_MILLIS: u16 = 10;
/// The token of the wake-up descriptor in epoll, which no connection has.
const WAKE_UP: u64 = u64::MAX;

/// Events of every connection.
const INPUT: EpollFlags = EpollFlags::EPOLLIN.union(EpollFlags::EPOLLRDHUP);
/// The peer has closed at least its half.
const ENDED: EpollFlags = EpollFlags::EPOLLRDHUP.union(EpollFlags::EPOLLHUP).union(EpollFlags::EPOLLERR);

/// The next step of a connection after its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Wait for input.
    Read,
    /// Wait for room to send, and for input.
    Write,
    /// Another turn after the others: more can be moved at once.
    Again,
    Close,
}

/// A layer's part of a server, one for each thread.
pub trait Service: Clone + Send + Sized + 'static {
    /// The state of one connection besides its socket.
    type Connection: Default + Send;

    /// Prepares what all connections share.
    ///
    /// # Errors
    /// An invalid spec.
    fn new(spec: &Spec) -> Result<Self, Refusal>;

    /// Reads and answers as far as possible without waiting. The socket is watched for edges: it must be read
    /// until it is empty (`ended`: until its end, which has arrived), or written until it is full.
    fn ready(&mut self, socket: &OwnedFd, connection: &mut Self::Connection, ended: bool) -> Fate;
}

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// An invalid spec, or an address that cannot be bound.
pub fn run<S: Service>(spec: &Spec) -> Result<(), Refusal> {
    let mut address = spec.listen.ok_or_else(|| Refusal::BadSpec("\"listen\" is missing".into()))?;
    if spec.threads == 0 {
        return Err(Refusal::BadSpec("\"threads\" must be at least 1".into()));
    }
    let service = S::new(spec)?;
    let signals = Signals::claim()?;
    let mut loops = Vec::new();
    for worker in ServerWorker::all(spec.threads as usize)? {
        let (listener, bound) = socket::listener(address, spec.threads > 1)?;
        // The others listen at the port of the first one.
        address = bound;
        loops.push(ServerLoop::new(service.clone(), listener, worker)?);
    }
    for each in loops {
        std::thread::spawn(move || each.run());
    }
    emit(&Event::Ready { address });
    signals.wait();
    Ok(())
}

/// A thread's event loop. Connections are found by their descriptor, which the kernel keeps small.
struct ServerLoop<S: Service> {
    service: S,
    listener: OwnedFd,
    worker: ServerWorker,
    epoll: Epoll,
    connections: Vec<Option<Entry<S::Connection>>>,
}

struct Entry<C> {
    socket: OwnedFd,
    state: C,
    interest: EpollFlags,
}

impl<S: Service> ServerLoop<S> {
    fn new(service: S, listener: OwnedFd, worker: ServerWorker) -> Result<Self, Refusal> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing("epoll_create1")?;
        // Level-triggered: the next turn sees connections that this one did not accept.
        epoll
            .add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, listener.as_raw_fd() as u64))
            .doing("epoll_ctl")?;
        epoll.add(worker.wake_up(), EpollEvent::new(EpollFlags::EPOLLIN, WAKE_UP)).doing("epoll_ctl")?;
        Ok(Self { service, listener, worker, epoll, connections: Vec::new() })
    }

    fn run(mut self) {
        let listener = self.listener.as_raw_fd() as u64;
        let mut events = [EpollEvent::empty(); BATCH];
        loop {
            let ready = match self.epoll.wait(&mut events, EpollTimeout::NONE) {
                Ok(ready) => ready,
                Err(Errno::EINTR) => 0,
                Err(errno) => unreachable!("epoll_wait on its own descriptor and buffer: {errno}"),
            };
            for event in &events[..ready] {
                let place = event.data();
                if place == listener {
                    self.accept();
                } else if place == WAKE_UP {
                    self.worker.queued().into_iter().for_each(|socket| self.begin(socket));
                } else if let Some(entry) = self.connections[place as usize].take() {
                    self.turn(entry, event.events().intersects(ENDED));
                }
            }
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            let socket = match socket::accept(&self.listener) {
                Ok(socket) => socket,
                // The peer closed while it waited.
                Err(Errno::ECONNABORTED | Errno::EINTR) => continue,
                Err(Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::ENOBUFS) => {
                    // The connection stays in the queue; without a pause the loop would spin.
                    std::thread::sleep(std::time::Duration::from_millis(REST_MILLIS.into()));
                    return;
                }
                Err(_) => return,
            };
            if let Some(socket) = self.worker.assign(socket) {
                self.begin(socket);
            }
        }
    }

    fn begin(&mut self, socket: OwnedFd) {
        self.turn(Entry { socket, state: S::Connection::default(), interest: EpollFlags::empty() }, false);
    }

    /// Gives the connection a turn, and keeps it if it is not over.
    #[inline]
    fn turn(&mut self, mut entry: Entry<S::Connection>, ended: bool) {
        if !self.advance(&mut entry, ended) {
            self.worker.release();
            return;
        }
        let place = entry.socket.as_raw_fd() as usize;
        if place >= self.connections.len() {
            self.connections.resize_with(place + 1, || None);
        }
        self.connections[place] = Some(entry);
    }

    /// Gives the connection a turn; false if it is over.
    #[inline]
    fn advance(&mut self, entry: &mut Entry<S::Connection>, ended: bool) -> bool {
        let fate = self.service.ready(&entry.socket, &mut entry.state, ended);
        let interest = match fate {
            Fate::Close => return false,
            Fate::Read => INPUT,
            Fate::Write | Fate::Again => INPUT.union(EpollFlags::EPOLLOUT),
        };
        // A change of the registration makes the kernel report the state again.
        if entry.interest.contains(interest) && fate != Fate::Again {
            return true;
        }
        let mut event = EpollEvent::new(interest | EpollFlags::EPOLLET, entry.socket.as_raw_fd() as u64);
        let outcome = if entry.interest.is_empty() {
            self.epoll.add(&entry.socket, event)
        } else {
            self.epoll.modify(&entry.socket, &mut event)
        };
        entry.interest = interest;
        outcome.is_ok()
    }
}
