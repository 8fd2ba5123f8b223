//! Relaying by an eBPF sockmap: the kernel sends what one socket receives out of the other, and this program only sees
//! connections begin and end.
//!
//! A verdict program ([`super::bpf`]) runs for each piece of input of the sockets in `verdicts`, and redirects it to the
//! socket that `targets` has under the receiver's cookie. Four things make that exact:
//!
//! - A socket enters `verdicts` only when its target is in `targets`: no input ever meets a missing target.
//! - What arrived before is still in the receive queue, and the next announcement of input runs the verdict on the whole
//!   queue in order. [`tcp_info::nudge`] makes that announcement, so nothing is copied here and nothing overtakes.
//! - Redirected bytes are sent by a kernel thread. An end of input is passed on only when the target has been given as
//!   many bytes as the source received, by the kernel's own counters: a FIN cannot overtake them.
//! - A socket whose peer has sent its end already cannot enter a map (the kernel takes established ones only): that
//!   direction, and no other, is spliced.
//!
//! What it lacks is back pressure: the kernel acknowledges input that it has redirected, however slowly the target takes it.

use super::bpf::SockHash;
use super::splice::{INPUT, Pool, Stream};
use super::{Fate, Mode, Pair, Side};
use crate::process::raise_descriptor_limit;
use crate::refusal::Refusal;
use crate::tcp_info::{cookie, nudge, traffic};
use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{Shutdown, SockaddrStorage, getpeername, setsockopt, shutdown, sockopt};
use std::os::fd::AsRawFd;

/// Room for every socket that the process can have, up to this: a map takes 16 bytes an entry in advance.
const MOST_ENTRIES: u64 = 1 << 18;
/// Input that arrives while a socket is in use counts against its receive buffer until it is looked at, and may close the
/// window; a reader would open it again, but here nobody reads, and the sender finds out by a probe after 200 ms. In
/// a buffer of 16 windows (64 KiB at first, and without a reader for good) that cannot happen.
const RECEIVE_BUFFER: usize = 1 << 20;
/// Redirected input is no business of ours, so only its end wakes us.
const END: EpollFlags = EpollFlags::EPOLLRDHUP;

/// The mode: its maps, and pipes for what cannot be redirected.
#[derive(Debug)]
pub(super) struct Sockmap {
    targets: SockHash,
    verdicts: SockHash,
    pool: Pool,
}

/// The state of a pair.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// Both directions by the side that they come from; `None` until the upstream's handshake is done.
    directions: Option<[Direction; 2]>,
    /// Sides whose peer has sent its end.
    ended: [bool; 2],
    failed: bool,
}

#[derive(Debug)]
enum Direction {
    /// The kernel moves it; whether its end was passed on.
    Kernel {
        told: bool,
    },
    Spliced(Stream),
}

impl Mode for Sockmap {
    type State = Link;

    fn new() -> Result<Self, Refusal> {
        let entries = raise_descriptor_limit().clamp(1024, MOST_ENTRIES) as u32;
        let build = || {
            let (targets, verdicts) = (SockHash::new(entries)?, SockHash::new(entries)?);
            verdicts.redirect_to(&targets)?;
            Ok(Self { targets, verdicts, pool: Pool::default() })
        };
        build().map_err(|errno: Errno| {
            Refusal::Unsupported(match errno {
                Errno::EPERM | Errno::EACCES => {
                    "sockmap needs CAP_BPF and CAP_NET_ADMIN in the initial user namespace (bpf(2): not permitted)".into()
                }
                other => format!("this kernel has no sockmap (CONFIG_BPF_STREAM_PARSER; bpf(2): {})", other.desc()),
            })
        })
    }

    fn begin(&mut self) -> Link {
        Link::default()
    }

    fn edge(pair: &mut Pair<Link>, side: Side, flags: EpollFlags) {
        pair.state.ended[side as usize] |= flags.contains(EpollFlags::EPOLLRDHUP);
        pair.state.failed |= flags.contains(EpollFlags::EPOLLERR);
        for from in Side::BOTH {
            if let Some(directions) = &mut pair.state.directions
                && let Direction::Spliced(stream) = &mut directions[from as usize]
            {
                stream.edge(from == side, flags);
            }
        }
    }

    fn advance(&mut self, pair: &mut Pair<Link>) -> Fate {
        if pair.state.failed {
            return Fate::Broken;
        }
        if pair.state.directions.is_none() {
            match getpeername::<SockaddrStorage>(pair.socket(Side::Upstream).as_raw_fd()) {
                Ok(_) => pair.state.directions = Some(self.link(pair)),
                Err(_) => return Fate::Wait([END, END | EpollFlags::EPOLLOUT]),
            }
        }
        self.check(pair).unwrap_or(Fate::Broken)
    }

    fn end(&mut self, state: Link) {
        for direction in state.directions.into_iter().flatten() {
            if let Direction::Spliced(stream) = direction {
                stream.end(&mut self.pool);
            }
        }
    }
}

impl Sockmap {
    /// Hands over to the kernel what it takes.
    fn link(&self, pair: &Pair<Link>) -> [Direction; 2] {
        let cookies = Side::BOTH.map(|side| cookie(pair.socket(side)));
        let targets = Side::BOTH.map(|side| {
            let key = cookies[side as usize]?;
            self.targets.insert(key, pair.socket(side.other()))
        });
        let redirect = |side: Side| {
            let redirect = || {
                targets[side as usize]?;
                setsockopt(pair.socket(side), sockopt::RcvBufForce, &RECEIVE_BUFFER)?;
                self.verdicts.insert(cookies[side as usize]?, pair.socket(side))?;
                nudge(pair.socket(side))
            };
            match redirect() {
                Ok(()) => Direction::Kernel { told: false },
                Err(_) => Direction::Spliced(Stream::default()),
            }
        };
        // The upstream first: it says nothing before it has heard the client, as a rule, so its socket is not in use yet.
        let upstream = redirect(Side::Upstream);
        [redirect(Side::Client), upstream]
    }

    /// Passes on ends, and moves what is spliced.
    fn check(&mut self, pair: &mut Pair<Link>) -> nix::Result<Fate> {
        let Link { directions, ended, .. } = &mut pair.state;
        let directions = directions.as_mut().expect("linked before");
        let mut wanted = [END; 2];
        let (mut over, mut again) = (true, false);
        for from in Side::BOTH {
            let (source, target) = (&pair.sockets[from as usize], &pair.sockets[from.other() as usize]);
            match &mut directions[from as usize] {
                Direction::Kernel { told } => {
                    if ended[from as usize] && !*told {
                        // The end itself counts as one received byte.
                        *told = traffic(source)?.received == traffic(target)?.written + 1;
                        if *told {
                            shutdown(target.as_raw_fd(), Shutdown::Write)?;
                        }
                        again |= !*told;
                    }
                    over &= *told;
                }
                Direction::Spliced(stream) => {
                    wanted[from as usize] |= INPUT;
                    wanted[from.other() as usize] |= stream.pump(source, target, &mut self.pool)?;
                    over &= stream.is_over();
                }
            }
        }
        Ok(match (over, again) {
            (true, _) => Fate::Over,
            (_, true) => Fate::Again(wanted),
            _ => Fate::Wait(wanted),
        })
    }
}
