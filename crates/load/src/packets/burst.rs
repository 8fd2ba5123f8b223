//! Datagrams of equal size that differ in their first eight bytes only: what a UDP stream sends, one burst
//! per call.
//!
//! The datagrams of a burst share their content in memory and have a header each; the kernel joins the two.

use super::Mode;
use super::send::{SegmentSize, send_many, send_one};
use linerate_contract::datagram::HEADER;
use std::mem::zeroed;
use std::os::fd::OwnedFd;

/// A burst, ready to be numbered and sent.
///
/// Its parts point to each other. They are `Vec`s of fixed length and not boxes, and all pointers are made by
/// `as_mut_ptr`: moving a box, or borrowing the whole slice again, would invalidate pointers into it.
pub(crate) struct Burst {
    mode: Mode,
    max: usize,
    headers: Vec<[u8; HEADER]>,
    messages: Vec<libc::mmsghdr>,
    _content: Vec<u8>,
    _vectors: Vec<libc::iovec>,
    _segment: Vec<SegmentSize>,
}

// SAFETY: the pointers of `messages` and `_vectors` point to the heap memory of the other fields, which moves
// with the burst and is never reallocated.
unsafe impl Send for Burst {}

impl std::fmt::Debug for Burst {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Burst").field("mode", &self.mode).field("max", &self.max).finish_non_exhaustive()
    }
}

impl Burst {
    /// Datagrams of `HEADER` bytes and this content.
    pub(crate) fn new(mode: Mode, content: &[u8]) -> Self {
        let size = HEADER + content.len();
        let max = mode.max_datagrams(size);
        let mut content = content.to_vec();
        let mut headers = vec![[0; HEADER]; max];
        let first = headers.as_mut_ptr();
        let mut vectors: Vec<libc::iovec> = Vec::with_capacity(2 * max);
        for index in 0..max {
            let header = first.wrapping_add(index);
            vectors.push(libc::iovec { iov_base: header.cast(), iov_len: HEADER });
            vectors.push(libc::iovec { iov_base: content.as_mut_ptr().cast(), iov_len: content.len() });
        }
        let count = if mode == Mode::Gso { 1 } else { max };
        // SAFETY: mmsghdr is a plain C structure; all zeros is a valid value.
        let mut messages: Vec<libc::mmsghdr> = unsafe { vec![zeroed(); count] };
        for (index, message) in messages.iter_mut().enumerate() {
            message.msg_hdr.msg_iov = vectors.as_mut_ptr().wrapping_add(2 * index);
            message.msg_hdr.msg_iovlen = 2;
        }
        let mut segment = vec![SegmentSize::new(size as u16)];
        if mode == Mode::Gso {
            messages[0].msg_hdr.msg_control = segment.as_mut_ptr().cast();
        }
        Self { mode, max, headers, messages, _content: content, _vectors: vectors, _segment: segment }
    }

    /// The largest number of datagrams per call.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// Sends up to `count` datagrams, numbered from `first` on; returns how many were sent.
    ///
    /// # Errors
    /// `EAGAIN` if the socket accepted none in time, `ECONNREFUSED` if the port is closed, others of
    /// sendmsg(2).
    #[inline]
    pub(crate) fn send(&mut self, socket: &OwnedFd, first: u64, count: usize) -> nix::Result<usize> {
        let count = count.min(self.max);
        for (number, header) in (first..).zip(&mut self.headers[..count]) {
            *header = number.to_le_bytes();
        }
        if self.mode == Mode::Batch {
            // SAFETY: `count` is at most the number of messages, and each leads to vectors, headers and
            // content of the lengths beside the pointers, all owned by `self`, which is borrowed for the
            // call.
            return unsafe { send_many(socket, self.messages.as_mut_ptr(), count) };
        }
        let header = &mut self.messages[0].msg_hdr;
        if self.mode == Mode::Gso {
            header.msg_iovlen = 2 * count;
            header.msg_controllen = if count > 1 { SegmentSize::LENGTH } else { 0 };
        }
        // SAFETY: as above; the control message is owned by `self`, too.
        unsafe { send_one(socket, header) }.map(|()| count)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Inbox, Mode};
    use super::*;
    use std::net::UdpSocket;

    /// The kernel cuts and joins datagrams; the bytes are the same.
    #[test]
    fn every_sending_mode_works_with_every_receiving_mode() {
        for (sending, size) in
            [(Mode::Single, 1_472), (Mode::Batch, 64), (Mode::Gso, 1_472), (Mode::Gso, 65_507)]
        {
            for receiving in [Mode::Single, Mode::Batch, Mode::Gso] {
                let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
                receiver.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
                let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
                sender.connect(receiver.local_addr().unwrap()).unwrap();
                let from = sender.local_addr().unwrap();
                let (sender, receiver) = (OwnedFd::from(sender), OwnedFd::from(receiver));
                if receiving == Mode::Gso {
                    nix::sys::socket::setsockopt(&receiver, nix::sys::socket::sockopt::UdpGroSegment, &true)
                        .unwrap();
                }
                let content = linerate_contract::page(size - HEADER);
                let mut burst = Burst::new(sending, &content);
                let mut inbox = Inbox::new(receiving, size);
                let (wanted, mut sent, mut received) = (5.min(burst.max() * 2), 0, Vec::new());
                while sent < wanted {
                    sent += burst.send(&sender, sent as u64, wanted - sent).unwrap();
                }
                while received.len() < wanted {
                    inbox.receive(&receiver, true).unwrap();
                    inbox.each(|sender, bytes| {
                        assert_eq!(
                            (sender, &bytes[HEADER..]),
                            (from, &content[..]),
                            "{sending:?} {receiving:?}"
                        );
                        received.push(u64::from_le_bytes(bytes[..HEADER].try_into().unwrap()));
                    });
                }
                assert_eq!(received, (0..wanted as u64).collect::<Vec<_>>(), "{sending:?} {receiving:?}");
            }
        }
    }
}
