//! `linerate run`, `plan`, `list` and `report`: what is asked of suites and of their runs.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Which cells, and how often.
#[derive(Debug, Clone, Args)]
pub struct Selection {
    /// Suites, or `all`
    #[arg(value_name = "SUITE")]
    pub suites: Vec<String>,

    /// Fewer operations and fewer rounds: a look, not a result to publish
    #[arg(long)]
    pub quick: bool,

    /// Measured rounds, in place of the suite's own number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: Option<u32>,

    /// Only cells whose id matches, such as '*/haproxy*', and what they are compared with (may be repeated)
    #[arg(long, value_name = "GLOB")]
    pub only: Vec<String>,

    /// Measure each compared pair at the same time on the same CPUs as well; ratios then come from these duets
    #[arg(long)]
    pub duets: bool,

    /// Seed of the order of trials; the same seed gives the same order
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// Measure, and report
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate run proxy --quick             a first look, under three minutes
  linerate run proxy                     the whole table
  linerate run proxy --only '*/haproxy*' these cells and their baseline
  linerate run proxy --budget 10m        as many rounds as fit into ten minutes
  linerate run --resume results/x        go on where a run was cut off")]
pub struct RunArgs {
    #[command(flatten)]
    pub selection: Selection,

    /// Add rounds until this time is used or every interval is within 1 % of its median, such as 5m
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, conflicts_with = "rounds")]
    pub budget: Option<std::time::Duration>,

    /// Folder for run.json, journal.jsonl and the reports [default: results/<time>]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub out: Option<PathBuf>,

    /// Go on with the run in this folder; with a suite, start it there if there is none yet
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,

    /// Install missing Debian packages of each suite before it runs; their services are not started
    #[arg(long)]
    pub install: bool,

    /// Show no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// Show what would run, in which order, and how long it takes
///
/// The time comes from earlier trials on this machine. Cells that were never tried are tried once, with few
/// operations, unless --no-trial is given. Nothing is built: systems that a run would build first are named.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate plan proxy --quick
  linerate plan proxy --rounds 30 --seed 7")]
pub struct PlanArgs {
    #[command(flatten)]
    pub selection: Selection,

    /// Start nothing: tell the time only if every cell is known from earlier runs
    #[arg(long)]
    pub no_trial: bool,
}

/// List what there is
#[derive(Debug, Args)]
pub struct ListArgs {
    #[arg(value_enum, default_value = "suites")]
    pub what: Listed,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Listed {
    Suites,
    Systems,
    Workloads,
    Cells,
}

/// Make the reports of a run again, from its journal
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate report results/x                 the tables
  linerate report results/x --format md > table.md")]
pub struct ReportArgs {
    /// The folder of a run
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,

    /// Print in this format; the report files of DIR are written again in any case
    #[arg(long, value_name = "FORMAT", value_parser = clap::builder::PossibleValuesParser::new(crate::report::format_names()), default_value = "terminal")]
    pub format: String,
}
