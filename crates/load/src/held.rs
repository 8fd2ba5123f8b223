//! A limit of what peers make this process keep: for each connection, and for all of them together.
//!
//! Unfinished messages, frames and responses that are not read are kept until they are complete or sent. A
//! few bytes of them are each connection's own; what is beyond is taken from [`SHARED`] bytes of the process
//! and given back. The shared counter changes when what is beyond changes, so honest peers never touch it.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of all connections of the process beyond their own: one WebSocket message of the longest kind and
/// half of another. With what 4,000 connections have themselves it is below 64 MiB.
pub(crate) const SHARED: usize = 24 << 20;
/// The bytes that each connection may keep beside the shared ones: twice the fields of a usual request on
/// some streams.
const OWN: usize = 4 << 10;
/// The most of one connection of HTTP/2 or HTTP/3: four messages with the longest fields.
const MOST: usize = 256 << 10;
/// Fewer connections leave little.
const MANY: usize = 64;
/// The rest of the shared bytes.
static LEFT: AtomicUsize = AtomicUsize::new(SHARED);

/// One connection's part of [`SHARED`]; given back when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Held(usize);

impl Held {
    /// The connection keeps `bytes` now; false if that is more than one may, or more than is left for it: the
    /// connection has to end.
    #[inline]
    pub(crate) fn keeps(&mut self, bytes: usize) -> bool {
        let beyond = bytes.saturating_sub(OWN);
        beyond == self.0 || bytes <= MOST && self.resize(beyond)
    }

    /// Takes `bytes` in place of what it has; false if so much is not left.
    #[cold]
    pub(crate) fn resize(&mut self, bytes: usize) -> bool {
        let has = self.0;
        let take = |left: usize| (left + has).checked_sub(bytes);
        let is_granted = LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        if is_granted {
            self.0 = bytes;
        }
        is_granted
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.0
    }
}

/// Whether less is left of the shared bytes than this.
#[inline]
pub(crate) fn is_scarce(bytes: usize) -> bool {
    LEFT.load(Ordering::Relaxed) < bytes
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.0 > 0 {
            LEFT.fetch_add(self.0, Ordering::Relaxed);
        }
    }
}

/// Whether memory of connections that have ended is to be given back: the allocator keeps it for later ones.
#[derive(Debug, Default)]
pub(crate) struct Surplus {
    /// The most connections since the last time.
    most: usize,
}

impl Surplus {
    /// Whether most of many connections have ended since the last time.
    #[inline]
    pub(crate) fn is_due(&mut self, connections: usize) -> bool {
        self.most = self.most.max(connections);
        let is_due = self.most >= MANY && connections <= self.most / 4;
        if is_due {
            self.most = connections;
        }
        is_due
    }
}

/// Returns to the system what the allocator has left.
#[cold]
#[allow(unsafe_code, reason = "malloc_trim(3) has no safe form")]
pub(crate) fn give_back() {
    // SAFETY: malloc_trim(3) may be called at any time by any thread, and touches free memory alone.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    static ALONE: Mutex<()> = Mutex::new(());

    /// The shared bytes are one counter of the process: tests that use up all of them take turns.
    pub(crate) fn alone() -> MutexGuard<'static, ()> {
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn left() -> usize {
        LEFT.load(Ordering::Relaxed)
    }

    #[test]
    fn a_connection_has_a_limit_and_all_have_one_that_is_given_back() {
        let _alone = alone();
        let mut one = Held::default();
        assert!(one.keeps(OWN) && left() == SHARED, "its own bytes are not shared");
        assert!(one.keeps(MOST) && !one.keeps(MOST + 1));
        let mut several: Vec<Held> = (0..200).map(|_| Held::default()).collect();
        let granted = several.iter_mut().filter_map(|held| held.keeps(MOST).then_some(())).count();
        assert_eq!(granted, SHARED / (MOST - OWN) - 1);
        assert!(one.keeps(0) && several[199].keeps(MOST), "what one gives back another one takes");
        drop((one, several));
        assert_eq!(left(), SHARED);
    }
}
