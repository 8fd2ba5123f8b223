//! Forwarding by an eBPF sockmap: the kernel sends the input of one socket through the other; this program
//! handles only the beginning and the end of connections.
//!
//! A verdict program ([`super::bpf`]) runs for each piece of input of the sockets in `verdicts`, and
//! redirects it to the socket in `targets` under the receiver's cookie. Four rules keep the stream exact:
//!
//! - A socket enters `verdicts` only when its target is in `targets`: no input meets a missing target.
//! - Earlier input is still in the receive queue, and the next signal of input runs the verdict on the whole
//!   queue in order. [`tcp_info::nudge`] causes that signal, so nothing is copied here and nothing is
//!   reordered.
//! - A kernel thread sends redirected bytes. An end of input is forwarded only when the target was given as
//!   many bytes as the source received, by the kernel's counters: a FIN cannot overtake them.
//! - A socket whose peer has already sent its end cannot enter a map (the kernel accepts only established
//!   ones): that direction, and no other, is spliced.
//!
//! There is no back pressure: the kernel acknowledges redirected input, however slow the target is.

use super::bpf::SockHash;
use super::splice::{INPUT, Next, PipePool, SplicedStream};
use super::{Advance, Forwarding, Pair, Side};
use crate::process::raise_descriptor_limit;
use crate::refusal::Refusal;
use crate::tcp_info::{cookie, nudge, traffic};
use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{Shutdown, SockaddrStorage, getpeername, setsockopt, shutdown, sockopt};
use std::os::fd::AsRawFd;

/// The largest map: one entry per descriptor of the process, up to this. A map allocates 16 bytes per entry
/// in advance.
const MAX_ENTRIES: u64 = 1 << 18;
/// Input that arrives while a socket is locked counts against its receive buffer until it is processed, and
/// may close the window. A reader would reopen it, but here no process reads, and the sender probes only
/// after 200 ms. With a buffer of 16 windows (64 KiB, constant without a reader) the window does not close.
const RECEIVE_BUFFER: usize = 1 << 20;
/// The kernel handles redirected input; only its end wakes this thread.
const END: EpollFlags = EpollFlags::EPOLLRDHUP;

/// The maps, and pipes for directions that cannot be redirected.
#[derive(Debug)]
pub(super) struct Sockmap {
    targets: SockHash,
    verdicts: SockHash,
    pool: PipePool,
}

/// The state of a pair.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// Both directions, by their source; `None` until the upstream's handshake is complete.
    directions: Option<[Direction; 2]>,
    /// Sides whose peer has sent its end.
    ended: [bool; 2],
    failed: bool,
}

#[derive(Debug)]
enum Direction {
    /// The kernel moves the bytes; `shut`: the end of input was forwarded.
    Kernel {
        shut: bool,
    },
    Spliced(SplicedStream),
}

impl Forwarding for Sockmap {
    type State = Link;

    fn new() -> Result<Self, Refusal> {
        let entries = raise_descriptor_limit().clamp(1024, MAX_ENTRIES) as u32;
        let build = || {
            let (targets, verdicts) = (SockHash::new(entries)?, SockHash::new(entries)?);
            verdicts.redirect_to(&targets)?;
            Ok(Self { targets, verdicts, pool: PipePool::default() })
        };
        build().map_err(|errno: Errno| {
            Refusal::Unsupported(match errno {
                Errno::EPERM | Errno::EACCES => {
                    "sockmap needs CAP_BPF and CAP_NET_ADMIN in the initial user namespace (bpf(2): EPERM)"
                        .into()
                }
                other => {
                    format!("this kernel has no sockmap (CONFIG_BPF_STREAM_PARSER; bpf(2): {})", other.desc())
                }
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

    fn advance(&mut self, pair: &mut Pair<Link>) -> Advance {
        if pair.state.failed {
            return Advance::Broken;
        }
        if pair.state.directions.is_none() {
            match getpeername::<SockaddrStorage>(pair.socket(Side::Upstream).as_raw_fd()) {
                Ok(_) => pair.state.directions = Some(self.link(pair)),
                Err(_) => return Advance::Wait([END, END | EpollFlags::EPOLLOUT]),
            }
        }
        self.check(pair).unwrap_or(Advance::Broken)
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
    /// Adds to the maps the directions that the kernel accepts.
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
                Ok(()) => Direction::Kernel { shut: false },
                Err(_) => Direction::Spliced(SplicedStream::default()),
            }
        };
        // The upstream first: as a rule it sends nothing before a request, so its socket is not in use yet.
        let upstream = redirect(Side::Upstream);
        [redirect(Side::Client), upstream]
    }

    /// Forwards ends of input, and moves the bytes of spliced directions.
    fn check(&mut self, pair: &mut Pair<Link>) -> nix::Result<Advance> {
        let Link { directions, ended, .. } = &mut pair.state;
        let directions = directions.as_mut().expect("linked before");
        let mut wanted = [END; 2];
        let (mut over, mut next) = (true, Next::Edge);
        for from in Side::BOTH {
            let (source, target) = (&pair.sockets[from as usize], &pair.sockets[from.other() as usize]);
            match &mut directions[from as usize] {
                Direction::Kernel { shut } => {
                    if ended[from as usize] && !*shut {
                        // The end itself counts as one received byte.
                        *shut = traffic(source)?.received == traffic(target)?.written + 1;
                        if *shut {
                            shutdown(target.as_raw_fd(), Shutdown::Write)?;
                        }
                        if !*shut {
                            next = next.max(Next::Soon);
                        }
                    }
                    over &= *shut;
                }
                Direction::Spliced(stream) => {
                    wanted[from as usize] |= INPUT;
                    let (flags, of_stream) = stream.forward(source, target, &mut self.pool)?;
                    wanted[from.other() as usize] |= flags;
                    next = next.max(of_stream);
                    over &= stream.is_over();
                }
            }
        }
        Ok(if over { Advance::Over } else { next.advance(wanted) })
    }
}
