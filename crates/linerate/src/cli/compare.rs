//! `linerate compare`: its flags, and the comparison that they make.

use super::argv::{Given, OUTPUT};
use super::builds::{ARMS, BuildFlags, two_revisions};
use super::plan::request;
use super::{CONNECTIONS, CellFlags, RunFlags, SIZE, STREAMS, Settings, half_of_cpus};
use crate::arm::AS_IT_IS;
use crate::error::Error;
use crate::measurement::{
    ComparisonKind, Hooks, Place, PlannedAddress, PlannedArm, PlannedCommand, PlannedComparison, PlannedLoad,
    PlannedRate, PlannedRequest, PlannedTarget, Subject,
};
use crate::placement::server_place;
use crate::plan::Choice;
use crate::session::{HostRequest, Request, Why};
use crate::subject;
use crate::subject::values::{self, Filled};
use clap::Args;
use linerate_contract::Nanos;
use linerate_contract::nearest::suggestion;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The difference that matters, unless the user says otherwise.
const MARGIN: f64 = 0.01;
/// The time of a comparison of builds, and of commands.
const BUDGET: Duration = Duration::from_secs(300);
const BUDGET_OF_COMMANDS: Duration = Duration::from_secs(30);
/// A unit of open loops is four times as long, and a gate needs a second series: with six or seven units of
/// 30 s, +64 % was open.
const BUDGET_OF_LATENCIES_OR_GATE: Duration = Duration::from_secs(60);
/// The value of `{port}` and PORT, unless the user's own PORT or --port is another.
const PORT: u16 = 8080;
/// The load under which latencies are compared, beside the closed loop: at saturation a server batches, and
/// what a request costs and how long it takes is not what its users get.
const HALF_OF_CAPACITY: PlannedRate = PlannedRate::Share(0.5);

/// Flags that `compare` and `gate` have in common.
#[derive(Debug, Clone, Args)]
pub struct CompareFlags {
    // The first, since each group takes its values from the matches.
    #[command(flatten)]
    pub given: Given,

    #[command(flatten)]
    pub settings: Settings,

    #[command(flatten)]
    pub places: PlaceFlags,

    #[command(flatten)]
    pub cells: CellFlags,

    #[command(flatten)]
    pub builds: BuildFlags,

    #[command(flatten)]
    pub why: WhyFlags,

    #[command(flatten)]
    pub run: RunFlags,

    /// Write the verdict and the table as a Markdown comment
    #[arg(hide_short_help = true, long, value_name = "FILE", help_heading = OUTPUT)]
    pub comment: Option<PathBuf>,
}

/// Compare servers by their commands, or two builds of a system, at the same time on the same CPUs
///
/// Units, each a fresh pair of processes, are measured side by side until all is decided or the budget is
/// used. A command starts a server of HTTP in a network namespace of its own; its port is found, and the
/// first command is the baseline. It reads the user's files, and what it writes ends with its unit (--share).
/// An image is unpacked and runs in the same way (image:NAME, oci:DIR, docker-archive:FILE). Servers that run
/// elsewhere are compared by their addresses. Two folders of stored runs are compared as far as they can be.
///
/// Exit status: 0 measured, whatever the answer; 1 slower, with --fail-on slower; 2 bad usage; 3 nothing
/// could be measured; 130 interrupted. `linerate gate` has a status for each verdict.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate compare './shop-v1' './shop-v2' --url /api/items
  linerate compare http://10.0.0.1:8080/api http://10.0.0.2:8080/api
  linerate compare image:shop:1 image:shop:2
  linerate compare proxy --only nginx/haproxy-tcp --head program=/opt/haproxy-3.2/haproxy")]
#[command(after_long_help = format!("{ARMS}

Examples:
  linerate compare './shop-v1' './shop-v2'
  linerate compare './shop-v1 --port {{port}}' './shop-v2 --port {{port}}' --url /api/items -c 64
  linerate compare 'THREADS=1 ./shop' 'cd new && ./shop --db shop.db' --ready 60s --share uploads
  linerate compare image:shop:1 'docker-archive:shop.tar --fast' -v ./conf:/etc/shop -e MODE=test
  linerate compare http://10.0.0.1:8080/api http://10.0.0.2:8080/api
  linerate compare proxy --only nginx/haproxy-tcp --head program=/opt/haproxy-3.2/haproxy
  linerate compare proxy --only nginx/direct --base set:sendfile=on --head set:sendfile=off
  linerate compare runtime --only 'http/*/asio-async' --head env:CXXFLAGS=-O3
  linerate compare .linerate/a .linerate/b"))]
pub struct CompareArgs {
    /// Two commands or more, or addresses; or a suite; or two folders of runs
    #[arg(value_name = "COMMAND")]
    pub what: Vec<String>,

    #[command(flatten)]
    pub flags: CompareFlags,

    /// Exit with 1 where a server is slower than the baseline
    #[arg(long, value_name = "slower", value_parser = ["slower"], help_heading = "Decision")]
    pub fail_on: Option<String>,
}

/// Whether the cause of a difference is looked for.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Decision")]
pub struct WhyFlags {
    /// Profile the servers after the last unit, also where they do not differ: which functions cost how much
    #[arg(long, conflicts_with = "no_why")]
    pub why: bool,

    /// Profile nothing; else servers that differ are profiled for a fifth of the budget, for 6 s at most
    #[arg(hide_short_help = true, long)]
    pub no_why: bool,
}

impl WhyFlags {
    pub(super) fn chosen(self) -> Why {
        match (self.why, self.no_why) {
            (true, _) => Why::Always,
            (_, true) => Why::Never,
            _ => Why::Differences,
        }
    }
}

/// Where servers run that linerate does not start.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Servers")]
pub struct PlaceFlags {
    /// Where the server at an address runs, by its name: its CPU time is read there, over ssh (repeatable;
    /// for each address or for none)
    #[arg(hide_short_help = true, long, value_name = "NAME=ssh:BOX", value_parser = server_place)]
    pub host: Vec<(String, Place)>,

    /// With --host: ssh options of machines [default: hosts.toml, if it exists]
    #[arg(hide_short_help = true, long, value_name = "FILE", requires = "host")]
    pub hosts: Option<PathBuf>,
}

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
    /// Two builds in the cells of a suite.
    pub fn of_suite(&self, suite: Option<String>, kind: ComparisonKind) -> Request {
        let choice = Choice {
            suites: suite.into_iter().collect(),
            comparison: Some(self.comparison(kind)),
            ..Choice::from(&self.cells)
        };
        Request {
            budget: Some(self.settings.judge.budget.unwrap_or(BUDGET)),
            is_bare: !self.given.has::<Settings>() && !self.given.has::<BuildFlags>(),
            why: self.why.chosen(),
            ..request(choice, &self.cells, &self.run, &[])
        }
    }

    /// Servers, the first of them the baseline.
    ///
    /// # Errors
    /// A command that cannot be started, or a body that cannot be read.
    pub fn of_servers(&self, servers: &GivenServers, kind: ComparisonKind) -> Result<Request, Error> {
        let usual = match kind {
            ComparisonKind::Compare if self.settings.load.rate.is_none() => BUDGET_OF_COMMANDS,
            _ => BUDGET_OF_LATENCIES_OR_GATE,
        };
        let comparison = self.with_servers(servers, self.comparison(kind))?;
        let choice = Choice { comparison: Some(comparison), ..Choice::from(&self.cells) };
        let (servers_at, file) = (self.places.host.clone(), self.places.hosts.clone());
        Ok(Request {
            budget: Some(self.settings.judge.budget.unwrap_or(usual)),
            hosts: HostRequest { servers: servers_at, file, ..HostRequest::default() },
            why: self.why.chosen(),
            ..request(choice, &self.cells, &self.run, &servers.keys)
        })
    }

    fn comparison(&self, kind: ComparisonKind) -> PlannedComparison {
        let Self { settings, builds, .. } = self;
        let judge = &settings.judge;
        let usual = if self.has_revisions() { ["git=merge-base", "git=working-tree"] } else { [AS_IT_IS; 2] };
        let subjects = [(&builds.base, usual[0]), (&builds.head, usual[1])].map(|(given, usual)| {
            let arm = given.as_deref().unwrap_or(usual).into();
            Subject::System(PlannedArm { arm, resolved: None })
        });
        PlannedComparison {
            kind,
            subjects: subjects.into(),
            system: builds.system.clone(),
            margin: judge.margin.unwrap_or(MARGIN),
            latency_margin: judge.latency_margin(),
            percentile: judge.percentile.unwrap_or_default(),
            rate: settings.load.rate,
            source: self.has_revisions().then(|| self.source()),
            load: None,
            remarks: Vec::new(),
            written: Vec::new(),
        }
    }

    /// The comparison with its servers.
    fn with_servers(
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
