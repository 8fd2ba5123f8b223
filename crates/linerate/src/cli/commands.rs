//! Options of `linerate compare` and `gate` for commands that start servers.

use super::grpc::rpc_method;
use super::{MessageArgs, RequestArgs, u32_in, u64_in};
use crate::arm::Arm;
use crate::error::Error;
use crate::measurement::{
    Expectation, Hooks, Place, PlannedAddress, PlannedArm, PlannedCommand, PlannedComparison, PlannedLoad,
    PlannedRequest, PlannedTarget, Subject,
};
use crate::placement::server_place;
use crate::session::HostRequest;
use crate::subject;
use crate::subject::values::{self, Filled};
use clap::Args;
use linerate_contract::nearest::suggestion;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// What `{port}` and PORT are, unless the user's own PORT or --port is another.
const PORT: u16 = 8080;

/// Options of HTTP requests and responses.
const OF_HTTP: [&str; 5] = ["expect", "method", "header", "body", "requests"];

/// Commands that start servers.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Commands")]
pub struct CommandOptions {
    /// A command for each value, which replaces {NAME} in commands, setups and cleanups (repeatable)
    #[arg(
        long = "values",
        short = 'L',
        num_args = 2,
        value_names = ["NAME", "VALUES"],
        allow_hyphen_values = true
    )]
    pub lists: Vec<String>,

    /// A command that is started before each server, in its namespace, such as its database (repeatable)
    #[arg(long = "with", value_name = "COMMAND")]
    pub companions: Vec<String>,

    /// A server behind the commands, which are proxies: {upstream} in them is its address
    #[arg(long, value_name = "COMMAND")]
    pub upstream: Option<String>,

    /// Shell command before anything is measured: one for all commands, or one for each
    #[arg(long, value_name = "COMMAND")]
    pub setup: Vec<String>,

    /// Shell command at the end: one for all commands, or one for each
    #[arg(long, value_name = "COMMAND")]
    pub cleanup: Vec<String>,

    /// Name of a command, in their order [default: its program, or the whole command]
    #[arg(long = "name", short = 'n', value_name = "NAME")]
    pub names: Vec<String>,

    /// Request target [default: /]
    #[arg(long, value_name = "PATH", value_parser = target, conflicts_with = "requests")]
    pub url: Option<String>,

    #[command(flatten)]
    pub request: RequestArgs,

    /// A correct response, such as status=404, length=12 or json [default: the first command's responses]
    #[arg(long, value_name = "PARTS", value_parser = expectation)]
    pub expect: Option<Expectation>,

    /// Concurrent connections [default: 16]
    #[arg(long, short, value_name = "N", value_parser = u32_in(1..))]
    pub connections: Option<u32>,

    /// The port to measure, where a server listens on several; also {port} and PORT
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,

    /// The commands run in the network of this machine, for servers that need the outside world. They listen
    /// on {port}, which is another one for each
    #[arg(
        long,
        value_name = "host",
        value_parser = ["host"],
        conflicts_with_all = ["port", "companions", "upstream"]
    )]
    pub network: Option<String>,

    /// Where the server at an address runs, by its name: its CPU time is read there, over ssh (repeatable;
    /// for each address or for none)
    #[arg(long = "host", value_name = "NAME=ssh:BOX", value_parser = server_place)]
    pub hosts: Vec<(String, Place)>,

    /// With --host: ssh options of machines [default: hosts.toml, if it exists]
    #[arg(long = "hosts", value_name = "FILE", requires = "hosts")]
    pub hosts_file: Option<PathBuf>,

    /// The server speaks TLS; its certificate is not verified
    #[arg(long)]
    pub https: bool,

    /// The server speaks HTTP/2: with prior knowledge, or with --https over TLS (ALPN h2)
    #[arg(long, conflicts_with_all = ["tcp", "udp", "ws"])]
    pub h2: bool,

    /// The server speaks HTTP/3, always over TLS; its certificate is not verified
    #[arg(long, conflicts_with_all = ["tcp", "udp", "ws", "h2", "grpc", "upstream"])]
    pub h3: bool,

    /// The server speaks gRPC over HTTP/2: unary calls of this method, such as helloworld.Greeter/SayHello
    #[arg(
        long,
        value_name = "METHOD",
        value_parser = rpc_method,
        conflicts_with_all = ["tcp", "udp", "ws", "url", "method", "body", "requests"]
    )]
    pub grpc: Option<String>,

    #[command(flatten)]
    pub message: MessageArgs,

    /// With --h2, --h3 or --grpc: requests under way on each connection [default: 10]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=1000),
        conflicts_with_all = ["tcp", "udp", "ws"]
    )]
    pub streams: Option<u16>,

    /// In place of HTTP: each connection sends --size bytes over TCP and gets them back
    #[arg(long, conflicts_with_all = ["https", "ws", "udp"], conflicts_with_all = OF_HTTP)]
    pub tcp: bool,

    /// Refused, with what to do instead
    #[arg(long, hide = true)]
    pub stream: bool,

    /// In place of HTTP: the same over UDP
    #[arg(long, conflicts_with_all = ["https", "ws", "upstream"], conflicts_with_all = OF_HTTP)]
    pub udp: bool,

    /// In place of HTTP: the same over WebSocket, at the path --url
    #[arg(long, conflicts_with = "https", conflicts_with_all = OF_HTTP)]
    pub ws: bool,

    /// Bytes of an echo of --tcp, --udp or --ws [default: 64]
    #[arg(long, value_name = "BYTES", value_parser = u64_in(1..))]
    pub size: Option<u64>,

    /// In place of commands: what is asked of servers that run elsewhere, and their addresses.
    #[arg(skip)]
    pub targets: Vec<(PlannedTarget, SocketAddr)>,

    /// Where the commands run; the current folder, or that of linerate.toml.
    #[arg(skip)]
    pub folder: Option<PathBuf>,
}

/// Enough that most servers are busy, and few enough that the client is not.
const CONNECTIONS: u32 = 16;
/// As many as those of `linerate load h2`.
const STREAMS: u16 = 10;
/// Bytes of all requests, which are an argument of a program: the kernel's limit is 128 KiB.
const LONGEST: usize = 64 << 10;
/// A short message.
const SIZE: u64 = 64;

impl CommandOptions {
    fn is_multiplexed(&self) -> bool {
        self.h2 || self.h3 || self.grpc.is_some()
    }

    fn layer(&self) -> &'static str {
        let all = [
            (self.tcp, "tcp"),
            (self.udp, "udp"),
            (self.ws, "websocket"),
            (self.h3, "h3"),
            (self.is_multiplexed() && self.https, "h2"),
            (self.is_multiplexed(), "h2c"),
            (self.https, "https"),
        ];
        all.into_iter().find(|(is_chosen, _)| *is_chosen).map_or("http", |(_, layer)| layer)
    }

    /// The comparison with what these options say about commands.
    ///
    /// # Errors
    /// A command that cannot be started, or a body that cannot be read.
    pub fn comparison(
        &self,
        commands: &[String],
        comparison: PlannedComparison,
    ) -> Result<PlannedComparison, Error> {
        if self.stream {
            return Err(Error::Input(
                "--stream: a stream in one direction needs a receiver that compares and counts what arrives \
                 and returns its count (sdk/CONTRACT.md, `stream`): `linerate new system` makes such a \
                 program. For any server that sends back what it gets, --tcp --size 1048576 compares the \
                 throughput of both directions"
                    .into(),
            ));
        }
        if self.streams.is_some() && !self.is_multiplexed() {
            return Err(Error::Input("--streams is for --h2, --h3 and --grpc".into()));
        }
        if self.message.message.is_some() && self.grpc.is_none() {
            return Err(Error::Input("--message is for --grpc; a request has --body".into()));
        }
        if (self.h2 || self.h3) && self.request.requests.is_some() {
            return Err(Error::Input(
                "--h2 and --h3 have one request, so leave out --requests; HTTP/1 may have several".into(),
            ));
        }
        let current = || std::env::current_dir().map_err(Error::file(Path::new(".")));
        let folder = self.folder.clone().map_or_else(current, Ok)?;
        let given = self.expect.unwrap_or_default();
        let method = self.grpc.as_ref().map(|method| format!("/{method}"));
        let path = method.as_deref().or(self.url.as_deref()).unwrap_or("/");
        let mut requests = self.request.requests(&[path], &folder)?;
        if self.grpc.is_some() {
            requests[0].method = "POST".into();
            requests[0].body = self.message.encoded(&folder)?;
        }
        if requests.iter().map(|one| one.body.len() + one.path.len()).sum::<usize>() > LONGEST {
            return Err(Error::Input(format!("the requests have more than {LONGEST} bytes together")));
        }
        let requests = requests.into_iter().map(|one| PlannedRequest { expect: given, ..one }).collect();
        let of_user = || std::env::var("PORT").ok()?.parse().ok().filter(|port| *port > 0);
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        // Half of the CPUs for the client: it needs less time for a request than most servers.
        let connections = self.connections.unwrap_or(CONNECTIONS);
        let threads = u32::try_from(cpus / 2).unwrap_or(1).clamp(1, connections);
        let mut filled = values::filled(commands, &self.lists, &self.setup, &self.cleanup)?;
        let is_of_revisions = comparison.source.is_some();
        if is_of_revisions {
            filled = two_revisions(filled, &comparison)?;
        }
        let lines: Vec<String> = filled.iter().map(|one| one.command.clone()).collect();
        let names = match &self.names[..] {
            [] if !filled[0].name.is_empty() && commands.len() == 1 => {
                filled.iter().map(|one| one.name.clone()).collect()
            }
            given => given.to_vec(),
        };
        let named = subject::names(&lines, &names)?.into_iter().zip(filled);
        let run_already = !self.targets.is_empty();
        let mut subjects: Vec<Subject> = if run_already {
            named.zip(&self.targets).map(|((name, filled), target)| address(name, filled, target)).collect()
        } else {
            let arms = comparison.subjects.iter().filter(|_| is_of_revisions).map(|one| Some(one.arm()));
            let arms = arms.chain(std::iter::repeat(None));
            named.zip(arms).map(|((name, filled), revision)| command(name, filled, revision)).collect()
        };
        let load = PlannedLoad {
            companions: self.companions.clone(),
            upstream: self.upstream.clone(),
            folder,
            port: self.port.or_else(of_user).unwrap_or(PORT),
            place: if self.network.is_some() || run_already { Place::Local } else { Place::Lab },
            port_is_given: self.port.is_some(),
            requests,
            requests_file: self.request.requests.clone(),
            layer: self.layer().into(),
            size: (self.tcp || self.udp || self.ws).then(|| self.size.unwrap_or(SIZE)),
            connections,
            streams: self.is_multiplexed().then(|| self.streams.unwrap_or(STREAMS)),
            are_calls: self.grpc.is_some(),
            rate: comparison.rate,
            threads,
            given,
        };
        self.place(&mut subjects)?;
        subject::check(&subjects, &load, !self.setup.is_empty() || is_of_revisions)?;
        Ok(PlannedComparison { subjects, load: Some(load), ..comparison })
    }
}

impl CommandOptions {
    /// Where the servers run.
    fn place(&self, subjects: &mut [Subject]) -> Result<(), Error> {
        let names: Vec<String> = subjects.iter().map(|subject| subject.name().to_owned()).collect();
        for (name, place) in &self.hosts {
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
            Some(without) if !self.hosts.is_empty() => Err(Error::Input(format!(
                "--host is not there for {0}: CPU times are compared, so give all a host, such as \
                 --host {0}=local for this machine",
                without.name()
            ))),
            _ => Ok(()),
        }
    }

    /// The machines of a run.
    pub fn host_request(&self) -> HostRequest {
        let (servers, file) = (self.hosts.clone(), self.hosts_file.clone());
        HostRequest { servers, file, ..HostRequest::default() }
    }
}

fn command(
    name: String,
    Filled { command, setup, cleanup, .. }: Filled,
    revision: Option<PlannedArm>,
) -> Subject {
    Subject::Command(PlannedCommand { name, line: command, hooks: Hooks { setup, cleanup }, revision })
}

fn address(name: String, filled: Filled, (target, address): &(PlannedTarget, SocketAddr)) -> Subject {
    let Filled { command: url, setup, cleanup, .. } = filled;
    let (target, hooks) = (target.clone(), Hooks { setup, cleanup });
    Subject::Address(PlannedAddress { name, url, target, address: *address, watched_on: None, hooks })
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

fn target(text: &str) -> Result<String, String> {
    if text.starts_with('/') {
        Ok(text.to_owned())
    } else {
        Err("expected a path such as /api/items: the address is found".into())
    }
}

fn expectation(text: &str) -> Result<Expectation, String> {
    let mut expectation = Expectation::default();
    for part in text.split(',') {
        let unknown = || format!("`{part}`: expected status=N, length=N or json");
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        match name {
            "json" if value.is_empty() => expectation.json = true,
            "status" => {
                let status = value.parse().ok().filter(|status| (100..600).contains(status));
                expectation.status = Some(status.ok_or_else(|| format!("`{part}`: no status of HTTP"))?);
            }
            "length" => {
                let bytes = value.parse().map_err(|_| format!("`{part}`: expected a whole number"))?;
                expectation.bytes = Some(bytes);
            }
            _ => return Err(unknown()),
        }
    }
    Ok(expectation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expectation_has_parts_by_name() {
        let expected = Expectation { status: Some(404), bytes: Some(12), crc32: None, json: true };
        assert_eq!(expectation("status=404,length=12,json"), Ok(expected));
        for (text, part) in
            [("xml", "expected status=N"), ("status=9", "no status"), ("length=x", "whole number")]
        {
            assert!(expectation(text).unwrap_err().contains(part), "{text}");
        }
    }
}
