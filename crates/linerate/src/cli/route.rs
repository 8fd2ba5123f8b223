//! Where `linerate load http` connects to.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Clone, Default, Args)]
pub struct RouteArgs {
    /// Connect to this host and port; the Host header and the TLS name remain those of the URL
    #[arg(long, value_name = "HOST:PORT")]
    pub connect_to: Option<String>,

    /// Connect to this Unix domain socket; the Host header and the path remain those of the URL
    #[arg(long, value_name = "PATH", conflicts_with = "connect_to")]
    pub unix_socket: Option<PathBuf>,

    /// Send the requests through this proxy, http://[NAME:PASSWORD@]HOST:PORT; for https URLs by a tunnel
    /// (CONNECT). Variables such as http_proxy are not read
    #[arg(long, value_name = "URL", conflicts_with_all = ["connect_to", "unix_socket"])]
    pub proxy: Option<String>,
}
