//! Options and defaults that several commands have in common.

use super::{span, u64_in};
use clap::Args;
use linerate_contract::Spec;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// When a load has failed, and where its result goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Results")]
pub struct ResultArgs {
    /// Time without a response after which an operation fails; given, it is the deadline that the server of a
    /// call of gRPC is told [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub timeout: Option<Duration>,

    /// Exit with status 1 where more than this share failed, or where nothing ended for a fifth of the time
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = share)]
    pub max_failed: f64,

    /// Write the result as JSON, with full histograms; -: to standard output, instead of text
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write what was measured in each second, which --json has too
    #[arg(long, value_name = "FILE", conflicts_with = "repeat")]
    pub csv: Option<PathBuf>,

    /// Show no progress line
    #[arg(long, short)]
    pub quiet: bool,
}

/// Connections, unless the user says otherwise: enough that most servers are busy, and few enough that the
/// client is not.
pub(crate) const CONNECTIONS: u32 = 16;
/// Operations under way on each connection that may have several.
pub(crate) const STREAMS: u16 = 10;
/// Bytes of a short message.
pub(crate) const SIZE: u64 = 64;

/// Threads of a client: half of the CPUs, since it needs less time for a request than most servers.
pub(crate) fn half_of_cpus() -> u32 {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(cpus / 2).unwrap_or(1).max(1)
}

/// The certificates that a client trusts, and its own.
#[derive(Debug, Args)]
#[command(next_help_heading = "TLS (https, h2, h3, grpcs, tls, wss, quic)")]
pub struct TrustArgs {
    /// Accept any TLS certificate
    #[arg(long, short = 'k')]
    pub insecure: bool,

    /// Trust this CA certificate (PEM) instead of the system's
    #[arg(long, visible_alias = "cacert", value_name = "FILE", conflicts_with = "insecure")]
    pub authority: Option<PathBuf>,

    /// Certificate of the client (PEM), for servers that ask for one
    #[arg(long, value_name = "FILE")]
    pub cert: Option<PathBuf>,

    /// Private key of --cert (PEM) [default: it is in the file of --cert]
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
}

/// Upgrades to WebSocket, and messages.
#[derive(Debug, Clone, Args)]
pub struct WebSocketArgs {
    /// ws, wss: messages are texts
    #[arg(hide_short_help = true, long)]
    pub text: bool,

    /// ws, wss: a subprotocol that is offered to the server; several with commas
    #[arg(hide_short_help = true, long, value_name = "NAMES")]
    pub subprotocol: Option<String>,

    /// ws, wss: messages that the server sends before it is asked, on each connection
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = u64_in(1..=1000))]
    pub greetings: Option<u64>,
}

impl WebSocketArgs {
    pub(crate) fn is_given(&self) -> bool {
        self.text || self.subprotocol.is_some() || self.greetings.is_some()
    }

    /// Header lines of the upgrade.
    pub(crate) fn headers(&self) -> Option<String> {
        self.subprotocol.as_ref().map(|names| format!("Sec-WebSocket-Protocol: {names}"))
    }

    /// Options of the load engine's client.
    pub(crate) fn options(&self) -> BTreeMap<String, String> {
        let text = self.text.then(|| ("text".to_owned(), "yes".to_owned()));
        let greetings = self.greetings.map(|number| ("greetings".to_owned(), number.to_string()));
        text.into_iter().chain(greetings).collect()
    }
}

/// The time for which a thread of a client or server spins before it sleeps.
#[derive(Debug, Args)]
pub struct SpinArgs {
    /// Poll for up to TIME (1us to 1ms) before a thread sleeps: less latency for more CPU; always: threads
    /// never sleep; never: they do not poll before a request of an open loop is due, either
    #[arg(hide_short_help = true, long, value_name = "TIME", value_parser = spin)]
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
