//! A host behind OpenSSH: linerate is copied there once, by its hash; the agent talks over ssh's standard
//! input and output. No daemon, no port: what runs there ends with the channel.

use crate::program::{locate, quoted};
use crate::{AGENT, LabError};
use linerate_model::PlannedHost;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::Write;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Options that hosts.toml can replace: ssh(1) uses the first value of an option. Nothing is asked; a host
/// that is silent for 15 s is lost.
const OPTIONS: [&str; 8] = [
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
];
/// Files that a host needs to find and to build systems, as in `make dist`.
const DATA: [&str; 6] = ["suites", "systems", "sdk", "crates/contract", "Cargo.toml", "Cargo.lock"];

/// linerate's programs, suites and systems as a tar archive.
#[derive(Debug)]
pub(crate) struct Package {
    archive: Vec<u8>,
    /// Names its folder on the hosts.
    hash: String,
}

/// A host that was reached.
#[derive(Debug, Clone)]
pub(crate) struct Reached {
    /// The program there.
    pub(crate) program: String,
    /// Where ssh reached it, and this machine as seen from there.
    pub(crate) address: Option<Ipv4Addr>,
    pub(crate) seen_from_there: Option<Ipv4Addr>,
}

impl Package {
    /// Packs this program and the folder with its suites and systems.
    ///
    /// # Errors
    /// A program is missing, or tar(1) fails.
    pub(crate) fn make(home: &Path) -> Result<Self, LabError> {
        let lost = |why: String| LabError::Lost(format!("packing linerate for other hosts: {why}"));
        let program = std::env::current_exe().map_err(|e| lost(e.to_string()))?;
        let beside = ["linerate-load", "linerate-natives"].map(|name| {
            locate(name).ok_or_else(|| {
                lost(format!("{name} is missing: build linerate's programs with `cargo build --release`"))
            })
        });
        let mut tar = Command::new("tar");
        tar.args([
            "--create",
            "--dereference",
            "--sort=name",
            "--mtime=@0",
            "--owner=0",
            "--group=0",
            "--exclude=target",
        ]);
        tar.arg("--directory").arg(home).args(DATA.iter().filter(|name| home.join(name).exists()));
        for path in std::iter::once(Ok(program)).chain(beside) {
            let path = path?;
            let folder = path.parent().unwrap_or(Path::new("/"));
            tar.arg("--directory").arg(fs::canonicalize(folder).map_err(|e| lost(e.to_string()))?);
            tar.arg(path.file_name().unwrap_or_default());
        }
        let output = tar.output().map_err(|e| lost(format!("tar: {e}")))?;
        if !output.status.success() {
            return Err(lost(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        let mut hasher = DefaultHasher::new();
        hasher.write(&output.stdout);
        Ok(Self { archive: output.stdout, hash: format!("{:016x}", hasher.finish()) })
    }
}

/// Connects, and copies the package if the host has none of its hash.
///
/// # Errors
/// ssh's own message, a host of another architecture, or a copy that failed.
pub(crate) fn reach(host: &PlannedHost, package: &Package) -> Result<Reached, LabError> {
    let hash = &package.hash;
    let script = format!(
        "cache=${{XDG_CACHE_HOME:-$HOME/.cache}}/linerate/agents; uname -m; echo \"$cache/{hash}\"; \
         echo \"${{SSH_CONNECTION:-}}\"; test -e \"$cache/{hash}\" && echo there; true"
    );
    let response = run(host, &script, &[])?;
    let mut lines = response.lines();
    let mut next = || lines.next().unwrap_or_default().to_owned();
    let (machine, folder, connection, there) = (next(), next(), next(), next());
    let addresses: Vec<Option<Ipv4Addr>> = connection.split(' ').map(|word| word.parse().ok()).collect();
    let address = |index: usize| addresses.get(index).copied().flatten();
    let (seen_from_there, address) = (address(0), address(2));
    if let Some(agent) = &host.agent {
        return Ok(Reached { program: agent.clone(), address, seen_from_there });
    }
    if machine != std::env::consts::ARCH {
        return Err(LabError::Lost(format!(
            "{} is {machine}, this machine {}: install linerate there, and name it in hosts.toml: \
             agent = \"/path/of/linerate\"",
            host.place,
            std::env::consts::ARCH
        )));
    }
    if there.is_empty() {
        // Complete, or not there: the folder gets its name at the end. The systems' user can read it.
        let script = format!(
            "set -e; umask 022; new=\"{folder}.new.$$\"; trap 'rm -rf \"$new\"' EXIT; mkdir -p \"$new\"; \
             tar --extract --directory \"$new\"; test -e \"{folder}\" || mv \"$new\" \"{folder}\""
        );
        run(host, &script, &package.archive)
            .map_err(|error| LabError::Lost(format!("copying linerate to {}: {error}", host.place)))?;
    }
    let program = Path::new(&folder).join("linerate").display().to_string();
    Ok(Reached { program, address, seen_from_there })
}

/// Starts the agent there; the socket is its channel.
///
/// # Errors
/// ssh(1) cannot be started.
pub(crate) fn start(host: &PlannedHost, program: &str) -> Result<(Child, UnixStream), LabError> {
    let lost = |e: std::io::Error| LabError::Lost(format!("{}: ssh: {e}", host.place));
    let (socket, theirs) = UnixStream::pair().map_err(lost)?;
    let also_theirs = theirs.try_clone().map_err(lost)?;
    let script = format!("exec {} {AGENT} --stdio --host-network", quoted(program));
    let mut command = ssh(host, &script);
    command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::from(OwnedFd::from(also_theirs)));
    command.stderr(Stdio::null());
    Ok((command.spawn().map_err(lost)?, socket))
}

/// linerate there with a subcommand; its channel is ssh's standard input and output.
pub(crate) fn subcommand(host: &PlannedHost, program: &str, subcommand: &str) -> Command {
    ssh(host, &format!("exec {} {subcommand}", quoted(program)))
}

/// Runs linerate there with other arguments; returns its output.
///
/// # Errors
/// ssh's or its own message.
pub(crate) fn ask(
    host: &PlannedHost,
    program: &str,
    arguments: &str,
    input: &[u8],
) -> Result<String, LabError> {
    let home = PathBuf::from(program).parent().unwrap_or(Path::new("/")).display().to_string();
    run(host, &format!("cd {} && exec {} {arguments}", quoted(&home), quoted(program)), input)
}

/// Runs a script of sh(1) there to its end.
fn run(host: &PlannedHost, script: &str, input: &[u8]) -> Result<String, LabError> {
    let lost = |why: &str| LabError::Lost(format!("{}: {why}", host.place));
    let mut command = ssh(host, script);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| lost(&format!("ssh: {e}")))?;
    let mut stdin = child.stdin.take().expect("it was requested");
    let Output { status, stdout, stderr } = std::thread::scope(|scope| {
        // A host that refuses ends the pipe; its message says why.
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().map_err(|e| lost(&e.to_string()))
    })?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&stderr);
    let message = message.trim();
    Err(lost(if message.is_empty() { "ssh ended without a message" } else { message }))
}

fn ssh(host: &PlannedHost, script: &str) -> Command {
    let mut command = Command::new("ssh");
    command.arg("-T").args(&host.ssh_options).args(OPTIONS);
    // The login shell need not be a POSIX shell.
    command.arg(host.ssh_destination().unwrap_or_default()).arg(format!("sh -c {}", quoted(script)));
    // Ctrl-C goes to the foreground process group; linerate alone handles it.
    command.process_group(0);
    command
}
