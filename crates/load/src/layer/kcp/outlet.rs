//! Where conversations put their datagrams: one buffer for a socket, emptied with as few calls as the mode allows.

#![allow(unsafe_code, reason = "sendmmsg(2) and UDP_SEGMENT over datagrams of different length")]

use crate::packets::Mode;
use nix::errno::Errno;
use nix::sys::socket::{SockaddrLike, SockaddrStorage};
use std::cell::RefCell;
use std::io;
use std::mem::zeroed;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;

/// Datagrams of one call of `sendmmsg(2)`.
const BATCH: usize = 64;
/// What the kernel cuts at once: `UDP_MAX_SEGMENTS` of kernels before 6.9, and the length field of a datagram.
const SEGMENTS: usize = 64;
const JOINED: usize = 65_507;
/// A control message with one u16, padded as cmsg(3) wants.
const CONTROL: usize = 24;

/// What waits to leave through one socket.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    /// Where each datagram ends, and whom it is for (`None`: the socket is connected).
    ends: Vec<(usize, Option<SocketAddr>)>,
}

/// A conversation's end of an outbox. All of them are of one thread.
#[derive(Debug, Clone)]
pub(super) struct Outlet {
    pub(super) outbox: Rc<RefCell<Outbox>>,
    pub(super) to: Option<SocketAddr>,
}

impl io::Write for Outlet {
    /// A whole datagram.
    fn write(&mut self, datagram: &[u8]) -> io::Result<usize> {
        let mut outbox = self.outbox.borrow_mut();
        outbox.bytes.extend_from_slice(datagram);
        let end = outbox.bytes.len();
        outbox.ends.push((end, self.to));
        Ok(datagram.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Outbox {
    /// Sends all that waits. What the socket does not take is dropped: KCP sends it again, as it does with all that is lost.
    ///
    /// # Errors
    /// `ECONNREFUSED`: nobody listens.
    pub(super) fn send(&mut self, socket: &OwnedFd, mode: Mode) -> nix::Result<()> {
        let mut refused = Ok(());
        let (mut from, mut index) = (0, 0);
        while index < self.ends.len() {
            let outcome = match mode {
                Mode::Single => self.send_run(socket, index, from, 1),
                Mode::Batch => self.send_batch(socket, index, from),
                Mode::Gso => self.send_run(socket, index, from, self.run(index, from)),
            };
            let sent = match outcome {
                Ok(sent) => sent,
                Err(Errno::EINTR) => continue,
                Err(Errno::ECONNREFUSED) => {
                    refused = Err(Errno::ECONNREFUSED);
                    1
                }
                Err(_) => 1,
            };
            index += sent;
            from = self.ends[index - 1].0;
        }
        self.bytes.clear();
        self.ends.clear();
        refused
    }

    fn send_batch(&self, socket: &OwnedFd, index: usize, mut from: usize) -> nix::Result<usize> {
        let mut names = [None::<SockaddrStorage>; BATCH];
        // SAFETY: these are plain C structures, for which all zeros is a value.
        let (mut vectors, mut messages): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) = unsafe { zeroed() };
        let count = (self.ends.len() - index).min(BATCH);
        for (at, (end, to)) in self.ends[index..index + count].iter().enumerate() {
            vectors[at] = vector(&self.bytes[from..*end]);
            names[at] = to.map(SockaddrStorage::from);
            let header = &mut messages[at].msg_hdr;
            header.msg_iov = &raw mut vectors[at];
            header.msg_iovlen = 1;
            name(header, &names[at]);
            from = *end;
        }
        // SAFETY: every header leads to a name and a vector of the lengths that it tells, which live until the call returns.
        let sent = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr(),
                count as libc::c_uint,
                libc::MSG_NOSIGNAL as _,
            )
        };
        Errno::result(sent).map(|sent| sent as usize)
    }

    /// How many datagrams from `index` on are for the same peer and as long as the first; the last may be shorter.
    fn run(&self, index: usize, from: usize) -> usize {
        let (end, to) = self.ends[index];
        let length = end - from;
        let (mut count, mut at) = (1, end);
        for (end, other) in &self.ends[index + 1..] {
            if *other != to || end - at > length || end - from > JOINED || count == SEGMENTS {
                break;
            }
            count += 1;
            if end - at < length {
                break;
            }
            at = *end;
        }
        count
    }

    /// Sends a run of `count` datagrams with one call.
    fn send_run(&self, socket: &OwnedFd, index: usize, from: usize, count: usize) -> nix::Result<usize> {
        let (end, to) = (self.ends[index + count - 1].0, self.ends[index].1);
        let segment = (self.ends[index].0 - from) as u16;
        let (storage, mut vector) = (to.map(SockaddrStorage::from), vector(&self.bytes[from..end]));
        let mut control = [0_u64; CONTROL / 8];
        // SAFETY: msghdr is a plain C structure, for which all zeros is a value.
        let mut header: libc::msghdr = unsafe { zeroed() };
        header.msg_iov = &raw mut vector;
        header.msg_iovlen = 1;
        name(&mut header, &storage);
        if count > 1 {
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = CONTROL;
            // SAFETY: the control buffer is aligned and has room for one message with a u16; the macros stay within it.
            unsafe {
                let message = libc::CMSG_FIRSTHDR(&raw const header);
                (*message).cmsg_level = libc::SOL_UDP;
                (*message).cmsg_type = libc::UDP_SEGMENT;
                (*message).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as libc::c_uint) as _;
                std::ptr::write_unaligned(libc::CMSG_DATA(message).cast::<u16>(), segment);
            }
        }
        // SAFETY: the header leads to a name, a vector and a control message of the lengths that it tells, which live until
        // the call returns.
        let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL) };
        Errno::result(sent).map(|_| count)
    }
}

fn vector(bytes: &[u8]) -> libc::iovec {
    // The kernel only reads from it; iovec has one type for both ways.
    libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}

fn name(header: &mut libc::msghdr, storage: &Option<SockaddrStorage>) {
    if let Some(storage) = storage {
        header.msg_name = storage.as_ptr().cast_mut().cast();
        header.msg_namelen = storage.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::UdpSocket;

    #[test]
    fn datagrams_of_any_length_leave_as_they_were_put_in() {
        for mode in [Mode::Single, Mode::Batch, Mode::Gso] {
            let receivers = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
            let socket = OwnedFd::from(UdpSocket::bind("127.0.0.1:0").unwrap());
            let outbox = Rc::new(RefCell::new(Outbox::default()));
            let lengths = [1_000, 1_000, 400, 1_000, 1_400, 1, 1_400];
            for (number, length) in lengths.iter().enumerate() {
                for receiver in &receivers {
                    let to = Some(receiver.local_addr().unwrap());
                    let mut outlet = Outlet { outbox: outbox.clone(), to };
                    outlet.write_all(&vec![number as u8; *length]).unwrap();
                }
            }
            // Of one peer in a row, too.
            let to = Some(receivers[0].local_addr().unwrap());
            let mut outlet = Outlet { outbox: outbox.clone(), to };
            (0..3).for_each(|_| outlet.write_all(&[9; 700]).unwrap());
            outbox.borrow_mut().send(&socket, mode).unwrap();
            for (index, receiver) in receivers.iter().enumerate() {
                receiver.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
                let mut buffer = [0; 2_000];
                let mut expected: Vec<(usize, u8)> =
                    lengths.iter().enumerate().map(|(number, length)| (*length, number as u8)).collect();
                expected.extend(vec![(700, 9); if index == 0 { 3 } else { 0 }]);
                for (length, number) in expected {
                    assert_eq!(receiver.recv(&mut buffer).unwrap(), length, "{mode:?}");
                    assert!(buffer[..length].iter().all(|byte| *byte == number));
                }
            }
        }
    }
}
