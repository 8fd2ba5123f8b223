//! Ctrl-C and its like: the run ends after what it is doing, and reports what it has.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A flag that the first signal raises. The second one ends the process at once: the kernel takes the lab with it.
#[must_use]
pub fn watch() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Registration fails for signals that cannot be caught, and these can. In this order: the second signal
        // finds the flag that the first one raised.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag));
        let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
    }
    flag
}
