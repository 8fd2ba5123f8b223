//! The time slice of a process.

#![allow(unsafe_code, reason = "sched_setattr(2) has no wrapper")]

use linerate_contract::Nanos;
use nix::libc;

/// `struct sched_attr` of sched_setattr(2), first version.
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Requests this slice for the calling process and its children. Linux has it for normal processes from 6.12
/// on (100 µs to 100 ms); older kernels ignore it, and so is a refusal.
pub(super) fn request(slice: Nanos) {
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice: 0,
        priority: 0,
        runtime: slice.0,
        deadline: 0,
        period: 0,
    };
    // SAFETY: the pointer is to a structure of the given size, which outlives the call.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}
