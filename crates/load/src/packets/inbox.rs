//! Datagrams from the kernel: buffers, names and control messages are made once and used again for each call.

use super::{BATCH, BATCH_BYTES, Mode};
use crate::socket::socket_address;
use nix::errno::Errno;
use nix::sys::socket::{SockaddrLike, SockaddrStorage};
use std::mem::zeroed;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

/// Room for what `UDP_GRO` joins: the most that fits a datagram's length field.
const JOINED: usize = 65_535;
/// Joined buffers of one call: more of them would not stay in the cache.
const JOINED_BUFFERS: usize = 4;
/// A control message with one int, and room to spare (cmsg(3)).
const CONTROL: usize = 64;

/// What one call received.
pub struct Inbox {
    mode: Mode,
    buffers: Vec<Box<[u8]>>,
    names: Box<[libc::sockaddr_storage]>,
    _controls: Box<[Control]>,
    _vectors: Box<[libc::iovec]>,
    messages: Box<[libc::mmsghdr]>,
    filled: usize,
}

/// Aligned as `struct cmsghdr` is.
#[repr(align(8))]
#[derive(Debug, Clone, Copy)]
struct Control([u8; CONTROL]);

// SAFETY: the pointers of `messages` and `vectors` lead to the boxes beside them, which move with it and never change
// their place on the heap.
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
    /// For datagrams of up to `longest` bytes: of a longer one, one byte more is told.
    #[must_use]
    pub fn new(mode: Mode, longest: usize) -> Self {
        Self::at_most(mode, longest, usize::MAX)
    }

    /// Takes about so many datagrams with a call, where more would wait: at least one buffer, joined or not.
    #[must_use]
    pub fn at_most(mode: Mode, longest: usize, datagrams: usize) -> Self {
        let length = if mode == Mode::Gso { JOINED } else { longest + 1 };
        let count = match mode {
            Mode::Single => 1,
            Mode::Batch => (BATCH_BYTES / length).min(datagrams).clamp(1, BATCH),
            Mode::Gso => (datagrams / (JOINED / longest.clamp(1, JOINED))).clamp(1, JOINED_BUFFERS),
        };
        let mut buffers: Vec<Box<[u8]>> = (0..count).map(|_| vec![0; length].into()).collect();
        // SAFETY: these are plain C structures, for which all zeros is a value.
        let (mut names, mut messages): (Box<[libc::sockaddr_storage]>, Box<[libc::mmsghdr]>) =
            unsafe { (vec![zeroed(); count].into(), vec![zeroed(); count].into()) };
        let mut controls: Box<[Control]> = vec![Control([0; CONTROL]); count].into();
        let mut vectors: Box<[libc::iovec]> = buffers
            .iter_mut()
            .map(|buffer| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() })
            .collect();
        for (index, message) in messages.iter_mut().enumerate() {
            let header = &mut message.msg_hdr;
            header.msg_name = (&raw mut names[index]).cast();
            header.msg_iov = &raw mut vectors[index];
            header.msg_iovlen = 1;
            header.msg_control = controls[index].0.as_mut_ptr().cast();
        }
        Self { mode, buffers, names, _controls: controls, _vectors: vectors, messages, filled: 0 }
    }

    /// Waits until something is there (as long as the socket's own timeout), and takes what is there at once.
    ///
    /// # Errors
    /// `EAGAIN` if nothing came in time, `ECONNREFUSED` if the peer's host says that nobody listens, others of recvmsg(2).
    #[inline]
    pub fn receive(&mut self, socket: &OwnedFd, wait: bool) -> nix::Result<usize> {
        self.filled = 0;
        for message in &mut self.messages {
            message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            message.msg_hdr.msg_controllen = if self.mode == Mode::Gso { CONTROL } else { 0 };
        }
        let flags = if wait { 0 } else { libc::MSG_DONTWAIT };
        // SAFETY: every header leads to a name, a buffer and a control message of the lengths that it tells, all of them owned
        // by `self` and borrowed for the call.
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

    /// Every datagram of the last call, with its sender.
    #[inline]
    pub fn each(&self, mut look: impl FnMut(SocketAddr, &[u8])) {
        for (index, message) in self.messages[..self.filled].iter().enumerate() {
            let header = &message.msg_hdr;
            let bytes = &self.buffers[index][..message.msg_len as usize];
            let Some(from) = sender(&self.names[index], header.msg_namelen) else { continue };
            match self.segment(index) {
                // An empty datagram is one, too.
                Some(segment) if !bytes.is_empty() => {
                    bytes.chunks(segment).for_each(|bytes| look(from, bytes))
                }
                _ => look(from, bytes),
            }
        }
    }

    /// The length of the datagrams that the kernel joined, if it did.
    #[inline]
    fn segment(&self, index: usize) -> Option<usize> {
        if self.mode != Mode::Gso {
            return None;
        }
        // SAFETY: the kernel has filled the control message that the header leads to and told its length there; the macros
        // stay within it, and data may stand anywhere, so it is read unaligned.
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

/// `None` of a socket that does not tell it.
#[inline]
fn sender(name: &libc::sockaddr_storage, length: libc::socklen_t) -> Option<SocketAddr> {
    // SAFETY: the kernel wrote `length` bytes of an address there.
    let storage = unsafe { SockaddrStorage::from_raw(std::ptr::from_ref(name).cast(), Some(length)) };
    storage.map(|storage| socket_address(&storage))
}
