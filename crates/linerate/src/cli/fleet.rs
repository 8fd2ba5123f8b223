//! `linerate fleet`.

use super::u32_in;
use clap::{Args, Subcommand};

/// Print what runs suites on many hosts: a Slurm batch script or a Kubernetes Job
///
/// Nothing is submitted. Each task is a `linerate run` on one host, into a folder of its own; `linerate
/// merge` makes one report of the folders.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate fleet slurm proxy websocket --nodes 3 --out /shared/runs > fleet.sh
  linerate fleet kubernetes proxy --image registry.example/linerate:1 > fleet.yaml")]
pub struct FleetArgs {
    #[command(subcommand)]
    pub engine: FleetEngine,
}

#[derive(Debug, Subcommand)]
pub enum FleetEngine {
    Slurm(SlurmArgs),
    Kubernetes(KubernetesArgs),
}

/// The work that both engines run.
#[derive(Debug, Args)]
pub struct FleetWork {
    /// Suites, or `all`
    #[arg(value_name = "SUITE", required = true)]
    pub suites: Vec<String>,

    /// Fewer operations and rounds; not for published results
    #[arg(long)]
    pub quick: bool,

    /// A type of machine to run on (repeatable): a feature of Slurm's nodes, or a value of the Kubernetes
    /// label node.kubernetes.io/instance-type [default: any machine]
    #[arg(long = "machine", value_name = "TYPE", value_parser = machine)]
    pub machines: Vec<String>,
}

/// Print a Slurm batch script: an array over the suites, each on every node of its allocation
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate fleet slurm proxy websocket --nodes 3 --out /shared/runs | sbatch
  linerate fleet slurm all --machine epyc --machine xeon --out /shared/runs > fleet.sh
  linerate merge /shared/runs/*             when the jobs have ended")]
pub struct SlurmArgs {
    #[command(flatten)]
    pub work: FleetWork,

    /// Nodes for each suite; with --machine, of each type
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = u32_in(1..))]
    pub nodes: u32,

    /// A folder that all nodes share; each task makes a folder in it
    #[arg(long, value_name = "DIR", default_value = crate::journal::RUNS)]
    pub out: String,

    /// The program on the nodes
    #[arg(long, value_name = "PATH", default_value = "linerate")]
    pub program: String,
}

/// Print an indexed Kubernetes Job, an index for each suite; with --machine, a Job for each type
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate fleet kubernetes proxy websocket --image registry.example/linerate:1 | kubectl apply -f -
  linerate fleet kubernetes all --machine c6i.metal --machine c7g.metal --image linerate:1 > fleet.yaml
  linerate merge copy/*                     with a copy of the volume, when the jobs have ended")]
pub struct KubernetesArgs {
    #[command(flatten)]
    pub work: FleetWork,

    /// An image with linerate, its suites and its systems
    #[arg(long, value_name = "IMAGE")]
    pub image: String,

    /// The persistent volume claim for the results
    #[arg(long, value_name = "NAME", default_value = "linerate-results")]
    pub claim: String,
}

/// A value of a Kubernetes label, which is also a feature of Slurm's nodes.
fn machine(text: &str) -> Result<String, String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let has_ends = text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric());
    if has_ends && text.chars().all(is_allowed) && text.len() <= 63 {
        Ok(text.to_owned())
    } else {
        Err("expected letters, digits, `-`, `_` and `.`, at most 63".into())
    }
}
