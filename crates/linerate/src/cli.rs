//! The command line: subcommands, options and their help.

mod argv;
mod builds;
mod compare;
mod datagrams;
mod feed;
mod fleet;
mod gate;
mod grpc;
mod layers;
mod load;
mod merge;
mod only;
mod plan;
mod recorded;
mod request;
mod route;
mod serve;
mod settings;
mod shared;
mod suites;
mod tips;
mod values;

pub use builds::BuildFlags;
pub use compare::*;
pub use datagrams::*;
#[cfg(any(test, fuzzing))]
pub use feed::fuzz_feed;
pub use fleet::*;
pub use gate::*;
pub use grpc::*;
pub use layers::Project;
pub use load::*;
pub use merge::*;
pub(crate) use only::{LOAD, SERVE};
pub use recorded::Recorded;
pub use request::*;
pub use route::*;
pub use serve::*;
pub use settings::*;
pub use shared::*;
pub use suites::*;
pub use tips::with_tip;

use crate::lab::AGENT;
use crate::lab::listening::WATCH;
use crate::programs::elsewhere::PRESENCE;
use crate::subject::ask::ASK;
use clap::builder::styling::{AnsiColor, Styles};
use clap::builder::{RangedI64ValueParser, RangedU64ValueParser};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use std::ops::RangeBounds;
use std::path::{Path, PathBuf};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Benchmarks network stacks side by side, layer by layer: rates, latencies, CPU cost and distance from the
/// limit, with confidence intervals
///
/// Suites are questions (suites/), systems are the servers, proxies and libraries under test (systems/).
/// Trials run in private network namespaces; the host's network is not changed.
#[derive(Debug, Parser)]
#[command(
    version,
    styles = STYLES,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = AFTER_HELP
)]
pub struct Cli {
    /// When to use colours; auto: on a terminal, unless NO_COLOR is set
    #[arg(hide_short_help = true, long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: When,

    /// Take all responses from a file instead of the real lab, for tests
    #[arg(
        long,
        global = true,
        hide = true,
        value_name = "FILE",
        env = "LINERATE_LAB_SCRIPT",
        help_heading = argv::OUTPUT
    )]
    pub lab_script: Option<PathBuf>,

    #[command(subcommand)]
    pub command: Command,
}

const AFTER_HELP: &str = "Examples:
  linerate compare './old' './new'   which of two servers is faster?
  linerate gate                      is this branch slower? (with linerate.toml, see linerate init)
  linerate run proxy --quick         a first table
  linerate doctor                    check this machine
  linerate load http://127.0.0.1:8080/

Exit status: 0 complete (failed rows included), 1 the selftest failed, 2 bad usage or bad input, \
3 nothing could be measured, 130 interrupted (completed trials are reported).

LINERATE_HOME: the folder with linerate's suites/ and systems/, where they are not found by themselves.";

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum When {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    // Measure.
    Compare(CompareArgs),
    Gate(GateArgs),
    Init(InitArgs),
    Run(RunArgs),
    Load(Box<LoadArgs>),
    Serve(ServeArgs),
    // Read.
    Report(ReportArgs),
    History(HistoryArgs),
    Site(SiteArgs),
    Merge(MergeArgs),
    List(ListArgs),
    Plan(PlanArgs),
    // Look after.
    /// Check what this machine can measure, and print the remedy for each problem
    ///
    /// Tries CPUs, namespaces, links, TUN devices and CPU clocks in namespaces that are removed afterwards.
    /// Exit status 3 if no trial can run.
    #[command(after_help = "Example:\n  linerate doctor")]
    Doctor,
    Systems(SystemsArgs),
    Selftest(SelftestArgs),
    Fleet(FleetArgs),
    New(NewArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    #[command(name = AGENT, hide = true)]
    LabAgent(LabAgentArgs),
    /// Print the CPU time of servers that run already
    #[command(name = WATCH, hide = true)]
    LabWatch,
    /// Make requests inside a lab and print the responses
    #[command(name = ASK, hide = true)]
    LabAsk {
        question: String,
    },
    /// Read variants from standard input and print which of them this machine has, building them
    #[command(name = PRESENCE, hide = true)]
    LabPresence,
}

/// The commands that compare servers hide in `-h` what is for suites and for runs that go on.
const OF_SUITES: [&str; 5] = ["quick", "only", "base", "head", "resume"];

/// The command line with its help.
pub fn command() -> clap::Command {
    let short = |command: clap::Command| {
        command.mut_args(|flag| {
            let is_of_suites = OF_SUITES.contains(&flag.get_id().as_str());
            if is_of_suites { flag.hide_short_help(true) } else { flag }
        })
    };
    Cli::command().mut_subcommand("compare", short).mut_subcommand("gate", short)
}

/// Serve as the agent of a lab
#[derive(Debug, Args)]
pub struct LabAgentArgs {
    /// Over standard input and output, which ssh carries
    #[arg(long)]
    pub stdio: bool,

    /// In the network of this host
    #[arg(long)]
    pub host_network: bool,
}

/// List systems, ready or missing; install, build or prune them
///
/// A missing system is shown with its install command.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate systems
  linerate systems --install haproxy sslh
  linerate systems --prune")]
pub struct SystemsArgs {
    /// Systems or variants [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,

    /// Install missing Debian packages (their services are disabled) and build the rest
    #[arg(long)]
    pub install: bool,

    /// Remove builds from the cache that no system uses with the current environment (CC, CXXFLAGS, ...)
    #[arg(long, conflicts_with_all = ["names", "install"])]
    pub prune: bool,
}

/// A number in this range.
fn u32_in(range: impl RangeBounds<i64>) -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(range)
}

fn u64_in(range: impl RangeBounds<u64>) -> RangedU64ValueParser<u64> {
    clap::value_parser!(u64).range(range)
}

/// Parses a time above zero.
fn span(text: &str) -> Result<std::time::Duration, String> {
    match humantime::parse_duration(text) {
        Ok(span) if span.is_zero() => Err("must be above zero".into()),
        Ok(span) => Ok(span),
        Err(e) => Err(format!("{e}; expected a time such as 10s or 500ms")),
    }
}

/// Verify the load engine against injected delays, errors and losses
///
/// A fault injector delays, stalls, fails and limits its responses by a seed, and reports the ground truth.
/// The load engine measures it. Exit status 1 if a value differs by more than its bound, which also happens
/// on a busy machine.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate selftest
  linerate selftest --duration 1s --seed 7
  linerate selftest --path")]
pub struct SelftestArgs {
    /// Duration of each measurement; p99.99 needs at least 5s
    #[arg(long, short, value_name = "TIME", default_value = "5s", value_parser = span)]
    pub duration: std::time::Duration,

    /// Seed of the injected faults
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Verify the impairments of paths instead: delay, jitter, loss, rate and reordering, by each means that
    /// this machine has
    #[arg(long, conflicts_with = "seed")]
    pub path: bool,
}

/// Create the skeleton of a system
#[derive(Debug, Args)]
#[command(after_help = "Example:
  linerate new system mylib --lang rust")]
pub struct NewArgs {
    #[command(subcommand)]
    pub what: New,
}

#[derive(Debug, Subcommand)]
pub enum New {
    System(NewSystemArgs),
}

/// Create a system that builds and passes the contract test; then add the library to it
#[derive(Debug, Args)]
#[command(after_help = "Example:
  linerate new system mylib --lang rust")]
pub struct NewSystemArgs {
    /// Name of the folder in systems/, the program and the variant
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Language of the program
    #[arg(long, value_parser = ["cpp", "go", "rust"])]
    pub lang: String,
}

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:
  linerate completions bash > ~/.local/share/bash-completion/completions/linerate")]
pub struct CompletionsArgs {
    pub shell: clap_complete::Shell,
}

/// Write a man page for linerate and one for each command
#[derive(Debug, Args)]
#[command(after_help = "Example:
  linerate man ~/.local/share/man/man1")]
pub struct ManArgs {
    /// The folder, which is created if there is none
    pub dir: PathBuf,
}

/// Writes the man pages into a folder.
///
/// # Errors
/// A file cannot be written.
pub fn man_pages(dir: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)?;
    clap_mangen::generate_to(Cli::command(), dir)
}

/// The completion script for a shell.
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

    #[test]
    fn short_help_is_a_screen_and_long_help_has_all() {
        for name in ["compare", "gate"] {
            let command = super::command();
            let command = command.find_subcommand(name).unwrap();
            let [short, long] =
                [command.clone().render_help().to_string(), command.clone().render_long_help().to_string()];
            assert!(short.lines().count() <= 45, "{name}: {}", short.lines().count());
            for flag in OF_SUITES {
                let flag = format!("\n      --{flag}");
                assert!(!short.contains(&flag) && long.contains(&flag), "{name} {flag}");
            }
            for heading in ["Servers:", "Load:", "Decision:", "Output:", "Examples:"] {
                assert!(short.contains(heading), "{name}: {heading}");
            }
        }
    }

    #[test]
    fn commands_are_listed_by_what_people_do() {
        let cli = Cli::command();
        let names: Vec<&str> = cli.get_subcommands().map(clap::Command::get_name).collect();
        let places = ["compare", "gate", "run", "load", "report", "history", "doctor", "systems"]
            .map(|name| names.iter().position(|other| *other == name));
        assert!(places[0] == Some(0) && places.is_sorted(), "{names:?}");
        let compare = cli.find_subcommand("compare").unwrap().clone().render_long_help().to_string();
        let examples = compare.split_once("Examples:").unwrap().1.trim_start();
        assert!(examples.starts_with("linerate compare './shop-v1' './shop-v2'"), "{examples}");
    }

    #[test]
    fn there_is_a_man_page_for_each_command() {
        let dir = std::env::temp_dir().join(format!("linerate-man-{}", std::process::id()));
        man_pages(&dir).unwrap();
        let page = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
        assert!(page("linerate.1").contains("doctor") && page("linerate-gate.1").contains("margin"));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
