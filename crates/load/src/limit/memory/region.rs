//! The shared memory: for each pair a lane there and a lane back, of a number and the message's words.

#![allow(unsafe_code, reason = "memory that two processes map has no owner that Rust could check")]

use crate::refusal::{Doing, Refusal};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::sys::stat::fstat;
use nix::unistd::ftruncate;
use std::ffi::c_void;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of a cache line.
const LINE: usize = 8;
/// Half of this machine's memory would be a mistake; 1 GiB is 16,384 pairs of the longest messages.
const LARGEST: usize = 1 << 30;

/// Memory that is mapped until it is dropped.
#[derive(Debug)]
pub(super) struct Region {
    start: NonNull<c_void>,
    /// Words of one lane, and of the whole.
    lane: usize,
    words: usize,
}

// SAFETY: the mapping belongs to the region alone, and is only accessed through atomics.
unsafe impl Send for Region {}

impl Region {
    /// Bytes of memory for `pairs` pairs and messages of `size` bytes.
    ///
    /// # Errors
    /// More than is sensible.
    pub(super) fn length(pairs: usize, size: usize) -> Result<NonZeroUsize, Refusal> {
        let length = lane(size).checked_mul(16).and_then(|two| two.checked_mul(pairs));
        length.and_then(NonZeroUsize::new).filter(|n| n.get() <= LARGEST).ok_or_else(|| {
            Refusal::BadSpec(format!("{pairs} pairs of {size} bytes do not fit into shared memory"))
        })
    }

    /// Creates the file for [`Self::map`]. Its size is sealed.
    ///
    /// # Errors
    /// A size as of [`Self::length`], or a refused system call.
    pub(super) fn create(pairs: usize, size: usize) -> Result<OwnedFd, Refusal> {
        let length = Self::length(pairs, size)?;
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let file = memfd_create("linerate-limit", flags).doing("memfd_create")?;
        ftruncate(&file, length.get() as i64).doing("ftruncate")?;
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).doing("sealing the shared memory")?;
        Ok(file)
    }

    /// Maps a file that cannot shrink: access to a page behind the end of a file ends the process (SIGBUS).
    ///
    /// # Errors
    /// A file that is too short, or whose size is not sealed; a refused system call.
    pub(super) fn map(file: impl AsFd, pairs: usize, size: usize) -> Result<Self, Refusal> {
        let length = Self::length(pairs, size)?;
        let seals = fcntl(&file, FcntlArg::F_GET_SEALS).map(SealFlag::from_bits_retain);
        let is_sealed = seals.is_ok_and(|seals| seals.contains(SealFlag::F_SEAL_SHRINK));
        let found = fstat(&file).doing("fstat")?.st_size;
        if !is_sealed || found < length.get() as i64 {
            let text =
                "the shared memory is too short, or its size is not sealed: both ends need one version";
            return Err(Refusal::Failed(io::Error::other(text)));
        }
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing of this process.
        let start = unsafe {
            mmap(None, length, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED, file, 0)
        };
        Ok(Self {
            start: start.doing("mapping the shared memory")?,
            lane: lane(size),
            words: length.get() / 8,
        })
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is `words` words long, page-aligned, zeroed by the kernel, and lives as long as
        // `self`; atomics may change under a shared reference, also by another process.
        unsafe { std::slice::from_raw_parts(self.start.cast::<AtomicU64>().as_ptr(), self.words) }
    }

    /// The lane of a pair: there (client to server) or back.
    pub(super) fn lane(&self, pair: usize, back: bool) -> Lane<'_> {
        let start = (2 * pair + usize::from(back)) * self.lane;
        Lane(&self.words()[start..start + self.lane])
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map`, and no lane outlives the region. It can only fail if it were
        // not mapped.
        let _ = unsafe { munmap(self.start, self.words * 8) };
    }
}

/// Words of a lane: the number and the message, in whole cache lines.
fn lane(size: usize) -> usize {
    (1 + size.div_ceil(8)).next_multiple_of(LINE)
}

/// One direction of one pair.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lane<'a>(&'a [AtomicU64]);

impl Lane<'_> {
    /// The number of the message that lies here whole.
    #[inline]
    pub(super) fn number(self) -> u64 {
        self.0[0].load(Ordering::Acquire)
    }

    /// Puts the message's words here, then its number.
    #[inline]
    pub(super) fn write(self, number: u64, words: &[u64]) {
        for (place, word) in self.0[1..].iter().zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
        self.0[0].store(number, Ordering::Release);
    }

    /// Copies the words out.
    #[inline]
    pub(super) fn read(self, words: &mut [u64]) {
        for (word, place) in words.iter_mut().zip(&self.0[1..]) {
            *word = place.load(Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;

    #[test]
    fn a_small_message_and_its_number_are_one_cache_line() {
        assert_eq!(lane(1), LINE);
        assert_eq!(lane(56), LINE);
        assert_eq!(lane(57), 2 * LINE);
        assert_eq!(Region::length(2, 56).unwrap().get(), 4 * 64);
        assert!(Region::length(0, 1).is_err());
        assert!(Region::length(usize::MAX, 1).is_err());
    }

    #[test]
    fn memory_that_a_peer_could_shrink_is_not_mapped() {
        let file = Region::create(2, 56).unwrap();
        assert_eq!(ftruncate(&file, 0), Err(Errno::EPERM));
        assert!(Region::map(&file, 2, 56).is_ok());
        assert!(Region::map(&file, 200, 56).is_err(), "it is too short");
        let open = memfd_create("linerate-limit", MFdFlags::MFD_ALLOW_SEALING).unwrap();
        ftruncate(&open, 1 << 20).unwrap();
        assert!(Region::map(&open, 2, 56).is_err(), "it is not sealed");
    }
}
