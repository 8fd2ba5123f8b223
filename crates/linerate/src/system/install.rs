//! Install advice for missing systems, and installation on Debian and its derivatives.

use super::manifest::Manifest;
use super::{Registry, SystemVariant};
use crate::error::Error;
use crate::home;
use crate::lab::program::{self, locate};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

/// The command or instruction that installs a variant's system.
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

/// The command prefix for `apt-get`: empty or `sudo`.
///
/// # Errors
/// There is no `apt-get`, or no right to use it.
fn apt() -> Result<Vec<&'static str>, String> {
    if locate("apt-get").is_none() {
        return Err("no apt-get on this machine".into());
    }
    if nix::unistd::geteuid().is_root() {
        return Ok(vec![]);
    }
    let sudo = locate("sudo").is_some();
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

/// Installs packages; their services are neither started now nor at the next boot. The output is in a log.
/// `note` is called before the installation, and with the services that were disabled.
///
/// # Errors
/// `apt-get` is missing, not permitted, or failed; with the last lines of its output.
pub fn install(packages: &BTreeSet<String>, mut note: impl FnMut(&str)) -> Result<(), Error> {
    let missing: Vec<&String> = packages.iter().filter(|p| !is_installed(p)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|p| p.as_str()).collect();
    let prefix = apt()
        .map_err(|why| Error::NothingMeasured(format!("{why}; install as root: {}", names.join(" "))))?;
    let log = program::cache().unwrap_or_else(std::env::temp_dir).join("install.log");
    fs::create_dir_all(log.parent().unwrap_or(Path::new("/"))).map_err(Error::file(&log))?;
    let shown = home::shortened(&log.display().to_string());
    note(&format!("installing {} (no service is started; output: {shown})", names.join(" ")));
    let words = [&prefix[..], &["sh", "-c", INSTALL, "/"], &names].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stderr(File::create(&log).map_err(Error::file(&log))?);
    let output =
        command.output().map_err(|e| Error::NothingMeasured(format!("cannot run {}: {e}", words[0])))?;
    let disabled = String::from_utf8_lossy(&output.stdout);
    if !disabled.trim().is_empty() {
        let units: Vec<&str> = disabled.split_whitespace().collect();
        note(&format!("disabled, so that they do not start at the next boot: {}", units.join(" ")));
    }
    if output.status.success() {
        return Ok(());
    }
    let text = fs::read_to_string(&log).unwrap_or_default();
    let lines: Vec<&str> = text.trim_end().lines().collect();
    Err(Error::NothingMeasured(format!(
        "apt-get could not install {} ({}); full output: {shown}\n{}",
        names.join(" "),
        output.status,
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    )))
}

/// The last lines of apt-get's output contain the error.
const LOG_LINES: usize = 12;

/// Installs the packages that its arguments name; `$0` is the root folder. Prints the units and init scripts
/// that the packages have enabled, after it has disabled them.
///
/// A policy prevents that services start during the installation (Debian policy, section 9.3.3.2). It does
/// not cover the links that start them at the next boot: those that are new are removed, by the tools that
/// remember it for the next version of the package. The same is done when the installation fails half-way.
const INSTALL: &str = r#"set -e
root=${0%/}
policy=$root/usr/sbin/policy-rc.d
links() {
    for link in "$root"/etc/systemd/system/*.wants/* "$root"/etc/systemd/system/*.requires/* \
        "$root"/etc/rc[2-5S].d/S*; do
        if [ -L "$link" ]; then echo "$link"; fi
    done
}
before=$(links)
end() {
    status=$?
    trap - EXIT HUP INT TERM
    if [ -n "$own" ]; then rm -f "$policy"; fi
    new=$(links | while read -r link; do
        case "
$before
" in *"
$link
"*) ;; *) name=${link##*/}; case $link in
            */rc?.d/S[0-9][0-9]*) echo "rc ${name#S??}" ;;
            *) echo "unit $name" ;;
        esac ;; esac
    done | sort -ur)
    echo "$new" | while read -r kind name; do
        case $kind in
            # Without the name of a package, the tool does nothing.
            unit)
                DPKG_MAINTSCRIPT_PACKAGE=linerate deb-systemd-helper disable "$name" >&2 || continue
                echo "$name"
                ;;
            rc) update-rc.d "$name" disable >&2 || continue; echo "$name" ;;
        esac
    done
    exit $status
}
own=
trap end EXIT
trap 'exit 130' HUP INT TERM
if [ ! -e "$policy" ]; then
    own=1
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq >&2 || true
apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" >&2
"#;

fn is_installed(package: &str) -> bool {
    let mut query = Command::new("dpkg-query");
    query.args(["-W", "-f", "${db:Status-Status}", package]).stderr(Stdio::null());
    query.output().is_ok_and(|out| out.stdout == b"installed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A machine whose apt-get enables a unit and an init script, and ends with this status.
    fn installed(name: &str, status: u8) -> (bool, String, bool) {
        let root = std::env::temp_dir().join(format!("linerate-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let path = |below: &str| root.join(below);
        let wants = "etc/systemd/system/multi-user.target.wants";
        for folder in ["bin", "usr/sbin", wants, "etc/rc2.d"] {
            fs::create_dir_all(path(folder)).unwrap();
        }
        std::os::unix::fs::symlink("/lib/old.service", path(wants).join("old.service")).unwrap();
        let apt = format!(
            "[ $1 = update ] && exit\n[ -x {0}/usr/sbin/policy-rc.d ] || exit 9\n\
             ln -s /lib/demo.service {0}/{wants}/demo.service\nln -s ../init.d/demo {0}/etc/rc2.d/S01demo\n\
             exit {status}",
            root.display()
        );
        let helper = "echo noise; [ -n \"$DPKG_MAINTSCRIPT_PACKAGE\" ] && [ $1 = disable ] && rm".to_owned();
        let helper = format!("{helper} {}/{wants}/$2", root.display());
        let rc = format!("[ $2 = disable ] && rm {}/etc/rc2.d/S01$1", root.display());
        for (tool, script) in [("apt-get", apt), ("deb-systemd-helper", helper), ("update-rc.d", rc)] {
            let file = path("bin").join(tool);
            fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let search = format!("{}:{}", path("bin").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("sh");
        command.args(["-c", INSTALL]).arg(&root).arg("demo").env("PATH", search).stderr(Stdio::null());
        let output = command.output().unwrap();
        let left = |folder: &str| fs::read_dir(path(folder)).unwrap().count();
        let is_clean = (left(wants), left("etc/rc2.d"), left("usr/sbin")) == (1, 0, 0);
        fs::remove_dir_all(&root).unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap(), is_clean)
    }

    #[test]
    fn what_a_package_enables_is_disabled_and_what_was_enabled_before_stays() {
        assert_eq!(installed("install", 0), (true, "demo.service\ndemo\n".into(), true));
        assert_eq!(installed("install-fails", 1), (false, "demo.service\ndemo\n".into(), true));
    }
}
