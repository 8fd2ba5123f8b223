//! The lab on one of several hosts: how it is raised, and what it adds to a run whose client is elsewhere.

use super::Namespaces;
use super::channel::Channel;
use super::process::Kind;
use crate::LabError;
use crate::protocol::{CpuTimes, Message, Request, WindowRecord};
use linerate_contract::{Nanos, Role};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// CPU times on this host while the client ran on another.
pub(crate) struct Recorded {
    pub(crate) cpu: Vec<(Role, Nanos)>,
    pub(crate) server_stdout: Vec<String>,
    pub(crate) before: CpuTimes,
    pub(crate) after: CpuTimes,
}

impl Namespaces {
    /// The lab of an agent on another host; `ssh` is the process at this end of the channel.
    pub(crate) fn remote(
        ssh: Child,
        socket: UnixStream,
        interrupted: Arc<AtomicBool>,
    ) -> Result<Self, LabError> {
        Self::over(ssh, Channel::with_heartbeat(socket, interrupted)?)
    }

    /// Starts to record CPU times, for a client on another host.
    pub(crate) fn record(&mut self) -> Result<(), LabError> {
        self.drop_server_output();
        self.channel.request(&Request::Record { turns: None, brake: None, sampled: false }).map(|_| ())
    }

    /// Ends the recording. The client's window is on the clock of its host, so this is the whole recording.
    pub(crate) fn recorded(&mut self) -> Result<Recorded, LabError> {
        let WindowRecord { before, after, .. } = self.window([Nanos::ZERO, Nanos(u64::MAX)])?;
        self.check_systems()?;
        let cpu = self.cpu_of_roles(&before, &after).into_iter().collect();
        Ok(Recorded { cpu, server_stdout: self.server_output(), before, after })
    }

    /// As [`Self::check_running`], by all events so far.
    pub(crate) fn check_systems(&mut self) -> Result<(), LabError> {
        let now = Instant::now();
        while self.process_event(now)? {}
        self.check_running()
    }

    /// Facts of the interface that has an address: driver, speed, offloads, queues.
    pub(crate) fn interface(&mut self, address: Ipv4Addr) -> Result<BTreeMap<String, String>, LabError> {
        match self.channel.request(&Request::Interface { address })? {
            Message::Interface { facts } => Ok(facts),
            other => {
                Err(LabError::Lost(format!("unexpected response to a request for an interface: {other:?}")))
            }
        }
    }

    /// CPU time of each role's processes between two times.
    pub(super) fn cpu_of_roles(&self, before: &CpuTimes, after: &CpuTimes) -> BTreeMap<Role, Nanos> {
        let mut cpu: BTreeMap<Role, Nanos> = BTreeMap::new();
        for (process, then) in &before.processes {
            let now = after.processes.iter().find(|(id, _)| id == process);
            let running = self.processes.get(process).filter(|running| running.kind != Kind::Companion);
            if let Some(((_, now), running)) = now.zip(running) {
                *cpu.entry(running.role).or_default() += now.since(*then);
            }
        }
        cpu
    }

    /// Lines that servers have printed.
    pub(super) fn server_output(&self) -> Vec<String> {
        let servers = self.processes.values().filter(|running| running.is_server());
        servers.flat_map(|running| running.stdout.iter().cloned()).collect()
    }
}
