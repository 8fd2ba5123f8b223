//! Non-blocking TCP sockets, and their errors as kinds of the contract.

#![allow(
    unsafe_code,
    reason = "send(2) and recv(2) without cancellation points; nix does not support connect(2) with AF_UNSPEC"
)]

use crate::cause::note_errno;
use crate::refusal::{Doing, Refusal};
use crate::{clock, tcp_info};
use linerate_contract::{ErrorKind, Nanos, Spec};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, Shutdown, SockFlag, SockType, SockaddrStorage, UnixAddr, bind, connect,
    getsockopt, setsockopt, shutdown, socket, sockopt,
};
use std::collections::BTreeMap;
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::ptr::null;
use std::sync::Arc;

pub(crate) const NONBLOCKING: SockFlag = SockFlag::SOCK_NONBLOCK.union(SockFlag::SOCK_CLOEXEC);

/// `send(2)`. glibc's function is a cancellation point (pthreads(7)), which no thread here needs: with that
/// of `recv(2)` it is a sixth of the instructions of an operation.
///
/// # Errors
/// The system call fails.
#[inline]
pub fn send(socket: RawFd, bytes: &[u8], flags: MsgFlags) -> nix::Result<usize> {
    let (length, none) = (bytes.len(), null::<libc::sockaddr>());
    // SAFETY: the kernel reads `length` bytes at the pointer, the size of the slice, which outlives the call.
    let sent =
        unsafe { libc::syscall(libc::SYS_sendto, socket, bytes.as_ptr(), length, flags.bits(), none, 0) };
    Errno::result(sent).map(|count| count as usize)
}

/// `recv(2)`, as [`send`].
///
/// # Errors
/// The system call fails.
#[inline]
pub fn recv(socket: RawFd, room: &mut [u8], flags: MsgFlags) -> nix::Result<usize> {
    let (length, none) = (room.len(), null::<libc::sockaddr>());
    // SAFETY: the kernel writes at most `length` bytes at the pointer, the size of the slice, which is
    // borrowed for the call.
    let received = unsafe {
        libc::syscall(libc::SYS_recvfrom, socket, room.as_mut_ptr(), length, flags.bits(), none, none)
    };
    Errno::result(received).map(|count| count as usize)
}

/// Where connections go.
#[derive(Debug, Clone)]
enum Destination {
    Network(SockaddrStorage),
    Unix(UnixAddr),
}

impl Destination {
    fn name(&self) -> String {
        match self {
            Self::Network(address) => address.to_string(),
            Self::Unix(address) => address.to_string(),
        }
    }
}

/// Opens connections to each address in turn, from each local address in turn.
#[derive(Debug, Clone)]
pub struct Dialer {
    targets: Arc<[Destination]>,
    /// The number of connections that were begun to each target.
    begun: Box<[u64]>,
    next_target: usize,
    family: AddressFamily,
    sources: Arc<[SockaddrStorage]>,
    next: usize,
    /// Bytes per second that the kernel sends at most (`options.pace`).
    pace: Option<u64>,
}

impl Dialer {
    /// # Errors
    /// A spec without `connect` and `unix`, or with a source address that cannot be bound.
    pub fn new(spec: &Spec) -> Result<Self, Refusal> {
        if let Some(path) = &spec.unix {
            let target = UnixAddr::new(path.as_str())
                .map_err(|e| Refusal::BadSpec(format!("\"unix\": {path}: {}", e.desc())))?;
            return Ok(Self::to([Destination::Unix(target)].into(), AddressFamily::Unix));
        }
        let address = spec.connect.ok_or_else(|| Refusal::BadSpec("\"connect\" is missing".into()))?;
        let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let sources: Arc<[SockaddrStorage]> =
            spec.sources.iter().map(|ip| SocketAddr::new(*ip, 0).into()).collect();
        for (ip, source) in spec.sources.iter().zip(&*sources) {
            let probe = socket(family, SockType::Stream, NONBLOCKING, None).doing("opening a socket")?;
            bind(probe.as_raw_fd(), source)
                .map_err(|e| Refusal::BadSpec(format!("\"sources\": {ip} cannot be bound: {}", e.desc())))?;
        }
        let pace = spec.number("pace", 1..=u64::MAX)?;
        if let Some(other) = spec.further.iter().find(|other| other.is_ipv4() != address.is_ipv4()) {
            return Err(Refusal::BadSpec(format!(
                "\"further\": {other} is of another family than {address}"
            )));
        }
        let all = std::iter::once(&address).chain(&spec.further);
        let targets = all.map(|address| Destination::Network((*address).into())).collect();
        Ok(Self { sources, pace, ..Self::to(targets, family) })
    }

    fn to(targets: Arc<[Destination]>, family: AddressFamily) -> Self {
        let begun = vec![0; targets.len()].into();
        Self { targets, begun, next_target: 0, family, sources: Arc::new([]), next: 0, pace: None }
    }

    /// Connections by address, where there are several.
    pub fn by_address(&self) -> BTreeMap<String, u64> {
        let named = self.targets.iter().zip(&self.begun).map(|(target, begun)| (target.name(), *begun));
        if self.targets.len() > 1 { named.collect() } else { BTreeMap::new() }
    }

    /// Begins a connection. Over loopback and veth the handshake is often complete when this returns,
    /// although connect(2) returns `EINPROGRESS`: try to send before waiting.
    ///
    /// # Errors
    /// Failures of socket(2), bind(2) or connect(2); the descriptor is closed.
    #[inline]
    pub fn open(&mut self) -> Result<OwnedFd, ErrorKind> {
        let fd = socket(self.family, SockType::Stream, NONBLOCKING, None).map_err(connect_error)?;
        if !self.sources.is_empty() {
            // Without this option bind() reserves a port for all targets; with it connect() picks one that is
            // free towards this target (ip(7), IP_BIND_ADDRESS_NO_PORT).
            setsockopt(&fd, sockopt::IpBindAddressNoPort, &true).map_err(connect_error)?;
        }
        if let Some(pace) = self.pace {
            set_pace(&fd, pace).map_err(connect_error)?;
        }
        self.connect(&fd)?;
        Ok(fd)
    }

    /// Begins a connection on a socket of [`Self::open`], to the next address and from the next source
    /// address: also a reused socket takes its turn.
    ///
    /// # Errors
    /// Failures of bind(2) or connect(2).
    #[inline]
    pub fn connect(&mut self, socket: &OwnedFd) -> Result<(), ErrorKind> {
        if let Some(source) = self.sources.get(self.next) {
            self.next = (self.next + 1) % self.sources.len();
            bind(socket.as_raw_fd(), source).map_err(connect_error)?;
        }
        let at = self.next_target;
        self.begun[at] += 1;
        self.next_target = if at + 1 == self.targets.len() { 0 } else { at + 1 };
        let connected = match &self.targets[at] {
            Destination::Network(address) => connect(socket.as_raw_fd(), address),
            Destination::Unix(address) => connect(socket.as_raw_fd(), address),
        };
        match connected {
            Ok(()) | Err(Errno::EINPROGRESS | Errno::EINTR) => Ok(()),
            Err(errno) => Err(connect_error(errno)),
        }
    }

    /// Lets small messages go at once, which TCP alone would hold back.
    ///
    /// # Errors
    /// A failure of setsockopt(2).
    #[inline]
    pub fn without_delay(&self, socket: &OwnedFd) -> Result<(), ErrorKind> {
        match self.targets[0] {
            Destination::Network(_) => setsockopt(socket, sockopt::TcpNoDelay, &true).map_err(connect_error),
            Destination::Unix(_) => Ok(()),
        }
    }
}

/// Lets the kernel send this many bytes per second at most (socket(7), `SO_MAX_PACING_RATE`).
fn set_pace(socket: &OwnedFd, pace: u64) -> nix::Result<()> {
    let (pace, length) = (&raw const pace, size_of::<u64>() as libc::socklen_t);
    // SAFETY: setsockopt(2) reads `length` bytes at the pointer, the size of the number, which outlives the
    // call.
    let set = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, pace.cast(), length)
    };
    Errno::result(set).map(drop)
}

/// Ends a connection that the peer has closed, with a FIN as close(2) would, and resets its socket so that it
/// can connect again from another port. False if the peer has not yet acknowledged the FIN; over loopback and
/// veth it has when this returns. To reset the socket before that would reset the connection.
#[inline]
pub fn disconnect(socket: &OwnedFd) -> bool {
    let over = shutdown(socket.as_raw_fd(), Shutdown::Write).is_ok() && tcp_info::is_closed(socket);
    // SAFETY: a plain C structure; all zeros is a valid value: AF_UNSPEC, which dissolves an association
    // (connect(2)).
    let unspecified: libc::sockaddr = unsafe { std::mem::zeroed() };
    let length = size_of_val(&unspecified) as libc::socklen_t;
    // SAFETY: connect(2) reads `length` bytes at the pointer, the size of the structure, which outlives the
    // call.
    over && unsafe { libc::connect(socket.as_raw_fd(), &raw const unspecified, length) } == 0
}

/// Waits until each of these connections is established or has failed, all within `timeout`.
///
/// # Panics
/// Never: `SO_ERROR` of an open socket can be read.
pub fn connect_all<'a, F: AsFd + 'a>(
    sockets: impl IntoIterator<Item = &'a F>,
    timeout: Nanos,
) -> Vec<Result<(), ErrorKind>> {
    let deadline = clock::now() + timeout;
    let wait = |socket: &F| {
        loop {
            let left = deadline.since(clock::now()).0.div_ceil(1_000_000).min(60_000) as u16;
            match poll(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)], left) {
                Ok(0) if left == 0 => return Err(ErrorKind::ConnectTimeout),
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => break,
                Err(errno) => return Err(connect_error(errno)),
            }
        }
        match getsockopt(&socket.as_fd(), sockopt::SocketError).expect("SO_ERROR of an open socket") {
            0 => Ok(()),
            errno => Err(connect_error(Errno::from_raw(errno))),
        }
    };
    sockets.into_iter().map(wait).collect()
}

/// The kind of an error before a connection carried data.
#[cold]
pub fn connect_error(errno: Errno) -> ErrorKind {
    let kind = match errno {
        // ENOENT: of a Unix domain socket, nothing has bound its path.
        Errno::ECONNREFUSED | Errno::ENOENT => ErrorKind::ConnectRefused,
        Errno::ETIMEDOUT => ErrorKind::ConnectTimeout,
        Errno::EADDRNOTAVAIL => ErrorKind::AddressExhausted,
        Errno::EMFILE | Errno::ENFILE => ErrorKind::DescriptorExhausted,
        // The kernel returns these two only after a complete handshake (tcp_reset()).
        Errno::ECONNRESET | Errno::EPIPE => return ErrorKind::Reset,
        _ => ErrorKind::ConnectFailed,
    };
    note_errno(kind, "connecting", errno)
}

/// The kind of an error on an established connection.
pub fn stream_error(errno: Errno) -> ErrorKind {
    match errno {
        Errno::ETIMEDOUT => ErrorKind::Timeout,
        _ => ErrorKind::Reset,
    }
}

pub(crate) fn socket_address(storage: &SockaddrStorage) -> SocketAddr {
    match (storage.as_sockaddr_in(), storage.as_sockaddr_in6()) {
        (Some(v4), _) => SocketAddr::V4(SocketAddrV4::from(*v4)),
        (_, Some(v6)) => SocketAddr::V6(SocketAddrV6::from(*v6)),
        _ => unreachable!("the socket was opened with one of these families"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_before_a_connection_is_established_have_their_kinds() {
        for (errno, kind) in [
            (Errno::ECONNREFUSED, ErrorKind::ConnectRefused),
            (Errno::ETIMEDOUT, ErrorKind::ConnectTimeout),
            (Errno::EADDRNOTAVAIL, ErrorKind::AddressExhausted),
            (Errno::EMFILE, ErrorKind::DescriptorExhausted),
            (Errno::ENFILE, ErrorKind::DescriptorExhausted),
            (Errno::EPIPE, ErrorKind::Reset),
            (Errno::EHOSTUNREACH, ErrorKind::ConnectFailed),
        ] {
            assert_eq!(connect_error(errno), kind, "{errno}");
        }
    }
}
