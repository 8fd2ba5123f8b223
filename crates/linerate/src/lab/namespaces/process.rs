//! What is known of a process in the lab.

use super::super::protocol::{ExitStatus, Stream};
use super::super::{LabError, Launch};
use crate::system::manifest::StopSignal;
use linerate_contract::{Bytes, EXIT_UNSUPPORTED, Nanos, Role};
use std::collections::VecDeque;

/// How much of a failed system's log goes into the report.
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
    pub(super) ended: Option<(ExitStatus, Option<Nanos>)>,
    pub(super) peak: Option<Bytes>,
}

/// What a process is there for; only a system's end before the client's is a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Setup,
    System,
    Client,
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
            peak: None,
        }
    }

    /// Keeps a line that it printed; of logs the last ones.
    pub(super) fn said(&mut self, stream: Stream, line: String) {
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

    pub(super) fn is_server(&self) -> bool {
        self.kind == Kind::System && self.role == Role::Server
    }

    /// How it ended, as a text; nothing if it runs.
    pub(super) fn end(&self) -> String {
        self.ended.map(|(status, _)| status.to_string()).unwrap_or_default()
    }

    /// The error for one that should not have ended, or should have been ready.
    pub(super) fn failed(&self, what: &str) -> LabError {
        if let Some((ExitStatus::Code(EXIT_UNSUPPORTED), _)) = self.ended {
            let reason = self.stderr.back().cloned().unwrap_or_else(|| "it says so".into());
            return LabError::Unsupported(format!("{}: {reason}", self.system));
        }
        LabError::System { reason: format!("{} {what}", self.system), log: tail(&self.stdout, &self.stderr) }
    }
}

fn tail(stdout: &[String], stderr: &VecDeque<String>) -> String {
    let said: Vec<&str> = if stderr.is_empty() {
        stdout.iter().rev().take(LOG_LINES).rev().map(String::as_str).collect()
    } else {
        stderr.iter().map(String::as_str).collect()
    };
    said.join("\n")
}
