//! A packet socket of one link: frames come from a ring that the kernel fills (packet(7), the kernel's
//! `Documentation/networking/packet_mmap.rst`), and leave by send(2).
//!
//! A ring, because its size is not limited by `net.core.rmem_max`, which a user cannot change, and because
//! its frames have the time of their arrival: the delay does not include the relay's own waking up.

#![allow(unsafe_code, reason = "packet sockets and their ring have no safe wrapper")]

use linerate_contract::Nanos;
use nix::errno::Errno;
use nix::libc;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// `struct virtio_net_hdr`: before each frame, which checksums are still to be computed.
const VIRTIO_HEADER: usize = 10;
/// Length of a ring: 5,000 frames of 1,500 bytes, more than any queue of an endpoint sends at once.
const RING: usize = 8 << 20;
/// Blocks of the ring; a frame must fit into one.
const BLOCK: usize = 128 << 10;
/// Headers of the ring and of Ethernet before the packet.
const FRAME_HEADERS: usize = 256;

/// Reads from and writes to one link.
#[derive(Debug)]
pub(super) struct LinkSocket {
    fd: OwnedFd,
    ring: *mut u8,
    frame: usize,
    frames: usize,
    next: usize,
}

/// A frame of the ring, which the kernel uses again after it is dropped.
pub(super) struct Frame<'a> {
    header: *mut libc::tpacket2_hdr,
    /// With the virtio header.
    pub(super) bytes: &'a [u8],
    /// `CLOCK_REALTIME` of the arrival.
    pub(super) at: Nanos,
    /// True if the ring has been full since the last call of [`LinkSocket::overruns`].
    pub(super) is_losing: bool,
}

impl LinkSocket {
    /// Opens a socket for the link with this index in the current network namespace.
    pub(super) fn open(index: u32, mtu: u32) -> Result<Self, String> {
        let failed = |what: &str| {
            let reason = std::io::Error::last_os_error();
            format!("a packet socket ({what}): {reason}; the relay needs CAP_NET_RAW and AF_PACKET")
        };
        let flags = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // Protocol 0: nothing is received before it is bound.
        // SAFETY: no pointers.
        let fd = unsafe { libc::socket(libc::AF_PACKET, flags, 0) };
        if fd < 0 {
            return Err(failed("socket"));
        }
        // SAFETY: the descriptor is open and nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let frame = (mtu as usize + FRAME_HEADERS).next_power_of_two();
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: (RING / BLOCK) as u32,
            tp_frame_size: frame as u32,
            tp_frame_nr: (RING / frame) as u32,
        };
        set(&fd, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as libc::c_int))
            .ok_or_else(|| failed("PACKET_VERSION"))?;
        set(&fd, libc::PACKET_VNET_HDR, &1_i32).ok_or_else(|| failed("PACKET_VNET_HDR"))?;
        // What the relay sends itself is not for it. Old kernels lack the first and do not need it: a socket
        // does not receive what it sends itself.
        let _ = set(&fd, libc::PACKET_IGNORE_OUTGOING, &1_i32);
        // No queueing discipline between this and the other end of the link.
        let _ = set(&fd, libc::PACKET_QDISC_BYPASS, &1_i32);
        set(&fd, libc::PACKET_RX_RING, &request).ok_or_else(|| failed("PACKET_RX_RING"))?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, of the length that the ring was made with.
        let ring =
            unsafe { libc::mmap(std::ptr::null_mut(), RING, access, libc::MAP_SHARED, fd.as_raw_fd(), 0) };
        if ring == libc::MAP_FAILED {
            return Err(failed("mmap"));
        }
        // SAFETY: all zeroes is a valid sockaddr_ll.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index as i32;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address outlives the call and has this length.
        if unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) } < 0 {
            return Err(failed("bind"));
        }
        Ok(Self { fd, ring: ring.cast(), frame, frames: RING / frame, next: 0 })
    }

    /// The next frame that has arrived.
    pub(super) fn receive(&mut self) -> Option<Frame<'_>> {
        // SAFETY: `next` is below the number of frames, and each begins with this header, aligned to 16.
        let header: *mut libc::tpacket2_hdr = unsafe { self.ring.add(self.next * self.frame) }.cast();
        // SAFETY: kernel and process both access the status as an aligned 32-bit word.
        let status = unsafe { AtomicU32::from_ptr(&raw mut (*header).tp_status) }.load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        self.next = (self.next + 1) % self.frames;
        // SAFETY: the status gives the frame to this process until it is set back.
        let (start, length, seconds, nanos) = unsafe {
            let h = &*header;
            (usize::from(h.tp_mac) - VIRTIO_HEADER, h.tp_snaplen as usize, h.tp_sec, h.tp_nsec)
        };
        let length = (VIRTIO_HEADER + length).min(self.frame - start);
        // SAFETY: within the frame, which belongs to this process while the value exists.
        let bytes = unsafe { std::slice::from_raw_parts(header.cast::<u8>().add(start), length) };
        let at = Nanos(u64::from(seconds) * 1_000_000_000 + u64::from(nanos));
        Some(Frame { header, bytes, at, is_losing: status & libc::TP_STATUS_LOSING != 0 })
    }

    /// Sends a frame with its virtio header; false if the link did not accept it.
    pub(super) fn send(&self, frame: &[u8]) -> bool {
        let fd = self.fd.as_raw_fd();
        loop {
            // SAFETY: the buffer outlives the call and has this length.
            let sent = unsafe { libc::send(fd, frame.as_ptr().cast(), frame.len(), libc::MSG_DONTWAIT) };
            if sent >= 0 || Errno::last() != Errno::EINTR {
                return sent >= 0;
            }
        }
    }

    /// Frames for which the ring had no room since the last call.
    pub(super) fn overruns(&self) -> u64 {
        let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        let (fd, to) = (self.fd.as_raw_fd(), (&raw mut statistics).cast());
        // SAFETY: the structure outlives the call and has this length.
        unsafe { libc::getsockopt(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS, to, &raw mut length) };
        u64::from(statistics.tp_drops)
    }
}

impl AsFd for LinkSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for LinkSocket {
    fn drop(&mut self) {
        // SAFETY: the mapping of `open`, which nothing refers to any more: frames borrow the socket.
        unsafe { libc::munmap(self.ring.cast(), RING) };
    }
}

impl Frame<'_> {
    /// Bytes on the link.
    pub(super) fn length(&self) -> u64 {
        (self.bytes.len() - VIRTIO_HEADER) as u64
    }
}

impl Drop for Frame<'_> {
    fn drop(&mut self) {
        // SAFETY: as in `receive`; the frame is the kernel's again, and nothing here refers to it any more.
        let status = unsafe { AtomicU32::from_ptr(&raw mut (*self.header).tp_status) };
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }
}

/// `None` if the kernel refuses.
fn set<T>(fd: &OwnedFd, option: libc::c_int, value: &T) -> Option<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value outlives the call and has this length.
    let set = unsafe {
        libc::setsockopt(fd.as_raw_fd(), libc::SOL_PACKET, option, (&raw const *value).cast(), length)
    };
    (set == 0).then_some(())
}
