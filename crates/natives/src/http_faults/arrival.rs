//! When bytes arrived at this machine, independent of wake-ups: `SO_TIMESTAMPNS` (socket(7)), over TCP since
//! Linux 4.14.

use linerate_contract::{Nanos, clock};
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use std::io::IoSliceMut;
use std::os::fd::{OwnedFd, RawFd};
use std::time::Duration;

/// Enables the timestamps of a connection.
///
/// # Errors
/// A kernel without `SO_TIMESTAMPNS`.
pub(super) fn enable(socket: &OwnedFd) -> Result<(), Errno> {
    setsockopt(socket, sockopt::ReceiveTimestampns, &true)
}

/// Receives pending bytes; returns their number and when the last of them arrived, or now without a
/// timestamp.
///
/// # Errors
/// As `recvmsg(2)`.
pub(super) fn receive(socket: RawFd, buffer: &mut [u8]) -> Result<(usize, Nanos), Errno> {
    let mut parts = [IoSliceMut::new(buffer)];
    let mut space = nix::cmsg_space!(TimeSpec);
    let message = recvmsg::<()>(socket, &mut parts, Some(&mut space), MsgFlags::empty())?;
    let recorded = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(time) => Some(time),
        _ => None,
    });
    Ok((message.bytes, recorded.map_or_else(clock::now, monotonic)))
}

/// The kernel records the time of day, which may be set at any time: both clocks are read for each
/// conversion.
fn monotonic(recorded: TimeSpec) -> Nanos {
    let ago = clock::time_of_day().since(Duration::from(recorded).into());
    clock::now().since(ago)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    #[test]
    fn the_arrival_time_is_independent_of_when_the_bytes_are_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server: OwnedFd = listener.accept().unwrap().0.into();
        enable(&server).unwrap();
        let mut buffer = [0; 16];
        // The kernel enables timestamps with a short delay.
        let arrived = (0..100).find_map(|_| {
            let before = clock::now();
            client.write_all(b"hello").unwrap();
            std::thread::sleep(Duration::from_millis(20));
            let (count, arrived) = receive(server.as_raw_fd(), &mut buffer).unwrap();
            assert_eq!(&buffer[..count], b"hello");
            let waited = clock::now().since(arrived);
            assert!(arrived.0 + 1_000_000 > before.0, "{arrived:?} is before {before:?}");
            (waited >= Nanos(15_000_000)).then_some(waited)
        });
        assert!(arrived.is_some());
    }
}
