//! The user's own servers of a run: how each is started or reached, and what it is asked. Trials and learning
//! know them by this alone.

use super::words::Line;
use super::{expected, ready, sent, words};
use crate::error::Error;
use crate::lab::protocol::{HostName, ImageFiles, OwnFiles, UserProcess};
use crate::lab::{Launch, Ready};
use crate::measurement::{
    Expectation, Learned, LearnedServer, Place, PlannedCell, PlannedLoad, Subject, Warmup,
};
use crate::parameters::Parameters;
use crate::pins::Pins;
use linerate_contract::{Nanos, Request, Role, Spec, Tls, WeightedRequest};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

/// How long a client waits outside of its window.
const PATIENCE_MS: u64 = 20;
/// Responses that a unit verifies, one after the other: as many as this time has room for.
const TIME_TO_VERIFY: Nanos = Nanos(50_000_000);
const FEWEST_VERIFIED: u64 = 2;
const MOST_VERIFIED: u64 = 10;
/// A server with a longer mean response time does not take turns, since a sixth of a turn does not count.
const LONGEST_IN_TURNS: Nanos = Nanos(3_000_000);
/// Turns are short against what disturbs a virtual machine for 0.1 s, so that it is common to both sides, and
/// as long as several responses of a connection.
const RESPONSES_OF_TURN: u64 = 16;
const SHORTEST_TURN: Nanos = Nanos(6_000_000);
const LONGEST_TURN: Nanos = Nanos(30_000_000);
/// Pools and caches are filled by then.
const SHORTEST_WARMUP: Nanos = Nanos(200_000_000);

/// The servers, what is asked of them, and what is known of them.
#[derive(Debug)]
pub(crate) struct Servers {
    pub(super) subjects: Vec<Subject>,
    pub(super) load: PlannedLoad,
    pub(crate) learned: Learned,
    /// By subject: the working folders.
    folders: Vec<PathBuf>,
    /// By subject: how it is started; `None` for one that runs already.
    lines: Vec<Option<Line>>,
    /// The upstream, if there is one, and then the companions of each server.
    companions: Vec<Line>,
    /// In this machine's own network: the ports of the two sides of a unit.
    ports: Option<[u16; 2]>,
}

/// One of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Server<'a> {
    all: &'a Servers,
    index: usize,
}

impl Servers {
    pub(crate) fn new(subjects: &[Subject], load: &PlannedLoad, mut learned: Learned) -> Self {
        let n = subjects.len();
        learned.servers.resize(n, LearnedServer::default());
        Self {
            subjects: subjects.to_vec(),
            load: load.clone(),
            learned,
            folders: vec![load.folder.clone(); n],
            lines: Vec::new(),
            companions: Vec::new(),
            ports: None,
        }
    }

    /// The worktrees of revisions are the working folders of their commands.
    pub(crate) fn move_to(&mut self, trees: impl IntoIterator<Item = Option<PathBuf>>) {
        let folders = self.folders.iter_mut().zip(trees);
        folders.filter_map(|(folder, tree)| Some((folder, tree?))).for_each(|(folder, tree)| *folder = tree);
    }

    /// Reads the commands of the upstream and the companions, and takes ports where servers need some.
    ///
    /// # Errors
    /// A command that cannot be split, or whose program is not there.
    pub(crate) fn read_companions(&mut self) -> Result<(), Error> {
        let all = self.load.upstream.iter().chain(&self.load.companions);
        let parsed = all.map(|line| words::line(line, &self.load.folder, Some(self.load.port)));
        self.companions = parsed.collect::<Result<_, _>>().map_err(Error::Input)?;
        self.ports = (self.load.place == Place::Local).then(free_ports).transpose()?;
        Ok(())
    }

    /// True if commands name an upstream whose address is not known yet.
    pub(crate) fn awaits_upstream(&self) -> bool {
        self.load.upstream.is_some() && self.learned.upstream.is_none()
    }

    /// Reads the commands of the servers.
    ///
    /// # Errors
    /// As of [`Self::read_companions`].
    pub(crate) fn read_lines(&mut self) -> Result<(), Error> {
        let port = self.ports.is_none().then_some(self.load.port);
        let parsed = |(subject, folder): (&Subject, &PathBuf)| {
            let text = match self.learned.upstream {
                Some(address) => subject.text().replace("{upstream}", &address.to_string()),
                None => subject.text().to_owned(),
            };
            subject.is_started_here().then(|| words::line(&text, folder, port)).transpose()
        };
        let lines = self.subjects.iter().zip(&self.folders).map(parsed);
        self.lines = lines.collect::<Result<_, _>>().map_err(Error::Input)?;
        Ok(())
    }

    pub(crate) fn server(&self, index: usize) -> Server<'_> {
        Server { all: self, index }
    }

    /// The server of a cell. One server alone is that of every cell.
    pub(crate) fn of_cell(&self, cell: &PlannedCell) -> Option<Server<'_>> {
        let is_of_cell = |subject: &Subject| self.subjects.len() == 1 || subject.name() == cell.id;
        Some(self.server(self.subjects.iter().position(is_of_cell)?))
    }

    /// False: some run elsewhere, and cannot be stopped while the other side has its turn.
    pub(crate) fn are_started_here(&self) -> bool {
        self.subjects.iter().all(Subject::is_started_here)
    }

    /// The turn of a client whose server cannot be stopped: a server is idle while its client waits. `None`
    /// where servers can be, and where the responses that are due at the end of a turn would take time of the
    /// next one that counts (docs/decisions/pairs.md).
    pub(crate) fn turn(&self) -> Option<Nanos> {
        let is_prompt = |warmup: &Warmup| !warmup.waits && warmup.response <= LONGEST_IN_TURNS;
        let warmups = self.learned.servers.iter().map(|server| server.warmup.filter(is_prompt));
        let slowest =
            warmups.map(|warmup| Some(warmup?.response)).collect::<Option<Vec<_>>>()?.into_iter().max()?;
        let turn = Nanos(RESPONSES_OF_TURN * slowest.0).clamp(SHORTEST_TURN, LONGEST_TURN);
        (!self.are_started_here()).then_some(turn)
    }

    /// A correct response to the request of this number.
    pub(super) fn expectation(&self, request: usize) -> Expectation {
        self.learned.expectations.get(request).copied().unwrap_or(self.load.requests[request].expect)
    }

    /// How a command is started in this folder, with this port.
    fn user(&self, line: &Line, folder: &std::path::Path, port: Option<u16>) -> UserProcess {
        let port = port.unwrap_or(self.load.port);
        // Companions share the files of their server.
        let folder = line.image.as_ref().map_or(folder, |image| &image.folder).to_owned();
        let image = line.image.as_ref().map(|image| ImageFiles {
            root: image.root.clone(),
            volumes: self.load.volumes.clone(),
            user: image.user,
        });
        let mut environment = line.image.as_ref().map_or_else(BTreeMap::new, |one| one.environment.clone());
        environment.insert("PORT".to_owned(), port.to_string());
        environment.extend(self.load.environment.clone());
        UserProcess { files: OwnFiles { folder, share: self.load.share.clone(), image }, environment }
    }

    /// The companions of a server, in its namespace and on its CPUs.
    pub(super) fn companions(&self, server: &Launch, port: Option<u16>) -> Vec<Launch> {
        let numbered = self.companions.iter().zip(1..);
        // Both are the user's programs, so that they share their files.
        let of_server = |line: &Line| {
            server.user.clone().filter(|user| user.files.image.is_none() && line.image.is_none())
        };
        let launch = |(line, number): (&Line, u32)| Launch {
            is_companion: true,
            system: line.process.0.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            folder: PathBuf::from(format!("companion-{number}")),
            process: Some(line.process.clone()),
            user: Some(of_server(line).unwrap_or_else(|| self.user(line, &self.load.folder, port))),
            ready: Ready::Listen,
            port: 0,
            ..server.clone()
        };
        numbered.map(launch).collect()
    }

    /// The upstream by itself.
    pub(super) fn upstream(&self, pins: &Pins, slice: Nanos) -> Option<Launch> {
        self.companions(&on(pins, Some(slice)), None).into_iter().next()
    }
}

impl<'a> Server<'a> {
    pub(crate) fn subject(self) -> &'a Subject {
        &self.all.subjects[self.index]
    }

    pub(crate) fn is_started_here(self) -> bool {
        self.subject().is_started_here()
    }

    /// The port that it has to listen on, on a side of a unit.
    pub(super) fn given_port(self, side: usize) -> Option<u16> {
        self.all.ports.map(|ports| ports[side]).filter(|_| self.is_started_here())
    }

    /// Where it was reached last; `None` before that is known.
    pub(super) fn reached(self) -> Option<SocketAddr> {
        let known = self.subject().address().map(|known| known.address);
        known.or(self.all.learned.servers[self.index].address)
    }

    /// Where a side of a unit reaches it.
    pub(crate) fn address(self, side: usize) -> Option<SocketAddr> {
        let found = self.reached()?;
        Some(SocketAddr::new(found.ip(), self.given_port(side).unwrap_or(found.port())))
    }

    /// The process of the server; `None` for one that runs already.
    pub(super) fn launch(self, pins: &Pins, slice: Option<Nanos>, side: usize) -> Option<Launch> {
        let line = self.all.lines.get(self.index)?.as_ref()?;
        let (program, mut words) = line.process.clone();
        let port = self.given_port(side);
        if let Some(port) = port {
            words = words.iter().map(|word| words::with_port(word, port)).collect();
        }
        let expected = self.address(side).map(|address| address.port()).or(port);
        Some(Launch {
            system: self.subject().name().to_owned(),
            process: Some((program, words)),
            ready: ready(&self.all.load),
            ready_within: self.all.load.ready.map(Duration::from),
            port: expected.unwrap_or(0),
            user: Some(self.all.user(line, &self.all.folders[self.index], port)),
            ..on(pins, slice)
        })
    }

    /// The server's process after its companions, in the order in which they are started.
    pub(crate) fn launches(self, pins: &Pins, slice: Option<Nanos>, side: usize) -> Vec<Launch> {
        let Some(launch) = self.launch(pins, slice, side) else { return Vec::new() };
        self.all.companions(&launch, self.given_port(side)).into_iter().chain([launch]).collect()
    }

    /// The cell with the warm-up that was learned, unless it has one.
    pub(crate) fn warmed(self, cell: &PlannedCell) -> PlannedCell {
        let Some(warmup) = self.all.learned.servers[self.index].warmup else { return cell.clone() };
        PlannedCell {
            verify: Parameters { operations: Some(verified(warmup)), ..cell.verify },
            warm_for: cell.warm_for.or(Some(warmup.time.max(SHORTEST_WARMUP))),
            ..cell.clone()
        }
    }

    /// Sets the request of a client and its expectation. Certificates are not verified: those of a server in
    /// a lab are seldom signed.
    pub(crate) fn ask(self, spec: &mut Spec, check_every: u64) {
        let load = &self.all.load;
        // Over the loopback a connection is there at once, or the server's queue was full. From elsewhere
        // nothing is known.
        if load.rate.is_none() && self.is_started_here() {
            spec.set_option("patience_ms", PATIENCE_MS);
        }
        let path = |request| self.subject().path(load, request).to_owned();
        let host = self.subject().address().map(|address| address.target.host.clone());
        let common = Request { host, insecure: load.has_tls(), ..Request::default() };
        if load.has_tls() {
            spec.tls = Some(Tls { name: "localhost".into(), ..Tls::default() });
        }
        spec.options.extend(load.options.clone());
        spec.further = self.subject().address().map_or_else(Vec::new, |known| known.further.clone());
        // An echo has no request, but the certificate of its server is not verified, either.
        if load.size.is_some() {
            spec.request = load.has_tls().then_some(common.clone());
            if load.layer.is_websocket() {
                let upgrade = &load.requests[0];
                spec.path = Some(path(upgrade));
                spec.request = Some(Request { headers: upgrade.headers.clone(), ..common });
            }
            return;
        }
        if let Some(streams) = load.streams {
            spec.set_option("streams", streams);
        }
        if load.are_calls {
            spec.set_option("grpc", "unary");
        }
        let weighted = load.requests.iter().enumerate().map(|(number, one)| WeightedRequest {
            path: path(one),
            expect: expected(self.all.expectation(number), load.given, check_every),
            ..sent(one)
        });
        super::requested(spec, common, weighted.collect());
    }
}

/// A server's process on its CPUs.
fn on(pins: &Pins, slice: Option<Nanos>) -> Launch {
    let role = Role::Server;
    Launch {
        role,
        host: HostName::Server,
        folder: PathBuf::from(role.to_string()),
        cpus: pins.cpus.get(&role).cloned().unwrap_or_default(),
        own_session: pins.has_own(role),
        slice,
        ..Launch::default()
    }
}

/// Responses that a unit verifies before it measures.
fn verified(warmup: Warmup) -> u64 {
    (TIME_TO_VERIFY.0 / warmup.response.0.max(1)).clamp(FEWEST_VERIFIED, MOST_VERIFIED)
}

/// Two ports of this machine that nothing uses.
fn free_ports() -> Result<[u16; 2], Error> {
    let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let both = listen().and_then(|one| Ok([one, listen()?]));
    let ports = both.and_then(|[one, other]| Ok([one.local_addr()?.port(), other.local_addr()?.port()]));
    ports.map_err(|e| Error::NothingMeasured(format!("no free port on 127.0.0.1: {e}")))
}

#[cfg(test)]
mod tests;
