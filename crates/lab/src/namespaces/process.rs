//! The state of a process in the lab, as seen from outside.

use super::advice::advice;
use super::loader;
use crate::StopSignal;
use crate::agent::OF_USER;
use crate::protocol::{ExitStatus, Stream};
use crate::{LabError, Launch, Written};
use linerate_contract::{Bytes, EXIT_UNSUPPORTED, Event, Nanos, Role};

/// Lines of a failed system's log in the report, and of what a system writes first.
const LOG_LINES: usize = 20;

/// A process, from its start until its trial is over.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) kind: Kind,
    pub(super) role: Role,
    pub(super) system: String,
    pub(super) stop: StopSignal,
    pub(super) stdout: Vec<String>,
    /// The first [`LOG_LINES`] and the last.
    stderr: Vec<String>,
    /// The line of a dynamic loader that did not find what the process needs.
    pub(super) unloaded: Option<String>,
    pub(super) ended: Option<ExitStatus>,
    /// True for a command of the user's own.
    of_user: bool,
    pub(super) peak: Option<Bytes>,
    /// Bytes that it has printed, as far as they are sent.
    printed: usize,
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
    /// A process of this kind has to last until the client has ended.
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
            stderr: Vec::new(),
            unloaded: None,
            ended: None,
            of_user: launch.user.is_some(),
            peak: None,
            printed: 0,
        }
    }

    /// Stores a line of its output.
    pub(super) fn add_line(&mut self, stream: Stream, line: String) {
        self.printed += line.len() + 1;
        match stream {
            Stream::Stdout => self.stdout.push(line),
            Stream::Stderr => {
                if self.unloaded.is_none() && loader::is_error(&line) {
                    self.unloaded = Some(line.clone());
                }
                if self.stderr.len() == 2 * LOG_LINES {
                    self.stderr.remove(LOG_LINES);
                }
                self.stderr.push(line);
            }
        }
    }

    /// True for a command of the user's own that prints so much that it is not all kept.
    pub(super) fn logs(&self) -> bool {
        self.of_user && self.printed > OF_USER / 2
    }

    /// The first lines of stderr.
    pub(super) fn first_stderr(&self) -> &[String] {
        &self.stderr[..self.stderr.len().min(LOG_LINES)]
    }

    /// The lines that a server or relay has written; `None` for others, and if that is nothing.
    pub(super) fn written(&self) -> Option<Written> {
        let lines = self.first_stderr().to_vec();
        let is_some = self.kind == Kind::System && !lines.is_empty();
        is_some.then(|| Written { role: self.role, system: self.system.clone(), lines, is_of_lab: false })
    }

    /// The last lines of stderr.
    pub(super) fn last_stderr(&self) -> &[String] {
        &self.stderr[self.stderr.len().saturating_sub(LOG_LINES)..]
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

    /// The exit status as text; empty while the process runs.
    pub(super) fn end(&self) -> String {
        self.ended.map(|status| status.to_string()).unwrap_or_default()
    }

    /// The error for a process that ended too early or was not ready in time.
    pub(super) fn failed(&self, what: &str) -> LabError {
        let log = self.log();
        if let Some(line) = &self.unloaded {
            let next = match self.of_user {
                true => "",
                false => "; of the user's files the lab has what is in a program's own folder: put it there",
            };
            return LabError::System { reason: format!("{}: {line}{next}", self.system), log };
        }
        // In a shell it is a program that is not there.
        if let Some(ExitStatus::Code(EXIT_UNSUPPORTED)) = self.ended.filter(|_| !self.of_user) {
            let reason =
                self.stderr.last().cloned().unwrap_or_else(|| format!("exit status {EXIT_UNSUPPORTED}"));
            return LabError::Unsupported(format!("{}: {reason}", self.system));
        }
        let next = self.of_user.then(|| advice(self.ended, &log)).flatten();
        let next = next.map_or_else(String::new, |step| format!("; {step}"));
        LabError::System { reason: format!("{} {what}{next}", self.system), log }
    }

    /// The last lines of the process.
    fn log(&self) -> String {
        match self.last_stderr() {
            [] => self.stdout[self.stdout.len().saturating_sub(LOG_LINES)..].join("\n"),
            lines => lines.join("\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_lines_of_stderr_are_kept() {
        let mut running = Running::new(Kind::System, &Launch::default());
        (0..1000).for_each(|number| running.add_line(Stream::Stderr, number.to_string()));
        assert_eq!((&*running.first_stderr()[0], &*running.first_stderr()[19]), ("0", "19"));
        assert_eq!((&*running.last_stderr()[0], &*running.last_stderr()[19]), ("980", "999"));
        assert_eq!(running.stderr.len(), 40);
    }

    #[test]
    fn the_line_of_a_loader_is_the_reason_also_where_the_exit_status_is_that_of_unsupported() {
        let mut running = Running::new(Kind::System, &Launch { system: "pipe".into(), ..Launch::default() });
        let line = "ERROR: ld.so: object '/a/x.so' from LD_PRELOAD cannot be preloaded: ignored.";
        for line in ["starting", line, "ready"] {
            running.add_line(Stream::Stderr, line.into());
        }
        running.ended = Some(ExitStatus::Code(EXIT_UNSUPPORTED));
        let LabError::System { reason, log } = running.failed("ended") else { panic!("unsupported") };
        assert!(reason.starts_with(&format!("pipe: {line}; ")), "{reason}");
        assert!(log.ends_with("ready"), "{log}");
    }
}
