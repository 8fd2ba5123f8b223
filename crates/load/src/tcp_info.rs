//! Raw socket options of the kernel: the state and the statistics of a connection, and dropped datagrams.

#![allow(unsafe_code, reason = "getsockopt(2) with structures that the nix crate does not have")]

use linerate_contract::TcpInfo;
use nix::errno::Errno;
use nix::sys::socket::{SockaddrStorage, getpeername};
use std::os::fd::{AsRawFd, OwnedFd};

/// The part of `struct tcp_info` (linux/tcp.h) up to the fields used here, as words; 216 bytes, Linux 4.19.
const WORDS: usize = 27;
const RTT: usize = 68;
const CWND: usize = 80;
const TOTAL_RETRANS: usize = 100;
const MIN_RTT: usize = 148;
const BYTES_SENT: usize = 200;
const BYTES_RETRANS: usize = 208;
/// Byte offset of the ninth and last number of `SO_MEMINFO`.
const SK_MEMINFO_DROPS: usize = 32;

/// Retransmissions, round-trip times and congestion window of a connection.
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

/// Acknowledgements that this network has sent late, of all its connections (`DelayedACKs` of proc(5)).
pub(crate) fn delayed_acks() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/net/netstat").ok()?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let mut named = names.split_whitespace().zip(values.split_whitespace());
    named.find(|(name, _)| *name == "DelayedACKs")?.1.parse().ok()
}

/// The connection is in state CLOSE: both ends have closed it and have acknowledged that. A socket in that
/// state has no peer; getpeername(2) is cheaper than a `TCP_INFO`, which the kernel fills as a whole.
#[inline]
pub(crate) fn is_closed(socket: &OwnedFd) -> bool {
    getpeername::<SockaddrStorage>(socket.as_raw_fd()) == Err(Errno::ENOTCONN)
}

/// Datagrams that a socket has dropped since it was opened (`SO_MEMINFO`, linux/sock_diag.h).
///
/// # Errors
/// As getsockopt(2); `ENOSYS` if the kernel does not count them.
pub fn drops(socket: &OwnedFd) -> nix::Result<u64> {
    let mut words = [0_u64; (SK_MEMINFO_DROPS + 8) / 8];
    let length = get(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut words)?;
    if length < SK_MEMINFO_DROPS + 4 { Err(Errno::ENOSYS) } else { Ok(half(&words, SK_MEMINFO_DROPS)) }
}

fn words(socket: &OwnedFd) -> nix::Result<[u64; WORDS]> {
    let mut words = [0_u64; WORDS];
    let length = get(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut words)?;
    if length < size_of_val(&words) { Err(Errno::ENOSYS) } else { Ok(words) }
}

/// The field of four bytes at byte `offset`, in native byte order.
fn half(words: &[u64], offset: usize) -> u64 {
    let bytes = words[offset / 8].to_ne_bytes();
    let at = offset % 8;
    u64::from(u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("the slice has four bytes")))
}

/// Reads a socket option into `words`; returns the number of bytes that the kernel wrote.
fn get(socket: &OwnedFd, level: libc::c_int, name: libc::c_int, words: &mut [u64]) -> nix::Result<usize> {
    let mut length = size_of_val(words) as libc::socklen_t;
    // SAFETY: getsockopt(2) writes at most `length` bytes at `words`, its size, borrowed for the call; any
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
    fn the_statistics_have_the_bytes_that_were_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut server = listener.accept().unwrap().0;
        client.write_all(&[7; 100_000]).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        server.read_to_end(&mut Vec::new()).unwrap();
        let info = info(&OwnedFd::from(client)).unwrap();
        assert!(info.rtt_us > 0 && info.cwnd > 0 && info.bytes_sent >= 100_000, "{info:?}");
    }

    #[test]
    fn a_connection_is_closed_only_when_both_ends_have_closed_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = listener.accept().unwrap().0;
        let client = OwnedFd::from(client);
        assert!(!is_closed(&client));
        server.shutdown(Shutdown::Write).unwrap();
        assert!(!is_closed(&client));
        nix::sys::socket::shutdown(client.as_raw_fd(), nix::sys::socket::Shutdown::Write).unwrap();
        let closed = (0..1_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            is_closed(&client)
        });
        assert!(closed);
    }
}
