//! TLS at both ends, whatever is spoken over it.

use clap::Args;
use std::path::PathBuf;

/// Whom a client trusts.
#[derive(Debug, Args)]
pub struct TrustArgs {
    /// Accept any TLS certificate
    #[arg(long)]
    pub insecure: bool,

    /// Trust this authority (PEM) in place of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub authority: Option<PathBuf>,
}

/// Whether a server has a certificate.
#[derive(Debug, Args)]
pub struct SecureArgs {
    /// Speak TLS 1.3, with a certificate made for this run; whom to trust for it is written to FILE
    #[arg(long, value_name = "FILE")]
    pub tls: Option<Option<PathBuf>>,
}
