//! A TCP relay: accepts, connects onward, and moves bytes both ways until both ends have closed.
//!
//! This file accepts, connects and watches; how bytes move is a [`Mode`], a file each: [`splice`] and [`sockmap`]. An end of
//! input is passed on as such (half-close); an error on one side resets the other, so that nobody takes a cut
//! answer for a whole one.

mod bpf;
mod sockmap;
mod splice;

use crate::process::{Signals, emit};
use crate::refusal::{Doing, Refusal};
use crate::socket::{self, Dialer};
use linerate_contract::{Event, Spec};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{setsockopt, sockopt};
use std::os::fd::{AsRawFd, OwnedFd};

const BATCH: usize = 256;
const ACCEPTS: usize = 64;
/// How long the listener rests when there is no descriptor for a waiting connection.
const REST_MILLIS: u64 = 10;
/// The token of the listener; those of pairs are small.
const LISTENER: u64 = u64::MAX;

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
struct Pair<S> {
    sockets: [OwnedFd; 2],
    state: S,
    /// What each socket is registered for.
    interest: [EpollFlags; 2],
}

impl<S> Pair<S> {
    fn socket(&self, side: Side) -> &OwnedFd {
        &self.sockets[side as usize]
    }

    /// Makes close(2) send a reset on both sides.
    fn reset(&self) {
        for socket in &self.sockets {
            // A socket that refuses this is gone already.
            let _ = setsockopt(socket, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 });
        }
    }
}

/// What becomes of a pair after it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Wait for the edges named, on the client's side and on the upstream's.
    Wait([EpollFlags; 2]),
    /// As `Wait`, and look again soon without an edge.
    Again([EpollFlags; 2]),
    /// Both ends have closed and everything is delivered.
    Over,
    /// One end failed.
    Broken,
}

/// A way to move bytes.
trait Mode: Sized + Send + 'static {
    /// The state of one pair.
    type State: Send;

    /// # Errors
    /// What this machine lacks.
    fn new() -> Result<Self, Refusal>;

    /// A new pair; the upstream's handshake may still be under way.
    fn begin(&mut self) -> Self::State;

    /// An edge: `flags` on `side`. Only notes it, [`Self::advance`] follows.
    fn edge(pair: &mut Pair<Self::State>, side: Side, flags: EpollFlags);

    /// Moves what can be moved without waiting.
    fn advance(&mut self, pair: &mut Pair<Self::State>) -> Fate;

    /// The pair is closed.
    fn end(&mut self, state: Self::State);
}

/// Relays until SIGTERM or SIGINT.
///
/// # Errors
/// A spec that lacks something, a mode that this machine has not, or an address that cannot be had.
pub fn run(spec: &Spec) -> Result<(), Refusal> {
    if spec.layer != "tcp" {
        return Err(Refusal::Unsupported(format!("a relay of layer {:?}; there is \"tcp\"", spec.layer)));
    }
    match spec.options.get("mode").map_or("splice", String::as_str) {
        "splice" => relay::<splice::Splice>(spec),
        "sockmap" => relay::<sockmap::Sockmap>(spec),

        other => {
            Err(Refusal::Unsupported(format!("relay mode {other:?}; there are \"splice\" and \"sockmap\"")))
        }
    }
}

fn relay<M: Mode>(spec: &Spec) -> Result<(), Refusal> {
    let mut address = spec.listen.ok_or_else(|| Refusal::BadSpec("\"listen\" is missing".into()))?;
    if spec.threads == 0 {
        return Err(Refusal::BadSpec("\"threads\" must be at least 1".into()));
    }
    let dialer = Dialer::new(spec)?;
    let signals = Signals::claim()?;
    let mut loops = Vec::new();
    for _ in 0..spec.threads {
        let (listener, bound) = socket::listener(address, spec.threads > 1)?;
        address = bound;
        loops.push(Loop::new(M::new()?, dialer.clone(), listener)?);
    }
    for each in loops {
        std::thread::spawn(move || each.run());
    }
    emit(&Event::Ready { address });
    signals.wait();
    Ok(())
}

/// A thread's event loop. Pairs are found by the client's descriptor.
struct Loop<M: Mode> {
    mode: M,
    dialer: Dialer,
    listener: OwnedFd,
    epoll: Epoll,
    pairs: Vec<Option<Box<Pair<M::State>>>>,
    /// Pairs to look at again without an edge.
    again: Vec<usize>,
}

impl<M: Mode> Loop<M> {
    fn new(mode: M, dialer: Dialer, listener: OwnedFd) -> Result<Self, Refusal> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing("epoll_create1")?;
        epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER)).doing("epoll_ctl")?;
        Ok(Self { mode, dialer, listener, epoll, pairs: Vec::new(), again: Vec::new() })
    }

    fn run(mut self) {
        let mut events = [EpollEvent::empty(); BATCH];
        let mut idle_turns = 0;
        loop {
            let timeout = patience(self.again.is_empty(), idle_turns);
            let ready = match self.epoll.wait(&mut events, timeout) {
                Ok(ready) => ready,
                Err(Errno::EINTR) => 0,
                Err(errno) => unreachable!("epoll_wait on its own descriptor and buffer: {errno}"),
            };
            idle_turns = if ready == 0 { idle_turns + 1 } else { 0 };
            for event in &events[..ready] {
                if event.data() == LISTENER {
                    self.accept();
                    continue;
                }
                let place = (event.data() >> 1) as usize;
                let side = if event.data() & 1 == 0 { Side::Client } else { Side::Upstream };
                // A pair that was closed in this very batch may still have an edge in it.
                if let Some(mut pair) = self.pairs[place].take() {
                    M::edge(&mut pair, side, event.events());
                    self.advance(place, pair);
                }
            }
            for place in std::mem::take(&mut self.again) {
                if let Some(pair) = self.pairs[place].take() {
                    self.advance(place, pair);
                }
            }
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            let client = match socket::accept(&self.listener) {
                Ok(client) => client,
                Err(Errno::ECONNABORTED | Errno::EINTR) => continue,
                Err(Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::ENOBUFS) => {
                    // It stays in the queue; without a rest the loop would ask for it without end.
                    std::thread::sleep(std::time::Duration::from_millis(REST_MILLIS));
                    return;
                }
                Err(_) => return,
            };
            let place = client.as_raw_fd() as usize;
            if place >= self.pairs.len() {
                self.pairs.resize_with(place + 1, || None);
            }
            match self.dialer.open() {
                Ok(upstream) => {
                    // Requests must not wait for each other's acknowledgement; the listener's children have it already.
                    let _ = setsockopt(&upstream, sockopt::TcpNoDelay, &true);
                    let state = self.mode.begin();
                    let interest = [EpollFlags::empty(); 2];
                    self.advance(place, Box::new(Pair { sockets: [client, upstream], state, interest }));
                }
                Err(_) => {
                    let _ = setsockopt(&client, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 });
                }
            }
        }
    }

    fn advance(&mut self, place: usize, mut pair: Box<Pair<M::State>>) {
        let fate = self.mode.advance(&mut pair);
        match fate {
            Fate::Wait(wanted) | Fate::Again(wanted) => {
                if self.watch(place, &mut pair, wanted).is_err() {
                    pair.reset();
                    return self.mode.end(pair.state);
                }
                if matches!(fate, Fate::Again(_)) {
                    self.again.push(place);
                }
                self.pairs[place] = Some(pair);
            }
            Fate::Over => self.mode.end(pair.state),
            Fate::Broken => {
                pair.reset();
                self.mode.end(pair.state);
            }
        }
    }

    /// Registers each socket for what it is not registered for yet; registrations only grow.
    fn watch(&self, place: usize, pair: &mut Pair<M::State>, wanted: [EpollFlags; 2]) -> nix::Result<()> {
        for side in Side::BOTH {
            let (have, wanted) = (pair.interest[side as usize], wanted[side as usize]);
            if have.contains(wanted) {
                continue;
            }
            let mut event =
                EpollEvent::new(have | wanted | EpollFlags::EPOLLET, (place as u64) << 1 | side as u64);
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

/// Pairs that want another look wait for a kernel thread, which needs some microseconds, on this very CPU perhaps: yield
/// for some turns, then sleep.
fn patience(nobody_waits: bool, idle_turns: u32) -> EpollTimeout {
    const YIELDS: u32 = 50;
    if nobody_waits {
        EpollTimeout::NONE
    } else if idle_turns < YIELDS {
        std::thread::yield_now();
        EpollTimeout::ZERO
    } else {
        1_u8.into()
    }
}
