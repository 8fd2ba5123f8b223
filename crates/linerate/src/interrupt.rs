//! Ctrl-C and other signals: a run ends after the current step and reports completed trials.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A flag that is set by the first signal. The second signal ends the process at once; the lab ends with it.
#[must_use]
pub fn watch() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Registration fails only for signals that cannot be caught. The order matters: the second signal
        // must find the flag that the first one set.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag));
        let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
    }
    flag
}
