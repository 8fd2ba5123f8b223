//! Flags as the servers of a comparison: their commands or addresses, and what is asked of them.

use super::{CONNECTIONS, CompareFlags, LoadFlags, SIZE, STREAMS, Settings, half_of_cpus};
use crate::arm::Arm;
use crate::error::Error;
use crate::measurement::{
    Hooks, Place, PlannedAddress, PlannedArm, PlannedCommand, PlannedComparison, PlannedLoad, PlannedRate,
    PlannedRequest, PlannedTarget, Subject,
};
use crate::subject;
use crate::subject::values::{self, Filled};
use linerate_contract::nearest::suggestion;
use linerate_contract::{Layer, Nanos};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The value of `{port}` and PORT, unless the user's own PORT or --port is another.
const PORT: u16 = 8080;
/// The load under which latencies are compared, beside the closed loop: at saturation a server batches, and
/// what a request costs and how long it takes is not what its users get.
const HALF_OF_CAPACITY: PlannedRate = PlannedRate::Share(0.5);
/// Bytes of all requests: each program of a unit gets them anew.
const LONGEST: usize = 64 << 20;

/// Servers that are compared: commands, or addresses of those that run elsewhere.
#[derive(Debug, Clone, Default)]
pub struct GivenServers {
    /// The commands, or the addresses as they were written.
    pub lines: Vec<String>,
    /// The target at each address, the address, and further ones of its name.
    pub targets: Vec<(PlannedTarget, SocketAddr, Vec<SocketAddr>)>,
    /// Where the commands run; `None`: in the current folder.
    pub folder: Option<PathBuf>,
    /// Keys of linerate.toml with their values, for the command that makes the run again.
    pub keys: Vec<String>,
}

impl CompareFlags {
    /// The comparison with its servers.
    pub(super) fn with_servers(
        &self,
        servers: &GivenServers,
        comparison: PlannedComparison,
    ) -> Result<PlannedComparison, Error> {
        let current = || std::env::current_dir().map_err(Error::file(Path::new(".")));
        let folder = servers.folder.clone().map_or_else(current, Ok)?;
        let load = &self.settings.load;
        let requests = load.requests(&folder)?;
        let subjects = self.subjects(servers, &comparison)?;
        let load = self.load(!servers.targets.is_empty(), folder, requests)?;
        // A setup or the build of a revision may make the program.
        let may_be_made = !self.settings.subjects.setup.is_empty() || comparison.source.is_some();
        subject::check(&subjects, &load, may_be_made)?;
        Ok(PlannedComparison { subjects, load: Some(load), ..comparison })
    }

    /// The servers with their names, hooks and places.
    fn subjects(
        &self,
        servers: &GivenServers,
        comparison: &PlannedComparison,
    ) -> Result<Vec<Subject>, Error> {
        let flags = &self.settings.subjects;
        let mut filled = values::filled(&servers.lines, &flags.values, &flags.setup, &flags.cleanup)?;
        let mut revisions = vec![None; filled.len()];
        if comparison.source.is_some() {
            filled = two_revisions(filled, comparison)?;
            revisions = comparison.subjects.iter().map(|one| Some(one.arm())).collect();
        }
        let lines: Vec<String> = filled.iter().map(|one| one.command.clone()).collect();
        let names = match &flags.name[..] {
            [] if !filled[0].name.is_empty() && servers.lines.len() == 1 => {
                filled.iter().map(|one| one.name.clone()).collect()
            }
            given => given.to_vec(),
        };
        let named = subject::names(&lines, &names)?.into_iter().zip(filled);
        let mut subjects: Vec<Subject> = if servers.targets.is_empty() {
            named.zip(revisions).map(|((name, filled), revision)| command(name, filled, revision)).collect()
        } else {
            named
                .zip(&servers.targets)
                .map(|((name, filled), target)| address(name, filled, target))
                .collect()
        };
        place(&self.places.host, &mut subjects)?;
        Ok(subjects)
    }

    fn load(
        &self,
        run_already: bool,
        folder: PathBuf,
        requests: Vec<PlannedRequest>,
    ) -> Result<PlannedLoad, Error> {
        let Settings { subjects, load, .. } = &self.settings;
        let share = shared("--share", &subjects.share, &folder)?;
        let (sources, places): (Vec<PathBuf>, Vec<PathBuf>) = subjects.volume.iter().cloned().unzip();
        let volumes = shared("-v", &sources, &folder)?.into_iter().zip(places).collect();
        let of_user = || std::env::var("PORT").ok()?.parse().ok().filter(|port| *port > 0);
        let connections = load.connections.unwrap_or(CONNECTIONS);
        Ok(PlannedLoad {
            companions: subjects.with.clone(),
            upstream: subjects.upstream.clone(),
            folder,
            port: subjects.port.or_else(of_user).unwrap_or(PORT),
            place: if subjects.network.is_some() || run_already { Place::Local } else { Place::Lab },
            port_is_given: subjects.port.is_some(),
            requests,
            requests_file: load.request.requests.clone(),
            layer: load.layer(),
            size: load.is_echo().then(|| load.size.unwrap_or(SIZE)),
            connections,
            streams: load.is_multiplexed().then(|| load.streams.unwrap_or(STREAMS)),
            are_calls: load.grpc.is_some(),
            rate: load.rate,
            latency: (load.rate.is_none() && !load.no_latency).then_some(HALF_OF_CAPACITY),
            threads: half_of_cpus().min(connections),
            given: load.expect.unwrap_or_default(),
            share,
            volumes,
            options: load.options(),
            environment: subjects.env.iter().cloned().collect(),
            ready: subjects.ready.map(Nanos::from),
            setup_within: subjects.setup_time.map(Nanos::from),
            cleanup_within: subjects.cleanup_time.map(Nanos::from),
        })
    }
}

/// Folders and files that are there, by their own paths.
fn shared(option: &str, paths: &[PathBuf], folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let found = |path: &PathBuf| {
        folder.join(path).canonicalize().map_err(|e| {
            let path = path.display();
            Error::Input(format!("{option} {path}: {e}; a folder or file has to be there: mkdir -p {path}"))
        })
    };
    paths.iter().map(found).collect()
}

fn command(
    name: String,
    Filled { command, setup, cleanup, .. }: Filled,
    revision: Option<PlannedArm>,
) -> Subject {
    Subject::Command(PlannedCommand { name, line: command, hooks: Hooks { setup, cleanup }, revision })
}

fn address(
    name: String,
    filled: Filled,
    (target, address, further): &(PlannedTarget, SocketAddr, Vec<SocketAddr>),
) -> Subject {
    let Filled { command: url, setup, cleanup, .. } = filled;
    let (target, hooks, further) = (target.clone(), Hooks { setup, cleanup }, further.clone());
    Subject::Address(PlannedAddress {
        name,
        url,
        target,
        address: *address,
        further,
        watched_on: None,
        hooks,
    })
}

impl LoadFlags {
    fn is_multiplexed(&self) -> bool {
        self.h2 || self.h3 || self.grpc.is_some()
    }

    fn is_echo(&self) -> bool {
        self.tcp || self.udp || self.ws
    }

    /// The protocol; an echo over TLS has an address.
    pub(crate) fn layer(&self) -> Layer {
        let all = [
            (self.tcp && self.https, Layer::Tls),
            (self.ws && self.https, Layer::Wss),
            (self.tcp, Layer::Tcp),
            (self.udp, Layer::Udp),
            (self.ws, Layer::WebSocket),
            (self.h3, Layer::H3),
            (self.is_multiplexed() && self.https, Layer::H2),
            (self.is_multiplexed(), Layer::H2c),
            (self.https, Layer::Https),
        ];
        all.into_iter().find(|(is_chosen, _)| *is_chosen).map_or(Layer::Http, |(_, layer)| layer)
    }

    /// Options of linerate's own client.
    fn options(&self) -> BTreeMap<String, String> {
        let handshake = self.handshake.iter().map(|kind| ("handshake".to_owned(), kind.clone()));
        self.websocket.options().into_iter().chain(handshake).collect()
    }

    /// Flags that need others.
    fn check(&self) -> Result<(), Error> {
        let faults = [
            (
                self.stream,
                "--stream: a stream in one direction needs a receiver that compares and counts what arrives \
                 and returns its count (sdk/CONTRACT.md, `stream`): `linerate new system` makes such a \
                 program. For any server that sends back what it gets, --tcp --size 1048576 compares the \
                 throughput of both directions",
            ),
            (self.streams.is_some() && !self.is_multiplexed(), "--streams is for --h2, --h3 and --grpc"),
            (
                self.message.message.is_some() && self.grpc.is_none(),
                "--message is for --grpc; a request has --body",
            ),
            (self.ws && self.url.len() > 1, "--ws has one path: give one --url"),
            (
                self.websocket.is_given() && !self.ws,
                "--text, --subprotocol and --greetings are for --ws, and addresses of ws:// and wss://",
            ),
            (
                self.handshake.is_some() && !self.layer().has_tls(),
                "--handshake is for servers of TLS: --https, --h3, or addresses such as wss://",
            ),
            (
                self.grpc == Some(None) && self.request.requests.is_none(),
                "--grpc: name a method, such as --grpc helloworld.Greeter/SayHello, or several in a file of \
                 --requests",
            ),
            (
                matches!(self.grpc, Some(Some(_))) && self.request.requests.is_some(),
                "--grpc: the methods are the paths of --requests, so give --grpc without one",
            ),
        ];
        match faults.into_iter().find(|(is_there, _)| *is_there) {
            Some((_, fault)) => Err(Error::Input(fault.into())),
            None => Ok(()),
        }
    }

    /// The requests for a server; files are relative to `folder`.
    fn requests(&self, folder: &Path) -> Result<Vec<PlannedRequest>, Error> {
        self.check()?;
        let method = self.grpc.iter().flatten().map(String::as_str);
        let paths: Vec<&str> = method.chain(self.url.iter().map(String::as_str)).collect();
        let paths = if paths.is_empty() { &["/"] } else { &paths[..] };
        let mut requests = self.request.requests(paths, folder)?.requests;
        if self.grpc.is_some() {
            self.message.call(&mut requests, self.request.requests.as_deref(), folder)?;
        }
        if requests.iter().map(|one| one.body.len() + one.path.len()).sum::<usize>() > LONGEST {
            return Err(Error::Input(format!("the requests have more than {LONGEST} bytes together")));
        }
        requests.iter_mut().for_each(|one| one.headers.extend(self.websocket.headers()));
        let of = |one: PlannedRequest| PlannedRequest { expect: self.expect.unwrap_or(one.expect), ..one };
        Ok(requests.into_iter().map(of).collect())
    }
}

/// Where servers run that run already.
fn place(places: &[(String, Place)], subjects: &mut [Subject]) -> Result<(), Error> {
    let names: Vec<String> = subjects.iter().map(|subject| subject.name().to_owned()).collect();
    for (name, place) in places {
        let wrong = |why: &str| Err(Error::Input(format!("--host {name}={place}: {why}")));
        match subjects.iter_mut().find(|subject| subject.name() == name) {
            None => {
                let near = suggestion(name, names.iter().map(String::as_str));
                return wrong(&format!("nothing is called so (-n names addresses); {near}"));
            }
            Some(Subject::Address(known)) => known.watched_on = Some(place.clone()),
            Some(_) => return wrong("it is for addresses; the CPU time of a command is known"),
        }
    }
    let is_watched = |one: &&Subject| one.address().is_some_and(|known| known.watched_on.is_some());
    match subjects.iter().find(|one| !is_watched(one)) {
        Some(without) if !places.is_empty() => Err(Error::Input(format!(
            "--host is not there for {0}: CPU times are compared, so give all a host, such as \
             --host {0}=local for this machine",
            without.name()
        ))),
        _ => Ok(()),
    }
}

/// One command in the worktrees of both arms.
fn two_revisions(commands: Vec<Filled>, comparison: &PlannedComparison) -> Result<Vec<Filled>, Error> {
    let [one] = &commands[..] else {
        let n = commands.len();
        return Err(Error::Input(format!("--build is for two revisions of one command, and there are {n}")));
    };
    let arms = ["base", "head"].into_iter().zip(comparison.arms());
    let of_arm = |(option, planned): (&str, PlannedArm)| {
        let arm = Arm::parse(&planned.arm).map_err(Error::Input)?;
        let revision = arm.git.clone().filter(|git| arm == Arm { git: Some(git.clone()), ..Arm::default() });
        let revision = revision.ok_or_else(|| {
            Error::Input(format!("--{option} {}: a command is compared by revisions: git=REV", planned.arm))
        })?;
        Ok(Filled { name: revision, ..one.clone() })
    };
    arms.map(of_arm).collect()
}
