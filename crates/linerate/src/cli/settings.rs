//! Flags of `linerate compare` and `gate` that are also keys of linerate.toml: a field is the flag's parser,
//! its help and its key, which is its long name.

use super::grpc::rpc_method;
use super::values::{
    budget, expectation, microseconds, percent, percentile, rate, request_target, variable, volume,
};
use super::{MessageArgs, RequestArgs, WebSocketArgs, span, u32_in, u64_in};
use crate::error::Error;
use crate::measurement::{
    DecidingPercentile, Expectation, LatencyMargin, PlannedRate, PlannedRequest, bounds,
};
use clap::Args;
use linerate_contract::Layer;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options of HTTP requests and responses; the upgrade to WebSocket has headers, too.
const OF_HTTP: [&str; 5] = ["expect", "method", "body", "requests", "feed"];

/// Bytes of all requests: each program of a unit gets them anew.
const LONGEST: usize = 64 << 20;

/// Each group is one of the command line and a part of the file.
#[derive(Debug, Clone, Args)]
pub struct Settings {
    #[command(flatten)]
    pub subjects: SubjectFlags,

    #[command(flatten)]
    pub load: LoadFlags,

    #[command(flatten)]
    pub judge: JudgeFlags,
}

/// Commands that start servers, and what is around them.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Servers")]
pub struct SubjectFlags {
    /// Run once for each value; {NAME} in commands, setups and cleanups is replaced by it (repeatable)
    #[arg(long, short = 'L', num_args = 2, value_names = ["NAME", "VALUES"], allow_hyphen_values = true)]
    pub values: Vec<String>,

    /// A command that is started before each server, in its namespace, such as its database (repeatable)
    #[arg(long, value_name = "COMMAND")]
    pub with: Vec<String>,

    /// Folder or file whose contents a server may change for good; whatever else it writes is in memory, and
    /// ends with its unit (repeatable)
    #[arg(hide_short_help = true, long, value_name = "PATH")]
    pub share: Vec<PathBuf>,

    /// Folder or file in a server that is an image (image:NAME, oci:DIR, docker-archive:FILE); what is
    /// written to it ends with the unit, unless --share has it (repeatable)
    #[arg(hide_short_help = true, long, short = 'v', value_name = "PATH:PLACE", value_parser = volume)]
    pub volume: Vec<(PathBuf, PathBuf)>,

    /// Variable of the servers' environment (repeatable)
    #[arg(hide_short_help = true, long, short = 'e', value_name = "NAME=VALUE", value_parser = variable)]
    pub env: Vec<(String, String)>,

    /// How long a server may take until its first expected response [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub ready: Option<Duration>,

    /// A server behind the commands, which are proxies: {upstream} in them is its address
    #[arg(hide_short_help = true, long, value_name = "COMMAND")]
    pub upstream: Option<String>,

    /// Shell command before anything is measured, on the user's own files, which all servers then read: one
    /// for all commands, or one for each
    #[arg(hide_short_help = true, long, value_name = "COMMAND")]
    pub setup: Vec<String>,

    /// Shell command at the end: one for all commands, or one for each
    #[arg(hide_short_help = true, long, value_name = "COMMAND")]
    pub cleanup: Vec<String>,

    /// How long each setup may take; then it is ended, and the run, too [default: 30m]
    #[arg(hide_short_help = true, long, value_name = "TIME", value_parser = span)]
    pub setup_time: Option<Duration>,

    /// How long each cleanup may take; then it is ended, and that is an error [default: 5m]
    #[arg(hide_short_help = true, long, value_name = "TIME", value_parser = span)]
    pub cleanup_time: Option<Duration>,

    /// Shell command that builds a revision, run in a clone of it
    #[arg(hide_short_help = true, long, value_name = "COMMAND")]
    pub build: Option<String>,

    /// Name of a command, in their order [default: its program, or the whole command]
    #[arg(long, short = 'n', value_name = "NAME")]
    pub name: Vec<String>,

    /// The port to measure, where a server listens on several; also {port} and PORT
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,

    /// The commands run in the network of this machine, for servers that need the outside world. They listen
    /// on {port}, which is another one for each
    #[arg(
        hide_short_help = true,
        long,
        value_name = "host",
        value_parser = ["host"],
        conflicts_with_all = ["port", "with", "upstream"]
    )]
    pub network: Option<String>,
}

/// Requests for each server, and the number of connections.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Load")]
pub struct LoadFlags {
    /// Request target (repeatable) [default: /]
    #[arg(long, value_name = "PATH", value_parser = request_target, conflicts_with = "requests")]
    pub url: Vec<String>,

    #[command(flatten)]
    pub request: RequestArgs,

    /// A correct response, such as status=404, length=12 or json [default: the first command's responses]
    #[arg(long, value_name = "PARTS", value_parser = expectation)]
    pub expect: Option<Expectation>,

    /// Concurrent connections [default: 16]
    #[arg(long, short, alias = "concurrency", value_name = "N",
        value_parser = u32_in(1..=i64::from(bounds::MOST_CONNECTIONS)))]
    pub connections: Option<u32>,

    /// The server speaks TLS; its certificate is not verified
    #[arg(long)]
    pub https: bool,

    /// TLS: handshakes of the client; with resumed it resumes its sessions after one full handshake for each
    /// connection, which shows where servers close connections [default: full; of https and h2 as the server
    /// offers]
    #[arg(hide_short_help = true, long, value_name = "KIND", value_parser = ["full", "resumed"])]
    pub handshake: Option<String>,

    /// The default: an option that other tools need
    #[arg(long, short = 'k', hide = true)]
    pub insecure: bool,

    /// The server speaks HTTP/2: with prior knowledge, or with --https over TLS (ALPN h2)
    #[arg(long, conflicts_with_all = ["tcp", "udp", "ws"])]
    pub h2: bool,

    /// The server speaks HTTP/3, always over TLS; its certificate is not verified
    #[arg(hide_short_help = true, long, conflicts_with_all = ["tcp", "udp", "ws", "h2", "grpc", "upstream"])]
    pub h3: bool,

    /// The server speaks gRPC over HTTP/2: unary calls of this method, such as helloworld.Greeter/SayHello;
    /// without a method those of --requests, whose paths are methods and whose bodies are messages
    #[arg(
        hide_short_help = true,
        long,
        value_name = "METHOD", value_parser = rpc_method,
        conflicts_with_all = ["tcp", "udp", "ws", "url", "method", "body"]
    )]
    pub grpc: Option<Option<String>>,

    #[command(flatten)]
    pub message: MessageArgs,

    /// With --h2, --h3 or --grpc: requests under way on each connection [default: 10]
    #[arg(
        hide_short_help = true,
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=i64::from(bounds::MOST_STREAMS)),
        conflicts_with_all = ["tcp", "udp", "ws"]
    )]
    pub streams: Option<u16>,

    /// In place of HTTP: each connection sends --size bytes over TCP and gets them back
    #[arg(
        hide_short_help = true,
        long, conflicts_with_all = ["https", "ws", "udp", "header"], conflicts_with_all = OF_HTTP
    )]
    pub tcp: bool,

    /// Refused, with what to do instead
    #[arg(long, hide = true)]
    pub stream: bool,

    /// In place of HTTP: the same over UDP
    #[arg(
        hide_short_help = true,
        long, conflicts_with_all = ["https", "ws", "upstream", "header"], conflicts_with_all = OF_HTTP
    )]
    pub udp: bool,

    /// In place of HTTP: the same over WebSocket, at the path --url
    #[arg(hide_short_help = true, long, conflicts_with = "https", conflicts_with_all = OF_HTTP)]
    pub ws: bool,

    #[command(flatten)]
    pub websocket: WebSocketArgs,

    /// Bytes of an echo of --tcp, --udp or --ws [default: 64]
    #[arg(hide_short_help = true, long, value_name = "BYTES", value_parser = u64_in(1..))]
    pub size: Option<u64>,

    /// Latency alone, at N operations per second or P% of the baseline's capacity [default: capacity, and
    /// then the latency at half of it]
    #[arg(long, aliases = ["rps", "qps"], value_name = "N or P%", value_parser = rate)]
    pub rate: Option<PlannedRate>,

    /// Without the latency and the CPU time at half of the capacity
    #[arg(hide_short_help = true, long, conflicts_with = "rate")]
    pub no_latency: bool,
}

/// Which differences matter, and how long they are looked for.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Decision")]
pub struct JudgeFlags {
    /// The relative difference that matters [default: 1%, of latencies 5%]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub margin: Option<f64>,

    /// The difference of latencies that matters, in microseconds, in place of a relative one
    #[arg(hide_short_help = true, long, value_name = "US", value_parser = microseconds)]
    pub margin_us: Option<f64>,

    /// The highest percentile that has to be decided, p50 or p90; others count where they are certain
    /// [default: p50]
    #[arg(hide_short_help = true, long, value_name = "P", value_parser = percentile)]
    pub percentile: Option<DecidingPercentile>,

    /// Measure until all is decided, for at most TIME [default: 5m; commands 30s, with --rate or a gate 1m]
    #[arg(long, short = 'd', aliases = ["duration", "time"], value_name = "TIME", value_parser = budget)]
    pub budget: Option<Duration>,
}

impl SubjectFlags {
    /// Several commands are built by their setups.
    pub(super) fn build_in_setup(&mut self) {
        let Some(build) = self.build.take() else { return };
        match &mut self.setup[..] {
            [] => self.setup = vec![build],
            setups => setups.iter_mut().for_each(|setup| *setup = format!("{build} && {setup}")),
        }
    }
}

impl JudgeFlags {
    pub(super) fn latency_margin(&self) -> LatencyMargin {
        match (self.margin_us, self.margin) {
            (Some(us), _) => LatencyMargin::Microseconds(us),
            (None, Some(share)) => LatencyMargin::Share(share),
            (None, None) => LatencyMargin::default(),
        }
    }
}

impl LoadFlags {
    pub(super) fn is_multiplexed(&self) -> bool {
        self.h2 || self.h3 || self.grpc.is_some()
    }

    pub(super) fn is_echo(&self) -> bool {
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
    pub(super) fn options(&self) -> BTreeMap<String, String> {
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
    pub(super) fn requests(&self, folder: &Path) -> Result<Vec<PlannedRequest>, Error> {
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
