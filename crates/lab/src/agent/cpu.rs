//! CPU time of processes with all their descendants, and of the machine's CPUs.

#![allow(unsafe_code, reason = "descriptors that cross a socket arrive as bare numbers")]

use super::session;
use crate::protocol::CpuTime;
use linerate_contract::Nanos;
use nix::cmsg_space;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, UnixAddr, recvmsg, sendmsg};
use nix::unistd::{Pid, SysconfVar, sysconf};
use perf_event::events::Software;
use perf_event::{Builder, ReadFormat};
use std::fs::{self, File};
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixDatagram;

/// The CPU time of a process and of every process that descends from it.
///
/// A perf counter that children inherit (perf_event_open(2), `task-clock`) also counts dead children that the
/// parent did not wait for, as those of sslh-fork; `/proc` loses them. It is used where perf is not allowed.
pub(super) enum ProcessClock {
    Perf(File),
    Proc(Pid),
}

impl ProcessClock {
    /// The clock of a process; its [`ClockMaker`] has already run.
    pub(super) fn new(pid: Pid, receiver: &UnixDatagram) -> Self {
        receive(receiver).map_or(Self::Proc(pid), Self::Perf)
    }

    /// A new clock of a running process: 0 is the caller.
    pub(super) fn of_running(counted: Counter, pid: Pid) -> io::Result<Self> {
        counter(counted, pid).map(|counter| Self::Perf(File::from(counter)))
    }

    /// The clock once more; `None` without perf.
    pub(super) fn copy(&self) -> Option<Self> {
        match self {
            Self::Perf(counter) => counter.try_clone().ok().map(Self::Perf),
            Self::Proc(_) => None,
        }
    }

    pub(super) fn read(&mut self) -> Option<Nanos> {
        match self {
            Self::Perf(counter) => {
                let mut value = [0; 8];
                counter.read_exact(&mut value).ok()?;
                Some(Nanos(u64::from_ne_bytes(value)))
            }
            Self::Proc(pid) => proc_time(*pid),
        }
    }
}

/// Opens the counter in the process itself, before exec. Opened later from outside, it would miss the
/// children of a program that forks at once.
pub(super) struct ClockMaker {
    sender: UnixDatagram,
}

impl ClockMaker {
    /// The maker for the child, and the socket through which the parent receives the counter.
    pub(super) fn pair() -> io::Result<(Self, UnixDatagram)> {
        let (sender, receiver) = UnixDatagram::pair()?;
        receiver.set_nonblocking(true)?;
        Ok((Self { sender }, receiver))
    }

    /// Called between fork and exec. It is no error if perf is not allowed.
    pub(super) fn run(&self) -> io::Result<()> {
        let Ok(counter) = counter(Counter::FromExec, Pid::from_raw(0)) else { return Ok(()) };
        let fds = [counter.as_raw_fd()];
        let rights = [ControlMessage::ScmRights(&fds)];
        sendmsg::<UnixAddr>(
            self.sender.as_raw_fd(),
            &[IoSlice::new(b"c")],
            &rights,
            MsgFlags::empty(),
            None,
        )?;
        Ok(())
    }
}

fn receive(receiver: &UnixDatagram) -> Option<File> {
    let mut byte = [0];
    let mut buffer = [IoSliceMut::new(&mut byte)];
    let mut space = cmsg_space!(RawFd);
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<UnixAddr>(receiver.as_raw_fd(), &mut buffer, Some(&mut space), flags).ok()?;
    let fds = message.cmsgs().ok()?.find_map(|message| match message {
        ControlMessageOwned::ScmRights(fds) => fds.first().copied(),
        _ => None,
    })?;
    // SAFETY: the kernel has just created this descriptor; it has no other owner.
    Some(File::from(unsafe { OwnedFd::from_raw_fd(fds) }))
}

/// When a counter starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counter {
    /// At the process's next exec.
    FromExec,
    Now,
}

fn counter(start: Counter, pid: Pid) -> io::Result<OwnedFd> {
    // A software clock counts all of a task's time, whatever is excluded; with the kernel excluded it is
    // available at perf_event_paranoid 2.
    let counter = Builder::new(Software::TASK_CLOCK)
        .observe_pid(pid.as_raw())
        .any_cpu()
        .inherit(true)
        .exclude_kernel(true)
        .exclude_hv(true)
        .enabled(start == Counter::Now)
        .enable_on_exec(start == Counter::FromExec)
        .read_format(ReadFormat::empty())
        .build()?;
    // SAFETY: `into_raw_fd` gives up the only owner of the descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(counter.into_raw_fd()) })
}

pub(super) fn perf_works() -> bool {
    counter(Counter::FromExec, Pid::from_raw(0)).is_ok()
}

/// User and system time of all processes of `leader`'s session and of the children that they waited for.
fn proc_time(leader: Pid) -> Option<Nanos> {
    let ticks: u64 = session::members(leader).ok()?.iter().filter_map(session::Member::ticks).sum();
    Some(Nanos(ticks * tick_nanos()))
}

/// The line of every CPU in `/proc/stat`.
pub(super) fn cpu_times() -> Vec<CpuTime> {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    stat.lines().filter_map(|line| cpu_time(line, tick_nanos())).collect()
}

/// `cpuN user nice system idle iowait irq softirq steal ...`, in ticks; guest time is part of user time.
fn cpu_time(line: &str, tick: u64) -> Option<CpuTime> {
    let mut fields = line.split_ascii_whitespace();
    let cpu = fields.next()?.strip_prefix("cpu")?.parse().ok()?;
    let times: Vec<u64> = fields.take(8).filter_map(|f| f.parse().ok()).collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal] = times[..] else { return None };
    let busy = user + nice + system + irq + softirq;
    Some(CpuTime {
        cpu,
        total: Nanos((busy + idle + iowait + steal) * tick),
        busy: Nanos(busy * tick),
        interrupts: Nanos((irq + softirq) * tick),
        steal: Nanos(steal * tick),
    })
}

/// The kernel's clock tick in nanoseconds; 10 ms on today's Linux.
fn tick_nanos() -> u64 {
    let per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
    1_000_000_000 / u64::try_from(per_second).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_cpu_is_parsed() {
        let time = cpu_time("cpu1 10 1 5 100 7 2 3 4 0 0", 10).unwrap();
        assert_eq!((time.cpu, time.busy, time.total), (1, Nanos(210), Nanos(1_320)));
        assert_eq!((time.interrupts, time.steal), (Nanos(50), Nanos(40)));
    }

    #[test]
    fn the_sum_of_all_cpus_and_other_lines_are_ignored() {
        assert_eq!(cpu_time("cpu  10 1 5 100 7 2 3 4 0 0", 10), None);
        assert_eq!(cpu_time("intr 5", 10), None);
    }
}
