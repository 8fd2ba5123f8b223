//! `linerate run`, `plan`, `list` and `report`.

use super::argv::OUTPUT;
use super::u32_in;
use super::values::budget;
use crate::measurement::bounds;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// The selection of cells and rounds.
#[derive(Debug, Clone, Args)]
pub struct Selection {
    /// Suites, or `all`
    #[arg(value_name = "SUITE")]
    pub suites: Vec<String>,

    #[command(flatten)]
    pub cells: CellFlags,

    /// Only the tables that repeat a published document, beside its figures
    #[arg(long)]
    pub published: bool,

    /// All tables and rows, which takes hours; a run in full has those that fit into a quarter of an hour.
    /// --only chooses among all
    #[arg(long, conflicts_with_all = ["quick", "published"])]
    pub complete: bool,

    /// Number of measured rounds [default: the suite's]
    #[arg(long, value_name = "N", value_parser = u32_in(1..=i64::from(bounds::MOST_ROUNDS)))]
    pub rounds: Option<u32>,

    /// Measure what bounds each cell: how much its rate falls when a role gets a tenth less CPU time. Takes
    /// 12 seconds more per cell of three roles and round; --only selects cells
    #[arg(long)]
    pub probe: bool,
}

/// Which cells are measured, and in which order.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Cells of suites")]
pub struct CellFlags {
    /// Fewer operations and rounds; not for published results
    #[arg(long)]
    pub quick: bool,

    /// Only cells whose id matches, such as '*/haproxy*', and in a run their baselines (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub only: Vec<String>,

    /// Seed of the order of trials [default: random, recorded in run.json]
    #[arg(hide_short_help = true, long, value_name = "N")]
    pub seed: Option<u64>,
}

/// Where a run is kept, and what is done before and beside it.
#[derive(Debug, Clone, Default, Args)]
pub struct RunFlags {
    /// Folder for run.json, journal.jsonl and the reports [default: .linerate/<time>]
    #[arg(long, value_name = "DIR", conflicts_with = "resume", help_heading = OUTPUT)]
    pub out: Option<PathBuf>,

    /// Continue the run in this folder, with its plan; with a suite, start it there if the folder has no run.
    /// Options that execute more than linerate's own suites are given again: commands, builds, programs and
    /// hosts
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    pub resume: Option<PathBuf>,

    /// Install missing Debian packages of each suite before it runs; their services are disabled
    #[arg(hide_short_help = true, long, help_heading = OUTPUT)]
    pub install: bool,

    /// Show no progress
    #[arg(long, short, help_heading = OUTPUT)]
    pub quiet: bool,

    /// Write report.json to this file too; -: to standard output, in place of the text
    #[arg(long, alias = "export-json", value_name = "FILE", help_heading = OUTPUT)]
    pub json: Option<PathBuf>,

    /// Write the report as Markdown to this file too
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub export_markdown: Option<PathBuf>,

    /// Write the picture of the answer to this file too, for light and dark pages
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub export_svg: Option<PathBuf>,
}

/// Measure suites and print their tables
///
/// Writes run.json, journal.jsonl and reports as Markdown, HTML, JSON and CSV. Ctrl-C ends the run with a
/// report of all completed trials.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate run proxy --quick             a first table, under four minutes
  linerate run proxy                     more rows and narrower intervals, a quarter of an hour
  linerate run proxy --only '*/haproxy*' these cells and their baselines
  linerate run proxy --only '*/haproxy*' --why
                                         and which functions they spend their CPU time in
  linerate run proxy --only nginx/haproxy-tcp --probe
                                         and how much each role decides
  linerate run proxy --budget 10m        ten minutes, spent on wide intervals
  linerate run proxy --only 'nginx/*' --server-at http://bsdbox/
                                         the server of each row is this one
  linerate run --resume .linerate/DIR    continue an interrupted run")]
pub struct RunArgs {
    #[command(flatten)]
    pub selection: Selection,

    /// Add units where intervals are wide, until this time is used, such as 5m
    #[arg(long, value_name = "TIME", value_parser = budget, conflicts_with = "rounds")]
    pub budget: Option<std::time::Duration>,

    #[command(flatten)]
    pub hosts: HostArgs,

    /// Profile rows beside their baselines after a suite: functions and system calls that cost more,
    /// 6 s a row
    #[arg(long, conflicts_with_all = ["host", "server_at"])]
    pub why: bool,

    #[command(flatten)]
    pub run: RunFlags,

    /// Print every metric, interval and flag, not only compact tables
    #[arg(long, help_heading = OUTPUT)]
    pub long: bool,
}

/// Roles on machines of their own.
#[derive(Debug, Clone, Args)]
pub struct HostArgs {
    /// Play a role on another machine, such as server=ssh:box2 (repeatable; roles: client, relay, server)
    #[arg(
        long,
        value_name = "ROLE=WHERE",
        value_parser = crate::placement::role_place,
        requires = "host_network"
    )]
    pub host: Vec<crate::placement::RolePlace>,

    /// The server of every row is this one, which runs already, also on another operating system. Its CPU
    /// time is not known
    #[arg(
        long,
        value_name = "URL",
        value_parser = crate::placement::server_at,
        conflicts_with_all = ["host", "host_network"]
    )]
    pub server_at: Option<crate::placement::RolePlace>,

    /// Data addresses, CPUs and ssh options of machines [default: hosts.toml, if it exists]
    #[arg(long, value_name = "FILE", requires = "host")]
    pub hosts: Option<PathBuf>,

    /// The path between the roles is the real network of their machines, without namespaces. No setting of
    /// it is changed; its driver, speed, offloads and queues are in the report
    #[arg(long, requires = "host")]
    pub host_network: bool,
}

/// Show the trials of a run, their order and duration
///
/// Durations are from earlier trials on this machine; of cells without one they are guesses (~). Nothing is
/// started or built: systems that a run would build are listed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate plan proxy --quick
  linerate plan proxy --rounds 30 --seed 7")]
pub struct PlanArgs {
    #[command(flatten)]
    pub selection: Selection,
}

/// List suites, systems, workloads or cells
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate list
  linerate list systems
  linerate list workloads
  linerate list cells | grep haproxy")]
pub struct ListArgs {
    /// The kind of list
    #[arg(value_enum, default_value = "suites")]
    pub what: Listed,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Listed {
    /// Suites and their questions
    Suites,
    /// Variants of systems
    Systems,
    /// Layers and workloads of the load engine
    Workloads,
    /// Cells of every suite, by id
    Cells,
}

/// Print the report of a run again, from its journal
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate report                           the tables of the newest run
  linerate report DIR --long                every number of another one
  linerate report DIR --format md > table.md
  linerate report DIR --out DIR             make its files again, by this version")]
pub struct ReportArgs {
    /// The folder of a run [default: the newest one in .linerate]
    #[arg(value_name = "DIR")]
    pub folder: Option<PathBuf>,

    /// Folder for the report as Markdown, HTML, JSON and CSV [default: only print it]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Format to print
    #[arg(
        long,
        value_name = "FORMAT",
        value_parser = clap::builder::PossibleValuesParser::new(crate::report::format_names()),
        default_value = "terminal"
    )]
    pub format: String,

    /// Print every metric, interval and flag, not only compact tables
    #[arg(long)]
    pub long: bool,
}

/// Make a static site of runs
///
/// An index with the newest answer of each suite, a page for each run, the history of ratios, the method; of
/// runs with --published also the documents, measured again (published.html, published.md). Plain files: open
/// index.html, or copy the folder to any web server.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  linerate site --out site")]
pub struct SiteArgs {
    /// A folder with folders of runs
    #[arg(value_name = "DIR", default_value = crate::journal::RUNS)]
    pub folder: PathBuf,

    /// Folder for the pages
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}
