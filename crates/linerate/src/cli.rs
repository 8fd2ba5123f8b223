//! The command line: what can be asked for, and how it is explained.

mod datagrams;
mod http;
mod streams;
mod suites;
mod tls;

pub use datagrams::*;
pub use http::*;
pub use streams::*;
pub use suites::*;
pub use tls::*;

use crate::lab::AGENT;
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Measures whole network stacks side by side, layer by layer, and says which is faster, by how much, how sure it
/// is, what it cost in CPU, and how far it is from the limit.
#[derive(Debug, Parser)]
#[command(version, styles = STYLES, arg_required_else_help = true, max_term_width = 100, after_help = EXIT_STATUS)]
pub struct Cli {
    /// When to use colours; NO_COLOR is respected
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: When,

    /// Run on answers from a file in place of the real lab, as the tests do
    #[arg(long, global = true, hide = true, value_name = "FILE", env = "LINERATE_LAB_SCRIPT")]
    pub lab_script: Option<PathBuf>,

    #[command(subcommand)]
    pub request: Request,
}

const EXIT_STATUS: &str = "Exit status: 0 the run is complete (failed rows included), 1 a gate said no, \
2 bad usage or bad input, 3 nothing could be measured, 130 interrupted (what was measured is reported).";

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum When {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Request {
    Run(RunArgs),
    Plan(PlanArgs),
    List(ListArgs),
    Systems(SystemsArgs),
    Load(LoadArgs),
    Serve(ServeArgs),
    Selftest(SelftestArgs),
    Report(ReportArgs),
    Doctor,
    New(NewArgs),
    Completions(CompletionsArgs),
    #[command(name = AGENT, hide = true)]
    LabAgent,
}

/// Show which systems are ready, which are missing, and how to get them
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate systems
  linerate systems --install haproxy sslh
  linerate systems --prune")]
pub struct SystemsArgs {
    /// Systems or variants; none: all
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,

    /// Install the Debian packages of those that are missing, none of whose services is started, and build what is built here
    #[arg(long)]
    pub install: bool,

    /// Remove builds from the cache that no system asks for any more, with the variables of this environment (CC, CXXFLAGS, ...)
    #[arg(long, conflicts_with_all = ["names", "install"])]
    pub prune: bool,
}

/// Load a server, as one would with wrk, ab, hey or iperf3
#[derive(Debug, Args)]
pub struct LoadArgs {
    #[command(subcommand)]
    pub what: Loaded,
}

#[derive(Debug, Subcommand)]
pub enum Loaded {
    Http(LoadHttpArgs),
    Tcp(LoadTcpArgs),
    Ws(LoadWsArgs),
    Udp(LoadUdpArgs),
    Kcp(LoadKcpArgs),
}

/// A time above zero.
fn span(text: &str) -> Result<std::time::Duration, String> {
    match humantime::parse_duration(text) {
        Ok(span) if span.is_zero() => Err("it must be above zero".into()),
        Ok(span) => Ok(span),
        Err(e) => Err(format!("{e}, such as 10s or 500ms")),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= 1e7 => Ok(rate),
        _ => Err("expected a number above 0 and up to 10000000".into()),
    }
}

/// Serve what `linerate load` asks for
#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(subcommand)]
    pub what: Served,
}

#[derive(Debug, Subcommand)]
pub enum Served {
    Http(ServeHttpArgs),
    Tcp(ServeTcpArgs),
    Ws(ServeWsArgs),
    Udp(ServeUdpArgs),
    Kcp(ServeKcpArgs),
}

/// Is the instrument right? Injected truth against what was measured
///
/// Servers of linerate's own delay, stall, fail and limit their answers by a seed, and tell exactly what they did. The load engine
/// measures them. Exit status 1 if anything is off by more than its bound; on a machine that is busy with other things it will be.
#[derive(Debug, Args)]
pub struct SelftestArgs {
    /// Length of each measurement; p99.99 wants at least 5s
    #[arg(long, short, value_name = "TIME", default_value = "5s", value_parser = span)]
    pub duration: std::time::Duration,

    /// Seed of what is injected
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// Make a skeleton
#[derive(Debug, Args)]
pub struct NewArgs {
    #[command(subcommand)]
    pub what: New,
}

#[derive(Debug, Subcommand)]
pub enum New {
    System(NewSystemArgs),
}

/// A system that builds and passes the contract test, to put a library into
#[derive(Debug, Args)]
#[command(after_help = "Example:
  linerate new system mylib --lang rust")]
pub struct NewSystemArgs {
    /// The folder of `systems/`, the program and the variant
    #[arg(value_name = "NAME")]
    pub name: String,

    #[arg(long, value_enum)]
    pub lang: Language,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Language {
    Cpp,
    Go,
    Rust,
}

impl Language {
    /// Its folder of `sdk/templates`.
    #[must_use]
    pub fn folder(self) -> &'static str {
        match self {
            Self::Cpp => "cpp",
            Self::Go => "go",
            Self::Rust => "rust",
        }
    }
}

/// Print a completion script for a shell
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    pub shell: clap_complete::Shell,
}

/// The completion script for a shell.
#[must_use]
pub fn completions(shell: clap_complete::Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "linerate", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
