//! Datagrams of different length and destination, sent with as few calls as the mode allows.

use super::{BATCH, MAX_SEGMENTS, Mode, SegmentSize, send_many, send_one};
use nix::errno::Errno;
use nix::sys::socket::{SockaddrLike, SockaddrStorage};
use std::mem::zeroed;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// Bytes that the kernel accepts at once: the payload limit of a UDP datagram over IPv4.
const JOINED: usize = linerate_contract::datagram::LARGEST;

/// Datagrams that wait to leave through one socket.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    bytes: Vec<u8>,
    /// Where each datagram ends, and its destination (`None`: the socket is connected).
    ends: Vec<(usize, Option<SocketAddr>)>,
}

impl SendQueue {
    /// Queues one datagram.
    #[inline]
    pub(crate) fn push(&mut self, datagram: &[u8], to: Option<SocketAddr>) {
        self.bytes.extend_from_slice(datagram);
        self.ends.push((self.bytes.len(), to));
    }

    /// Sends all queued datagrams. Those that the socket does not accept are dropped: protocols send them
    /// again, like any lost datagram.
    ///
    /// # Errors
    /// `ECONNREFUSED`: the peer's port is closed.
    pub(crate) fn send(&mut self, socket: &OwnedFd, mode: Mode) -> nix::Result<()> {
        let mut refused = Ok(());
        let (mut from, mut index) = (0, 0);
        while index < self.ends.len() {
            let outcome = match mode {
                Mode::Single => self.send_run(socket, index, from, 1),
                Mode::Batch => self.send_batch(socket, index, from),
                Mode::Gso => self.send_run(socket, index, from, self.run_length(index, from)),
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

    #[cfg(any(test, fuzzing))]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    #[cfg(any(test, fuzzing))]
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn send_batch(&self, socket: &OwnedFd, index: usize, mut from: usize) -> nix::Result<usize> {
        let mut names = [None::<SockaddrStorage>; BATCH];
        // SAFETY: these are plain C structures; all zeros is a valid value.
        let (mut vectors, mut messages): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) = unsafe { zeroed() };
        let count = (self.ends.len() - index).min(BATCH);
        for (at, (end, to)) in self.ends[index..index + count].iter().enumerate() {
            vectors[at] = vector(&self.bytes[from..*end]);
            names[at] = to.map(SockaddrStorage::from);
            from = *end;
        }
        let first = vectors.as_mut_ptr();
        for (at, message) in messages[..count].iter_mut().enumerate() {
            message.msg_hdr.msg_iov = first.wrapping_add(at);
            message.msg_hdr.msg_iovlen = 1;
            set_name(&mut message.msg_hdr, &names[at]);
        }
        // SAFETY: each of the `count` headers leads to a name and a vector of the lengths beside the
        // pointers, all of them alive until the call returns.
        unsafe { send_many(socket, messages.as_mut_ptr(), count) }
    }

    /// The number of datagrams from `index` on that have the same destination and the length of the first;
    /// the last one may be shorter.
    fn run_length(&self, index: usize, from: usize) -> usize {
        let (end, to) = self.ends[index];
        let length = end - from;
        let (mut count, mut at) = (1, end);
        for (end, other) in &self.ends[index + 1..] {
            if *other != to || end - at > length || end - from > JOINED || count == MAX_SEGMENTS {
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
        let mut segment = SegmentSize::new((self.ends[index].0 - from) as u16);
        let (storage, mut vector) = (to.map(SockaddrStorage::from), vector(&self.bytes[from..end]));
        // SAFETY: msghdr is a plain C structure; all zeros is a valid value.
        let mut header: libc::msghdr = unsafe { zeroed() };
        header.msg_iov = &raw mut vector;
        header.msg_iovlen = 1;
        set_name(&mut header, &storage);
        if count > 1 {
            header.msg_control = (&raw mut segment).cast();
            header.msg_controllen = SegmentSize::LENGTH;
        }
        // SAFETY: the header leads to a name, a vector and a control message of the lengths beside the
        // pointers, all of them alive until the call returns.
        unsafe { send_one(socket, &raw const header) }.map(|()| count)
    }
}

fn vector(bytes: &[u8]) -> libc::iovec {
    // The kernel only reads; iovec has one type for both directions.
    libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}

fn set_name(header: &mut libc::msghdr, storage: &Option<SockaddrStorage>) {
    if let Some(storage) = storage {
        header.msg_name = storage.as_ptr().cast_mut().cast();
        header.msg_namelen = storage.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn datagrams_of_any_length_are_sent_unchanged_and_in_order() {
        for mode in [Mode::Single, Mode::Batch, Mode::Gso] {
            let receivers = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
            let socket = OwnedFd::from(UdpSocket::bind("127.0.0.1:0").unwrap());
            let mut queue = SendQueue::default();
            let lengths = [1_000, 1_000, 400, 1_000, 1_400, 1, 1_400];
            for (number, length) in lengths.iter().enumerate() {
                for receiver in &receivers {
                    queue.push(&vec![number as u8; *length], Some(receiver.local_addr().unwrap()));
                }
            }
            // Several in a row to one peer.
            let to = Some(receivers[0].local_addr().unwrap());
            (0..3).for_each(|_| queue.push(&[9; 700], to));
            queue.send(&socket, mode).unwrap();
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
