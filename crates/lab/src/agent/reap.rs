//! The end of processes: all that have ended are reaped, and all that are left are killed.

#![allow(unsafe_code, reason = "no safe wrapper returns the resources of a process that has ended")]

use crate::protocol::ExitStatus;
use linerate_contract::Bytes;
use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use std::mem::MaybeUninit;

/// Reaps dead children without waiting for running ones.
pub(super) fn reap_all() -> Vec<(Pid, ExitStatus, Bytes)> {
    let mut dead = Vec::new();
    loop {
        let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
        // SAFETY: both pointers are to variables of their types that outlive the call.
        let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
        // SAFETY: an rusage consists of numbers, so zeroes are valid, and so are the kernel's values.
        let peak = Bytes(unsafe { usage.assume_init() }.ru_maxrss as u64 * 1024);
        match WaitStatus::from_raw(Pid::from_raw(pid.max(0)), status) {
            _ if pid < 0 && Errno::last() == Errno::EINTR => {}
            _ if pid <= 0 => return dead, // none has ended; ECHILD: none is left
            Ok(WaitStatus::Exited(pid, code)) => dead.push((pid, ExitStatus::Code(code), peak)),
            Ok(WaitStatus::Signaled(pid, signal, _)) => {
                dead.push((pid, ExitStatus::Signal(signal as i32), peak))
            }
            _ => {}
        }
    }
}

/// Kills and reaps every process of the pid namespace but the agent, which is its pid 1.
pub(super) fn kill_all() {
    // Outside of a private pid namespace this would end the user's session.
    assert_eq!(nix::unistd::getpid(), Pid::from_raw(1), "the agent is pid 1");
    while kill(Pid::from_raw(-1), Signal::SIGKILL).is_ok() {
        if waitpid(Pid::from_raw(-1), None) == Err(Errno::ECHILD) {
            return;
        }
    }
    reap_all();
}
