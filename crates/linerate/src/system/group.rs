//! A process of a package or a build, with all that it starts: they end together.

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus};

/// A child that leads a process group of its own.
#[derive(Debug)]
pub(crate) struct ChildGroup(Child);

impl ChildGroup {
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Self> {
        command.process_group(0).spawn().map(Self)
    }

    /// True if the child has ended. Its pid stays its own until [`Self::end`].
    pub(crate) fn has_ended(&self) -> io::Result<bool> {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        Ok(waitid(Id::Pid(self.pid()), flags)? != WaitStatus::StillAlive)
    }

    /// Ends what is left of the group; the status of a child that had ended is its own.
    pub(crate) fn end(mut self) -> io::Result<ExitStatus> {
        let _ = killpg(self.pid(), Signal::SIGKILL);
        self.0.wait()
    }

    /// Waits for the child alone; what it has started goes on, and so does the pipe to it.
    pub(crate) fn wait(&mut self) -> io::Result<ExitStatus> {
        // `Child::wait` closes the pipe.
        let tether = self.0.stdin.take();
        // Its group keeps the number while a member is left, so `end` cannot reach others.
        let status = self.0.wait();
        self.0.stdin = tether;
        status
    }

    /// The end of the pipe that is the input of the group.
    pub(crate) fn tether(mut self) -> Option<ChildStdin> {
        self.0.stdin.take()
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.0.id() as i32)
    }
}
