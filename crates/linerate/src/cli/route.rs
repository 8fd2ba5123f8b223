//! Where `linerate load` connects to.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Where connections go")]
pub struct RouteArgs {
    /// Connect to this host and port; the Host header and the TLS name remain those of the URL
    #[arg(long, value_name = "HOST:PORT")]
    pub connect_to: Option<String>,

    /// http, https: connect to this Unix domain socket; the Host header and the path remain those of the URL
    #[arg(long, value_name = "PATH", conflicts_with = "connect_to")]
    pub unix_socket: Option<PathBuf>,

    /// http, https: through this proxy, http://[NAME:PASSWORD@]HOST:PORT; for https by a tunnel (CONNECT).
    /// Variables such as http_proxy are not read
    #[arg(long, value_name = "URL", conflicts_with_all = ["connect_to", "unix_socket"])]
    pub proxy: Option<String>,
}
