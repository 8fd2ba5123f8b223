//! The engine's own process: descriptor limit and signals.

use crate::refusal::{Doing, Refusal};
use linerate_contract::Event;
pub use linerate_contract::program::emit;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, RwLock};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// Raises the soft limit of descriptors to the hard one; returns it. The usual soft limit of 1,024 is too low
/// for 10,000 connections.
pub fn raise_descriptor_limit() -> u64 {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return 1024 };
    if setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() { hard } else { soft }
}

/// The environment variable by which a parent requests that this process ends with it: `linerate load` must
/// not leave an engine running.
pub const TIED: &str = "LINERATE_TIED";

/// Requests SIGTERM at the end of the parent, if the parent has set [`TIED`].
pub fn follow_parent() {
    if std::env::var_os(TIED).is_some() {
        // Refused only by sandboxes; the process then ends by itself, or by its own signals.
        let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGTERM);
    }
}

/// SIGTERM and SIGINT, blocked in every thread and received by [`Signals::wait`].
#[derive(Debug)]
pub struct Signals(SigSet);

impl Signals {
    /// Must run before threads start: they inherit the mask.
    ///
    /// # Errors
    /// A failure of pthread_sigmask(3).
    pub fn claim() -> Result<Self, Refusal> {
        let mut set = SigSet::empty();
        set.add(Signal::SIGTERM);
        set.add(Signal::SIGINT);
        set.thread_block().doing("blocking SIGTERM and SIGINT")?;
        Ok(Self(set))
    }

    /// Sleeps until one of them arrives.
    pub fn wait(&self) {
        while self.0.wait().is_err() {}
    }

    /// Says that a server is ready at its address, and sleeps until its end.
    pub fn serve(&self, address: SocketAddr) {
        emit(&Event::Ready { address });
        self.wait();
    }
}

/// Starts a thread. `std::thread::spawn` would abort the process where the system has no thread left.
///
/// # Errors
/// The limit of threads is reached.
pub fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>, Refusal> {
    Builder::new().spawn(work).map_err(|error| no_thread(&error))
}

/// As [`spawn`], of a scope, which joins the threads that were started before.
///
/// # Errors
/// The limit of threads is reached.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, Refusal> {
    Builder::new().spawn_scoped(scope, work).map_err(|error| no_thread(&error))
}

/// Does all of this work at the same time, a thread each: none begins before all threads run.
///
/// # Errors
/// The limit of threads is reached; nothing was begun.
pub fn together<T: Send, W: FnOnce() -> T + Send>(works: Vec<W>) -> Result<Vec<T>, Refusal> {
    let barrier = Barrier::new(works.len());
    let complete = RwLock::new(false);
    std::thread::scope(|scope| {
        let mut decision = complete.write().expect("a panic aborts the process");
        let start = |work: W| {
            let (barrier, complete) = (&barrier, &complete);
            spawn_scoped(scope, move || {
                let is_complete = *complete.read().expect("a panic aborts the process");
                is_complete.then(|| {
                    barrier.wait();
                    work()
                })
            })
        };
        let threads: Result<Vec<_>, _> = works.into_iter().map(start).collect();
        *decision = threads.is_ok();
        drop(decision);
        Ok(threads?.into_iter().filter_map(|t| t.join().expect("a panic aborts the process")).collect())
    })
}

fn no_thread(error: &std::io::Error) -> Refusal {
    Refusal::Failed(std::io::Error::other(format!(
        "starting a thread: {error}; ask for fewer threads, or raise the limit (ulimit -u, or that of the \
         container)"
    )))
}

/// Whether a signal has requested the end; checked between bursts. The default is never requested.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Handles SIGTERM and SIGINT from now on. Must run before threads start.
    ///
    /// # Errors
    /// A failure of pthread_sigmask(3).
    pub fn on_signal() -> Result<Self, Refusal> {
        let signals = Signals::claim()?;
        let stop = Self::default();
        let requested = stop.clone();
        // Not joined: it sleeps until a signal arrives, or until the process ends.
        spawn(move || {
            signals.wait();
            requested.0.store(true, Ordering::Relaxed);
        })?;
        Ok(stop)
    }

    #[inline]
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
