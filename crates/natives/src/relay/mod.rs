//! A TCP relay: accepts, connects to the upstream, and forwards bytes in both directions until both ends have
//! closed.
//!
//! The relay accepts, connects and polls here; [`splice`] moves the bytes. An end of input is forwarded as a
//! half-close; an error on one side resets the other, so that a truncated response is not mistaken for a
//! complete one.

#[cfg(any(test, fuzzing))]
mod fuzz;
mod splice;

#[cfg(any(test, fuzzing))]
pub use fuzz::fuzz_relay;

use linerate_contract::{ErrorKind, Layer, Spec};
use linerate_load::listener::Listener;
use linerate_load::process::{Signals, spawn};
use linerate_load::refusal::{Doing, Refusal};
use linerate_load::socket::Dialer;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{setsockopt, sockopt};
use splice::{PipePool, SplicedStream};
use std::os::fd::{AsRawFd, OwnedFd};

const BATCH: usize = 256;
const ACCEPTS: usize = 64;

/// One end of a pair, also as an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Client = 0,
    Upstream = 1,
}

impl Side {
    const BOTH: [Self; 2] = [Self::Client, Self::Upstream];

    fn other(self) -> Self {
        match self {
            Self::Client => Self::Upstream,
            Self::Upstream => Self::Client,
        }
    }
}

/// A client's connection and the one that was opened for it.
#[derive(Debug)]
struct Pair {
    sockets: [OwnedFd; 2],
    /// By their source.
    directions: [SplicedStream; 2],
    /// The events that each socket is registered for.
    interest: [EpollFlags; 2],
    /// The pair is in [`RelayLoop::again`].
    queued: bool,
}

impl Pair {
    fn socket(&self, side: Side) -> &OwnedFd {
        &self.sockets[side as usize]
    }

    /// Makes close(2) send a reset on both sides.
    fn reset(&self) {
        for socket in &self.sockets {
            // Fails only on a socket that is reset already.
            let _ = setsockopt(socket, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 });
        }
    }
}

/// The state of a pair after it was advanced. The flags are the edges to wait for, on the client's and on the
/// upstream's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Advance {
    /// Advance on the next edge.
    Wait([EpollFlags; 2]),
    /// Advance soon, without an edge: no descriptor is left for a pipe.
    Recheck([EpollFlags; 2]),
    /// Advance in the next turn: it has used up its share of this one.
    Yield([EpollFlags; 2]),
    /// Both ends have closed and everything is delivered.
    Over,
    /// One end failed.
    Broken,
}

/// Relays until SIGTERM or SIGINT.
///
/// # Errors
/// An invalid spec, an unsupported mode, or an address that is in use or not of this host.
pub fn run(spec: &Spec) -> Result<(), Refusal> {
    if spec.layer != Layer::Tcp {
        return Err(Refusal::Unsupported(format!("a relay of layer {:?}; supported: tcp", spec.layer)));
    }
    match spec.options.get("mode").map_or("splice", String::as_str) {
        "splice" => relay(spec),
        other => Err(Refusal::Unsupported(format!("\"options.mode\" {other:?}; supported: splice"))),
    }
}

fn relay(spec: &Spec) -> Result<(), Refusal> {
    let mut address = spec.listen.ok_or_else(|| Refusal::BadSpec("\"listen\" is missing".into()))?;
    if spec.threads == 0 {
        return Err(Refusal::BadSpec("\"threads\" must be at least 1".into()));
    }
    let dialer = Dialer::new(spec)?;
    let signals = Signals::claim()?;
    let mut loops = Vec::new();
    for _ in 0..spec.threads {
        let (listener, bound) = Listener::bind(address, spec.threads > 1)?;
        address = bound;
        loops.push(RelayLoop::new(dialer.clone(), listener)?);
    }
    for each in loops {
        spawn(move || each.run())?;
    }
    signals.serve(address);
    Ok(())
}

/// A thread's event loop. A pair's index is the number of the client's descriptor.
struct RelayLoop {
    pool: PipePool,
    dialer: Dialer,
    listener: Listener,
    /// An accepted connection, while no descriptor is left for its upstream.
    waiting: Option<OwnedFd>,
    epoll: Epoll,
    pairs: Vec<Option<Box<Pair>>>,
    /// Pairs to advance without an edge, and the buffer of the turn before.
    again: Vec<usize>,
    spare: Vec<usize>,
    /// One of them has yielded.
    busy: bool,
}

impl RelayLoop {
    fn new(dialer: Dialer, listener: Listener) -> Result<Self, Refusal> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing("epoll_create1")?;
        listener.watch(&epoll)?;
        Ok(Self {
            pool: PipePool::default(),
            dialer,
            listener,
            waiting: None,
            epoll,
            pairs: Vec::new(),
            again: Vec::new(),
            spare: Vec::new(),
            busy: false,
        })
    }

    fn run(mut self) {
        let mut events = [EpollEvent::empty(); BATCH];
        let mut idle_turns = 0;
        loop {
            let timeout = if std::mem::take(&mut self.busy) {
                EpollTimeout::ZERO
            } else {
                timeout(&self.listener, self.again.is_empty(), idle_turns)
            };
            let ready = match self.epoll.wait(&mut events, timeout) {
                Ok(ready) => ready,
                Err(Errno::EINTR) => 0,
                Err(errno) => unreachable!("epoll_wait on its own descriptor and buffer: {errno}"),
            };
            idle_turns = if ready == 0 { idle_turns + 1 } else { 0 };
            self.turn(&events[..ready]);
        }
    }

    /// Handles a batch of events. Connections are accepted last: a descriptor that is closed in this batch
    /// may have further events in it, and must not become the index of a new pair before they are handled.
    fn turn(&mut self, events: &[EpollEvent]) {
        let mut pending = false;
        for event in events {
            if event.data() == Listener::TOKEN {
                pending = true;
                continue;
            }
            let index = (event.data() >> 1) as usize;
            let side = if event.data() & 1 == 0 { Side::Client } else { Side::Upstream };
            if let Some(mut pair) = self.pairs[index].take() {
                pair.edge(side, event.events());
                self.advance(index, pair);
            }
        }
        std::mem::swap(&mut self.again, &mut self.spare);
        for at in 0..self.spare.len() {
            let index = self.spare[at];
            if let Some(mut pair) = self.pairs[index].take() {
                pair.queued = false;
                self.advance(index, pair);
            }
        }
        self.spare.clear();
        if pending || self.listener.is_full() {
            self.accept();
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            let Some(client) = self.waiting.take().or_else(|| self.listener.accept(&self.epoll)) else {
                break;
            };
            let index = client.as_raw_fd() as usize;
            if index >= self.pairs.len() {
                self.pairs.resize_with(index + 1, || None);
            }
            match self.dialer.open() {
                Ok(upstream) => {
                    // Small writes must not wait for acknowledgements; accepted sockets inherit the option.
                    let _ = setsockopt(&upstream, sockopt::TcpNoDelay, &true);
                    self.advance(index, Box::new(Pair::new([client, upstream])));
                }
                Err(ErrorKind::DescriptorExhausted) => {
                    self.waiting = Some(client);
                    return self.listener.pause(&self.epoll);
                }
                Err(_) => {
                    let _ = setsockopt(&client, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 });
                }
            }
        }
    }

    fn advance(&mut self, index: usize, mut pair: Box<Pair>) {
        let outcome = pair.advance(&mut self.pool);
        match outcome {
            Advance::Wait(wanted) | Advance::Recheck(wanted) | Advance::Yield(wanted) => {
                if self.register(index, &mut pair, wanted).is_err() {
                    pair.reset();
                    return pair.end(&mut self.pool);
                }
                self.busy |= matches!(outcome, Advance::Yield(_));
                if !matches!(outcome, Advance::Wait(_)) && !pair.queued {
                    pair.queued = true;
                    self.again.push(index);
                }
                self.pairs[index] = Some(pair);
            }
            Advance::Over => pair.end(&mut self.pool),
            Advance::Broken => {
                pair.reset();
                pair.end(&mut self.pool);
            }
        }
    }

    /// Adds the missing events to the registration of each socket; registrations only grow.
    fn register(&self, index: usize, pair: &mut Pair, wanted: [EpollFlags; 2]) -> nix::Result<()> {
        for side in Side::BOTH {
            let (have, wanted) = (pair.interest[side as usize], wanted[side as usize]);
            if have.contains(wanted) {
                continue;
            }
            let mut event =
                EpollEvent::new(have | wanted | EpollFlags::EPOLLET, (index as u64) << 1 | side as u64);
            if have.is_empty() {
                self.epoll.add(pair.socket(side), event)?;
            } else {
                self.epoll.modify(pair.socket(side), &mut event)?;
            }
            pair.interest[side as usize] = have | wanted;
        }
        Ok(())
    }
}

/// How long to wait for events. Pairs to recheck wait for a descriptor that another one frees: yield for some
/// turns, then sleep.
fn timeout(listener: &Listener, no_recheck: bool, idle_turns: u32) -> EpollTimeout {
    const YIELDS: u32 = 50;
    if no_recheck {
        listener.timeout()
    } else if idle_turns < YIELDS {
        std::thread::yield_now();
        EpollTimeout::ZERO
    } else {
        1_u8.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Role, Workload};
    use std::net::{SocketAddr, TcpListener, TcpStream};

    fn relay() -> (RelayLoop, SocketAddr, TcpListener) {
        let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut spec = Spec::new(Role::Relay, Layer::Tcp, Workload::Relay);
        spec.connect = Some(upstream.local_addr().unwrap());
        let (listener, address) = Listener::bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let dialer = Dialer::new(&spec).unwrap();
        (RelayLoop::new(dialer, listener).unwrap(), address, upstream)
    }

    fn pairs(relay: &RelayLoop) -> Vec<usize> {
        (0..relay.pairs.len()).filter(|index| relay.pairs[*index].is_some()).collect()
    }

    /// The new pair gets the descriptor of the closed one: its number is the lowest free one.
    #[test]
    fn an_event_of_a_closed_pair_does_not_reach_a_new_pair_with_the_same_descriptor() {
        let (mut relay, address, _upstream) = relay();
        let pending = EpollEvent::new(EpollFlags::EPOLLIN, Listener::TOKEN);
        let _first = TcpStream::connect(address).unwrap();
        relay.turn(&[pending]);
        let token = (pairs(&relay)[0] as u64) << 1;
        let _second = TcpStream::connect(address).unwrap();
        let broken = |side: u64| EpollEvent::new(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP, token | side);
        relay.turn(&[broken(0), pending, broken(1)]);
        assert_eq!(pairs(&relay).len(), 1, "the second connection is forwarded");
    }
}
