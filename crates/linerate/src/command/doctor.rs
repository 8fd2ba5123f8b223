//! `linerate doctor`: checks what this machine can measure, and prints the remedy for each problem.

mod confinement;

use super::print;
use crate::error::Error;
use crate::interrupt;
use crate::lab::agent::landlock::SCOPES;
use crate::lab::host;
use crate::lab::namespaces::Namespaces;
use crate::lab::program;
use crate::lab::{Lab, LabError, Label};
use crate::measurement::Place;
use crate::path::{NetworkPath, Shape};
use confinement::Seen;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::ExitCode;

/// One check.
#[derive(Debug)]
struct Finding {
    what: &'static str,
    found: String,
    /// The remedy; `None`: no problem.
    fix: Option<&'static str>,
}

/// Checks the requirements of the suites, in namespaces that are removed afterwards. Status 3 if the lab
/// cannot be raised.
///
/// # Errors
/// Standard output cannot be written to.
pub fn doctor() -> Result<ExitCode, Error> {
    let mut findings = vec![cpus(host::usable_cpus().len()), engine()];
    let lab = Namespaces::raise(&Place::Lab, interrupt::watch());
    let raised = lab.is_ok();
    match lab {
        Ok(mut lab) => findings.extend(in_lab(&mut lab)),
        Err(error) => findings.push(Finding {
            what: "namespaces",
            found: error.to_string(),
            fix: Some("run linerate as root, or allow user namespaces (in a container: run it privileged)"),
        }),
    }
    let facts = host::facts("");
    let mitigations = facts.facts.get("mitigations").cloned().unwrap_or_default();
    findings.push(Finding { what: "kernel", found: facts.kernel.clone(), fix: None });
    findings.push(Finding { what: "mitigations", found: mitigations, fix: None });
    findings.push(virtual_machine(facts.facts.get("virtualised").is_some_and(|v| v == "yes")));
    print(&text(&findings))?;
    Ok(if raised { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

fn cpus(number: usize) -> Finding {
    let fix = match number {
        0 | 1 => Some("use a machine with two or more CPUs: here all roles share one"),
        2 => Some("use three or more CPUs for suites with relays: here relay and server share one"),
        _ => None,
    };
    Finding { what: "CPUs", found: number.to_string(), fix }
}

fn engine() -> Finding {
    let program = program::locate("linerate-load");
    let found = program.as_ref().map_or("linerate-load is missing".into(), |path| path.display().to_string());
    let fix = program.is_none().then_some("build it with `cargo build --release`");
    Finding { what: "load engine", found, fix }
}

fn in_lab(lab: &mut Namespaces) -> Vec<Finding> {
    let label = Label { suite: "doctor".into(), cell: "doctor".into(), round: 1, warmup: false };
    let mut raise = |what, path: NetworkPath, ok: &str, fix| {
        let failed: Option<LabError> = lab.raise(&label, path, Vec::new()).err();
        let found = failed.as_ref().map_or(ok.to_owned(), ToString::to_string);
        Finding { what, found, fix: failed.map(|_| fix) }
    };
    let links = raise(
        "links and routes",
        Shape::Router.into(),
        "client - router - server",
        "load the kernel module of veth(4): `modprobe veth` as root",
    );
    // Tried in the lab, because root has a device node there that systems may open.
    let tun = raise(
        "TUN devices",
        Shape::Tun.into(),
        "open",
        "without it the suite netstack and rows with loss are left out",
    );
    let facts = lab.facts();
    let namespaces = Finding { what: "namespaces", found: format!("by {}", facts.privileges), fix: None };
    let clock = if facts.perf {
        Finding {
            what: "CPU time of processes",
            found: "perf counters, dead children included".into(),
            fix: None,
        }
    } else {
        Finding {
            what: "CPU time of processes",
            found: "from /proc: children without wait(2) are missed".into(),
            fix: Some("allow perf counters: `sysctl kernel.perf_event_paranoid=2` as root"),
        }
    };
    let congestion = congestion_control(&facts.sysctls);
    let roles = separation(facts.landlock);
    let (files, rights) = match confinement::tried(lab, &label) {
        Ok(seen) => (files(&seen), rights(&seen)),
        Err(error) => {
            let failed = |what| Finding { what, found: error.to_string(), fix: Some("report this as a bug") };
            (failed("files of systems"), failed("rights of systems"))
        }
    };
    let _ = lab.stop();
    vec![namespaces, links, tun, files, rights, roles, clock, congestion]
}

fn files(seen: &Seen) -> Finding {
    let found = match seen.reached.as_slice() {
        [] => "a mount namespace: /usr, /etc, ... read-only; home and cache hidden; /tmp private".to_owned(),
        reached => format!("a system reaches {}", reached.join(", ")),
    };
    let fix = "do not run systems that you do not trust, and report this as a bug";
    Finding { what: "files of systems", found, fix: (!seen.reached.is_empty()).then_some(fix) }
}

fn rights(seen: &Seen) -> Finding {
    let found = if seen.no_new_privileges {
        "no_new_privs: no program that a system starts gains any"
    } else {
        "no_new_privs is not set"
    };
    let fix = "do not run systems that you do not trust, and report this as a bug";
    Finding { what: "rights of systems", found: found.into(), fix: (!seen.no_new_privileges).then_some(fix) }
}

/// Landlock is not required: the host is out of reach without it.
fn separation(landlock: Option<u32>) -> Finding {
    let (found, separates) = match landlock {
        None => ("Landlock is not in this kernel".to_owned(), false),
        Some(version) if version < SCOPES => (format!("Landlock {version}: too old to separate them"), false),
        Some(version) => (format!("Landlock {version}: roles cannot trace or signal each other"), true),
    };
    let fix = "Linux 6.12 or newer with landlock in its list `lsm=` separates the roles of a trial";
    Finding { what: "roles", found, fix: (!separates).then_some(fix) }
}

/// A namespace may use cubic only if the host allows it to all of its users.
fn congestion_control(sysctls: &BTreeMap<String, String>) -> Finding {
    let found = sysctls.get("net.ipv4.tcp_congestion_control").cloned().unwrap_or_default();
    let fix =
        "add cubic to net.ipv4.tcp_allowed_congestion_control as root, for results like those of other hosts";
    Finding { what: "congestion control", fix: (found != "cubic").then_some(fix), found }
}

fn virtual_machine(virtualised: bool) -> Finding {
    let found = if virtualised { "yes: the hypervisor may take CPU time" } else { "no" };
    let fix = "use a physical machine for published results, or check the steal time in the report";
    Finding { what: "virtual machine", found: found.into(), fix: virtualised.then_some(fix) }
}

/// A line for each finding, and one for the remedy of each problem.
fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding { what, found, fix } in findings {
        let _ = writeln!(text, "{} {what}: {found}", if fix.is_none() { "ok  " } else { "note" });
        if let Some(fix) = fix {
            let _ = writeln!(text, "     -> {fix}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_problem_is_followed_by_its_remedy() {
        let text = text(&[cpus(4), cpus(2), virtual_machine(true)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert_eq!((lines[0], lines[1]), ("ok   CPUs: 4", "note CPUs: 2"));
        assert!(lines[2].starts_with("     -> use three or more CPUs"), "{text}");
        assert!(
            lines[3].starts_with("note virtual machine: yes") && lines[4].starts_with("     -> "),
            "{text}"
        );
    }

    #[test]
    fn what_holds_of_the_confinement_is_named_and_what_does_not_is_a_problem() {
        let good = Seen { reached: Vec::new(), no_new_privileges: true };
        let held = text(&[files(&good), rights(&good), separation(Some(7))]);
        for part in ["ok   files of systems: a mount namespace", "/tmp private", "no_new_privs", "Landlock 7"]
        {
            assert!(held.contains(part), "{part}: {held}");
        }
        assert!(!held.contains("note"), "{held}");
        let bad = Seen { reached: vec!["the home".into()], no_new_privileges: false };
        let broken = text(&[files(&bad), rights(&bad), separation(None), separation(Some(3))]);
        for part in [
            "note files of systems: a system reaches the home",
            "note rights of systems: no_new_privs is not set",
            "note roles: Landlock is not in this kernel",
            "note roles: Landlock 3: too old",
        ] {
            assert!(broken.contains(part), "{part}: {broken}");
        }
    }
}
