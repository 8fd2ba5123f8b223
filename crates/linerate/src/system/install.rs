//! How to get what is missing; and getting it, on Debian and its kin.

use super::manifest::Manifest;
use super::{Chosen, Registry};
use crate::error::Error;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

/// The command, or the sentence, that installs a variant's system.
#[must_use]
pub fn advice(chosen: Chosen<'_>) -> String {
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

/// Packages of the chosen systems, each once.
#[must_use]
pub fn packages(registry: &Registry, names: &[String]) -> BTreeSet<String> {
    let wanted = |name: &String| names.is_empty() || names.contains(name);
    let systems = registry
        .systems
        .values()
        .filter(|s| wanted(&s.name) || s.variants().any(|v| names.iter().any(|n| n == v.name)));
    systems.flat_map(|s| needed(&s.manifest).cloned()).collect()
}

/// What runs it and what builds it.
fn needed(manifest: &Manifest) -> impl Iterator<Item = &String> {
    manifest.debian.iter().chain(manifest.build.iter().flat_map(|build| &build.debian))
}

/// Forbids that the packages' services are started on this machine, as Debian policy (section 9.3.3.2) provides.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// What stands between this machine and its packages.
///
/// # Errors
/// A sentence, if there is no `apt-get` or no right to use it.
fn apt() -> Result<Vec<&'static str>, String> {
    if super::probe::locate("apt-get").is_none() {
        return Err("this is not Debian or one of its kin (no apt-get)".into());
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
    let asks_nothing = sudo && quiet(&["-n", "true"]).is_ok_and(|s| s.success());
    let can_ask = sudo && std::io::IsTerminal::is_terminal(&std::io::stdin());
    if asks_nothing || can_ask {
        Ok(vec!["sudo"])
    } else {
        Err("neither root nor allowed to use sudo".into())
    }
}

/// Installs packages and starts none of their services. `tell` is called with what is about to happen.
///
/// # Errors
/// Why nothing could be installed; what is there is as before.
pub fn install(packages: &BTreeSet<String>, mut tell: impl FnMut(&str)) -> Result<(), Error> {
    let missing: Vec<&String> = packages.iter().filter(|p| !is_installed(p)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|p| p.as_str()).collect();
    let prefix =
        apt().map_err(|why| Error::NothingMeasured(format!("{why}: left out: {}", names.join(" "))))?;
    tell(&format!("installing {} (no service is started)", names.join(" ")));
    let guard = if Path::new(POLICY).exists() { "" } else { GUARD };
    let script = format!(
        "set -e\n{guard}\nexport DEBIAN_FRONTEND=noninteractive\napt-get update -qq || true\n\
         apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \"$@\" >&2\n"
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

/// A policy that lets no service start, and that is gone again whatever happens.
const GUARD: &str = "trap 'rm -f /usr/sbin/policy-rc.d' EXIT HUP INT TERM\n\
    printf '#!/bin/sh\\nexit 101\\n' > /usr/sbin/policy-rc.d\nchmod 755 /usr/sbin/policy-rc.d";

fn is_installed(package: &str) -> bool {
    let mut query = Command::new("dpkg-query");
    query.args(["-W", "-f", "${db:Status-Status}", package]).stderr(Stdio::null());
    query.output().is_ok_and(|out| out.stdout == b"installed")
}
