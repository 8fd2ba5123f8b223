//! When bytes came to this machine, and not when a thread was woken for them: `SO_TIMESTAMPNS` (socket(7)), over TCP since Linux 4.14.

use crate::clock;
use linerate_contract::Nanos;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use std::io::IoSliceMut;
use std::os::fd::{OwnedFd, RawFd};
use std::time::Duration;

/// Lets the kernel note when the bytes of a connection come.
///
/// # Errors
/// A kernel without.
pub(super) fn ask(socket: &OwnedFd) -> Result<(), Errno> {
    setsockopt(socket, sockopt::ReceiveTimestampns, &true)
}

/// Bytes that are there, and when the last of them came; now, where the kernel did not note it.
///
/// # Errors
/// As `recvmsg(2)`.
pub(super) fn receive(socket: RawFd, buffer: &mut [u8]) -> Result<(usize, Nanos), Errno> {
    let mut parts = [IoSliceMut::new(buffer)];
    let mut space = nix::cmsg_space!(TimeSpec);
    let message = recvmsg::<()>(socket, &mut parts, Some(&mut space), MsgFlags::empty())?;
    let noted = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(time) => Some(time),
        _ => None,
    });
    Ok((message.bytes, noted.map_or_else(clock::now, monotonic)))
}

/// The kernel notes the time of day, which may be set while a connection stands: both clocks are read each time.
fn monotonic(noted: TimeSpec) -> Nanos {
    let ago = clock::time_of_day().since(Duration::from(noted).into());
    clock::now().since(ago)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    #[test]
    fn what_waited_to_be_read_came_before_it_was_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server: OwnedFd = listener.accept().unwrap().0.into();
        ask(&server).unwrap();
        let mut buffer = [0; 16];
        // The kernel begins to note times a moment after it was asked to.
        let came = (0..100).find_map(|_| {
            let before = clock::now();
            client.write_all(b"hello").unwrap();
            std::thread::sleep(Duration::from_millis(20));
            let (count, came) = receive(server.as_raw_fd(), &mut buffer).unwrap();
            assert_eq!(&buffer[..count], b"hello");
            let waited = clock::now().since(came);
            assert!(came.0 + 1_000_000 > before.0, "{came:?} is before {before:?}");
            (waited >= Nanos(15_000_000)).then_some(waited)
        });
        assert!(came.is_some());
    }
}
