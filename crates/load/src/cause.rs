//! Why operations fail: the first cause of each kind. None of it is on the way of an operation that succeeds.

use crate::process::emit;
use linerate_contract::{Cause, Causes, ErrorKind, Errors, Event, PeerFailures};
use nix::errno::Errno;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

thread_local! {
    /// A thread is one client with one layer, so what meets a failure notes it here, however deep it is.
    static FIRST: RefCell<Causes> = RefCell::default();
}

/// The failures of a server's peers, by all threads: they are rare, so a lock costs nothing that is measured.
static PEERS: Mutex<PeerFailures> =
    Mutex::new(PeerFailures { errors: Errors(BTreeMap::new()), causes: Causes(BTreeMap::new()) });

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

/// A peer of a server has failed, with the cause that this thread has noted; the first of a kind is printed.
/// Clients leave when they have what they want, so that a connection that just ends is no failure.
#[cold]
pub(crate) fn peer_failed(kind: ErrorKind) {
    if matches!(kind, ErrorKind::Reset | ErrorKind::EmptyResponse) {
        return;
    }
    let mut peers = PEERS.lock().unwrap_or_else(PoisonError::into_inner);
    peers.errors.add(kind, 1);
    if peers.errors.0[&kind] == 1 {
        if let Some(cause) = FIRST.with_borrow(|causes| causes.0.get(&kind).cloned()) {
            peers.causes.note(kind, || Cause { text: of_client(&cause.text), ..cause });
        }
        emit(&Event::Peers(peers.clone()));
    }
}

/// A text about a server, as a server says it about its client.
fn of_client(text: &str) -> String {
    let refused = "the server asks for a certificate that it accepts";
    text.replace(refused, "the client refuses the certificate").replace("the server", "the client")
}

/// Prints what the peers of a server have done wrong, if they have.
pub(crate) fn print_peers() {
    let peers = PEERS.lock().unwrap_or_else(PoisonError::into_inner);
    if !peers.errors.0.is_empty() {
        emit(&Event::Peers(peers.clone()));
    }
}
