//! A server: threads, each with its own listener (`SO_REUSEPORT`), epoll and buffer, that share nothing but
//! the assignment of connections ([`workers`]).
//!
//! A layer's [`Service`] handles connections; this file accepts, waits and closes. A new connection is read
//! at once, since its request has usually arrived: a connection with one request never touches epoll.

mod workers;

use crate::cause::print_peers;
use crate::held::{Surplus, give_back};
use crate::listener::Listener;
use crate::process::{Signals, spawn};
use crate::refusal::{Doing, Refusal};
use crate::waiter::Waiter;
use linerate_contract::{Nanos, Spec};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;
use workers::ServerWorker;

/// Edges taken per wait.
const BATCH: usize = 256;
/// Connections accepted per wait, so that a flood of new ones does not starve the others.
const ACCEPTS: usize = 64;
/// How often silent connections are looked for.
const TICK: Duration = Duration::from_secs(10);
/// A connection without progress for this many ticks is closed: its peer has vanished, or only uses a
/// descriptor. Five minutes; nginx closes idle connections after 75 s.
const SILENT: u32 = 30;
/// Silent ticks while no descriptor is left for a new connection.
const SILENT_IF_FULL: u32 = 2;
/// Tokens in epoll that no connection has: the wake-up descriptor and the timer.
const WAKE_UP: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;

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

    /// Whether the last turns were of use: a peer that only pings keeps a descriptor for nothing.
    #[inline]
    fn has_progress(_connection: &mut Self::Connection) -> bool {
        true
    }
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
    let waiter = Waiter::from_spec(spec)?;
    let signals = Signals::claim()?;
    let mut loops = Vec::new();
    for worker in ServerWorker::all(spec.threads as usize)? {
        let (listener, bound) = Listener::bind(address, spec.threads > 1)?;
        // The others listen at the port of the first one.
        address = bound;
        loops.push(ServerLoop::new(service.clone(), waiter.clone(), listener, worker)?);
    }
    for each in loops {
        spawn(move || each.run())?;
    }
    signals.serve(address);
    print_peers();
    Ok(())
}

/// A thread's event loop. Connections are found by their descriptor, which the kernel keeps small.
struct ServerLoop<S: Service> {
    service: S,
    waiter: Waiter,
    listener: Listener,
    worker: ServerWorker,
    epoll: Epoll,
    connections: Vec<Option<Entry<S::Connection>>>,
    timer: TimerFd,
    /// Ticks of the timer so far.
    tick: u32,
    /// Connections now.
    open: usize,
    surplus: Surplus,
}

struct Entry<C> {
    socket: OwnedFd,
    state: C,
    interest: EpollFlags,
    /// The tick of the last progress.
    active: u32,
}

impl<S: Service> ServerLoop<S> {
    fn new(service: S, waiter: Waiter, listener: Listener, worker: ServerWorker) -> Result<Self, Refusal> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing("epoll_create1")?;
        listener.watch(&epoll)?;
        epoll.add(worker.wake_up(), EpollEvent::new(EpollFlags::EPOLLIN, WAKE_UP)).doing("epoll_ctl")?;
        // A timer and not a time limit of the waits: a busy loop does not read the clock.
        let timer =
            TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)
                .doing("timerfd_create")?;
        timer.set(Expiration::Interval(TICK.into()), TimerSetTimeFlags::empty()).doing("timerfd_settime")?;
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, TIMER)).doing("epoll_ctl")?;
        let connections = Vec::new();
        let surplus = Surplus::default();
        Ok(Self { service, waiter, listener, worker, epoll, connections, timer, tick: 0, open: 0, surplus })
    }

    fn run(mut self) {
        let mut events = [EpollEvent::empty(); BATCH];
        loop {
            let timeout = self.listener.retry().unwrap_or(Nanos(u64::MAX));
            let ready = self.waiter.within(&self.epoll, &mut events, timeout);
            for event in &events[..ready] {
                let place = event.data();
                if place == Listener::TOKEN {
                    self.accept();
                } else if place == WAKE_UP {
                    self.worker.queued().into_iter().for_each(|socket| self.begin(socket));
                } else if place == TIMER {
                    // Fails only if it is read before it has expired.
                    let _ = self.timer.wait();
                    self.tick();
                } else {
                    self.turn(place as usize, event.events().intersects(ENDED));
                }
            }
            if self.listener.is_full() {
                self.accept();
            }
        }
    }

    fn accept(&mut self) {
        let was_full = self.listener.is_full();
        for _ in 0..ACCEPTS {
            let Some(socket) = self.listener.accept(&self.epoll) else { break };
            if let Some(socket) = self.worker.assign(socket) {
                self.begin(socket);
            }
        }
        if self.listener.is_full() && !was_full {
            self.close_silent(SILENT_IF_FULL);
        }
    }

    /// The timer has expired.
    fn tick(&mut self) {
        self.tick = self.tick.wrapping_add(1);
        self.close_silent(if self.listener.is_full() { SILENT_IF_FULL } else { SILENT });
    }

    /// Closes the connections without progress for `ticks` ticks.
    #[cold]
    fn close_silent(&mut self, ticks: u32) {
        let now = self.tick;
        for at in 0..self.connections.len() {
            if self.connections[at].take_if(|entry| now.wrapping_sub(entry.active) >= ticks).is_some() {
                self.release();
            }
        }
    }

    /// A connection is over.
    #[inline]
    fn release(&mut self) {
        self.worker.release();
        self.open -= 1;
        if self.surplus.is_due(self.open) {
            give_back();
        }
    }

    fn begin(&mut self, socket: OwnedFd) {
        self.open += 1;
        let place = socket.as_raw_fd() as usize;
        if place >= self.connections.len() {
            self.connections.resize_with(place + 1, || None);
        }
        let (state, interest) = (S::Connection::default(), EpollFlags::empty());
        self.connections[place] = Some(Entry { socket, state, interest, active: self.tick });
        self.turn(place, false);
    }

    /// Gives the connection a turn, and closes it if it is over.
    #[inline]
    fn turn(&mut self, place: usize, ended: bool) {
        let Some(entry) = &mut self.connections[place] else { return };
        if !entry.advance(&mut self.service, &self.epoll, ended) {
            self.connections[place] = None;
            self.release();
        } else if S::has_progress(&mut entry.state) {
            entry.active = self.tick;
        }
    }
}

impl<C> Entry<C> {
    /// Gives the connection a turn; false if it is over.
    #[inline]
    fn advance<S: Service<Connection = C>>(&mut self, service: &mut S, epoll: &Epoll, ended: bool) -> bool {
        let fate = service.ready(&self.socket, &mut self.state, ended);
        let interest = match fate {
            Fate::Close => return false,
            Fate::Read => INPUT,
            Fate::Write | Fate::Again => INPUT.union(EpollFlags::EPOLLOUT),
        };
        // A change of the registration makes the kernel report the state again.
        if self.interest.contains(interest) && fate != Fate::Again {
            return true;
        }
        let mut event = EpollEvent::new(interest | EpollFlags::EPOLLET, self.socket.as_raw_fd() as u64);
        let outcome = if self.interest.is_empty() {
            epoll.add(&self.socket, event)
        } else {
            epoll.modify(&self.socket, &mut event)
        };
        self.interest = interest;
        outcome.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::echo::EchoService;
    use crate::layer::h2::H2Service;
    use crate::layer::wire::plain::PlainWires;
    use linerate_contract::{Layer, Role, Workload};
    use std::io::{Read, Write};
    use std::net::TcpStream;

    /// A server that the test turns by hand.
    fn serving<S: Service>(layer: Layer) -> (ServerLoop<S>, std::net::SocketAddr) {
        let spec = Spec::new(Role::Server, layer, Workload::Rr);
        let (service, waiter) = (S::new(&spec).unwrap(), Waiter::from_spec(&spec).unwrap());
        let (listener, address) = Listener::bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let worker = ServerWorker::all(1).unwrap().remove(0);
        (ServerLoop::new(service, waiter, listener, worker).unwrap(), address)
    }

    impl<S: Service> ServerLoop<S> {
        /// Sends to the server, and gives the connection its turn.
        fn takes(&mut self, from: &mut TcpStream, bytes: &[u8]) {
            from.write_all(bytes).unwrap();
            let of_peer = |entry: &Entry<_>| {
                let peer = nix::sys::socket::getpeername::<nix::sys::socket::SockaddrStorage>;
                crate::socket::socket_address(&peer(entry.socket.as_raw_fd()).unwrap())
                    == from.local_addr().unwrap()
            };
            let place = self.connections.iter().position(|place| place.as_ref().is_some_and(of_peer));
            self.turn(place.expect("it is open"), false);
        }
    }

    #[test]
    fn silent_connections_are_closed_and_active_ones_are_not() {
        let (mut server, address) = serving::<EchoService>(Layer::Tcp);
        let mut silent = TcpStream::connect(address).unwrap();
        let mut active = TcpStream::connect(address).unwrap();
        server.accept();
        for _ in 0..SILENT {
            server.tick();
            server.takes(&mut active, b"x");
            active.read_exact(&mut [0]).unwrap();
        }
        assert_eq!(silent.read(&mut [0]).unwrap(), 0, "closed");
        assert_eq!(server.connections.iter().flatten().count(), 1);
    }

    #[test]
    fn a_client_of_http_2_that_only_pings_is_closed_and_one_with_requests_is_not() {
        const PING: [u8; 17] = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        let (mut server, address) = serving::<H2Service<PlainWires>>(Layer::H2c);
        let mut clients = [(); 2].map(|()| TcpStream::connect(address).unwrap());
        server.accept();
        let opening = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat();
        for client in &mut clients {
            server.takes(client, &opening);
        }
        for tick in 1..=SILENT {
            server.tick();
            // GET, http and / of the static table.
            let stream = (2 * tick - 1) as u8;
            let request = [0, 0, 3, 1, 5, 0, 0, 0, stream, 0x82, 0x86, 0x84];
            server.takes(&mut clients[1], &[&request[..], &PING].concat());
            if tick < SILENT {
                server.takes(&mut clients[0], &PING);
            }
        }
        let mut rest = Vec::new();
        clients[0].read_to_end(&mut rest).expect("closed");
        assert_eq!(server.connections.iter().flatten().count(), 1);
    }
}
