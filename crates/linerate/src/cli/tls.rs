//! TLS options of clients and servers.

use clap::Args;
use std::path::PathBuf;

/// The certificates that a client trusts.
#[derive(Debug, Args)]
pub struct TrustArgs {
    /// Accept any TLS certificate
    #[arg(long)]
    pub insecure: bool,

    /// Trust this CA certificate (PEM) instead of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub authority: Option<PathBuf>,
}

/// The certificate of a server.
#[derive(Debug, Args)]
pub struct SecureArgs {
    /// Use TLS 1.3 with a new certificate; its CA certificate is written to FILE
    #[arg(long, value_name = "FILE")]
    pub tls: Option<Option<PathBuf>>,
}
