//! What a client's run was, and the brake on a role of it.

use super::Namespaces;
use super::process::{Kind, Running};
use crate::protocol::{Brake, CpuTimes, ProcessId, WindowRecord};
use crate::{BrakeForce, ClientRun};
use linerate_analysis::measurement::LabFlag;
use linerate_contract::Role;

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

    /// A server or relay that exited before the client.
    pub(super) fn exited_system(&self) -> Option<ProcessId> {
        let ended = |running: &Running| running.kind.lasts() && running.ended.is_some();
        self.processes.iter().find(|(_, running)| ended(running)).map(|(id, _)| *id)
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
        let flags = if self.facts.perf { Vec::new() } else { vec![LabFlag::CpuFromProc] };
        ClientRun {
            status,
            stdout: running.stdout,
            stderr: running.stderr.into(),
            server_stdout,
            cpu: cpu.into_iter().collect(),
            record,
            window: end.since(start),
            brake,
            peak_memory: running.peak,
            flags,
        }
    }
}
