//! Install advice for missing systems, and installation on Debian and its derivatives.

use super::manifest::Manifest;
use super::{Registry, SystemVariant};
use crate::error::Error;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

/// The command or instruction that installs a variant's system.
#[must_use]
pub fn advice(chosen: SystemVariant<'_>) -> String {
    let manifest = &chosen.system.manifest;
    if let Some(hint) = chosen.variant.install_hint.as_ref().or(manifest.install_hint.as_ref()) {
        return hint.clone();
    }
    let packages: Vec<&str> = needed(manifest).map(String::as_str).collect();
    let debian =
        if packages.is_empty() { String::new() } else { format!(" (Debian: {})", packages.join(" ")) };
    if packages.is_empty() && manifest.build.is_none() {
        return "build linerate's own programs: cargo build --release".into();
    }
    format!("linerate systems --install {}{debian}", chosen.system.name)
}

/// Packages of the selected systems, without duplicates.
#[must_use]
pub fn packages(registry: &Registry, names: &[String]) -> BTreeSet<String> {
    let wanted = |name: &String| names.is_empty() || names.contains(name);
    let systems = registry
        .systems
        .values()
        .filter(|s| wanted(&s.name) || s.variants().any(|v| names.iter().any(|n| n == v.name)));
    systems.flat_map(|s| needed(&s.manifest).cloned()).collect()
}

/// Packages at run time and at build time.
fn needed(manifest: &Manifest) -> impl Iterator<Item = &String> {
    manifest.debian.iter().chain(manifest.build.iter().flat_map(|build| &build.debian))
}

/// Prevents that the packages' services are started (Debian policy, section 9.3.3.2).
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// The command prefix for `apt-get`: empty or `sudo`.
///
/// # Errors
/// There is no `apt-get`, or no right to use it.
fn apt() -> Result<Vec<&'static str>, String> {
    if super::probe::locate("apt-get").is_none() {
        return Err("no apt-get on this machine".into());
    }
    if nix::unistd::geteuid().is_root() {
        return Ok(vec![]);
    }
    let sudo = super::probe::locate("sudo").is_some();
    let quiet = |args: &[&str]| {
        Command::new("sudo")
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
    };
    let without_password = sudo && quiet(&["-n", "true"]).is_ok_and(|s| s.success());
    let can_ask = sudo && std::io::IsTerminal::is_terminal(&std::io::stdin());
    if without_password || can_ask {
        Ok(vec!["sudo"])
    } else {
        Err("not root, and sudo is not available".into())
    }
}

/// Installs packages without starting their services. `note` is called before the installation.
///
/// # Errors
/// `apt-get` is missing, not permitted, or failed.
pub fn install(packages: &BTreeSet<String>, mut note: impl FnMut(&str)) -> Result<(), Error> {
    let missing: Vec<&String> = packages.iter().filter(|p| !is_installed(p)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|p| p.as_str()).collect();
    let prefix = apt()
        .map_err(|why| Error::NothingMeasured(format!("{why}; install as root: {}", names.join(" "))))?;
    note(&format!("installing {} (no service is started)", names.join(" ")));
    let guard = if Path::new(POLICY).exists() { "" } else { GUARD };
    let script = format!(
        "set -e\n{guard}\nexport DEBIAN_FRONTEND=noninteractive\napt-get update -qq || true\n\
         apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 \
         -o Dpkg::Use-Pty=0 \"$@\" >&2\n"
    );
    let mut command: Vec<&str> = prefix;
    command.extend(["sh", "-c", &script, "install"]);
    command.extend(&names);
    let status =
        Command::new(command[0]).args(&command[1..]).stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = status.map_err(|e| Error::NothingMeasured(format!("cannot run {}: {e}", command[0])))?;
    if status.success() {
        return Ok(());
    }
    Err(Error::NothingMeasured(format!("apt-get could not install {} ({status})", names.join(" "))))
}

/// A policy that prevents the start of services; the shell removes it on exit and on signals.
const GUARD: &str = "trap 'rm -f /usr/sbin/policy-rc.d' EXIT HUP INT TERM\n\
    printf '#!/bin/sh\\nexit 101\\n' > /usr/sbin/policy-rc.d\nchmod 755 /usr/sbin/policy-rc.d";

fn is_installed(package: &str) -> bool {
    let mut query = Command::new("dpkg-query");
    query.args(["-W", "-f", "${db:Status-Status}", package]).stderr(Stdio::null());
    query.output().is_ok_and(|out| out.stdout == b"installed")
}
