//! The calls that send datagrams, for all modes: `sendmsg(2)`, `sendmmsg(2)` and the control message
//! `UDP_SEGMENT`.

use nix::errno::Errno;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};

/// A control message `UDP_SEGMENT` (udp(7)): the kernel cuts the bytes of the message into datagrams of this
/// size. Laid out as cmsg(3) requires: the header, then the data, padded to the alignment of the header.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct SegmentSize {
    header: libc::cmsghdr,
    bytes: u16,
}

impl SegmentSize {
    pub(crate) fn new(bytes: u16) -> Self {
        // SAFETY: cmsghdr is a plain C structure; all zeros is a valid value.
        let mut header: libc::cmsghdr = unsafe { zeroed() };
        header.cmsg_len = (size_of::<libc::cmsghdr>() + size_of::<u16>()) as _;
        header.cmsg_level = libc::SOL_UDP;
        header.cmsg_type = libc::UDP_SEGMENT;
        Self { header, bytes }
    }

    /// Length of the control buffer (`msg_controllen`).
    pub(crate) const LENGTH: usize = size_of::<Self>();
}

/// Sends one message.
///
/// # Safety
/// Every pointer of `message` is null or points to memory of the length beside it, valid during the call.
///
/// # Errors
/// `sendmsg(2)` fails.
#[inline]
pub(crate) unsafe fn send_one(socket: &OwnedFd, message: *const libc::msghdr) -> nix::Result<()> {
    // SAFETY: the caller's promise.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), message, libc::MSG_NOSIGNAL) };
    Errno::result(sent).map(drop)
}

/// Sends `count` messages; returns how many were sent, at least one.
///
/// # Safety
/// `messages` points to `count` headers, and each of them is as [`send_one`] requires.
///
/// # Errors
/// `sendmmsg(2)` fails before the first message is sent.
#[inline]
pub(crate) unsafe fn send_many(
    socket: &OwnedFd,
    messages: *mut libc::mmsghdr,
    count: usize,
) -> nix::Result<usize> {
    let flags = libc::MSG_NOSIGNAL;
    // SAFETY: the caller's promise.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), messages, count as libc::c_uint, flags as _) };
    Errno::result(sent).map(|sent| sent as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the macros of cmsg(3).
    #[test]
    fn the_segment_size_is_laid_out_as_cmsg_requires() {
        let message = SegmentSize::new(1_472);
        // SAFETY: CMSG_SPACE and CMSG_LEN only compute; the data is read within `message`.
        unsafe {
            assert_eq!(SegmentSize::LENGTH, libc::CMSG_SPACE(size_of::<u16>() as _) as usize);
            assert_eq!(message.header.cmsg_len, libc::CMSG_LEN(size_of::<u16>() as _) as usize);
            let data = libc::CMSG_DATA(&raw const message.header);
            assert_eq!(
                data.offset_from((&raw const message).cast()),
                std::mem::offset_of!(SegmentSize, bytes) as isize
            );
        }
        assert_eq!(message.bytes, 1_472);
    }
}
