//! A program that implements the contract, started by a test.

use linerate_contract::{Describe, Done, EXIT_UNSUPPORTED, Event, Expect, Layer, Role, Spec, Workload, page};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Ten times the duration of the tests' small tasks on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The contract's limit of one second, and more for a machine that stands still.
const STOP: Duration = Duration::from_secs(15);

pub(crate) struct Program {
    child: Child,
    lines: Receiver<String>,
    stderr: Receiver<String>,
}

pub(crate) struct Ended {
    pub(crate) status: Option<i32>,
    pub(crate) stderr: String,
    pub(crate) lines: Vec<String>,
}

impl Program {
    pub(crate) fn start(program: &Path, spec: &Spec) -> Result<Self, String> {
        Self::start_with(program, &spec.to_json())
    }

    pub(crate) fn start_with(program: &Path, argument: &str) -> Result<Self, String> {
        let mut command = Command::new(program);
        command.arg(argument).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("cannot start {}: {e}", program.display()))?;
        let (stdout, errors) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let ((line_in, lines), (text_in, stderr)) = (channel(), channel());
        std::thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| line_in.send(line))
        });
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = BufReader::new(errors).read_to_end(&mut text);
            let _ = text_in.send(String::from_utf8_lossy(&text).into_owned());
        });
        Ok(Self { child, lines, stderr })
    }

    /// The address of a server.
    pub(crate) fn ready(&mut self) -> Result<SocketAddr, String> {
        self.ready_or_not()?.ok_or_else(|| "unsupported (exit status 127)".into())
    }

    /// As [`Self::ready`]; `None` if unsupported.
    pub(crate) fn ready_or_not(&mut self) -> Result<Option<SocketAddr>, String> {
        match self.lines.recv_timeout(TIMEOUT).map(|line| Event::parse(&line)) {
            Ok(Ok(Event::Ready { address })) => Ok(Some(address)),
            Ok(other) => Err(format!("expected a `ready` event, got {other:?}")),
            Err(_) => {
                let ended = self.end_within(STOP)?;
                if ended.status == Some(EXIT_UNSUPPORTED) {
                    return Ok(None);
                }
                Err(format!("exited before its `ready` event: {:?} {}", ended.status, ended.stderr.trim()))
            }
        }
    }

    /// A client's result; `None` if unsupported.
    pub(crate) fn done(mut self) -> Result<Option<Done>, String> {
        let ended = self.end()?;
        if ended.status == Some(EXIT_UNSUPPORTED) {
            return Ok(None);
        }
        if ended.status != Some(0) {
            return Err(format!("exited with {:?}: {}", ended.status, ended.stderr.trim()));
        }
        match ended.lines.last().map(|line| Event::parse(line)) {
            Some(Ok(Event::Done(done))) => Ok(Some(*done)),
            other => Err(format!("the last line is no `done` event: {other:?}")),
        }
    }

    /// Sends SIGTERM; it must exit in time with status 0.
    pub(crate) fn stop(&mut self) -> Result<(), String> {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM).map_err(|e| e.to_string())?;
        let ended = self.end_within(STOP)?;
        match ended.status {
            Some(0) => Ok(()),
            other => Err(format!("after SIGTERM: exited with {other:?}: {}", ended.stderr.trim())),
        }
    }

    pub(crate) fn end(&mut self) -> Result<Ended, String> {
        self.end_within(TIMEOUT)
    }

    fn end_within(&mut self, timeout: Duration) -> Result<Ended, String> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(status) = self.child.try_wait().map_err(|e| e.to_string())? {
                let stderr = self.stderr.recv_timeout(TIMEOUT).unwrap_or_default();
                return Ok(Ended { status: status.code(), stderr, lines: self.lines.iter().collect() });
            }
            if Instant::now() > deadline {
                return Err(format!("did not end within {timeout:?}"));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The load engine.
pub(crate) fn native() -> PathBuf {
    own("linerate-load")
}

/// A program of linerate's own, in its folder.
pub(crate) fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_linerate")).with_file_name(name)
}

/// A port of the kernel's choice.
pub(crate) fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

pub(crate) fn describe(program: &Path) -> Result<Describe, String> {
    let ended =
        Program::start(program, &Spec::new(Role::Describe, Layer::Unnamed, Workload::Unnamed))?.end()?;
    match ended.lines.first().map(|line| Event::parse(line)) {
        Some(Ok(Event::Describe(described))) if ended.status == Some(0) => Ok(described),
        other => Err(format!("{other:?}, {:?}: {}", ended.status, ended.stderr.trim())),
    }
}

/// Adds the page that an HTTP client expects.
pub(crate) fn spec_of(mut spec: Spec) -> Spec {
    if spec.layer == Layer::Http {
        spec.path = Some("/".into());
        spec.expect = Some(Expect::of_page(&page(spec.size as usize), 1));
    }
    spec
}
