//! UDP sockets.

use super::Mode;
use crate::refusal::{Doing, Refusal};
use crate::socket::{connect_error, socket_address};
use linerate_contract::{ErrorKind, KCP_SOCKET_BUFFER, Nanos, Spec};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrLike, SockaddrStorage, getsockname, getsockopt, setsockopt,
    socket, sockopt,
};
use nix::sys::time::TimeVal;
use std::cell::Cell;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

/// A socket bound to `listen` of `spec`, and its address (port 0: the kernel's choice). `shared`: sockets of
/// other threads have the same one.
///
/// # Errors
/// The address is in use or not of this host; the kernel does not grant the buffer or the mode.
pub(crate) fn bind(spec: &Spec, mode: Mode, shared: bool) -> Result<(OwnedFd, SocketAddr), Refusal> {
    let address = spec.listen.ok_or_else(|| Refusal::BadSpec("\"listen\" is missing".into()))?;
    let storage = SockaddrStorage::from(address);
    let fd = open(spec, mode, storage.family().expect("an IP address has a family"))?;
    if shared {
        setsockopt(&fd, sockopt::ReusePort, &true).doing("SO_REUSEPORT")?;
    }
    let bound = nix::sys::socket::bind(fd.as_raw_fd(), &storage)
        .and_then(|()| getsockname::<SockaddrStorage>(fd.as_raw_fd()));
    let bound = bound.doing(&format!("listening at {address}, UDP"))?;
    Ok((fd, socket_address(&bound)))
}

/// A socket connected to `connect` of `spec`. The inner error is the failure of its flow.
///
/// # Errors
/// The spec has no address; the kernel does not grant the buffer or the mode.
pub(crate) fn connect(spec: &Spec, mode: Mode) -> Result<Result<OwnedFd, ErrorKind>, Refusal> {
    let address = spec.connect.ok_or_else(|| Refusal::BadSpec("\"connect\" is missing".into()))?;
    let storage = SockaddrStorage::from(address);
    let fd = open(spec, mode, storage.family().expect("an IP address has a family"))?;
    if !spec.sources.is_empty() {
        let turn = TURN.get();
        TURN.set(turn.wrapping_add(1));
        let source = spec.sources[turn % spec.sources.len()];
        // As in a `Dialer`.
        setsockopt(&fd, sockopt::IpBindAddressNoPort, &true).doing("IP_BIND_ADDRESS_NO_PORT")?;
        nix::sys::socket::bind(fd.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(source, 0)))
            .map_err(|e| Refusal::BadSpec(format!("\"sources\": {source} cannot be bound: {}", e.desc())))?;
    }
    let connected = nix::sys::socket::connect(fd.as_raw_fd(), &storage);
    Ok(connected.map(|()| fd).map_err(connect_error))
}

thread_local! {
    /// The turn of the next source address.
    static TURN: Cell<usize> = const { Cell::new(0) };
}

fn open(spec: &Spec, mode: Mode, family: AddressFamily) -> Result<OwnedFd, Refusal> {
    let fd =
        socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None).doing("opening a UDP socket")?;
    if let Some(bytes) = spec.number("buffer", 1..=LARGEST_BUFFER)? {
        set_buffers(&fd, bytes as usize)?;
    }
    if mode == Mode::Gso {
        setsockopt(&fd, sockopt::UdpGroSegment, &true).map_err(unsupported("UDP_GRO"))?;
    }
    // A blocked call returns after this, so that the caller can check the time.
    let interval = TimeVal::new(0, POLL_INTERVAL.0 as i64 / 1_000);
    setsockopt(&fd, sockopt::ReceiveTimeout, &interval).doing("SO_RCVTIMEO")?;
    setsockopt(&fd, sockopt::SendTimeout, &interval).doing("SO_SNDTIMEO")?;
    Ok(fd)
}

/// Requests the buffers that all KCP programs have, unless the spec contains others, which are set already:
/// with the kernel's usual ones, a window does not fit.
pub(crate) fn widen_buffers(socket: &OwnedFd, spec: &Spec) -> Result<(), Refusal> {
    if spec.options.contains_key("buffer") {
        return Ok(());
    }
    setsockopt(socket, sockopt::RcvBuf, &KCP_SOCKET_BUFFER).doing("SO_RCVBUF")?;
    setsockopt(socket, sockopt::SndBuf, &KCP_SOCKET_BUFFER).doing("SO_SNDBUF")
}

/// The largest possible value of the kernel's own limit (`net.core.rmem_max` is an int), rounded down.
const LARGEST_BUFFER: u64 = 1 << 30;
/// As often as a client repeats a datagram that is not answered (sdk/CONTRACT.md).
const POLL_INTERVAL: Nanos = Nanos(50_000_000);

/// Sets both buffers, or fails: with a smaller buffer than requested this would be a different measurement.
fn set_buffers(fd: &OwnedFd, bytes: usize) -> Result<(), Refusal> {
    setsockopt(fd, sockopt::RcvBuf, &bytes).doing("SO_RCVBUF")?;
    setsockopt(fd, sockopt::SndBuf, &bytes).doing("SO_SNDBUF")?;
    let granted = getsockopt(fd, sockopt::RcvBuf).doing("SO_RCVBUF")?;
    let granted = granted.min(getsockopt(fd, sockopt::SndBuf).doing("SO_SNDBUF")?);
    explain_buffer(bytes, granted).map_err(|what| Err::<(), _>(Errno::ENOBUFS).doing(&what).unwrap_err())
}

/// Compares the requested size with the granted one, which the kernel doubles for its own structures
/// (socket(7)).
///
/// # Errors
/// A sentence for the user, if the kernel granted less than requested.
fn explain_buffer(requested: usize, granted: usize) -> Result<(), String> {
    if granted / 2 >= requested {
        return Ok(());
    }
    Err(format!(
        "a socket buffer of {requested} bytes was refused: the kernel grants {} (sysctl net.core.rmem_max, \
         net.core.wmem_max)",
        granted / 2
    ))
}

fn unsupported(what: &'static str) -> impl Fn(Errno) -> Refusal {
    move |errno| Refusal::Unsupported(format!("this kernel refuses {what}: {}", errno.desc()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Layer, Role, Workload};

    #[test]
    fn a_buffer_that_is_not_granted_is_refused_with_the_granted_size() {
        assert_eq!(explain_buffer(1_000, 2_000), Ok(()));
        let message = explain_buffer(1_000, 1_998).unwrap_err();
        assert!(
            message.contains("1000") && message.contains("999") && message.contains("rmem_max"),
            "{message}"
        );
        let mut spec = Spec::new(Role::Server, Layer::Udp, Workload::Stream);
        spec.listen = Some("127.0.0.1:0".parse().unwrap());
        for wrong in ["0", "-1", "x"] {
            spec.options.insert("buffer".into(), wrong.into());
            assert_eq!(bind(&spec, Mode::Single, false).unwrap_err().exit_status(), 2, "{wrong}");
        }
        spec.options.insert("buffer".into(), (1 << 29).to_string());
        assert!(bind(&spec, Mode::Single, false).unwrap_err().to_string().contains("refused"));
    }
}
