//! What only the raw socket options tell: how a connection fares, how many bytes it took in and sent out, its cookie,
//! what a socket dropped, and a nudge.

#![allow(unsafe_code, reason = "getsockopt(2) with structures that the nix crate does not have")]

use linerate_contract::TcpInfo;
use nix::errno::Errno;
use std::os::fd::{AsRawFd, OwnedFd};

/// The part of `struct tcp_info` (linux/tcp.h) up to the fields used here, as words; 216 bytes, Linux 4.19.
const WORDS: usize = 27;
const RTT: usize = 68;
const CWND: usize = 80;
const TOTAL_RETRANS: usize = 100;
const BYTES_ACKED: usize = 120;
const BYTES_RECEIVED: usize = 128;
const NOTSENT_BYTES: usize = 144;
const MIN_RTT: usize = 148;
const BYTES_SENT: usize = 200;
const BYTES_RETRANS: usize = 208;
/// Of `enum` in net/tcp_states.h.
const TCP_CLOSE: u8 = 7;
/// The ninth and last number of `SO_MEMINFO`.
const SK_MEMINFO_DROPS: usize = 32;

/// The byte counts of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// Received in order, read or not; the end of input counts as one more (its sequence number).
    pub(crate) received: u64,
    /// Written to the socket, by whomever: sent once, or waiting to be.
    pub(crate) written: u64,
}

pub(crate) fn traffic(socket: &OwnedFd) -> nix::Result<Traffic> {
    let words = words(socket)?;
    let at = |offset: usize| words[offset / 8];
    let not_sent = u64::from(at(NOTSENT_BYTES) as u32);
    Ok(Traffic { received: at(BYTES_RECEIVED), written: at(BYTES_SENT) - at(BYTES_RETRANS) + not_sent })
}

/// How a connection fares.
pub(crate) fn info(socket: &OwnedFd) -> nix::Result<TcpInfo> {
    let words = words(socket)?;
    Ok(TcpInfo {
        retransmits: half(&words, TOTAL_RETRANS),
        rtt_us: half(&words, RTT),
        min_rtt_us: half(&words, MIN_RTT),
        cwnd: half(&words, CWND),
        bytes_sent: words[BYTES_SENT / 8],
        bytes_retransmitted: words[BYTES_RETRANS / 8],
    })
}

/// Bytes that have reached the other end or came from it, as the kernels have told each other.
pub(crate) fn passed(socket: &OwnedFd) -> nix::Result<u64> {
    let words = words(socket)?;
    Ok(words[BYTES_ACKED / 8] + words[BYTES_RECEIVED / 8])
}

/// Both ends have ended the connection, and have said so to each other. One word is asked for: the state is its first byte.
#[inline]
pub(crate) fn is_closed(socket: &OwnedFd) -> bool {
    let mut words = [0_u64];
    get(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut words).is_ok()
        && words[0].to_ne_bytes()[0] == TCP_CLOSE
}

/// Datagrams that found no room at a socket, in its whole life (`SO_MEMINFO`, linux/sock_diag.h).
pub(crate) fn drops(socket: &OwnedFd) -> nix::Result<u64> {
    let mut words = [0_u64; (SK_MEMINFO_DROPS + 8) / 8];
    let length = get(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut words)?;
    if length < SK_MEMINFO_DROPS + 4 { Err(Errno::ENOSYS) } else { Ok(half(&words, SK_MEMINFO_DROPS)) }
}

fn words(socket: &OwnedFd) -> nix::Result<[u64; WORDS]> {
    let mut words = [0_u64; WORDS];
    let length = get(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut words)?;
    if length < size_of_val(&words) { Err(Errno::ENOSYS) } else { Ok(words) }
}

/// The field of four bytes at `offset`, in this machine's order of bytes.
fn half(words: &[u64], offset: usize) -> u64 {
    let bytes = words[offset / 8].to_ne_bytes();
    let at = offset % 8;
    u64::from(u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("the slice has four bytes")))
}

/// The number that the kernel gives a socket for life (socket(7), `SO_COOKIE`).
pub(crate) fn cookie(socket: &OwnedFd) -> nix::Result<u64> {
    let mut cookie = [0_u64];
    get(socket, libc::SOL_SOCKET, libc::SO_COOKIE, &mut cookie)?;
    Ok(cookie[0])
}

/// Makes the kernel look at the input that waits in `socket` as if it had just arrived: setting `SO_RCVLOWAT`, to
/// what it is anyway, announces waiting data again (`tcp_set_rcvlowat()`), and the announcement is what runs a verdict.
pub(crate) fn nudge(socket: &OwnedFd) -> nix::Result<()> {
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
        let info = info(&client).unwrap();
        assert!(info.rtt_us > 0 && info.cwnd > 0 && info.bytes_sent >= 100_000, "{info:?}");
        assert_eq!(passed(&server).unwrap(), 100_001);
        assert_ne!(cookie(&client).unwrap(), cookie(&server).unwrap());
        nudge(&server).unwrap();
    }
}
