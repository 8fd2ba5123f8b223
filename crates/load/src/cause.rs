//! Why operations fail: the first cause of each kind. None of it is on the way of an operation that succeeds.

use linerate_contract::{Cause, Causes, ErrorKind};
use nix::errno::Errno;
use std::cell::RefCell;

thread_local! {
    /// A thread is one client with one layer, so what meets a failure notes it here, however deep it is.
    static FIRST: RefCell<Causes> = RefCell::default();
}

/// Keeps the cause if it is the first of its kind; returns the kind.
#[cold]
pub(crate) fn note(kind: ErrorKind, cause: impl FnOnce() -> Cause) -> ErrorKind {
    FIRST.with_borrow_mut(|causes| causes.note(kind, cause));
    kind
}

/// As [`note`], of a refused system call.
#[cold]
pub(crate) fn note_errno(kind: ErrorKind, doing: &str, errno: Errno) -> ErrorKind {
    note(kind, || Cause::new(format!("{doing}: {} ({errno:?})", errno.desc())))
}

/// The causes of this thread, which has none afterwards.
pub(crate) fn take() -> Causes {
    FIRST.take()
}
