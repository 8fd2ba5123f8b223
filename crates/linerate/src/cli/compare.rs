//! `linerate compare`, `gate` and `history`.

use super::{CommandOptions, u32_in};
use crate::arm::{AS_IT_IS, Arm};
use crate::measurement::{
    ComparisonKind, DecidingPercentile, LatencyMargin, PlannedArm, PlannedComparison, PlannedRate,
    PlannedSource, Subject,
};
use crate::plan::Choice;
use crate::session::Request;
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Two builds, and the cells in which they are compared.
#[derive(Debug, Clone, Args)]
pub struct BuildOptions {
    /// Only cells whose id matches, such as '*/haproxy*' (repeatable) [default: all]
    #[arg(long, value_name = "GLOB")]
    pub only: Vec<String>,

    /// The first build [default: default; with --checkout git=merge-base]
    #[arg(long, value_name = "ARM", value_parser = arm)]
    pub base: Option<String>,

    /// The second build [default: default; with --checkout git=working-tree]
    #[arg(long, value_name = "ARM", value_parser = arm)]
    pub head: Option<String>,

    /// The system or variant with two builds [default: the relay of each cell, else the server]
    #[arg(long, value_name = "NAME")]
    pub system: Option<String>,

    /// Repository of the revisions of git= [default with --build: the current folder]
    #[arg(long, value_name = "DIR")]
    pub checkout: Option<PathBuf>,

    /// Shell command that builds a revision, run in a clone of it
    #[arg(long, value_name = "COMMAND")]
    pub build: Option<String>,

    /// The built program, relative to the checkout
    #[arg(long, value_name = "PATH", requires = "build")]
    pub program: Option<String>,

    /// Open loops of N operations per second, or of P% of the baseline's capacity: latencies are compared
    #[arg(long, value_name = "N or P%", value_parser = rate)]
    pub rate: Option<PlannedRate>,

    /// The relative difference that matters [default: 1%, of latencies 5%]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub margin: Option<f64>,

    /// The difference of latencies that matters, in microseconds, in place of a relative one
    #[arg(long, value_name = "US", value_parser = microseconds)]
    pub margin_us: Option<f64>,

    /// The highest percentile that has to be decided, p50 or p90; others count where they are certain
    /// [default: p50]
    #[arg(long, value_name = "P", value_parser = percentile)]
    pub percentile: Option<DecidingPercentile>,

    /// Measure until all is decided, for at most TIME [default: 5m; commands 30s, with --rate or a gate 1m]
    #[arg(long, value_name = "TIME", value_parser = super::span)]
    pub budget: Option<Duration>,

    /// Fewer operations in the trials of each cell by itself, which give its value
    #[arg(long)]
    pub quick: bool,

    /// Seed of the order of trials [default: random, recorded in run.json]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Folder for run.json, journal.jsonl and the reports [default: .linerate/<time>]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub out: Option<PathBuf>,

    /// Continue the comparison in this folder; its own plan applies. Its --build, --checkout and --program,
    /// and arms with program= or env:, are given again
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,

    /// Write the verdict and the table as a Markdown comment
    #[arg(long, value_name = "FILE")]
    pub comment: Option<PathBuf>,

    /// Install missing Debian packages of the suite first; their services are disabled
    #[arg(long)]
    pub install: bool,

    /// Show no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// The difference that matters, unless the user says otherwise.
const MARGIN: f64 = 0.01;
/// The time of a comparison of builds, and of commands.
const BUDGET: Duration = Duration::from_secs(300);
const BUDGET_OF_COMMANDS: Duration = Duration::from_secs(30);
/// A unit of open loops is four times as long, and a gate needs a second series: with six or seven units of
/// 30 s, +64 % was open.
const BUDGET_OF_LATENCIES_OR_GATE: Duration = Duration::from_secs(60);

const ARMS: &str = "An arm is a build: settings joined by commas.
  default              the system as it is
  program=PATH         another program
  git=REV              a revision of --checkout, built by --build; also git=merge-base, git=working-tree
  env:NAME=VALUE       a variable of the system's [build]; {checkout} is the revision's clone
  set:KEY=VALUE        a setting of its templates, an option, or a parameter such as connections
  plant=N              N iterations of a loop after each receive: a slowdown to test with";

/// Compare servers by their commands, or two builds of a system, at the same time on the same CPUs
///
/// Units, each a fresh pair of processes, are measured side by side until all is decided or the budget is
/// used. A command starts a server of HTTP in a network namespace of its own; its port is found, and the
/// first command is the baseline. Servers that run elsewhere are compared by their addresses. Two folders of
/// stored runs are compared as far as they can be.
#[derive(Debug, Args)]
#[command(after_help = format!("{ARMS}

Examples:
  linerate compare './shop-v1' './shop-v2'
  linerate compare './shop-v1 --port {{port}}' './shop-v2 --port {{port}}' --url /api/items -c 64
  linerate compare http://10.0.0.1:8080/api http://10.0.0.2:8080/api
  linerate compare proxy --only nginx/haproxy-tcp --head program=/opt/haproxy-3.2/haproxy
  linerate compare proxy --only nginx/direct --base set:sendfile=on --head set:sendfile=off
  linerate compare runtime --only 'http/*/asio-async' --head env:CXXFLAGS=-O3
  linerate compare .linerate/a .linerate/b"))]
pub struct CompareArgs {
    /// Two commands or more, or addresses; or a suite; or two folders of runs
    #[arg(value_name = "COMMAND")]
    pub what: Vec<String>,

    #[command(flatten)]
    pub commands: CommandOptions,

    #[command(flatten)]
    pub builds: BuildOptions,
}

/// Compare two builds and exit with the verdict, for CI and git bisect
///
/// Exit status: 0 no slowdown, 1 a slowdown, 2 open (or bad usage), 3 nothing could be measured, 130
/// interrupted. A slowdown by rate or by CPU time per operation is confirmed by a second series of units
/// before it is reported. A failed or missing cell is never a success.
#[derive(Debug, Args)]
#[command(after_help = format!("{ARMS}

Examples:
  linerate gate proxy --only 'nginx/haproxy-*' --base program=old/haproxy --head program=new/haproxy
  linerate gate proxy --only nginx/haproxy-tcp --checkout ~/haproxy --build 'make -j2 TARGET=linux-glibc' \\
      --program haproxy --comment comment.md
  git bisect run linerate gate proxy --only nginx/haproxy-tcp --base git=v3.0 --checkout . \\
      --build 'make TARGET=linux-glibc' --program haproxy --bisect
  linerate gate proxy --only nginx/direct --calibrate 20"))]
pub struct GateArgs {
    /// Two commands or more; or a suite
    #[arg(value_name = "COMMAND")]
    pub what: Vec<String>,

    #[command(flatten)]
    pub commands: CommandOptions,

    #[command(flatten)]
    pub builds: BuildOptions,

    /// Exit with 0 in place of 1, 2 and 3
    #[arg(long, conflicts_with = "bisect")]
    pub advisory: bool,

    /// Exit statuses for `git bisect run`: 125 in place of 2 and 3, 128 for bad usage
    #[arg(long)]
    pub bisect: bool,

    /// Append a line with the result of each cell to this file
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,

    /// Make N gates of --base against itself, and N against itself with a planted slowdown; print false
    /// alarms and power
    #[arg(long, value_name = "N", value_parser = u32_in(1..))]
    pub calibrate: Option<u32>,

    /// The planted slowdown of --calibrate: iterations of a loop after each receive
    #[arg(long, value_name = "ITERATIONS", default_value_t = 1_000, requires = "calibrate")]
    pub plant: u32,
}

/// Write a linerate.toml for the server in this folder, by its build files
///
/// Looks at Cargo.toml, go.mod, package.json, pyproject.toml, CMakeLists.txt and Makefile. With the file,
/// `linerate gate` in this folder or below needs no arguments: it compares where the branch began with the
/// files as they are.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate init
  linerate init --print")]
pub struct InitArgs {
    /// Print it in place of writing it
    #[arg(long)]
    pub print: bool,
}

/// Print the history of a gate as a table and a plot
///
/// It decides nothing.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  linerate history perf-history.jsonl")]
pub struct HistoryArgs {
    /// A file that `linerate gate --history` wrote
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Only cells whose id contains this text
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub cell: String,
}

impl BuildOptions {
    /// These cells with both builds.
    pub fn request(&self, suite: Option<String>, comparison: PlannedComparison) -> Request {
        Request {
            choice: Choice {
                suites: suite.into_iter().collect(),
                quick: self.quick,
                only: self.only.clone(),
                comparison: Some(comparison),
                ..Choice::default()
            },
            seed: self.seed,
            budget: Some(self.budget.unwrap_or(BUDGET)),
            out: self.out.clone(),
            resume: self.resume.clone(),
            install: self.install,
            quiet: self.quiet,
            ..Request::default()
        }
    }

    /// The time of a comparison of commands.
    pub fn budget_of_commands(&self, kind: ComparisonKind) -> Duration {
        let usual = match kind {
            ComparisonKind::Compare if self.rate.is_none() => BUDGET_OF_COMMANDS,
            _ => BUDGET_OF_LATENCIES_OR_GATE,
        };
        self.budget.unwrap_or(usual)
    }

    /// Revisions of a repository are compared.
    pub fn has_revisions(&self) -> bool {
        self.checkout.is_some() || self.build.is_some()
    }

    /// What is compared.
    pub fn comparison(&self, kind: ComparisonKind) -> PlannedComparison {
        let planned = |arm: &Option<String>, usual: &str| {
            let arm = arm.clone().unwrap_or_else(|| usual.to_owned());
            Subject::System(PlannedArm { arm, resolved: None })
        };
        let [base, head] =
            if self.has_revisions() { ["git=merge-base", "git=working-tree"] } else { [AS_IT_IS; 2] };
        let source = self.has_revisions().then(|| PlannedSource {
            checkout: self.checkout.as_deref().unwrap_or(Path::new(".")).display().to_string(),
            // Scripts need no build.
            build: self.build.clone().unwrap_or_else(|| "true".into()),
            program: self.program.clone(),
        });
        PlannedComparison {
            kind,
            subjects: vec![planned(&self.base, base), planned(&self.head, head)],
            system: self.system.clone(),
            margin: self.margin.unwrap_or(MARGIN),
            latency_margin: match (self.margin_us, self.margin) {
                (Some(us), _) => LatencyMargin::Microseconds(us),
                (None, Some(share)) => LatencyMargin::Share(share),
                (None, None) => LatencyMargin::default(),
            },
            percentile: self.percentile.unwrap_or_default(),
            rate: self.rate,
            source,
            load: None,
            remarks: Vec::new(),
            written: Vec::new(),
        }
    }
}

fn arm(text: &str) -> Result<String, String> {
    Arm::parse(text).map(|_| text.to_owned())
}

/// `5000`, or `50%` of a capacity.
fn rate(text: &str) -> Result<PlannedRate, String> {
    let wrong =
        "expected operations per second such as 5000, or a share of the baseline's capacity such as 50%";
    let found = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse().ok().map(|percent: f64| PlannedRate::Share(percent / 100.0)),
        None => text.parse().ok().map(PlannedRate::PerSecond),
    };
    match found {
        Some(PlannedRate::Share(share)) if share > 0.0 && share < 1.0 => found,
        Some(PlannedRate::PerSecond(1..=10_000_000)) => found,
        _ => None,
    }
    .ok_or_else(|| wrong.to_owned())
}

fn microseconds(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("us").unwrap_or(text).trim().parse().ok();
    number
        .filter(|us| *us > 0.0 && *us < 1e9)
        .ok_or_else(|| "expected microseconds above 0, such as 5".into())
}

fn percentile(text: &str) -> Result<DecidingPercentile, String> {
    match text {
        "p50" => Ok(DecidingPercentile::P50),
        "p90" => Ok(DecidingPercentile::P90),
        _ => Err("expected p50 or p90; higher ones are not known within minutes".into()),
    }
}

/// `1%`, `0.5 %` or `0.005`.
fn percent(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number.trim(), 100.0),
        None => (text, 1.0),
    };
    match number.parse::<f64>() {
        Ok(number) if number > 0.0 && number / unit < 0.5 => Ok(number / unit),
        _ => Err("expected a difference above 0 and below 50%, such as 1%".into()),
    }
}
