//! What only the raw socket options tell: how many bytes a connection took in and sent out, its cookie, and a nudge.

#![allow(unsafe_code, reason = "getsockopt(2) with structures that the nix crate does not have")]

use nix::errno::Errno;
use std::os::fd::{AsRawFd, OwnedFd};

/// The part of `struct tcp_info` (linux/tcp.h) up to the fields used here, as words; 216 bytes, Linux 4.19.
const WORDS: usize = 27;
const BYTES_RECEIVED: usize = 128;
const NOTSENT_BYTES: usize = 144;
const BYTES_SENT: usize = 200;
const BYTES_RETRANS: usize = 208;

/// The byte counts of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Traffic {
    /// Received in order, read or not; the end of input counts as one more (its sequence number).
    pub(super) received: u64,
    /// Written to the socket, by whomever: sent once, or waiting to be.
    pub(super) written: u64,
}

pub(super) fn traffic(socket: &OwnedFd) -> nix::Result<Traffic> {
    let mut words = [0_u64; WORDS];
    let length = get(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut words)?;
    if length < size_of_val(&words) {
        return Err(Errno::ENOSYS);
    }
    let at = |offset: usize| words[offset / 8];
    let not_sent = u64::from(at(NOTSENT_BYTES) as u32);
    Ok(Traffic { received: at(BYTES_RECEIVED), written: at(BYTES_SENT) - at(BYTES_RETRANS) + not_sent })
}

/// The number that the kernel gives a socket for life (socket(7), `SO_COOKIE`).
pub(super) fn cookie(socket: &OwnedFd) -> nix::Result<u64> {
    let mut cookie = [0_u64];
    get(socket, libc::SOL_SOCKET, libc::SO_COOKIE, &mut cookie)?;
    Ok(cookie[0])
}

/// Makes the kernel look at the input that waits in `socket` as if it had just arrived: setting `SO_RCVLOWAT`, to
/// what it is anyway, announces waiting data again (`tcp_set_rcvlowat()`), and the announcement is what runs a verdict.
pub(super) fn nudge(socket: &OwnedFd) -> nix::Result<()> {
    let one: libc::c_int = 1;
    // SAFETY: setsockopt(2) reads one c_int at the pointer, which is borrowed for the call.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            std::ptr::from_ref(&one).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    Errno::result(outcome).map(drop)
}

/// Fills `words` as far as the kernel has them, and tells how many bytes that is.
fn get(socket: &OwnedFd, level: libc::c_int, name: libc::c_int, words: &mut [u64]) -> nix::Result<usize> {
    let mut length = size_of_val(words) as libc::socklen_t;
    // SAFETY: getsockopt(2) writes at most `length` bytes at `words`, which is so long and borrowed for the call; any
    // bytes are valid integers.
    let outcome = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, words.as_mut_ptr().cast(), &raw mut length)
    };
    Errno::result(outcome).map(|_| length as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};

    #[test]
    fn what_one_end_wrote_is_what_the_other_received_and_the_end_counts_one() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut server = listener.accept().unwrap().0;
        client.write_all(&[7; 100_000]).unwrap_or_else(|e| panic!("{e}"));
        client.shutdown(Shutdown::Write).unwrap();
        let mut all = Vec::new();
        server.read_to_end(&mut all).unwrap();
        let (client, server) = (OwnedFd::from(client), OwnedFd::from(server));
        assert_eq!(traffic(&client).unwrap().written, 100_000);
        assert_eq!(traffic(&server).unwrap(), Traffic { received: 100_001, written: 0 });
        assert_ne!(cookie(&client).unwrap(), cookie(&server).unwrap());
        nudge(&server).unwrap();
    }
}
