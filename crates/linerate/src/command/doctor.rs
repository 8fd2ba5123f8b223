//! `linerate doctor`: what this machine can and cannot measure, and why.

use super::print;
use crate::error::Error;
use crate::lab::namespaces::Namespaces;
use crate::lab::{Lab, Label};
use crate::system::manifest::Topology;
use crate::{host, interrupt};
use std::fmt::Write;
use std::process::ExitCode;

/// Tries what the suites need, in namespaces that are gone afterwards. Status 3 if the lab cannot be raised.
///
/// # Errors
/// Standard output cannot be written to.
pub fn doctor() -> Result<ExitCode, Error> {
    let mut findings = Vec::new();
    let cpus = host::usable_cpus();
    let few = if cpus.len() < 3 { "; with three or more, relay and server need not share one" } else { "" };
    findings.push((cpus.len() > 1, "CPUs", format!("{}{few}", cpus.len())));
    let lab = Namespaces::raise(interrupt::watch());
    let raised = lab.is_ok();
    match lab {
        Ok(mut lab) => {
            let label = Label { suite: "doctor".into(), cell: "doctor".into(), round: 1, warmup: false };
            let topology = lab.raise(&label, Topology::Router.into(), Vec::new());
            let text = topology.as_ref().err().map_or("client - router - server".into(), ToString::to_string);
            findings.push((true, "namespaces", format!("by {}", lab.facts().privileges)));
            findings.push((topology.is_ok(), "links and routes", text));
            // In the lab, for there root has a device node that systems may open.
            let tun = lab.raise(&label, Topology::Tun.into(), Vec::new());
            let text = tun.as_ref().err().map_or("open".into(), ToString::to_string);
            findings.push((tun.is_ok(), "TUN devices", text));
            let perf = lab.facts().perf;
            let how = if perf {
                "perf counters, dead children included"
            } else {
                "from /proc: children that die unwaited are missed"
            };
            findings.push((perf, "CPU time of processes", how.into()));
            let _ = lab.stop();
        }
        Err(error) => findings.push((false, "namespaces", error.to_string())),
    }
    let facts = host::facts("");
    findings.push((true, "kernel", facts.kernel.clone()));
    let mitigations = facts.facts.get("mitigations").cloned().unwrap_or_default();
    findings.push((true, "mitigations", mitigations));
    let virtualised = facts.facts.get("virtualised").is_some_and(|v| v == "yes");
    let text = if virtualised { "a guest: others may take time from it; steal is recorded" } else { "no" };
    findings.push((!virtualised, "virtual machine", text.into()));
    let mut text = String::new();
    for (good, what, found) in findings {
        let _ = writeln!(text, "{} {what}: {found}", if good { "ok  " } else { "note" });
    }
    print(&text)?;
    Ok(if raised { ExitCode::SUCCESS } else { ExitCode::from(3) })
}
