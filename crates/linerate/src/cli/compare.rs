//! `linerate compare`, `gate` and `history`.

use super::argv::{Given, OUTPUT};
use super::{CellFlags, RunFlags, Settings};
use crate::arm::Arm;
use crate::measurement::Place;
use crate::placement::server_place;
use crate::session::Why;
use clap::Args;
use std::path::PathBuf;

/// Flags that `compare` and `gate` have in common.
#[derive(Debug, Clone, Args)]
pub struct CompareFlags {
    // The first, since each group takes its values from the matches.
    #[command(flatten)]
    pub given: Given,

    #[command(flatten)]
    pub settings: Settings,

    #[command(flatten)]
    pub places: PlaceFlags,

    #[command(flatten)]
    pub cells: CellFlags,

    #[command(flatten)]
    pub builds: BuildFlags,

    #[command(flatten)]
    pub why: WhyFlags,

    #[command(flatten)]
    pub run: RunFlags,

    /// Write the verdict and the table as a Markdown comment
    #[arg(hide_short_help = true, long, value_name = "FILE", help_heading = OUTPUT)]
    pub comment: Option<PathBuf>,
}

/// Whether the cause of a difference is looked for.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Decision")]
pub struct WhyFlags {
    /// Profile the servers after the last unit, also where they do not differ: which functions cost how much
    #[arg(long, conflicts_with = "no_why")]
    pub why: bool,

    /// Profile nothing; else servers that differ are profiled for a fifth of the budget, for 6 s at most
    #[arg(hide_short_help = true, long)]
    pub no_why: bool,
}

impl WhyFlags {
    pub(super) fn chosen(self) -> Why {
        match (self.why, self.no_why) {
            (true, _) => Why::Always,
            (_, true) => Why::Never,
            _ => Why::Differences,
        }
    }
}

/// Where servers run that linerate does not start.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Servers")]
pub struct PlaceFlags {
    /// Where the server at an address runs, by its name: its CPU time is read there, over ssh (repeatable;
    /// for each address or for none)
    #[arg(hide_short_help = true, long, value_name = "NAME=ssh:BOX", value_parser = server_place)]
    pub host: Vec<(String, Place)>,

    /// With --host: ssh options of machines [default: hosts.toml, if it exists]
    #[arg(hide_short_help = true, long, value_name = "FILE", requires = "host")]
    pub hosts: Option<PathBuf>,
}

/// Two builds of a system, or two revisions of a command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Builds of a system, revisions of a command")]
pub struct BuildFlags {
    /// The first build [default: default; with --checkout git=merge-base]
    #[arg(long, value_name = "ARM", value_parser = arm)]
    pub base: Option<String>,

    /// The second build [default: default; with --checkout git=working-tree]
    #[arg(long, value_name = "ARM", value_parser = arm)]
    pub head: Option<String>,

    /// The system or variant with two builds [default: the relay of each cell, else the server]
    #[arg(hide_short_help = true, long, value_name = "NAME")]
    pub system: Option<String>,

    /// Repository of the revisions of git= [default with --build: the current folder]
    #[arg(hide_short_help = true, long, value_name = "DIR")]
    pub checkout: Option<PathBuf>,

    /// The built program, relative to the checkout
    #[arg(hide_short_help = true, long, value_name = "PATH", requires = "build")]
    pub program: Option<String>,
}

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
/// first command is the baseline. It reads the user's files, and what it writes ends with its unit (--share).
/// An image is unpacked and runs in the same way (image:NAME, oci:DIR, docker-archive:FILE). Servers that run
/// elsewhere are compared by their addresses. Two folders of stored runs are compared as far as they can be.
///
/// Exit status: 0 measured, whatever the answer; 1 slower, with --fail-on slower; 2 bad usage; 3 nothing
/// could be measured; 130 interrupted. `linerate gate` has a status for each verdict.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate compare './shop-v1' './shop-v2' --url /api/items
  linerate compare http://10.0.0.1:8080/api http://10.0.0.2:8080/api
  linerate compare image:shop:1 image:shop:2
  linerate compare proxy --only nginx/haproxy-tcp --head program=/opt/haproxy-3.2/haproxy")]
#[command(after_long_help = format!("{ARMS}

Examples:
  linerate compare './shop-v1' './shop-v2'
  linerate compare './shop-v1 --port {{port}}' './shop-v2 --port {{port}}' --url /api/items -c 64
  linerate compare 'THREADS=1 ./shop' 'cd new && ./shop --db shop.db' --ready 60s --share uploads
  linerate compare image:shop:1 'docker-archive:shop.tar --fast' -v ./conf:/etc/shop -e MODE=test
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
    pub flags: CompareFlags,

    /// Exit with 1 where a server is slower than the baseline
    #[arg(long, value_name = "slower", value_parser = ["slower"], help_heading = "Decision")]
    pub fail_on: Option<String>,
}

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

fn arm(text: &str) -> Result<String, String> {
    Arm::parse(text).map(|_| text.to_owned())
}
