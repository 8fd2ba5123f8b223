//! The state of a process in the lab, as seen from outside.

use super::advice::advice;
use crate::StopSignal;
use crate::protocol::{ExitStatus, Stream};
use crate::{LabError, Launch};
use linerate_contract::{Bytes, EXIT_UNSUPPORTED, Event, Nanos, Role};
use std::collections::VecDeque;

/// Lines of a failed system's log in the report.
const LOG_LINES: usize = 20;

/// A process, from its start until its trial is over.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) kind: Kind,
    pub(super) role: Role,
    pub(super) system: String,
    pub(super) stop: StopSignal,
    pub(super) stdout: Vec<String>,
    pub(super) stderr: VecDeque<String>,
    pub(super) ended: Option<ExitStatus>,
    /// True for a command of the user's own.
    of_user: bool,
    pub(super) peak: Option<Bytes>,
}

/// The kind of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Setup,
    System,
    Companion,
    Client,
}

impl Kind {
    /// It has to last until the client has ended.
    pub(super) fn lasts(self) -> bool {
        matches!(self, Self::System | Self::Companion)
    }
}

impl Running {
    pub(super) fn new(kind: Kind, launch: &Launch) -> Self {
        Self {
            kind,
            role: launch.role,
            system: launch.system.clone(),
            stop: launch.stop,
            stdout: Vec::new(),
            stderr: VecDeque::new(),
            ended: None,
            of_user: launch.user.is_some(),
            peak: None,
        }
    }

    /// Stores a line of its output; of stderr only the last [`LOG_LINES`].
    pub(super) fn add_line(&mut self, stream: Stream, line: String) {
        match stream {
            Stream::Stdout => self.stdout.push(line),
            Stream::Stderr => {
                if self.stderr.len() == LOG_LINES {
                    self.stderr.pop_front();
                }
                self.stderr.push_back(line);
            }
        }
    }

    /// The window of a client of the contract, on `CLOCK_MONOTONIC`; of others the whole run.
    pub(super) fn window(&self) -> [Nanos; 2] {
        let done = self.stdout.iter().rev().find_map(|line| match Event::parse(line) {
            Ok(Event::Done(done)) => Some([done.start_ns, done.end_ns]),
            _ => None,
        });
        done.filter(|[start, end]| start < end).unwrap_or([Nanos::ZERO, Nanos(u64::MAX)])
    }

    pub(super) fn is_server(&self) -> bool {
        self.kind == Kind::System && self.role == Role::Server
    }

    /// Its exit status as text; empty while it runs.
    pub(super) fn end(&self) -> String {
        self.ended.map(|status| status.to_string()).unwrap_or_default()
    }

    /// The error for a process that ended too early or was not ready in time.
    pub(super) fn failed(&self, what: &str) -> LabError {
        if let Some(ExitStatus::Code(EXIT_UNSUPPORTED)) = self.ended {
            let reason =
                self.stderr.back().cloned().unwrap_or_else(|| format!("exit status {EXIT_UNSUPPORTED}"));
            return LabError::Unsupported(format!("{}: {reason}", self.system));
        }
        let log = tail(&self.stdout, &self.stderr);
        let next = self.of_user.then(|| advice(self.ended, &log)).flatten();
        let next = next.map_or_else(String::new, |step| format!("; {step}"));
        LabError::System { reason: format!("{} {what}{next}", self.system), log }
    }
}

fn tail(stdout: &[String], stderr: &VecDeque<String>) -> String {
    let lines: Vec<&str> = if stderr.is_empty() {
        stdout.iter().rev().take(LOG_LINES).rev().map(String::as_str).collect()
    } else {
        stderr.iter().map(String::as_str).collect()
    };
    lines.join("\n")
}
