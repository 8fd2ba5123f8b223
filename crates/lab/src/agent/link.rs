//! The far end of a channel over ssh: joins ssh's standard input and output to the agent's socket.
//!
//! sshd may not notice for hours that a network was cut. So both ends send an empty line each second, and
//! this end exits after [`SILENCE`] without a byte; the kernel then ends the agent and all its processes.

#![allow(unsafe_code, reason = "prctl(2) between fork and exec has no safe wrapper")]

use crate::AGENT;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Between empty lines.
pub(crate) const BEAT: Duration = Duration::from_secs(1);
/// Longer than ssh's own limit at the near end, so that a channel is never used after its far end has ended.
const SILENCE: Duration = Duration::from_secs(20);

/// Serves until one side ends, or the near end is silent.
///
/// # Errors
/// The agent cannot be started.
pub fn serve(arguments: &[&str]) -> io::Result<()> {
    let (socket, theirs) = UnixStream::pair()?;
    let mut command = Command::new("/proc/self/exe");
    command.arg(AGENT).args(arguments).stdin(Stdio::from(OwnedFd::from(theirs)));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: prctl is async-signal-safe and affects only the child itself.
    unsafe {
        command.pre_exec(|| Ok(nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?));
    }
    let mut agent = command.spawn()?;
    drop(command);
    let started = Instant::now();
    let heard = Arc::new(AtomicU64::new(0));
    watch(started, heard.clone());
    let result = Tether { socket, started, heard, partial: Vec::new(), is_between_lines: true }.pump();
    // The closed socket ends the agent; waiting makes sure of that.
    let _ = agent.wait();
    result
}

/// Ends this process after a silence, even if it is blocked in a write.
fn watch(started: Instant, heard: Arc<AtomicU64>) {
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(BEAT);
            let last = Duration::from_millis(heard.load(Ordering::Relaxed));
            if started.elapsed() > last + SILENCE {
                std::process::exit(4);
            }
        }
    });
}

struct Tether {
    socket: UnixStream,
    started: Instant,
    /// Milliseconds since the start.
    heard: Arc<AtomicU64>,
    /// An incomplete line of the near end.
    partial: Vec<u8>,
    /// True if the last byte to the near end ended a line.
    is_between_lines: bool,
}

impl Tether {
    #[allow(clippy::disallowed_methods, reason = "standard output is the channel to the near end")]
    fn pump(mut self) -> io::Result<()> {
        let (mut stdin, mut stdout) = (io::stdin(), io::stdout());
        let input = stdin.as_fd().try_clone_to_owned()?;
        let mut chunk = vec![0; 64 << 10];
        let mut beat = Instant::now();
        loop {
            let mut fds = [
                PollFd::new(input.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.socket.as_fd(), PollFlags::POLLIN),
            ];
            poll(&mut fds, PollTimeout::from(BEAT.as_millis() as u16))?;
            let [from_near, from_agent] = fds.map(|fd| fd.any().unwrap_or(false));
            if from_near {
                let length = stdin.read(&mut chunk)?;
                if length == 0 {
                    return Ok(());
                }
                self.heard.store(self.started.elapsed().as_millis() as u64, Ordering::Relaxed);
                self.forward(&chunk[..length])?;
            }
            if from_agent {
                let length = self.socket.read(&mut chunk)?;
                if length == 0 {
                    return Ok(());
                }
                stdout.write_all(&chunk[..length])?;
                stdout.flush()?;
                self.is_between_lines = chunk[length - 1] == b'\n';
            }
            if self.is_between_lines && beat.elapsed() >= BEAT {
                stdout.write_all(b"\n")?;
                stdout.flush()?;
                beat = Instant::now();
            }
        }
    }

    /// Sends whole lines to the agent, without the empty ones.
    fn forward(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.partial.extend_from_slice(bytes);
        let Some(end) = self.partial.iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        let rest = self.partial.split_off(end + 1);
        for line in self.partial.split_inclusive(|byte| *byte == b'\n').filter(|line| line.len() > 1) {
            self.socket.write_all(line)?;
        }
        self.partial = rest;
        Ok(())
    }
}
