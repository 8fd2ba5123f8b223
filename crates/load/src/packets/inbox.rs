//! Received datagrams: buffers, addresses and control messages are allocated once and reused for every call.

use super::{BATCH, BATCH_BYTES, Mode};
use crate::socket::socket_address;
use nix::errno::Errno;
use nix::sys::socket::{SockaddrLike, SockaddrStorage};
use std::mem::zeroed;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

/// Bytes of a buffer for joined datagrams (`UDP_GRO`): the largest value of a datagram's length field.
const JOINED: usize = 65_535;
/// Joined buffers per call: more would not stay in the cache.
const JOINED_BUFFERS: usize = 4;
/// Bytes of a control message with one int, rounded up generously (cmsg(3)).
const CONTROL: usize = 64;

/// The datagrams of one call.
///
/// Its parts point to each other. They are `Vec`s of fixed length and not boxes, and all pointers are made by
/// `as_mut_ptr`: moving a box, or borrowing the whole slice again, would invalidate pointers into it.
pub struct Inbox {
    mode: Mode,
    /// A buffer of `length` bytes for each message.
    buffers: Vec<u8>,
    length: usize,
    names: Vec<libc::sockaddr_storage>,
    messages: Vec<libc::mmsghdr>,
    _controls: Vec<ControlBuffer>,
    _vectors: Vec<libc::iovec>,
    filled: usize,
}

/// Aligned as `struct cmsghdr` is. Read only through the pointers of `messages`.
#[allow(dead_code, reason = "the kernel writes it, and the macros of cmsg(3) read it")]
#[repr(align(8))]
#[derive(Debug, Clone, Copy)]
struct ControlBuffer([u8; CONTROL]);

// SAFETY: the pointers of `messages` and `_vectors` point to the heap memory of the other fields, which moves
// with the inbox and is never reallocated.
unsafe impl Send for Inbox {}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox")
            .field("mode", &self.mode)
            .field("filled", &self.filled)
            .finish_non_exhaustive()
    }
}

impl Inbox {
    /// An inbox for datagrams of up to `longest` bytes; a longer one is reported with one byte more.
    pub(crate) fn new(mode: Mode, longest: usize) -> Self {
        Self::with_limit(mode, longest, usize::MAX)
    }

    /// Receives about `datagrams` per call at most: at least one buffer, joined or not.
    pub(crate) fn with_limit(mode: Mode, longest: usize, datagrams: usize) -> Self {
        let length = if mode == Mode::Gso { JOINED } else { longest + 1 };
        let count = match mode {
            Mode::Single => 1,
            Mode::Batch => (BATCH_BYTES / length).min(datagrams).clamp(1, BATCH),
            Mode::Gso => (datagrams / (JOINED / longest.clamp(1, JOINED))).clamp(1, JOINED_BUFFERS),
        };
        let mut buffers = vec![0; count * length];
        // SAFETY: these are plain C structures; all zeros is a valid value.
        let (mut names, mut messages): (Vec<libc::sockaddr_storage>, Vec<libc::mmsghdr>) =
            unsafe { (vec![zeroed(); count], vec![zeroed(); count]) };
        let mut controls = vec![ControlBuffer([0; CONTROL]); count];
        let buffer = |index| buffers.as_mut_ptr().wrapping_add(index * length).cast();
        let mut vectors: Vec<_> =
            (0..count).map(buffer).map(|iov_base| libc::iovec { iov_base, iov_len: length }).collect();
        for (index, message) in messages.iter_mut().enumerate() {
            let header = &mut message.msg_hdr;
            header.msg_name = names.as_mut_ptr().wrapping_add(index).cast();
            header.msg_iov = vectors.as_mut_ptr().wrapping_add(index);
            header.msg_iovlen = 1;
            header.msg_control = controls.as_mut_ptr().wrapping_add(index).cast();
        }
        Self { mode, buffers, length, names, messages, _controls: controls, _vectors: vectors, filled: 0 }
    }

    /// Receives what is there with one call. With `wait`, waits for the first datagram as long as the
    /// socket's own timeout.
    ///
    /// # Errors
    /// `EAGAIN` if nothing arrived in time, `ECONNREFUSED` if the peer's port is closed, others of
    /// recvmsg(2).
    #[inline]
    pub fn receive(&mut self, socket: &OwnedFd, wait: bool) -> nix::Result<usize> {
        self.filled = 0;
        for message in &mut self.messages {
            message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            message.msg_hdr.msg_controllen = if self.mode == Mode::Gso { CONTROL } else { 0 };
        }
        let flags = if wait { 0 } else { libc::MSG_DONTWAIT };
        // SAFETY: every header leads to a name, a buffer and a control message of the lengths beside the
        // pointers, all owned by `self`, which is borrowed for the call.
        let got = unsafe {
            if self.mode == Mode::Single {
                let message = &mut self.messages[0];
                let length = libc::recvmsg(socket.as_raw_fd(), &raw mut message.msg_hdr, flags);
                message.msg_len = length.max(0) as libc::c_uint;
                if length < 0 { -1 } else { 1 }
            } else {
                libc::recvmmsg(
                    socket.as_raw_fd(),
                    self.messages.as_mut_ptr(),
                    self.messages.len() as libc::c_uint,
                    flags | libc::MSG_WAITFORONE,
                    std::ptr::null_mut(),
                )
            }
        };
        self.filled = Errno::result(got)? as usize;
        Ok(self.filled)
    }

    /// Whether the last call has used all buffers, so that the socket may have more.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.filled == self.messages.len()
    }

    /// Calls `handle` for every datagram of the last call, with its sender.
    #[inline]
    pub fn each(&self, mut handle: impl FnMut(SocketAddr, &[u8])) {
        for (index, message) in self.messages[..self.filled].iter().enumerate() {
            let header = &message.msg_hdr;
            let bytes = &self.buffers[index * self.length..][..message.msg_len as usize];
            let Some(from) = sender(&self.names[index], header.msg_namelen) else { continue };
            match self.segment(index) {
                // An empty datagram counts as well.
                Some(segment) if !bytes.is_empty() => {
                    bytes.chunks(segment).for_each(|bytes| handle(from, bytes))
                }
                _ => handle(from, bytes),
            }
        }
    }

    /// The size of the datagrams that the kernel joined, if it did.
    #[inline]
    fn segment(&self, index: usize) -> Option<usize> {
        if self.mode != Mode::Gso {
            return None;
        }
        // SAFETY: the kernel has filled the control message and set its length in the header; the macros stay
        // within it. The data may be unaligned and is read so.
        unsafe {
            let header = &raw const self.messages[index].msg_hdr;
            let mut control = libc::CMSG_FIRSTHDR(header);
            while !control.is_null() {
                if (*control).cmsg_level == libc::SOL_UDP && (*control).cmsg_type == libc::UDP_GRO {
                    let length = std::ptr::read_unaligned(libc::CMSG_DATA(control).cast::<libc::c_int>());
                    return usize::try_from(length).ok().filter(|length| *length > 0);
                }
                control = libc::CMSG_NXTHDR(header, control);
            }
        }
        None
    }
}

/// The sender's address; `None` where the kernel reports none.
#[inline]
fn sender(name: &libc::sockaddr_storage, length: libc::socklen_t) -> Option<SocketAddr> {
    // SAFETY: the kernel wrote `length` bytes of an address there.
    let storage = unsafe { SockaddrStorage::from_raw(std::ptr::from_ref(name).cast(), Some(length)) };
    storage.map(|storage| socket_address(&storage))
}
