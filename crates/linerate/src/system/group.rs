//! A process of a package or a build, with all that it starts: they end together.

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};

/// A child that leads a process group of its own.
pub(super) struct ChildGroup(Child);

impl ChildGroup {
    pub(super) fn spawn(command: &mut Command) -> io::Result<Self> {
        command.process_group(0).spawn().map(Self)
    }

    /// True if the child has ended. Its pid stays its own until [`Self::end`].
    pub(super) fn has_ended(&self) -> io::Result<bool> {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        Ok(waitid(Id::Pid(self.pid()), flags)? != WaitStatus::StillAlive)
    }

    /// Ends what is left of the group; the status of a child that had ended is its own.
    pub(super) fn end(mut self) -> io::Result<ExitStatus> {
        let _ = killpg(self.pid(), Signal::SIGKILL);
        self.0.wait()
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.0.id() as i32)
    }
}
