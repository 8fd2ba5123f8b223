//! `linerate fleet`.

use super::print;
use crate::cli::{FleetArgs, FleetEngine, FleetWork};
use crate::error::Error;
use crate::fleet::{FleetJobs, kubernetes, slurm};
use crate::{home, suite};
use std::process::ExitCode;

/// Prints a batch script or a manifest.
///
/// # Errors
/// A suite does not exist or is not valid.
pub fn fleet(args: &FleetArgs) -> Result<ExitCode, Error> {
    match &args.engine {
        FleetEngine::Slurm(slurm) => {
            let (nodes, out, program) = (slurm.nodes, &slurm.out, &slurm.program);
            print(&slurm::script(&work(&slurm.work)?, nodes, out, program))
        }
        FleetEngine::Kubernetes(job) => {
            print(&kubernetes::manifest(&work(&job.work)?, &job.image, &job.claim))
        }
    }
}

/// With the names of all suites in place of `all`.
fn work(args: &FleetWork) -> Result<FleetJobs, Error> {
    let all = suite::load_all(&home::find()?)?;
    let suites = suite::choose(all, &args.suites)?.into_iter().map(|suite| suite.name).collect();
    Ok(FleetJobs { suites, quick: args.quick, machines: args.machines.clone() })
}
