//! `linerate merge`.

use clap::Args;
use std::path::PathBuf;

/// Make one report of runs on several hosts
///
/// Ratios are those within each host; over the hosts their median and range, and the hosts that disagree. A
/// host may have several folders, with other suites or other cells. The name of a host is in its run; where
/// two machines have the same name, NAME=DIR gives another one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate merge .linerate/proxy-a .linerate/proxy-b --out .linerate/proxy-hosts
  linerate merge old=.linerate/a new=.linerate/b --long
  linerate merge .linerate/* --format csv > hosts.csv")]
pub struct MergeArgs {
    /// Folders of runs, of one version of their suites
    #[arg(value_name = "[NAME=]DIR", required = true)]
    pub folders: Vec<String>,

    /// Folder for the report as Markdown, HTML, JSON and CSV [default: only print it]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Format to print
    #[arg(
        long,
        value_name = "FORMAT",
        value_parser = clap::builder::PossibleValuesParser::new(crate::report::merged::format_names()),
        default_value = "terminal"
    )]
    pub format: String,

    /// Print the values and intervals of each host, not only ratios
    #[arg(long)]
    pub long: bool,
}
