//! The agent: pid 1 of the lab. It makes topologies, starts processes and reports their ends.
//!
//! linerate starts itself again as `linerate lab-agent`, which enters new namespaces ([`namespaces`]) and
//! serves [`Request`]s until its socket is closed. It is pid 1 of a pid namespace, so the kernel kills all
//! its processes when it ends. Only its descriptors and its children refer to the network namespaces, so
//! links and rules are removed as well. Cleaning up needs no code that a SIGKILL could prevent.

#![allow(unsafe_code, reason = "sigaction(2) has no safe wrapper")]

mod brake;
mod calls;
mod compiled;
mod copies;
mod counts;
mod cpu;
mod exposed;
mod files;
mod interface;
mod jvm;
pub mod landlock;
pub mod link;
mod mounts;
mod named;
mod namespaces;
mod netlink;
mod output;
mod own;
mod process;
mod reap;
mod recording;
mod sampling;
mod session;
mod side;
mod slice;
mod symbols;
mod sysctls;
mod topology;
mod tun;
mod turns;
mod unseen;
mod unwind;
mod view;
mod way;
mod window;
mod wire;

use crate::host;
use crate::protocol::{AgentFacts, Brake, File, Message, ProcessId, Request, Spawn, Stream};
use brake::RunningBrake;
use linerate_contract::{Nanos, clock};
use linerate_model::path::NetworkPath;
use linerate_model::{Count, WireCounts};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::{TimeSpec, TimeValLike};
pub(crate) use output::OF_USER;
use process::Process;
use recording::Recording;
use sampling::Recorder;
use side::Side;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use topology::Network;
use turns::TurnTaking;
pub use unseen::{is_alone, unseen};

/// Enters the namespaces and serves requests on `socket` until it is closed. Returns the exit status.
///
/// # Errors
/// The step that the kernel refused, and the remedy. The message is also sent over the socket.
pub fn serve(socket: OwnedFd, path: PathOf) -> Result<i32, String> {
    let mut socket = UnixStream::from(socket);
    let (privileges, own) = match namespaces::enter(path) {
        Ok(namespaces::Entered::Inside(privileges, folders)) => (privileges, Side::new(folders)),
        Ok(namespaces::Entered::Outside(status)) => return Ok(status),
        Err(reason) => {
            send(&mut socket, &Message::Refused { reason: reason.clone() });
            return Err(reason);
        }
    };
    Agent::new(socket, privileges, own, path)?.run();
    Ok(0)
}

/// The network of the trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathOf {
    /// Namespaces of the lab's own.
    Lab,
    /// The host's interfaces. Systems get no right to change them, and no setting is changed.
    Host,
}

struct Agent {
    path: PathOf,
    socket: UnixStream,
    children: SignalFd,
    privileges: namespaces::Privileges,
    network: Option<Network>,
    files: files::Files,
    /// The files of the user's own processes.
    own: Side,
    processes: BTreeMap<ProcessId, Process>,
    /// While a client runs.
    recording: Option<Recording>,
    /// The counts of the path's wires when the window began.
    wires: Vec<WireCounts>,
    /// The kernel's counts of the servers when the window began.
    counts: BTreeMap<Count, u64>,
    /// While a client runs whose lab takes turns with another.
    turns: Option<TurnTaking>,
    /// A brake whose role has not been started yet, and one at work.
    planned_brake: Option<Brake>,
    brake: Option<RunningBrake>,
    sampling: Recorder,
}

impl Agent {
    fn new(
        socket: UnixStream,
        privileges: namespaces::Privileges,
        own: Side,
        path: PathOf,
    ) -> Result<Self, String> {
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGCHLD);
        let failed = |e: nix::Error| format!("the lab agent cannot receive signals of its children: {e}");
        nix::sys::signal::sigprocmask(SigmaskHow::SIG_BLOCK, Some(&mask), None).map_err(failed)?;
        // Turns stop and continue children many times a second, which is no event.
        let ends_only = SigAction::new(SigHandler::SigDfl, SaFlags::SA_NOCLDSTOP, SigSet::empty());
        // SAFETY: the default handler runs no code of ours.
        unsafe { nix::sys::signal::sigaction(Signal::SIGCHLD, &ends_only) }.map_err(failed)?;
        let children =
            SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).map_err(failed)?;
        let files = files::Files::new(&privileges);
        Ok(Self {
            path,
            socket,
            children,
            privileges,
            network: None,
            files,
            own,
            processes: BTreeMap::new(),
            recording: None,
            wires: Vec::new(),
            counts: BTreeMap::new(),
            turns: None,
            planned_brake: None,
            brake: None,
            sampling: Recorder::default(),
        })
    }

    fn run(mut self) {
        // The agent's own namespace accepts the same values as those of topologies.
        if self.path == PathOf::Lab
            && let Err(reason) = sysctls::set_all()
        {
            return self.send(&Message::Refused { reason });
        }
        let facts = AgentFacts {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host: host::facts(&self.privileges.to_string()),
            cpus: host::usable_cpus(),
            privileges: self.privileges.to_string(),
            perf: cpu::perf_works(),
            landlock: landlock::version(),
            sysctls: sysctls::current(),
        };
        self.send(&Message::Up(facts));
        let Ok(reading_end) = self.socket.try_clone() else { return };
        let mut requests = BufReader::new(reading_end);
        loop {
            if !requests.buffer().is_empty() || self.wait() {
                let mut line = String::new();
                match requests.read_line(&mut line) {
                    Ok(0) | Err(_) => return,
                    Ok(_) => self.serve_request(&line),
                }
            }
        }
    }

    /// Waits for an event and handles those of processes; true if a request is pending.
    fn wait(&mut self) -> bool {
        let mut fds = vec![
            PollFd::new(self.socket.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.children.as_fd(), PollFlags::POLLIN),
        ];
        let streams: Vec<(ProcessId, Stream)> = self
            .processes
            .iter()
            .flat_map(|(id, process)| process.open_streams().map(move |stream| (*id, stream)))
            .collect();
        for (id, stream) in &streams {
            fds.push(PollFd::new(self.processes[id].stream(*stream), PollFlags::POLLIN));
        }
        let next = [self.recording.as_ref().map(Recording::next), self.turns.as_ref().map(TurnTaking::next)];
        let next = next.into_iter().flatten().min();
        let timeout = next.map(|next| TimeSpec::nanoseconds(next.since(clock::now()).0 as i64));
        if ppoll(&mut fds, timeout, None).is_err() {
            return false; // EINTR: poll again
        }
        let happened: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(false)).collect();
        drop(fds);
        if let Some(turns) = &mut self.turns {
            turns.follow();
        }
        for (index, (id, stream)) in streams.into_iter().enumerate() {
            if happened[index + 2] {
                self.forward(id, stream);
            }
        }
        if happened[1] {
            self.reap();
        }
        if let Some(recording) = self.recording.as_mut().filter(|recording| recording.is_due()) {
            recording.sample(&mut self.processes, self.network.as_ref());
            self.sampling.drain();
        }
        happened[0]
    }

    /// Sends the output of a process.
    fn forward(&mut self, id: ProcessId, stream: Stream) {
        let Some(process) = self.processes.get_mut(&id) else { return };
        let lines = process.read_lines(stream);
        let reason = process.end_excess();
        for line in lines {
            self.send(&Message::Output { process: id, stream, line });
        }
        if let Some(line) = reason {
            self.send(&Message::Output { process: id, stream: Stream::Stderr, line });
        }
    }

    /// Reaps every dead child, orphans included, as pid 1 must.
    fn reap(&mut self) {
        while let Ok(Some(_)) = self.children.read_signal() {}
        for (pid, status, peak) in reap::reap_all() {
            let Some(id) = self.processes.iter().find(|(_, p)| p.pid == pid).map(|(id, _)| *id) else {
                continue;
            };
            self.forward(id, Stream::Stdout);
            self.forward(id, Stream::Stderr);
            if let Err(line) = self.own.check() {
                self.send(&Message::Output { process: id, stream: Stream::Stderr, line });
            }
            if let Some(process) = self.processes.remove(&id) {
                if let (Some(recording), Some(time)) = (&mut self.recording, process.cpu_at_exit()) {
                    recording.note(id, time);
                }
                self.send(&Message::Exited { process: id, status, peak });
            }
        }
    }

    fn serve_request(&mut self, line: &str) {
        let response = match serde_json::from_str(line) {
            Err(e) => Err(format!("the lab agent received an invalid request: {e}")),
            Ok(Request::Raise { path, files }) => self.raise(path, &files),
            Ok(Request::Own(files)) => self.own.make(files).map(|remarks| Message::Own { remarks }),
            Ok(Request::Spawn(spawn)) => self.spawn(&spawn),
            Ok(Request::Listeners { host, udp }) => self
                .network()
                .and_then(|n| n.listeners(host, udp))
                .map(|addresses| Message::Listeners { addresses }),
            Ok(Request::Record { turns, brake, sampled }) => Ok(self.begin_window(turns, brake, sampled)),
            Ok(Request::Window { start, end }) => self.own.check().map(|()| self.end_window([start, end])),
            Ok(Request::Interface { address }) => {
                interface::facts(address).map(|facts| Message::Interface { facts })
            }
            Ok(Request::Usage) => Ok(Message::Usage {
                processes: self
                    .processes
                    .iter()
                    .filter_map(|(id, p)| Some((*id, session::usage(p.pid)?)))
                    .collect(),
            }),
            Ok(Request::Signal { process, signal }) => {
                if let Some(process) = self.processes.get(&process) {
                    process.signal(signal);
                }
                Ok(Message::Done)
            }
            Ok(Request::Drop) => {
                self.drop_all();
                Ok(Message::Done)
            }
        };
        self.send(&response.unwrap_or_else(|reason| Message::Refused { reason }));
    }

    fn raise(&mut self, path: NetworkPath, files: &[File]) -> Result<Message, String> {
        self.drop_all();
        if self.path == PathOf::Host {
            self.files.share(files)?;
            self.network = Some(Network::of_host(path)?);
            return Ok(Message::Done);
        }
        if path.has_tun()
            && let Err(reason) = tun::check()
        {
            return Ok(Message::Lacking { reason });
        }
        self.files.share(files)?;
        let is_impaired = path.is_impaired();
        match Network::raise(path) {
            Ok(network) => self.network = Some(network),
            // What links can be impaired by differs between kernels.
            Err(reason) if is_impaired => return Ok(Message::Lacking { reason }),
            Err(reason) => return Err(reason),
        }
        Ok(Message::Done)
    }

    fn spawn(&mut self, spawn: &Spawn) -> Result<Message, String> {
        let launch = &spawn.launch;
        self.files.make_folder(&launch.folder)?;
        self.files.write_all(&launch.files)?;
        let mut grants = self.files.grants(&launch.folder)?;
        // The user's command has the user's files.
        if launch.user.is_none() {
            grants.program(&spawn.program)?;
            spawn.arguments.iter().try_for_each(|argument| grants.argument(argument))?;
        }
        let network = self.network()?;
        let namespace = network.namespace(launch.host)?;
        let inherited = if launch.tuns { network.tuns()? } else { Vec::new() };
        let of_role = || self.files.path(&launch.folder);
        let folder = launch.user.as_ref().map_or_else(of_role, |user| user.files.folder.clone());
        let own = launch.user.as_ref().and_then(|user| self.own.namespace(&user.files));
        let view = process::View { folder: &folder, grants, own };
        let (process, events) =
            process::start(spawn, view, namespace, &inherited, &self.privileges, self.path)?;
        if let Some(events) = events {
            self.sampling.add(&events);
        }
        self.processes.insert(spawn.process, process);
        if let Some(recording) = &mut self.recording {
            recording.note(spawn.process, Nanos::ZERO);
        }
        if let Some(turns) = &self.turns {
            turns.has_started_one();
        }
        Ok(self.start_brake())
    }

    /// Starts the brake as soon as its role runs.
    fn start_brake(&mut self) -> Message {
        let role = self.planned_brake.and_then(|brake| Some((brake, self.processes.get(&brake.of)?)));
        let Some((brake, role)) = role else { return Message::Done };
        self.planned_brake = None;
        match RunningBrake::start(&brake, role) {
            Ok((running, process)) => {
                self.brake = Some(running);
                self.processes.insert(brake.process, process);
                if let Some(recording) = &mut self.recording {
                    recording.note(brake.process, Nanos::ZERO);
                }
                Message::Done
            }
            Err(reason) => Message::Lacking { reason },
        }
    }

    fn network(&self) -> Result<&Network, String> {
        self.network.as_ref().ok_or_else(|| "no topology is raised".to_owned())
    }

    fn drop_all(&mut self) {
        (self.planned_brake, self.brake) = (None, None);
        reap::kill_all();
        self.processes.clear();
        self.recording = None;
        self.sampling.forget();
        self.turns = None;
        while let Ok(Some(_)) = self.children.read_signal() {}
        self.network = None;
        self.own.clear();
        self.files.clear();
    }

    fn send(&mut self, message: &Message) {
        send(&mut self.socket, message);
    }
}

/// Sends a line. Errors are ignored: if linerate has ended, the next read returns the end of the stream.
fn send(socket: &mut UnixStream, message: &Message) {
    let mut line = serde_json::to_string(message).expect("messages have string keys only");
    line.push('\n');
    let _ = socket.write_all(line.as_bytes());
}
