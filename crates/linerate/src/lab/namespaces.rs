//! The real lab, from outside: starts the agent, asks it for topologies and processes, and listens.

#![allow(unsafe_code, reason = "prctl(2) between fork and exec has no safe wrapper")]

use super::protocol::{
    AgentFacts, CpuTimes, ExitStatus, File, Message, NetworkPath, ProcessId, Request, Spawn, Stream,
};
use super::{ClientRun, CommandLine, Lab, LabError, Label, Launch, Purpose};
use crate::host;
use crate::measurement::{CPU_FROM_PROC, Held, Host};
use crate::system::manifest::{Ready, StopSignal};
use linerate_contract::{Bytes, EXIT_UNSUPPORTED, Event, Nanos, Role};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A server that is not ready by then never will be: the slowest here needs a tenth of a second.
const READY_DEADLINE: Duration = Duration::from_secs(10);
/// Setup commands load a rule set or make a key.
const SETUP_DEADLINE: Duration = Duration::from_secs(10);
/// The agent answers within milliseconds, on a machine that is overloaded within seconds.
const ANSWER_DEADLINE: Duration = Duration::from_secs(20);
/// Who has not ended by then is killed; a graceful end is not part of what is measured.
const STOP_GRACE: Duration = Duration::from_millis(50);
/// What ends a connection is over by then on these links; a server that needs longer to let go is told as holding on.
const ENDING_GRACE: Duration = Duration::from_millis(100);
/// How often the table of sockets is looked at until a server listens: a look costs some microseconds.
const READY_POLL: Duration = Duration::from_millis(1);
/// How much of a failed system's log goes into the report.
const LOG_LINES: usize = 20;

/// The lab in namespaces of its own, raised for the whole run.
#[derive(Debug)]
pub struct Namespaces {
    agent: Child,
    socket: UnixStream,
    /// Bytes of a message that is not complete yet.
    partial: Vec<u8>,
    events: VecDeque<Message>,
    processes: BTreeMap<ProcessId, Running>,
    next_process: u32,
    facts: AgentFacts,
    interrupted: Arc<AtomicBool>,
    started: Instant,
}

#[derive(Debug)]
struct Running {
    kind: Kind,
    role: Role,
    system: String,
    stop: StopSignal,
    stdout: Vec<String>,
    stderr: VecDeque<String>,
    ended: Option<(ExitStatus, Option<Nanos>)>,
    peak: Option<Bytes>,
}

/// What a process is there for; only a system's end before the client's is a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Setup,
    System,
    Client,
}

impl Namespaces {
    /// Raises the lab.
    ///
    /// # Errors
    /// [`LabError::Lost`] with the reason for which the kernel refuses, and what would change that.
    pub fn raise(interrupted: Arc<AtomicBool>) -> Result<Self, LabError> {
        let lost =
            |what: &str, e: std::io::Error| LabError::Lost(format!("cannot raise the lab: {what}: {e}"));
        let (socket, theirs) = UnixStream::pair().map_err(|e| lost("a socket pair", e))?;
        let mut command = Command::new("/proc/self/exe");
        command.arg(crate::cli::AGENT).stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: prctl is async-signal-safe and touches nothing but the child itself.
        unsafe {
            command.pre_exec(|| Ok(nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?));
        }
        let agent = command.spawn().map_err(|e| lost("starting the agent", e))?;
        let mut lab = Self {
            agent,
            socket,
            partial: Vec::new(),
            events: VecDeque::new(),
            processes: BTreeMap::new(),
            next_process: 0,
            facts: AgentFacts { privileges: String::new(), perf: false },
            interrupted,
            started: Instant::now(),
        };
        match lab.reply()? {
            Message::Up(facts) => lab.facts = facts,
            other => return Err(LabError::Lost(format!("cannot raise the lab: it answers {other:?}"))),
        }
        Ok(lab)
    }

    /// How the lab came to be.
    #[must_use]
    pub fn facts(&self) -> &AgentFacts {
        &self.facts
    }

    /// Sends a request and waits for its reply; `Err(System)` if the agent refuses it.
    fn ask(&mut self, request: &Request) -> Result<Message, LabError> {
        let mut line = serde_json::to_string(request).expect("requests have string keys only");
        line.push('\n');
        self.socket
            .write_all(line.as_bytes())
            .map_err(|e| LabError::Lost(format!("the lab is gone: {e}")))?;
        self.reply()
    }

    fn reply(&mut self) -> Result<Message, LabError> {
        let deadline = Instant::now() + ANSWER_DEADLINE;
        loop {
            match self.receive(deadline)? {
                None => return Err(LabError::Lost("the lab does not answer".into())),
                Some(Message::Refused { reason }) => return Err(LabError::system(reason)),
                Some(Message::Lacking { reason }) => return Err(LabError::Unsupported(reason)),
                Some(message @ (Message::Output { .. } | Message::Exited { .. })) => {
                    self.events.push_back(message)
                }
                Some(reply) => return Ok(reply),
            }
        }
    }

    /// The next message; `None` at the deadline.
    fn receive(&mut self, deadline: Instant) -> Result<Option<Message>, LabError> {
        loop {
            if let Some(end) = self.partial.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.partial.drain(..=end).collect();
                return serde_json::from_slice(&line)
                    .map(Some)
                    .map_err(|e| LabError::Lost(format!("the lab says what nobody understands: {e}")));
            }
            if !self.wait(deadline)? {
                return Ok(None);
            }
            let mut chunk = [0; 64 << 10];
            match self.socket.read(&mut chunk) {
                Ok(0) => return Err(LabError::Lost("the lab is gone: its agent ended".into())),
                Ok(n) => self.partial.extend_from_slice(&chunk[..n]),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(LabError::Lost(format!("the lab is gone: {e}"))),
            }
        }
    }

    /// Waits until something can be read (true) or the deadline passes (false).
    fn wait(&self, deadline: Instant) -> Result<bool, LabError> {
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            // Rounded up to a millisecond; a signal ends the wait early, and a tenth of a second bounds the
            // rare case of one that comes just before it.
            let slice = left.min(Duration::from_millis(100)).as_millis() as u16 + u16::from(!left.is_zero());
            let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, PollTimeout::from(slice)) {
                Ok(0) if left.is_zero() => return Ok(false),
                Ok(0) | Err(nix::errno::Errno::EINTR) => {}
                Ok(_) => return Ok(true),
                Err(e) => return Err(LabError::Lost(format!("waiting for the lab: {e}"))),
            }
        }
    }

    fn spawn(&mut self, kind: Kind, launch: &Launch, command: &CommandLine) -> Result<ProcessId, LabError> {
        let process = ProcessId(self.next_process);
        self.next_process += 1;
        let spawn = Spawn {
            process,
            host: launch.host,
            program: command.0.clone(),
            arguments: command.1.clone(),
            folder: launch.folder.clone(),
            files: launch.files.clone(),
            cpus: launch.cpus.clone(),
            tuns: launch.tuns,
        };
        let running = Running {
            kind,
            role: launch.role,
            system: launch.system.clone(),
            stop: launch.stop,
            stdout: Vec::new(),
            stderr: VecDeque::new(),
            ended: None,
            peak: None,
        };
        self.processes.insert(process, running);
        self.ask(&Request::Spawn(Box::new(spawn)))?;
        Ok(process)
    }

    /// Takes in what happened until now, and if nothing did, what happens until the deadline.
    /// False at the deadline.
    fn listen(&mut self, deadline: Instant) -> Result<bool, LabError> {
        let message = match self.events.pop_front() {
            Some(message) => message,
            None => match self.receive(deadline)? {
                Some(message) => message,
                None => return Ok(false),
            },
        };
        match message {
            Message::Output { process, stream, line } => {
                if let Some(running) = self.processes.get_mut(&process) {
                    match stream {
                        Stream::Stdout => running.stdout.push(line),
                        Stream::Stderr => {
                            if running.stderr.len() == LOG_LINES {
                                running.stderr.pop_front();
                            }
                            running.stderr.push_back(line);
                        }
                    }
                }
            }
            Message::Exited { process, status, cpu, peak } => {
                if let Some(running) = self.processes.get_mut(&process) {
                    running.peak = Some(peak);
                    running.ended = Some((status, cpu));
                }
            }
            _ => {}
        }
        Ok(true)
    }

    fn running(&self, process: ProcessId) -> &Running {
        &self.processes[&process]
    }

    /// The error for a process that should not have ended, or should have been ready.
    fn failed(&self, process: ProcessId, what: &str) -> LabError {
        let running = self.running(process);
        let log = tail(&running.stdout, &running.stderr);
        if let Some((ExitStatus::Code(EXIT_UNSUPPORTED), _)) = running.ended {
            let reason = running.stderr.back().cloned().unwrap_or_else(|| "it says so".into());
            return LabError::Unsupported(format!("{}: {reason}", running.system));
        }
        LabError::System { reason: format!("{} {what}", running.system), log }
    }

    /// Runs one setup command to its end.
    fn set_up(&mut self, launch: &Launch, command: &CommandLine) -> Result<(), LabError> {
        let process = self.spawn(Kind::Setup, launch, command)?;
        let deadline = Instant::now() + SETUP_DEADLINE;
        let name = command.0.file_name().unwrap_or_default().to_string_lossy().into_owned();
        loop {
            match self.running(process).ended {
                Some((ExitStatus::Code(0), _)) => return Ok(()),
                Some((status, _)) => {
                    return Err(self.failed(process, &format!("setup: {name} ended with {status}")));
                }
                None => {}
            }
            if !self.listen(deadline)? {
                return Err(self.failed(process, &format!("setup: {name} did not end in {SETUP_DEADLINE:?}")));
            }
        }
    }

    fn await_ready(&mut self, launch: &Launch, process: ProcessId) -> Result<(), LabError> {
        let deadline = Instant::now() + READY_DEADLINE;
        loop {
            let ready = match launch.ready {
                Ready::Event => {
                    let first = self.running(process).stdout.first();
                    first.is_some_and(|line| matches!(Event::parse(line), Ok(Event::Ready { .. })))
                }
                Ready::Listen => {
                    let request = Request::Listening { host: launch.host, port: launch.port };
                    matches!(self.ask(&request)?, Message::Listening { yes: true })
                }
            };
            if ready {
                return Ok(());
            }
            if let Some((status, _)) = self.running(process).ended {
                return Err(self.failed(process, &format!("ended before it was ready ({status})")));
            }
            if Instant::now() >= deadline {
                return Err(self.failed(process, &format!("was not ready within {READY_DEADLINE:?}")));
            }
            let next_look =
                if launch.ready == Ready::Listen { Instant::now() + READY_POLL } else { deadline };
            self.listen(next_look)?;
        }
    }

    /// Asks what still runs to end, and gives it a moment: killing is for those that will not.
    fn stop_gently(&mut self) -> Result<(), LabError> {
        let is_left = |running: &&Running| running.kind == Kind::System && running.ended.is_none();
        let left: Vec<_> = self
            .processes
            .iter()
            .filter(|(_, r)| is_left(r))
            .map(|(id, running)| (*id, running.stop))
            .collect();
        for (process, signal) in left {
            self.ask(&Request::Signal { process, signal })?;
        }
        let deadline = Instant::now() + STOP_GRACE;
        while self.processes.values().any(|running| is_left(&running)) && self.listen(deadline)? {}
        Ok(())
    }

    /// What servers print from now on belongs to the next client's run.
    fn forget_server_output(&mut self) {
        for running in self.processes.values_mut().filter(|running| running.role == Role::Server) {
            running.stdout.clear();
        }
    }

    fn cpu(&mut self) -> Result<CpuTimes, LabError> {
        match self.ask(&Request::Cpu)? {
            Message::Cpu(times) => Ok(times),
            other => Err(LabError::Lost(format!("the lab answers {other:?} when asked for CPU times"))),
        }
    }

    /// A server or relay that ended while a client was at work.
    fn casualty(&self) -> Option<ProcessId> {
        let ended = |running: &Running| running.kind == Kind::System && running.ended.is_some();
        self.processes.iter().find(|(_, running)| ended(running)).map(|(id, _)| *id)
    }

    fn client_run(&mut self, client: ProcessId, before: CpuTimes, after: CpuTimes) -> ClientRun {
        let mut cpu: BTreeMap<Role, Nanos> = BTreeMap::new();
        for (process, then) in &before.processes {
            if let Some((_, now)) = after.processes.iter().find(|(id, _)| id == process) {
                *cpu.entry(self.running(*process).role).or_default() += now.since(*then);
            }
        }
        let running = self.processes.remove(&client).expect("the client was spawned by the caller");
        let (status, client_cpu) = running.ended.expect("the caller waited for its end");
        cpu.extend(client_cpu.map(|nanos| (Role::Client, nanos)));
        let servers = self.processes.values().filter(|running| running.role == Role::Server);
        let server_stdout = servers.flat_map(|running| running.stdout.iter().cloned()).collect();
        let flags = if self.facts.perf { Vec::new() } else { vec![CPU_FROM_PROC.to_owned()] };
        ClientRun {
            status,
            stdout: running.stdout,
            stderr: running.stderr.into(),
            server_stdout,
            cpu: cpu.into_iter().collect(),
            before,
            after,
            peak_memory: running.peak,
            flags,
        }
    }
}

impl Lab for Namespaces {
    fn host(&self) -> Host {
        host::facts(&self.facts.privileges)
    }

    fn cpus(&self) -> Vec<u32> {
        host::usable_cpus()
    }

    fn now(&self) -> Nanos {
        self.started.elapsed().into()
    }

    fn raise(&mut self, _label: &Label, path: NetworkPath, files: Vec<File>) -> Result<(), LabError> {
        self.processes.clear();
        self.events.clear();
        self.ask(&Request::Raise { path, files }).map(|_| ())
    }

    fn start(&mut self, launch: &Launch) -> Result<(), LabError> {
        for command in &launch.setup {
            self.set_up(launch, command)?;
        }
        let Some(command) = &launch.process else { return Ok(()) };
        let process = self.spawn(Kind::System, launch, command)?;
        self.await_ready(launch, process)
    }

    fn run(&mut self, launch: &Launch, _purpose: Purpose, deadline: Duration) -> Result<ClientRun, LabError> {
        let command = launch.process.as_ref().ok_or_else(|| LabError::system("a client needs a program"))?;
        self.forget_server_output();
        let before = self.cpu()?;
        let client = self.spawn(Kind::Client, launch, command)?;
        let end = Instant::now() + deadline;
        while self.running(client).ended.is_none() {
            if !self.listen(end)? {
                return Err(self.failed(client, &format!("did not end within {deadline:?}")));
            }
            if let Some(process) = self.casualty() {
                let status = self.running(process).ended.map(|(s, _)| s.to_string()).unwrap_or_default();
                return Err(self.failed(process, &format!("ended in the middle ({status})")));
            }
        }
        let after = self.cpu()?;
        if self.running(client).ended.is_some_and(|(status, _)| status != ExitStatus::Code(0)) {
            let status = self.running(client).ended.map(|(s, _)| s.to_string()).unwrap_or_default();
            return Err(self.failed(client, &format!("ended with {status}")));
        }
        Ok(self.client_run(client, before, after))
    }

    fn held(&mut self) -> Result<Option<Held>, LabError> {
        let deadline = Instant::now() + ENDING_GRACE;
        while self.listen(deadline)? {}
        let told = match self.ask(&Request::Holdings)? {
            Message::Holdings { processes } => processes,
            other => {
                return Err(LabError::Lost(format!("the lab answers {other:?} when asked what is held")));
            }
        };
        let is_server = |running: &Running| running.kind == Kind::System && running.role == Role::Server;
        let servers: Vec<_> =
            self.processes.iter().filter(|(_, r)| is_server(r)).map(|(id, _)| *id).collect();
        let each = servers.iter().map(|id| told.iter().find(|(of, _)| of == id).map(|(_, held)| *held));
        let all: Option<Vec<Held>> = each.collect();
        Ok(all.and_then(|all| {
            all.into_iter().reduce(|sum, held| Held {
                descriptors: sum.descriptors + held.descriptors,
                memory: Bytes(sum.memory.0 + held.memory.0),
            })
        }))
    }

    fn stop(&mut self) -> Result<(), LabError> {
        self.stop_gently()?;
        let result = self.ask(&Request::Drop).map(|_| ());
        self.processes.clear();
        self.events.clear();
        result
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // The agent ends when its socket does, and takes all with it; waiting makes sure that it is over.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        let _ = self.agent.wait();
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
