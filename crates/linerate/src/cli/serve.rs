//! `linerate serve`: one command for all protocols.

use super::argv::Given;
use super::{DatagramArgs, SpinArgs, u32_in, u64_in};
use clap::Args;
use std::path::PathBuf;

/// Run a server for `linerate load`
///
/// The protocol is the scheme of the URL, and the rest is where the server listens: port 0 is chosen by the
/// kernel, and 0.0.0.0 are all addresses.
///
///   http https h2 h2c h3  one page from memory, for any GET
///   grpc grpcs            one message from memory for any call, or several
///   tcp tls ws wss udp    messages are sent back; with --stream data is received and verified, or sent
///   kcp                   data is received and verified
///   quic                  as many bytes as are asked for (draft-banks-quic-performance)
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, before_help = EXAMPLES, override_usage = "linerate serve [OPTIONS] <URL>")]
pub struct ServeArgs {
    #[command(flatten)]
    pub given: Given,

    /// Protocol and address
    #[arg(value_name = "URL", required = true)]
    pub url: Vec<String>,

    /// Bytes of a page [default: 4096], of a message of gRPC [4096], or of the writes and datagrams of
    /// --stream [as of load]
    #[arg(long, short = 'l', value_name = "BYTES", value_parser = u64_in(0..=1 << 30))]
    pub size: Option<u64>,

    /// grpc, grpcs: messages of each response
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = u64_in(1..=10_000))]
    pub messages: u64,

    /// tcp, tls, ws, wss, udp: serve clients with --stream
    #[arg(long)]
    pub stream: bool,

    /// tls, ws, wss: send streams in place of receiving them; over tcp the client chooses
    #[arg(long, short = 'R')]
    pub reverse: bool,

    /// Threads; each has a share of the connections [default: half of the CPUs]
    #[arg(long, short, value_name = "N", value_parser = u32_in(1..=1024))]
    pub threads: Option<u32>,

    #[command(flatten)]
    pub spin: SpinArgs,

    /// https, h2, h3, grpcs, tls, wss, quic: the CA certificate of this server is written to FILE, for load
    /// --authority FILE
    #[arg(long, visible_alias = "cacert", value_name = "FILE")]
    pub authority: Option<PathBuf>,

    #[command(flatten)]
    pub datagrams: DatagramArgs,

    /// At the end, write what clients have done wrong, with causes; -: to standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Refused: the address is in the URL.
    #[arg(long, hide = true)]
    pub listen: Option<String>,
}

const EXAMPLES: &str = "Examples:
  linerate serve http://127.0.0.1:8080 --size 1024
  linerate serve https://127.0.0.1:8443 --authority ca.pem      # for load ... --authority ca.pem
  linerate serve h2c://127.0.0.1:8080                           # also for curl --http2-prior-knowledge
  linerate serve grpc://127.0.0.1:50051 --size 100 --messages 50
  linerate serve tcp://127.0.0.1:9000                           # for load tcp://127.0.0.1:9000
  linerate serve tcp://0.0.0.0:9000 --stream                    # for load tcp://... --stream
  linerate serve ws://127.0.0.1:9000 --stream --reverse
  linerate serve kcp://127.0.0.1:9000 --window 256 --interval-us 1000";
