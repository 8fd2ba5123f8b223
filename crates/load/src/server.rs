//! A server: threads, each with its own listener (`SO_REUSEPORT`), epoll and buffer, that share nothing but the [`crew`].
//!
//! The connection is a layer's [`Service`]; this file accepts, waits and closes. A new connection is read at once, since
//! its request is usually there already: one that is answered and closed then never touches epoll.

mod crew;

use crate::process::{Signals, emit};
use crate::refusal::{Doing, Refusal};
use crate::socket;
use crew::Member;
use linerate_contract::{Event, Spec};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::os::fd::{AsRawFd, OwnedFd};

/// Edges taken per wait.
const BATCH: usize = 256;
/// Connections accepted per wait, so that a flood of new ones does not starve those that stand.
const ACCEPTS: usize = 64;
/// How long a listener rests when there is no descriptor for a waiting connection.
const REST_MILLIS: u16 = 10;
/// The place of the crew's bell in epoll, which no descriptor has.
const BELL: u64 = u64::MAX;

/// What every connection is watched for.
const INPUT: EpollFlags = EpollFlags::EPOLLIN.union(EpollFlags::EPOLLRDHUP);
/// The peer has closed at least its half.
const ENDED: EpollFlags = EpollFlags::EPOLLRDHUP.union(EpollFlags::EPOLLHUP).union(EpollFlags::EPOLLERR);

/// What becomes of a connection after it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Wait for input.
    Read,
    /// Wait for room to send, and for input.
    Write,
    /// Look again after the others had their turn: there may be more to move at once.
    Again,
    Close,
}

/// A layer's end of a server, one for each thread.
pub trait Service: Clone + Send + Sized + 'static {
    /// The state of one connection besides its socket.
    type Connection: Default + Send;

    /// Prepares what all connections share.
    ///
    /// # Errors
    /// What the spec lacks, as a sentence.
    fn new(spec: &Spec) -> Result<Self, Refusal>;

    /// Reads and answers as far as possible without waiting. The socket is watched for edges: it must be read until it is
    /// empty (`ended`: until its end, which has arrived), or written until it is full.
    fn ready(&mut self, socket: &OwnedFd, connection: &mut Self::Connection, ended: bool) -> Fate;
}

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// A spec that lacks something, or an address that cannot be had.
pub fn run<S: Service>(spec: &Spec) -> Result<(), Refusal> {
    let mut address = spec.listen.ok_or_else(|| Refusal::BadSpec("\"listen\" is missing".into()))?;
    if spec.threads == 0 {
        return Err(Refusal::BadSpec("\"threads\" must be at least 1".into()));
    }
    let service = S::new(spec)?;
    let signals = Signals::claim()?;
    let mut loops = Vec::new();
    for member in Member::crew(spec.threads as usize)? {
        let (listener, bound) = socket::listener(address, spec.threads > 1)?;
        // The others listen at the port that the first one got.
        address = bound;
        loops.push(Loop::new(service.clone(), listener, member)?);
    }
    for each in loops {
        std::thread::spawn(move || each.run());
    }
    emit(&Event::Ready { address });
    signals.wait();
    Ok(())
}

/// A thread's event loop. Connections are found by their descriptor, which the kernel keeps small.
struct Loop<S: Service> {
    service: S,
    listener: OwnedFd,
    member: Member,
    epoll: Epoll,
    connections: Vec<Option<Entry<S::Connection>>>,
}

struct Entry<C> {
    socket: OwnedFd,
    state: C,
    interest: EpollFlags,
}

impl<S: Service> Loop<S> {
    fn new(service: S, listener: OwnedFd, member: Member) -> Result<Self, Refusal> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing("epoll_create1")?;
        // By level: what one turn did not accept, the next one sees again.
        epoll
            .add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, listener.as_raw_fd() as u64))
            .doing("epoll_ctl")?;
        epoll.add(member.bell(), EpollEvent::new(EpollFlags::EPOLLIN, BELL)).doing("epoll_ctl")?;
        Ok(Self { service, listener, member, epoll, connections: Vec::new() })
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
                } else if place == BELL {
                    self.member.given().into_iter().for_each(|socket| self.begin(socket));
                } else if let Some(entry) = self.connections[place as usize].take() {
                    self.look(entry, event.events().intersects(ENDED));
                }
            }
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            let socket = match socket::accept(&self.listener) {
                Ok(socket) => socket,
                // The peer gave up while it waited.
                Err(Errno::ECONNABORTED | Errno::EINTR) => continue,
                Err(Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::ENOBUFS) => {
                    // It stays in the queue; without a rest the loop would ask for it without end.
                    std::thread::sleep(std::time::Duration::from_millis(REST_MILLIS.into()));
                    return;
                }
                Err(_) => return,
            };
            if let Some(socket) = self.member.seat(socket) {
                self.begin(socket);
            }
        }
    }

    fn begin(&mut self, socket: OwnedFd) {
        self.look(Entry { socket, state: S::Connection::default(), interest: EpollFlags::empty() }, false);
    }

    /// Lets the service work, and keeps the connection if it is not over.
    #[inline]
    fn look(&mut self, mut entry: Entry<S::Connection>, ended: bool) {
        if !self.advance(&mut entry, ended) {
            self.member.rise();
            return;
        }
        let place = entry.socket.as_raw_fd() as usize;
        if place >= self.connections.len() {
            self.connections.resize_with(place + 1, || None);
        }
        self.connections[place] = Some(entry);
    }

    /// Lets the service work; false if the connection is over.
    #[inline]
    fn advance(&mut self, entry: &mut Entry<S::Connection>, ended: bool) -> bool {
        let fate = self.service.ready(&entry.socket, &mut entry.state, ended);
        let interest = match fate {
            Fate::Close => return false,
            Fate::Read => INPUT,
            Fate::Write | Fate::Again => INPUT.union(EpollFlags::EPOLLOUT),
        };
        // Registering anew makes the kernel look again.
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
