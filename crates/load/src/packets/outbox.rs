//! Datagrams of equal size that differ by their first eight bytes alone: what a UDP stream sends, a burst a call.
//!
//! All of a burst share the content in memory, each has its header; the kernel puts them together.

use super::Mode;
use linerate_contract::datagram::HEADER;
use nix::errno::Errno;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};

/// A control message with one u16 (`UDP_SEGMENT`), padded as cmsg(3) wants.
const CONTROL: usize = 24;

/// A burst, ready to be numbered and sent.
pub struct Burst {
    mode: Mode,
    most: usize,
    content: Box<[u8]>,
    headers: Box<[[u8; HEADER]]>,
    _vectors: Box<[libc::iovec]>,
    messages: Box<[libc::mmsghdr]>,
    control: Box<Control>,
}

#[repr(align(8))]
struct Control([u8; CONTROL]);

// SAFETY: the pointers of `messages` and `vectors` lead to the boxes beside them, which move with it and never change
// their place on the heap.
unsafe impl Send for Burst {}

impl std::fmt::Debug for Burst {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Burst").field("mode", &self.mode).field("most", &self.most).finish_non_exhaustive()
    }
}

impl Burst {
    /// Datagrams of `HEADER` and this content.
    #[must_use]
    pub fn new(mode: Mode, content: &[u8]) -> Self {
        let size = HEADER + content.len();
        let most = mode.most(size);
        let mut content: Box<[u8]> = content.into();
        let mut headers: Box<[[u8; HEADER]]> = vec![[0; HEADER]; most].into();
        let mut vectors: Vec<libc::iovec> = Vec::with_capacity(2 * most);
        for header in &mut headers {
            vectors.push(libc::iovec { iov_base: header.as_mut_ptr().cast(), iov_len: HEADER });
            vectors.push(libc::iovec { iov_base: content.as_mut_ptr().cast(), iov_len: content.len() });
        }
        let mut vectors: Box<[libc::iovec]> = vectors.into();
        let count = if mode == Mode::Gso { 1 } else { most };
        // SAFETY: mmsghdr is a plain C structure, for which all zeros is a value.
        let mut messages: Box<[libc::mmsghdr]> = unsafe { vec![zeroed(); count].into() };
        for (index, message) in messages.iter_mut().enumerate() {
            message.msg_hdr.msg_iov = &raw mut vectors[2 * index];
            message.msg_hdr.msg_iovlen = 2;
        }
        let mut burst = Self {
            mode,
            most,
            content,
            headers,
            _vectors: vectors,
            messages,
            control: Box::new(Control([0; CONTROL])),
        };
        burst.tell_segment(size);
        burst
    }

    /// How many datagrams a call takes at most.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most
    }

    /// Bytes of each.
    #[must_use]
    pub fn size(&self) -> usize {
        HEADER + self.content.len()
    }

    /// Sends `count` datagrams, numbered from `first` on; tells how many went.
    ///
    /// # Errors
    /// `EAGAIN` if the socket took none in time, `ECONNREFUSED` if nobody listens, others of sendmsg(2).
    #[inline]
    pub fn send(&mut self, socket: &OwnedFd, first: u64, count: usize) -> nix::Result<usize> {
        let count = count.min(self.most);
        for (number, header) in (first..).zip(&mut self.headers[..count]) {
            *header = number.to_le_bytes();
        }
        let flags = libc::MSG_NOSIGNAL;
        // SAFETY: every header leads to vectors, and those to headers and content, of the lengths that they tell, all of them
        // owned by `self` and borrowed for the call.
        unsafe {
            if self.mode == Mode::Batch {
                let sent = libc::sendmmsg(
                    socket.as_raw_fd(),
                    self.messages.as_mut_ptr(),
                    count as libc::c_uint,
                    flags as _,
                );
                return Errno::result(sent).map(|sent| sent as usize);
            }
            let header = &mut self.messages[0].msg_hdr;
            if self.mode == Mode::Gso {
                header.msg_iovlen = 2 * count;
                header.msg_controllen = if count > 1 { CONTROL } else { 0 };
            }
            Errno::result(libc::sendmsg(socket.as_raw_fd(), header, flags)).map(|_| count)
        }
    }

    /// The control message that says where the kernel cuts.
    fn tell_segment(&mut self, size: usize) {
        if self.mode != Mode::Gso {
            return;
        }
        let header = &mut self.messages[0].msg_hdr;
        header.msg_control = self.control.0.as_mut_ptr().cast();
        header.msg_controllen = CONTROL;
        // SAFETY: the control buffer is aligned, zeroed and as long as the header tells, which is room for one message with a
        // u16; the macros stay within it.
        unsafe {
            let control = libc::CMSG_FIRSTHDR(header);
            (*control).cmsg_level = libc::SOL_UDP;
            (*control).cmsg_type = libc::UDP_SEGMENT;
            (*control).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as libc::c_uint) as _;
            std::ptr::write_unaligned(libc::CMSG_DATA(control).cast::<u16>(), size as u16);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Inbox, Mode};
    use super::*;
    use std::net::UdpSocket;

    /// What is sent in any mode comes in any mode, cut and joined by the kernel, with the same bytes.
    #[test]
    fn every_mode_talks_to_every_mode() {
        for (out, size) in [(Mode::Single, 1_472), (Mode::Batch, 64), (Mode::Gso, 1_472), (Mode::Gso, 65_507)]
        {
            for inward in [Mode::Single, Mode::Batch, Mode::Gso] {
                let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
                receiver.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
                let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
                sender.connect(receiver.local_addr().unwrap()).unwrap();
                let from = sender.local_addr().unwrap();
                let (sender, receiver) = (OwnedFd::from(sender), OwnedFd::from(receiver));
                if inward == Mode::Gso {
                    nix::sys::socket::setsockopt(&receiver, nix::sys::socket::sockopt::UdpGroSegment, &true)
                        .unwrap();
                }
                let content = linerate_contract::page(size - HEADER);
                let mut burst = Burst::new(out, &content);
                let mut inbox = Inbox::new(inward, size);
                let (wanted, mut sent, mut came) = (5.min(burst.most() * 2), 0, Vec::new());
                while sent < wanted {
                    sent += burst.send(&sender, sent as u64, wanted - sent).unwrap();
                }
                while came.len() < wanted {
                    inbox.receive(&receiver, true).unwrap();
                    inbox.each(|who, bytes| {
                        assert_eq!((who, &bytes[HEADER..]), (from, &content[..]), "{out:?} {inward:?}");
                        came.push(u64::from_le_bytes(bytes[..HEADER].try_into().unwrap()));
                    });
                }
                assert_eq!(came, (0..wanted as u64).collect::<Vec<_>>(), "{out:?} {inward:?}");
            }
        }
    }
}
