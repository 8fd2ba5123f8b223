//! The real lab, from outside: starts the agent, requests topologies and processes, receives events.

#![allow(unsafe_code, reason = "prctl(2) between fork and exec has no safe wrapper")]

mod advice;
mod asked;
mod channel;
mod client;
mod loader;
mod maps;
mod process;
mod ready;
mod recorded;

use crate::Ready;
use crate::host;
use crate::listening::Port;
use crate::others::Others;
use crate::protocol::{
    AgentFacts, Brake, ExitStatus, File, HostName, Message, OwnFiles, ProcessId, Request, Spawn, Turns,
    WindowRecord,
};
use crate::{BrakeForce, ClientRun, CommandLine, Lab, LabError, Label, Launch, Purpose, Sampling, Written};
use channel::Channel;
use linerate_contract::{Bytes, Nanos, Role};
use linerate_model::path::NetworkPath;
use linerate_model::{Host, Place, Usage};
use maps::with_maps;
use nix::sys::signal::Signal;
use process::{Kind, Running};
pub use ready::READY_DEADLINE;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Time limit for a setup command, which loads a rule set or makes a key.
const SETUP_DEADLINE: Duration = Duration::from_secs(10);
/// Processes that run for longer after their stop signal are killed; shutdown is not part of the measurement.
const STOP_GRACE: Duration = Duration::from_millis(50);
/// On these links connections are closed by then; descriptors that a server keeps for longer count as usage.
const CLOSE_GRACE: Duration = Duration::from_millis(100);

/// The lab in namespaces of its own, raised for the whole run.
#[derive(Debug)]
pub struct Namespaces {
    agent: Child,
    channel: Channel,
    processes: BTreeMap<ProcessId, Running>,
    next_process: u32,
    /// By systems of the topology, until they were ready.
    written: Vec<Written>,
    facts: AgentFacts,
    started: Instant,
    /// The turns of the next client.
    turns: Option<Turns>,
    force: Option<BrakeForce>,
    /// The brake of the client that runs.
    brake: Option<(Role, Brake)>,
    /// Servers are started so that they can be sampled, and are, while clients run.
    sampling: Sampling,
    /// Ports of the servers on this machine that run already.
    servers: Vec<Port>,
}

impl Namespaces {
    /// Raises the lab, with a network of its own ([`Place::Lab`]) or with that of this machine.
    ///
    /// # Errors
    /// [`LabError::Lost`] with the step that the kernel refused and the remedy.
    pub fn raise(place: &Place, interrupted: Arc<AtomicBool>) -> Result<Self, LabError> {
        let arguments: &[&str] = if place.is_lab() { &[] } else { &["--host-network"] };
        let lost =
            |what: &str, e: std::io::Error| LabError::Lost(format!("cannot raise the lab: {what}: {e}"));
        let (socket, theirs) = UnixStream::pair().map_err(|e| lost("a socket pair", e))?;
        let mut command = Command::new("/proc/self/exe");
        command.arg(super::AGENT).args(arguments).stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: prctl is async-signal-safe and affects only the child itself.
        unsafe {
            command.pre_exec(|| Ok(nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?));
        }
        let agent = command.spawn().map_err(|e| lost("starting the agent", e))?;
        Self::over(agent, Channel::new(socket, interrupted))
    }

    fn over(agent: Child, channel: Channel) -> Result<Self, LabError> {
        let mut lab = Self {
            agent,
            channel,
            processes: BTreeMap::new(),
            next_process: 0,
            written: Vec::new(),
            facts: AgentFacts::default(),
            started: Instant::now(),
            turns: None,
            force: None,
            brake: None,
            sampling: Sampling::Off,
            servers: Vec::new(),
        };
        match lab.channel.response()? {
            Message::Up(facts) => lab.facts = facts,
            other => {
                return Err(LabError::Lost(format!("cannot raise the lab: unexpected response {other:?}")));
            }
        }
        Ok(lab)
    }

    /// The lab beside servers on this machine that run already: what they use is not time of other programs.
    #[must_use]
    pub fn beside(mut self, servers: Vec<Port>) -> Self {
        self.servers = servers;
        self
    }

    /// Privileges and clocks of the lab.
    pub fn facts(&self) -> &AgentFacts {
        &self.facts
    }

    fn spawn(&mut self, kind: Kind, launch: &Launch, command: &CommandLine) -> Result<ProcessId, LabError> {
        let process = ProcessId(self.next_process);
        self.next_process += 1;
        let sampled = if kind == Kind::System { self.sampling } else { Sampling::Off };
        let (program, arguments) = command.clone();
        let mut spawn = Spawn { process, program, arguments, sampled, launch: launch.clone() };
        if sampled == Sampling::Stacks {
            spawn.launch.user = spawn.launch.user.map(with_maps);
        }
        self.processes.insert(process, Running::new(kind, launch));
        self.channel.request(&Request::Spawn(Box::new(spawn)))?;
        Ok(process)
    }

    /// The files of a command of the user's own; what could not be done is a remark of the lab.
    fn make_own(&mut self, launch: &Launch, files: &OwnFiles) -> Result<(), LabError> {
        match self.channel.request(&Request::Own(files.clone()))? {
            Message::Own { remarks } if remarks.is_empty() => Ok(()),
            Message::Own { remarks: lines } => {
                let (role, system) = (launch.role, launch.system.clone());
                self.written.push(Written { role, system, lines, is_of_lab: true });
                Ok(())
            }
            other => Err(LabError::Lost(format!("unexpected response to a request for files: {other:?}"))),
        }
    }

    /// Processes one pending event, or the next one before the deadline. False at the deadline.
    fn process_event(&mut self, deadline: Instant) -> Result<bool, LabError> {
        let Some(message) = self.channel.event(deadline)? else { return Ok(false) };
        match message {
            Message::Output { process, stream, line } => {
                if let Some(running) = self.processes.get_mut(&process) {
                    running.add_line(stream, line);
                }
            }
            Message::Exited { process, status, peak } => {
                if let Some(running) = self.processes.get_mut(&process) {
                    running.peak = Some(peak);
                    running.ended = Some(status);
                }
            }
            _ => {}
        }
        Ok(true)
    }

    fn running(&self, process: ProcessId) -> &Running {
        &self.processes[&process]
    }

    /// Runs one setup command to its end.
    fn set_up(&mut self, launch: &Launch, command: &CommandLine) -> Result<(), LabError> {
        let process = self.spawn(Kind::Setup, launch, command)?;
        let deadline = Instant::now() + SETUP_DEADLINE;
        let name = command.0.file_name().unwrap_or_default().to_string_lossy().into_owned();
        loop {
            match self.running(process).ended {
                Some(ExitStatus::Code(0)) if self.running(process).unloaded.is_none() => return Ok(()),
                Some(status) => {
                    return Err(self.running(process).failed(&format!("setup: {name} ended with {status}")));
                }
                None => {}
            }
            if !self.process_event(deadline)? {
                return Err(self
                    .running(process)
                    .failed(&format!("setup: {name} did not end within {SETUP_DEADLINE:?}")));
            }
        }
    }

    fn listeners_of(&mut self, host: HostName, ready: Ready) -> Result<Vec<SocketAddr>, LabError> {
        match self.channel.request(&Request::Listeners { host, udp: ready == Ready::Datagrams })? {
            Message::Listeners { addresses } => Ok(addresses),
            other => {
                Err(LabError::Lost(format!("unexpected response to a request for listeners: {other:?}")))
            }
        }
    }

    /// Sends the stop signal to running systems and waits for [`STOP_GRACE`]; the rest is killed later.
    fn stop_gracefully(&mut self) -> Result<(), LabError> {
        let is_left = |running: &&Running| running.kind.lasts() && running.ended.is_none();
        let left: Vec<_> = self
            .processes
            .iter()
            .filter(|(_, r)| is_left(r))
            .map(|(id, running)| (*id, running.stop))
            .collect();
        for (process, signal) in left {
            self.channel.request(&Request::Signal { process, signal })?;
        }
        let deadline = Instant::now() + STOP_GRACE;
        while self.processes.values().any(|running| is_left(&running)) && self.process_event(deadline)? {}
        Ok(())
    }

    /// Drops the servers' output so far; later lines belong to the next client's run.
    fn drop_server_output(&mut self) {
        for running in self.processes.values_mut().filter(|running| running.role == Role::Server) {
            running.stdout.clear();
        }
    }

    fn cpu_in_window(&mut self, client: ProcessId) -> Result<WindowRecord, LabError> {
        self.window(self.running(client).window())
    }

    fn window(&mut self, [start, end]: [Nanos; 2]) -> Result<WindowRecord, LabError> {
        match self.channel.request(&Request::Window { start, end })? {
            Message::Window(record) => Ok(record),
            other => {
                Err(LabError::Lost(format!("unexpected response to a request for CPU times: {other:?}")))
            }
        }
    }
}

impl Lab for Namespaces {
    fn host(&self) -> Host {
        let mut host = self.facts.host.clone();
        let set = self.facts.sysctls.iter().map(|(name, value)| format!("{name} = {value}"));
        host.facts.insert("set by the lab".into(), set.collect::<Vec<_>>().join("; "));
        host
    }

    fn is_grouped(&self) -> bool {
        host::has_autogroup()
    }

    fn cpus(&self) -> Vec<u32> {
        self.facts.cpus.clone()
    }

    fn now(&self) -> Nanos {
        self.started.elapsed().into()
    }

    fn raise(&mut self, _label: &Label, path: NetworkPath, files: Vec<File>) -> Result<(), LabError> {
        self.processes.clear();
        self.written.clear();
        self.channel.drop_events();
        self.channel.request(&Request::Raise { path, files }).map(|_| ())
    }

    fn start(&mut self, launch: &Launch) -> Result<Nanos, LabError> {
        for command in &launch.setup {
            self.set_up(launch, command)?;
        }
        let Some(command) = &launch.process else { return Ok(Nanos::ZERO) };
        if let Some(user) = &launch.user {
            self.make_own(launch, &user.files)?;
        }
        let before =
            if launch.port == 0 { self.listeners_of(launch.host, launch.ready)? } else { Vec::new() };
        let kind = if launch.is_companion { Kind::Companion } else { Kind::System };
        let begin = Instant::now();
        let process = self.spawn(kind, launch, command)?;
        self.await_ready(launch, process, &before)?;
        let took = begin.elapsed();
        self.written.extend(self.running(process).written());
        Ok(took.into())
    }

    fn listeners(&mut self, ready: Ready) -> Result<Vec<SocketAddr>, LabError> {
        self.listeners_of(HostName::Server, ready)
    }

    fn run(&mut self, launch: &Launch, purpose: Purpose, deadline: Duration) -> Result<ClientRun, LabError> {
        let command = launch.process.as_ref().ok_or_else(|| LabError::system("a client needs a program"))?;
        let others = (purpose == Purpose::Measure).then(|| Others::now(&self.servers));
        self.drop_server_output();
        self.brake = self.force.take().and_then(|force| Some((force.role, self.brake_of(force)?)));
        let brake = self.brake.map(|(_, brake)| brake);
        let sampled = self.sampling != Sampling::Off && purpose == Purpose::Measure;
        self.channel.request(&Request::Record { turns: self.turns.take(), brake, sampled })?;
        let client = self.spawn(Kind::Client, launch, command)?;
        let end = Instant::now() + deadline;
        while self.running(client).ended.is_none() {
            if !self.process_event(end)? {
                return Err(self.running(client).failed(&format!("did not end within {deadline:?}")));
            }
            self.check_running()?;
        }
        let times = self.cpu_in_window(client)?;
        let running = self.running(client);
        if running.ended.is_some_and(|status| status != ExitStatus::Code(0)) {
            return Err(running.failed(&format!("ended with {}", running.end())));
        }
        let others = others.map(|before| Others::now(&self.servers).share_since(&before));
        Ok(ClientRun { others, ..self.client_run(client, times) })
    }

    fn usage(&mut self) -> Result<Option<Usage>, LabError> {
        let deadline = Instant::now() + CLOSE_GRACE;
        while self.process_event(deadline)? {}
        let usage = match self.channel.request(&Request::Usage)? {
            Message::Usage { processes } => processes,
            other => {
                return Err(LabError::Lost(format!("unexpected response to a request for usage: {other:?}")));
            }
        };
        let servers: Vec<_> =
            self.processes.iter().filter(|(_, running)| running.is_server()).map(|(id, _)| *id).collect();
        let each = servers.iter().map(|id| usage.iter().find(|(of, _)| of == id).map(|(_, usage)| *usage));
        let all: Option<Vec<Usage>> = each.collect();
        Ok(all.and_then(|all| {
            all.into_iter().reduce(|sum, usage| Usage {
                descriptors: sum.descriptors + usage.descriptors,
                memory: Bytes(sum.memory.0 + usage.memory.0),
            })
        }))
    }

    fn take_turns(&mut self, turns: Turns) {
        self.turns = Some(turns);
    }

    fn brake(&mut self, force: BrakeForce) {
        self.force = Some(force);
    }

    fn sample(&mut self, sampling: Sampling) {
        self.sampling = sampling;
    }

    fn written(&self) -> Vec<Written> {
        self.written.clone()
    }

    fn output_of(&mut self, command: &CommandLine, deadline: Duration) -> Option<Result<String, LabError>> {
        Some(self.ask(command, deadline))
    }

    fn is_running(&mut self) -> bool {
        self.check_systems().is_ok()
    }

    fn stop(&mut self) -> Result<(), LabError> {
        self.stop_gracefully()?;
        let result = self.channel.request(&Request::Drop).map(|_| ());
        self.processes.clear();
        self.channel.drop_events();
        result
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // The agent ends when its socket is closed, and all processes with it. Waiting makes sure of that.
        self.channel.close();
        let _ = self.agent.wait();
    }
}
