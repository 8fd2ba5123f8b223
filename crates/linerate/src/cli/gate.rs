//! `linerate gate`, and what is around it: `init` and `history`.

use super::CompareFlags;
use super::argv::OUTPUT;
use super::builds::ARMS;
use clap::Args;
use std::path::PathBuf;

/// Compare two builds and exit with the verdict, for CI and git bisect
///
/// Exit status: 0 no slowdown, 1 a slowdown, 2 bad usage, 3 nothing could be measured, 4 undecided, 130
/// interrupted. A slowdown by rate or by CPU time per operation is confirmed by a second series of units
/// before it is reported. A failed or missing cell is never a success.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate gate './shop-v1' './shop-v2' --url /api/items
  linerate gate --budget 2m                 with a linerate.toml (linerate init writes it)")]
#[command(after_long_help = format!("{ARMS}

Examples:
  linerate gate proxy --only 'nginx/haproxy-*' --base program=old/haproxy --head program=new/haproxy
  linerate gate proxy --only nginx/haproxy-tcp --checkout ~/haproxy --build 'make -j2 TARGET=linux-glibc' \\
      --program haproxy --comment comment.md
  git bisect run linerate gate proxy --only nginx/haproxy-tcp --base git=v3.0 --checkout . \\
      --build 'make TARGET=linux-glibc' --program haproxy --bisect"))]
pub struct GateArgs {
    /// Two commands or more; or a suite
    #[arg(value_name = "COMMAND")]
    pub what: Vec<String>,

    #[command(flatten)]
    pub flags: CompareFlags,

    /// Exit with 0 in place of 1, 3 and 4
    #[arg(long, conflicts_with = "bisect", help_heading = "Decision")]
    pub advisory: bool,

    /// Exit statuses for `git bisect run`: 125 in place of 3 and 4, 128 for bad usage
    #[arg(long, help_heading = "Decision")]
    pub bisect: bool,

    /// Append a line with the result of each cell to this file
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub history: Option<PathBuf>,
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
/// A history decides nothing.
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
