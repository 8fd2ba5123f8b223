//! Options that several loads and servers have in common.

use super::{span, u32_in};
use clap::Args;
use linerate_contract::Spec;
use std::path::PathBuf;
use std::time::Duration;

/// What becomes of a load and its result.
#[derive(Debug, Args)]
pub struct ResultArgs {
    /// Time without a response after which an operation fails
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = span)]
    pub timeout: Duration,

    /// Exit with status 1 where more than this share failed, or where nothing ended for a fifth of the time
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = share)]
    pub max_failed: f64,

    /// Write the result as JSON, with full histograms; -: to standard output, instead of text
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Show no progress line
    #[arg(long, short)]
    pub quiet: bool,
}

/// Connections, or flows of datagrams with a socket each, for some time.
#[derive(Debug, Args)]
pub struct FlowArgs {
    /// Concurrent connections or flows
    #[arg(
        long,
        short,
        short_alias = 'P',
        visible_alias = "parallel",
        value_name = "N",
        default_value_t = 1,
        value_parser = u32_in(1..)
    )]
    pub connections: u32,

    #[command(flatten)]
    pub threads: ThreadArgs,

    /// Stop after this time
    #[arg(long, short, value_name = "TIME", default_value = "10s", value_parser = span)]
    pub duration: Duration,

    #[command(flatten)]
    pub result: ResultArgs,
}

#[derive(Debug, Args)]
pub struct ThreadArgs {
    /// Threads; each has a share of the connections
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = u32_in(1..=1024))]
    pub threads: u32,
}

/// The certificates that a client trusts, and its own.
#[derive(Debug, Args)]
pub struct TrustArgs {
    /// Accept any TLS certificate
    #[arg(long)]
    pub insecure: bool,

    /// Trust this CA certificate (PEM) instead of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub authority: Option<PathBuf>,

    /// Certificate of the client (PEM), for servers that ask for one
    #[arg(long, value_name = "FILE")]
    pub cert: Option<PathBuf>,

    /// Private key of --cert (PEM) [default: it is in the file of --cert]
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
}

/// The certificate of a server.
#[derive(Debug, Args)]
pub struct SecureArgs {
    /// Use TLS 1.3 with a new certificate; its CA certificate is written to FILE
    #[arg(long, value_name = "FILE")]
    pub tls: Option<Option<PathBuf>>,
}

/// What a thread of a client or server does before it sleeps.
#[derive(Debug, Args)]
pub struct SpinArgs {
    /// Poll for up to TIME (1us to 1ms) before a thread sleeps: less latency for more CPU; always: threads
    /// never sleep; never: they do not poll before a request of an open loop is due, either
    #[arg(long, value_name = "TIME", value_parser = spin)]
    spin: Option<String>,
}

impl SpinArgs {
    pub(crate) fn set(&self, spec: &mut Spec) {
        if let Some(spin) = &self.spin {
            spec.options.insert("spin".into(), spin.clone());
        }
    }
}

/// The value of the spec's option: microseconds, `always` or `never`.
fn spin(text: &str) -> Result<String, String> {
    if ["always", "never"].contains(&text) {
        return Ok(text.into());
    }
    match span(text)?.as_micros() {
        micros @ 1..=1_000 => Ok(micros.to_string()),
        _ => Err("expected 1us to 1ms, always or never; 50us is suggested".into()),
    }
}

/// `1%`, `0.5 %` or `1`: percent, as a share.
fn share(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("expected a share from 0% to 100%, such as 1%".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_in_percent() {
        for (text, value) in [("1%", Some(0.01)), ("0", Some(0.0)), ("2.5 %", Some(0.025)), ("101", None)] {
            assert_eq!(share(text).ok(), value, "{text}");
        }
    }

    #[test]
    fn a_spin_is_a_short_time_or_always() {
        for (text, option) in [
            ("50us", Some("50")),
            ("1ms", Some("1000")),
            ("always", Some("always")),
            ("never", Some("never")),
        ] {
            assert_eq!(spin(text).ok().as_deref(), option);
        }
        for text in ["", "yes", "0us", "500ns", "2ms", "50"] {
            assert!(spin(text).is_err(), "{text}");
        }
    }
}
