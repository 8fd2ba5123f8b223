//! Flags of `linerate compare` and `gate` that are also keys of linerate.toml: a field is the flag's parser,
//! its help and its key, which is its long name.

use super::grpc::rpc_method;
use super::values::{
    budget, expectation, microseconds, percent, percentile, rate, request_target, variable, volume,
};
use super::{MessageArgs, RequestArgs, WebSocketArgs, span, u32_in, u64_in};
use crate::measurement::{DecidingPercentile, Expectation, PlannedRate, bounds};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Options of HTTP requests and responses; the upgrade to WebSocket has headers, too.
const OF_HTTP: [&str; 5] = ["expect", "method", "body", "requests", "feed"];

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
