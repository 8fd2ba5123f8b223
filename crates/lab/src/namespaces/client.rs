//! The run of a client, and the brake on a role of it.

use super::Namespaces;
use super::process::{Kind, Running};
use crate::protocol::{Brake, CpuTimes, ProcessId, WindowRecord};
use crate::{BrakeForce, ClientRun, LabError};
use linerate_contract::Role;
use linerate_model::LabFlag;

impl Namespaces {
    /// The client of a trial is the next process; `None` for a role without a process.
    pub(super) fn brake_of(&mut self, force: BrakeForce) -> Option<Brake> {
        let BrakeForce { role, share } = force;
        let process = ProcessId(self.next_process);
        let is_role = |running: &Running| running.kind == Kind::System && running.role == role;
        let of = match role {
            Role::Client => Some(ProcessId(process.0 + 1)),
            _ => self.processes.iter().find(|(_, running)| is_role(running)).map(|(id, _)| *id),
        }?;
        self.next_process += 1;
        Some(Brake { process, of, share })
    }

    /// An error if a server or relay has ended, or if a process lacks what a loader did not find.
    pub(super) fn check_running(&self) -> Result<(), LabError> {
        let is_ended = |running: &&Running| running.kind.lasts() && running.ended.is_some();
        let mut all = self.processes.values();
        match all.find(|running| running.unloaded.is_some() || is_ended(running)) {
            None => Ok(()),
            Some(running) => Err(running.failed(&format!("ended before the client ({})", running.end()))),
        }
    }

    pub(super) fn client_run(&mut self, client: ProcessId, record: WindowRecord) -> ClientRun {
        let WindowRecord { before, after, .. } = &record;
        let time_of = |times: &CpuTimes, process: ProcessId| {
            times.processes.iter().find(|(id, _)| *id == process).map(|(_, time)| *time)
        };
        let brake = self.brake.take().and_then(|(role, brake)| {
            Some((role, time_of(after, brake.process)?.since(time_of(before, brake.process)?)))
        });
        let cpu = self.cpu_of_roles(before, after);
        let running = self.processes.remove(&client).expect("the client was spawned by the caller");
        let status = running.ended.expect("the caller waited for its end");
        let [start, end] = running.window();
        let server_stdout = self.server_output();
        let mut flags = if self.facts.perf { Vec::new() } else { vec![LabFlag::CpuFromProc] };
        flags.extend(self.processes.values().any(Running::logs).then_some(LabFlag::Logs));
        ClientRun {
            status,
            stderr: running.last_stderr().to_vec(),
            stdout: running.stdout,
            server_stdout,
            cpu: cpu.into_iter().collect(),
            record,
            window: end.since(start),
            brake,
            others: None,
            peak_memory: running.peak,
            flags,
        }
    }
}
