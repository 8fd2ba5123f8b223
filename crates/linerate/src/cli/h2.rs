//! `linerate load h2` and `linerate serve h2`.

use super::{ClientArgs, ServePageArgs};
use clap::Args;

/// Send HTTP/2 requests, several at the same time on each connection
///
/// http URLs are loaded with prior knowledge (h2c), https URLs over TLS (ALPN h2). Without --rate the loop is
/// closed: each stream is followed by the next one when its response is complete. With --rate it is open:
/// requests are sent at their intended times on the connections in turn, and response times count from these.
/// A status below 400 is a success.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate load h2 http://127.0.0.1:8080/ -c 10 --streams 10 -d 5s
  linerate load h2 https://localhost:8443/ --insecure -c 1 --streams 100
  linerate load h2 https://localhost:8443/ --authority ca.pem -n 100000 --json result.json
  linerate load h2 http://127.0.0.1:8080/ -c 4 --streams 100 --rate 20000 --arrival poisson
  linerate load h2 http://127.0.0.1:8080/ --sweep --at-most p99=2ms

Exit status: 0 done, 1 too many requests failed or the server hung, 2 bad usage, \
3 no request succeeded, 130 interrupted (the partial result is printed).")]
pub struct LoadH2Args {
    /// URL of the server, http:// or https://
    #[arg(value_name = "URL")]
    pub url: String,

    #[command(flatten)]
    pub multiplexed: MultiplexedArgs,
}

#[derive(Debug, Args)]
pub struct MultiplexedArgs {
    #[command(flatten)]
    pub client: ClientArgs,

    /// Requests under way on each connection; a server may allow fewer (nginx: 128)
    #[arg(
        long,
        short = 'm',
        value_name = "N",
        default_value_t = 10,
        value_parser = clap::value_parser!(u16).range(1..=1000)
    )]
    pub streams: u16,

    /// Connect to this host and port; the authority and the TLS name remain those of the URL
    #[arg(long, value_name = "HOST:PORT")]
    pub connect_to: Option<String>,
}

/// Serve one page from memory over HTTP/2, for any GET
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate serve h2 --listen 127.0.0.1:8080 --size 1024      \
    # for load h2 http://127.0.0.1:8080/, and curl --http2-prior-knowledge
  linerate serve h2 --listen 127.0.0.1:8443 --tls            \
    # for load h2 https://127.0.0.1:8443/ --insecure")]
pub struct ServeH2Args {
    #[command(flatten)]
    pub page: ServePageArgs,
}
