//! UDP sockets.

use super::Mode;
use crate::option;
use crate::refusal::{Doing, Refusal};
use crate::socket::{connect_error, socket_address};
use linerate_contract::{ErrorKind, Nanos, Spec};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrLike, SockaddrStorage, getsockname, getsockopt, setsockopt,
    socket, sockopt,
};
use nix::sys::time::TimeVal;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

/// A socket at `listen` of `spec`, and the address it got.
///
/// # Errors
/// The address is taken or is not of this host; a buffer or mode that the kernel does not grant.
pub fn bind(spec: &Spec, mode: Mode) -> Result<(OwnedFd, SocketAddr), Refusal> {
    let address = spec.listen.ok_or_else(|| Refusal::BadSpec("\"listen\" is missing".into()))?;
    let storage = SockaddrStorage::from(address);
    let fd = open(spec, mode, storage.family().expect("an IP address has a family"))?;
    let bound = nix::sys::socket::bind(fd.as_raw_fd(), &storage)
        .and_then(|()| getsockname::<SockaddrStorage>(fd.as_raw_fd()));
    let bound = bound.doing(&format!("listening at {address}, UDP"))?;
    Ok((fd, socket_address(&bound)))
}

/// A socket that sends to `connect` of `spec` and hears nobody else; the second is the kind of failure of its flow.
///
/// # Errors
/// A spec without an address, a buffer or mode that the kernel does not grant.
pub fn connect(spec: &Spec, mode: Mode) -> Result<Result<OwnedFd, ErrorKind>, Refusal> {
    let address = spec.connect.ok_or_else(|| Refusal::BadSpec("\"connect\" is missing".into()))?;
    let storage = SockaddrStorage::from(address);
    let fd = open(spec, mode, storage.family().expect("an IP address has a family"))?;
    let connected = nix::sys::socket::connect(fd.as_raw_fd(), &storage);
    Ok(connected.map(|()| fd).map_err(connect_error))
}

fn open(spec: &Spec, mode: Mode, family: AddressFamily) -> Result<OwnedFd, Refusal> {
    let fd =
        socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None).doing("opening a UDP socket")?;
    if let Some(bytes) = option::number(spec, "buffer", 1..=LARGEST_BUFFER, " bytes")? {
        set_buffers(&fd, bytes as usize)?;
    }
    if mode == Mode::Gso {
        setsockopt(&fd, sockopt::UdpGroSegment, &true).map_err(unsupported("UDP_GRO"))?;
    }
    // A socket that neither takes nor gives for so long is looked at from above: time may be over.
    let look = TimeVal::new(0, LOOK.0 as i64 / 1_000);
    setsockopt(&fd, sockopt::ReceiveTimeout, &look).doing("SO_RCVTIMEO")?;
    setsockopt(&fd, sockopt::SendTimeout, &look).doing("SO_SNDTIMEO")?;
    Ok(fd)
}

/// What the kernel's own maximum is at most (`net.core.rmem_max` is an int).
const LARGEST_BUFFER: u64 = 1 << 30;
/// As often as a client repeats what is not answered (sdk/CONTRACT.md).
const LOOK: Nanos = Nanos(50_000_000);

/// Both buffers, or none: a kernel that silently grants less would make another measurement of it.
fn set_buffers(fd: &OwnedFd, bytes: usize) -> Result<(), Refusal> {
    setsockopt(fd, sockopt::RcvBuf, &bytes).doing("SO_RCVBUF")?;
    setsockopt(fd, sockopt::SndBuf, &bytes).doing("SO_SNDBUF")?;
    let granted = getsockopt(fd, sockopt::RcvBuf).doing("SO_RCVBUF")?;
    let granted = granted.min(getsockopt(fd, sockopt::SndBuf).doing("SO_SNDBUF")?);
    explain_buffer(bytes, granted).map_err(|what| Err::<(), _>(Errno::ENOBUFS).doing(&what).unwrap_err())
}

/// The kernel doubles what it grants (socket(7)), to have room for its own structures.
///
/// # Errors
/// A sentence for the user, if it granted less than was asked for.
pub fn explain_buffer(asked: usize, granted: usize) -> Result<(), String> {
    if granted / 2 >= asked {
        return Ok(());
    }
    Err(format!(
        "a socket buffer of {asked} bytes was refused: the kernel grants {} (sysctl net.core.rmem_max and net.core.wmem_max)",
        granted / 2
    ))
}

fn unsupported(what: &'static str) -> impl Fn(Errno) -> Refusal {
    move |errno| Refusal::Unsupported(format!("this kernel refuses {what}: {}", errno.desc()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Role;

    #[test]
    fn a_buffer_that_is_not_granted_is_refused_with_what_was_granted() {
        assert_eq!(explain_buffer(1_000, 2_000), Ok(()));
        let said = explain_buffer(1_000, 1_998).unwrap_err();
        assert!(said.contains("1000") && said.contains("999") && said.contains("rmem_max"), "{said}");
        let mut spec = Spec::new(Role::Server, "udp", "stream");
        spec.listen = Some("127.0.0.1:0".parse().unwrap());
        for wrong in ["0", "-1", "x"] {
            spec.options.insert("buffer".into(), wrong.into());
            assert_eq!(bind(&spec, Mode::Single).unwrap_err().exit_status(), 2, "{wrong}");
        }
        spec.options.insert("buffer".into(), (1 << 29).to_string());
        assert!(bind(&spec, Mode::Single).unwrap_err().to_string().contains("refused"));
    }
}
