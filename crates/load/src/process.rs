//! What the engine asks of its own process: descriptors and signals.

use crate::refusal::{Doing, Refusal};
pub use linerate_contract::program::emit;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Lifts the soft limit of descriptors to the hard one; returns it. A shell's soft 1,024 would end a run of
/// 10,000 connections.
pub fn raise_descriptor_limit() -> u64 {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return 1024 };
    if setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() { hard } else { soft }
}

/// The variable by which a parent asks to be the reason to live: `linerate load` must not leave an engine behind.
pub const TIED: &str = "LINERATE_TIED";

/// Ends with the parent, if it asked for that.
pub fn follow_parent() {
    if std::env::var_os(TIED).is_some() {
        // Refused only by sandboxes; the task then ends by itself, or by its own signals.
        let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGTERM);
    }
}

/// SIGTERM and SIGINT, taken away from every thread and kept for [`Signals::wait`].
#[derive(Debug)]
pub struct Signals(SigSet);

impl Signals {
    /// Must run before threads start: they inherit the mask.
    ///
    /// # Errors
    /// Where the kernel refuses the mask.
    pub fn claim() -> Result<Self, Refusal> {
        let mut set = SigSet::empty();
        set.add(Signal::SIGTERM);
        set.add(Signal::SIGINT);
        set.thread_block().doing("blocking SIGTERM and SIGINT")?;
        Ok(Self(set))
    }

    /// Sleeps until one of them comes.
    pub fn wait(&self) {
        while self.0.wait().is_err() {}
    }
}

/// Whether a signal has asked the task to end; looked at between bursts. The default is never asked.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Watches for SIGTERM and SIGINT from now on. Must run before threads start.
    ///
    /// # Errors
    /// Where the kernel refuses the mask.
    pub fn on_signal() -> Result<Self, Refusal> {
        let signals = Signals::claim()?;
        let stop = Self::default();
        let asked = stop.clone();
        // Not joined: it sleeps until a signal comes, or until the process is gone.
        std::thread::spawn(move || {
            signals.wait();
            asked.0.store(true, Ordering::Relaxed);
        });
        Ok(stop)
    }

    #[inline]
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
