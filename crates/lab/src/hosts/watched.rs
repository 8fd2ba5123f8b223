//! Servers that run already, of which the CPU time is known: a process on the host of each, started over ssh,
//! reads it before a client begins and after it has ended. The client has nothing else to do, and so have the
//! servers.

use super::ssh::{self, Package};
use crate::listening::{Port, Response, WATCH};
use crate::namespaces::Namespaces;
use crate::protocol::{File, Turns};
use crate::{BrakeForce, ClientRun, Lab, LabError, Label, Launch, Purpose, Ready};
use linerate_contract::{Nanos, Role};
use linerate_model::path::NetworkPath;
use linerate_model::{Host, Place, PlannedHost, Usage};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A lab on this host's network, for servers that it does not start.
#[derive(Debug)]
pub struct Watched {
    lab: Namespaces,
    /// By the cell whose server it is.
    servers: BTreeMap<String, WatchedServer>,
    /// The cell of the trial.
    cell: String,
}

/// The server of a cell, and where it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    pub cell: String,
    pub host: PlannedHost,
    pub port: Port,
}

#[derive(Debug)]
struct WatchedServer {
    place: String,
    port: Port,
    child: Child,
    questions: ChildStdin,
    responses: BufReader<ChildStdout>,
}

impl Watched {
    /// Connects to the hosts of all servers.
    ///
    /// # Errors
    /// A host that cannot be reached, or nothing that listens there.
    pub fn raise(servers: &[Server], home: &Path, interrupted: Arc<AtomicBool>) -> Result<Self, LabError> {
        let is_remote = servers.iter().any(|server| server.host.ssh_destination().is_some());
        let package = is_remote.then(|| Package::make(home)).transpose()?;
        let watched = servers.iter().map(|server| {
            let mut watched = WatchedServer::start(server, package.as_ref())?;
            // So that a wrong host is refused before anything is measured.
            watched.cpu().map_err(LabError::Lost)?;
            Ok((server.cell.clone(), watched))
        });
        let by_cell = watched.collect::<Result<_, LabError>>()?;
        let here = servers.iter().filter(|server| server.host.ssh_destination().is_none());
        let lab =
            Namespaces::raise(&Place::Local, interrupted)?.beside(here.map(|server| server.port).collect());
        Ok(Self { lab, servers: by_cell, cell: String::new() })
    }

    fn cpu(&mut self) -> Result<Option<Nanos>, LabError> {
        let server = self.servers.get_mut(&self.cell);
        server.map(WatchedServer::cpu).transpose().map_err(LabError::system)
    }
}

impl WatchedServer {
    fn start(server: &Server, package: Option<&Package>) -> Result<Self, LabError> {
        let Server { host, port, .. } = server;
        let mut command = match package.filter(|_| host.ssh_destination().is_some()) {
            Some(package) => {
                let reached = ssh::reach(host, package)?;
                ssh::subcommand(host, &reached.program, WATCH)
            }
            None => {
                let mut command = Command::new("/proc/self/exe");
                command.arg(WATCH);
                command
            }
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|e| LabError::Lost(format!("{}: {e}", host.place)))?;
        let (questions, responses) = (child.stdin.take(), child.stdout.take());
        let (Some(questions), Some(responses)) = (questions, responses) else {
            unreachable!("both were requested");
        };
        let responses = BufReader::new(responses);
        Ok(Self { place: host.place.to_string(), port: *port, child, questions, responses })
    }

    /// The CPU time of the server so far.
    fn cpu(&mut self) -> Result<Nanos, String> {
        let mut line = String::new();
        let question = serde_json::to_string(&self.port).expect("a port has string keys only");
        let asked = writeln!(self.questions, "{question}").and_then(|()| self.responses.read_line(&mut line));
        match asked.map(|_| serde_json::from_str(&line)) {
            Ok(Ok(Response::Time(time))) => Ok(time),
            Ok(Ok(Response::Refused(reason))) => Err(format!("{}: {reason}", self.place)),
            _ => Err(format!("{}: the channel to the host has ended", self.place)),
        }
    }
}

impl Drop for WatchedServer {
    fn drop(&mut self) {
        // The process there ends with its input.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Lab for Watched {
    fn host(&self) -> Host {
        self.lab.host()
    }

    fn is_grouped(&self) -> bool {
        self.lab.is_grouped()
    }

    fn cpus(&self) -> Vec<u32> {
        self.lab.cpus()
    }

    fn now(&self) -> Nanos {
        self.lab.now()
    }

    fn raise(&mut self, label: &Label, path: NetworkPath, files: Vec<File>) -> Result<(), LabError> {
        self.cell.clone_from(&label.cell);
        self.lab.raise(label, path, files)
    }

    fn start(&mut self, launch: &Launch) -> Result<Nanos, LabError> {
        self.lab.start(launch)
    }

    fn listeners(&mut self, ready: Ready) -> Result<Vec<SocketAddr>, LabError> {
        self.lab.listeners(ready)
    }

    fn run(&mut self, launch: &Launch, purpose: Purpose, deadline: Duration) -> Result<ClientRun, LabError> {
        let before = self.cpu()?;
        let mut run = self.lab.run(launch, purpose, deadline)?;
        if let Some((before, after)) = before.zip(self.cpu()?) {
            run.cpu.push((Role::Server, after.since(before)));
        }
        Ok(run)
    }

    fn usage(&mut self) -> Result<Option<Usage>, LabError> {
        self.lab.usage()
    }

    fn take_turns(&mut self, turns: Turns) {
        self.lab.take_turns(turns);
    }

    fn brake(&mut self, force: BrakeForce) {
        self.lab.brake(force);
    }

    fn stop(&mut self) -> Result<(), LabError> {
        self.lab.stop()
    }
}
