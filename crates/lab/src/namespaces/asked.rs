//! A program that is asked for its version: in the view that it will run in.

use super::Namespaces;
use super::process::Kind;
use crate::{CommandLine, Lab, LabError, Label, Launch};
use linerate_contract::Role;
use linerate_model::path::Shape;
use std::time::{Duration, Instant};

impl Namespaces {
    /// Raises a topology, and removes it.
    pub(super) fn ask(&mut self, command: &CommandLine, deadline: Duration) -> Result<String, LabError> {
        let label = Label { suite: "versions".into(), cell: String::new(), round: 0, warmup: true };
        self.raise(&label, Shape::Loopback.into(), Vec::new())?;
        let printed = self.printed(command, deadline);
        self.stop()?;
        printed
    }

    fn printed(&mut self, command: &CommandLine, deadline: Duration) -> Result<String, LabError> {
        let launch = Launch {
            role: Role::Server,
            system: command.0.display().to_string(),
            folder: "version".into(),
            ..Launch::default()
        };
        let process = self.spawn(Kind::Setup, &launch, command)?;
        let end = Instant::now() + deadline;
        while self.running(process).ended.is_none() {
            if !self.process_event(end)? {
                return Err(self.running(process).failed(&format!("did not end within {deadline:?}")));
            }
        }
        let running = self.running(process);
        match running.unloaded {
            Some(_) => Err(running.failed("lacks a library")),
            None => Ok([&running.stdout[..], running.first_stderr()].concat().join("\n")),
        }
    }
}
