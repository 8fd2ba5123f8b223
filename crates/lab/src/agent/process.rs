//! Processes of the lab: start, output, CPU time and end.

#![allow(unsafe_code, reason = "what happens between fork and exec has no safe wrapper")]

use super::cpu::{ClockMaker, ProcessClock};
use super::exposed::Grants;
use super::namespaces::Privileges;
use super::output::Printed;
use super::sampling::SampleMaker;
use super::{PathOf, landlock, slice, view};
use crate::StopSignal;
use crate::protocol::{Spawn, Stream, TUN_DESCRIPTORS};
use caps::{CapSet, Capability, CapsHashSet};
use linerate_contract::Nanos;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, setns};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::prctl::set_no_new_privs;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, killpg, sigprocmask};
use nix::unistd::{Gid, Pid, Uid, setgroups, setpgid, setresgid, setresuid, setsid};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdout, Command, Stdio};

/// Capabilities of networking software without root: ports, raw sockets, packet filters, priority.
const CAPABILITIES: [Capability; 4] = [
    Capability::CAP_NET_ADMIN,
    Capability::CAP_NET_RAW,
    Capability::CAP_NET_BIND_SERVICE,
    Capability::CAP_SYS_NICE,
];

/// Capabilities that cannot change the host's network.
const HARMLESS: [Capability; 2] = [Capability::CAP_NET_BIND_SERVICE, Capability::CAP_SYS_NICE];

pub(super) struct Process {
    pub(super) pid: Pid,
    clock: ProcessClock,
    stdout: Printed<ChildStdout>,
    stderr: Printed<ChildStderr>,
}

/// Where a system's process finds programs by their names.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The view that a process has of the files.
pub(super) struct View<'a> {
    /// Where it starts.
    pub(super) folder: &'a Path,
    pub(super) grants: Grants,
    /// The mount namespace of a command of the user's own.
    pub(super) own: Option<BorrowedFd<'a>>,
}

/// Starts a process in a namespace, pinned, unprivileged, in a process group of its own. The socket has the
/// events of one that is sampled.
pub(super) fn start(
    spawn: &Spawn,
    view: View<'_>,
    namespace: BorrowedFd<'_>,
    inherited: &[OwnedFd],
    privileges: &Privileges,
    path: PathOf,
) -> Result<(Process, Option<UnixDatagram>), String> {
    let View { folder, grants, own } = view;
    let launch = &spawn.launch;
    let image = launch.user.as_ref().and_then(|user| user.files.image.as_ref());
    let mut command = Command::new(&spawn.program);
    let (arguments, stdin) =
        passed(&spawn.arguments).map_err(|e| format!("the arguments of {}: {e}", spawn.program.display()))?;
    command.args(arguments);
    match &launch.user {
        Some(user) if image.is_some() => command.env_clear().envs(&user.environment),
        Some(user) => command.envs(&user.environment),
        None => command
            .env_clear()
            .env("PATH", path_of(&grants))
            .env("LANG", "C.UTF-8")
            .env("HOME", folder)
            .env("TMPDIR", folder),
    };
    let inherited: Vec<RawFd> = inherited.iter().map(AsRawFd::as_raw_fd).collect();
    if !inherited.is_empty() {
        let numbers: Vec<String> = inherited.iter().map(ToString::to_string).collect();
        command.env(TUN_DESCRIPTORS, numbers.join(","));
    }
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (clock_maker, receiver) = ClockMaker::pair().map_err(|e| format!("a socket pair: {e}"))?;
    let sampled = SampleMaker::pair(spawn.sampled).map_err(|e| format!("a socket pair: {e}"))?;
    let (sample_maker, events) = sampled.unzip();
    let prepare = Preparation {
        namespace: namespace.as_raw_fd(),
        cpus: cpu_set(&launch.cpus)?,
        own_session: launch.own_session,
        slice: launch.slice,
        run_as: privileges.run_as(),
        capabilities: usable_capabilities(path),
        inherited,
        grants,
        folder: folder.to_owned(),
        of_user: launch.user.is_some(),
        own: own.map(|own| own.as_raw_fd()),
        user_of_image: image.map(|image| image.user).filter(|_| privileges.run_as().is_some()),
        is_separate: landlock::separates(landlock::version()),
        clock_maker,
        sample_maker,
    };
    // SAFETY: the agent has one thread, so no lock is held by another thread during the fork.
    unsafe { command.pre_exec(move || prepare.run()) };
    let run_as = privileges.run_as().filter(|_| launch.user.is_none());
    let mut child = command.spawn().map_err(|e| cannot_start(&spawn.program, &e, run_as))?;
    let pid = Pid::from_raw(child.id() as i32);
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    for fd in [stdout.as_ref().map(AsRawFd::as_raw_fd), stderr.as_ref().map(AsRawFd::as_raw_fd)] {
        set_nonblocking(fd).map_err(|e| format!("the output of {}: {e}", spawn.program.display()))?;
    }
    let clock = ProcessClock::new(pid, &receiver);
    let of_user = launch.user.is_some();
    let (stdout, stderr) =
        (Printed::new(Stream::Stdout, of_user, stdout), Printed::new(Stream::Stderr, of_user, stderr));
    Ok((Process { pid, clock, stdout, stderr }, events))
}

/// The longest argument that the kernel passes (execve(2), `MAX_ARG_STRLEN`), without its end.
const LONGEST_ARGUMENT: usize = (128 << 10) - 1;

/// The arguments of a program, and its standard input: a last argument that the kernel would not pass is
/// there, as `-` in its place says (sdk/CONTRACT.md).
fn passed(arguments: &[String]) -> io::Result<(Vec<&str>, Stdio)> {
    let mut all: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some(spec) = all.pop_if(|last| last.len() > LONGEST_ARGUMENT) else {
        return Ok((all, Stdio::null()));
    };
    let mut file = File::from(memfd_create(c"spec", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(spec.as_bytes())?;
    file.rewind()?;
    all.push("-");
    Ok((all, file.into()))
}

fn path_of(grants: &Grants) -> OsString {
    let folders = grants.path.iter().cloned().chain(std::env::split_paths(PATH));
    // A folder with a colon in its name cannot be there.
    std::env::join_paths(folders).unwrap_or_else(|_| PATH.into())
}

/// Why a program was not started, and the next step.
fn cannot_start(program: &Path, e: &io::Error, run_as: Option<(Uid, Gid)>) -> String {
    let text = format!("cannot start {}: {e}", program.display());
    let is_closed = |part: &&Path| part.metadata().is_ok_and(|found| found.mode() & 1 == 0);
    let closed = [program.parent(), Some(program)].into_iter().flatten().find(is_closed);
    match (e.kind(), closed, run_as) {
        (io::ErrorKind::PermissionDenied, Some(closed), Some((user, _))) => {
            let closed = closed.display();
            format!("{text}: systems run as user {user}, which may not use {closed}: chmod o+rx {closed}")
        }
        (io::ErrorKind::NotFound, ..) if program.exists() => {
            format!("{text}: the interpreter that it names is not there")
        }
        _ => text,
    }
}

/// The child's steps between fork and exec.
struct Preparation {
    namespace: RawFd,
    cpus: Option<CpuSet>,
    own_session: bool,
    slice: Option<Nanos>,
    run_as: Option<(Uid, Gid)>,
    capabilities: CapsHashSet,
    /// Descriptors that stay open after exec; the parent keeps them open until then.
    inherited: Vec<RawFd>,
    grants: Grants,
    folder: PathBuf,
    /// True for a command of the user's own, which has what the user has.
    of_user: bool,
    /// The mount namespace of the process; the parent keeps it open until then.
    own: Option<RawFd>,
    /// User and group of an image, where the lab's user may change to them.
    user_of_image: Option<(u32, u32)>,
    /// True if Landlock separates it from other roles.
    is_separate: bool,
    clock_maker: ClockMaker,
    sample_maker: Option<SampleMaker>,
}

impl Preparation {
    fn run(&self) -> io::Result<()> {
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
        // A process group of its own. Where roles share CPUs, all are in the agent's session: the kernel's
        // autogroup (sched(7)) then shares CPUs between labs, and not between their processes.
        if self.own_session {
            setsid()?;
        } else {
            setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
        }
        // SAFETY: the parent keeps the descriptor open during this call, so the child has it as well.
        setns(unsafe { BorrowedFd::borrow_raw(self.namespace) }, CloneFlags::CLONE_NEWNET)?;
        for fd in &self.inherited {
            // SAFETY: as above.
            fcntl(unsafe { BorrowedFd::borrow_raw(*fd) }, FcntlArg::F_SETFD(FdFlag::empty()))?;
        }
        if let Some(cpus) = &self.cpus {
            sched_setaffinity(Pid::from_raw(0), cpus)?;
        }
        if let Some(slice) = self.slice {
            slice::request(slice);
        }
        // While it still has the rights that stacks of the kernel need.
        self.sample_maker.as_ref().map_or(Ok(()), SampleMaker::run)?;
        if self.of_user {
            if let Some(own) = self.own {
                // SAFETY: as above.
                setns(unsafe { BorrowedFd::borrow_raw(own) }, CloneFlags::CLONE_NEWNS)?;
            }
            nix::unistd::chdir(&self.folder)?;
            if let Some((uid, gid)) = self.user_of_image {
                let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
                setgroups(&[gid])?;
                setresgid(gid, gid, gid)?;
                setresuid(uid, uid, uid)?;
            }
            return self.clock_maker.run();
        }
        view::enter(&self.grants, &self.folder)?;
        if let Some((uid, gid)) = self.run_as {
            caps::securebits::set_keepcaps(true).map_err(io::Error::other)?;
            setgroups(&[])?;
            setresgid(gid, gid, gid)?;
            setresuid(uid, uid, uid)?;
        }
        // A program without file capabilities keeps only ambient ones over exec. The permitted set can only
        // shrink, and not below the effective set: hence the empty set first.
        caps::set(None, CapSet::Effective, &CapsHashSet::new()).map_err(io::Error::other)?;
        for set in [CapSet::Permitted, CapSet::Effective, CapSet::Inheritable, CapSet::Ambient] {
            caps::set(None, set, &self.capabilities).map_err(io::Error::other)?;
        }
        // No program that it starts gains rights, such as by a set-user-id bit or file capabilities.
        set_no_new_privs()?;
        if self.is_separate {
            landlock::restrict()?;
        }
        self.clock_maker.run()
    }
}

/// The [`CAPABILITIES`] that the agent itself has; a container may lack some.
fn usable_capabilities(path: PathOf) -> CapsHashSet {
    let own = caps::read(None, CapSet::Permitted).unwrap_or_default();
    let is_allowed = |c: &Capability| path == PathOf::Lab || HARMLESS.contains(c);
    CAPABILITIES.into_iter().filter(|c| own.contains(c) && is_allowed(c)).collect()
}

fn cpu_set(cpus: &[u32]) -> Result<Option<CpuSet>, String> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu as usize).map_err(|e| format!("cannot pin to CPU {cpu}: {e}"))?;
    }
    Ok((!cpus.is_empty()).then_some(set))
}

impl Process {
    /// A process without output.
    pub(super) fn silent(pid: Pid, clock: ProcessClock) -> Self {
        let (stdout, stderr) =
            (Printed::new(Stream::Stdout, false, None), Printed::new(Stream::Stderr, false, None));
        Self { pid, clock, stdout, stderr }
    }

    /// The clock of the process, for another process; `None` without perf.
    pub(super) fn perf_clock(&self) -> Option<ProcessClock> {
        self.clock.copy()
    }

    pub(super) fn open_streams(&self) -> impl Iterator<Item = Stream> + '_ {
        let stdout = self.stdout.pipe.as_ref().map(|_| Stream::Stdout);
        let stderr = self.stderr.pipe.as_ref().map(|_| Stream::Stderr);
        stdout.into_iter().chain(stderr)
    }

    /// The reading end of an open stream.
    pub(super) fn stream(&self, stream: Stream) -> BorrowedFd<'_> {
        let fd = match stream {
            Stream::Stdout => self.stdout.pipe.as_ref().map(AsFd::as_fd),
            Stream::Stderr => self.stderr.pipe.as_ref().map(AsFd::as_fd),
        };
        fd.expect("callers take streams from open_streams()")
    }

    /// Every complete line that can be read; closes the stream at its end.
    pub(super) fn read_lines(&mut self, stream: Stream) -> Vec<String> {
        match stream {
            Stream::Stdout => self.stdout.read_lines(),
            Stream::Stderr => self.stderr.read_lines(),
        }
    }

    /// Ends the process if it has printed too much; the reason, once.
    pub(super) fn end_excess(&mut self) -> Option<String> {
        let reason = self.stdout.excess()?;
        // It may already have ended.
        let _ = killpg(self.pid, Signal::SIGKILL);
        Some(reason)
    }

    pub(super) fn cpu(&mut self) -> Option<Nanos> {
        self.clock.read()
    }

    /// CPU time after its end; only a perf counter still has it.
    pub(super) fn cpu_at_exit(mut self) -> Option<Nanos> {
        matches!(self.clock, ProcessClock::Perf(_)).then(|| self.cpu()).flatten()
    }

    pub(super) fn signal(&self, signal: StopSignal) {
        let signal = match signal {
            StopSignal::Term => Signal::SIGTERM,
            StopSignal::Int => Signal::SIGINT,
            StopSignal::Quit => Signal::SIGQUIT,
            StopSignal::Kill => Signal::SIGKILL,
        };
        // It may already have ended.
        let _ = kill(self.pid, signal);
    }
}

fn set_nonblocking(fd: Option<RawFd>) -> nix::Result<()> {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    if let Some(fd) = fd {
        // SAFETY: the caller owns the stream of this descriptor.
        fcntl(unsafe { BorrowedFd::borrow_raw(fd) }, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn an_argument_that_the_kernel_does_not_pass_is_on_standard_input() {
        let long = "x".repeat(300_000);
        let words = ["echo".to_owned(), long.clone()];
        let (arguments, stdin) = passed(&words).unwrap();
        assert_eq!(arguments, ["echo", "-"]);
        let output = Command::new("cat").stdin(stdin).output().unwrap();
        assert!(output.stdout == long.as_bytes(), "{} bytes", output.stdout.len());
        let short = ["echo".to_owned(), "y".repeat(LONGEST_ARGUMENT)];
        assert_eq!(passed(&short).unwrap().0, short.each_ref());
    }

    #[test]
    fn a_program_that_its_user_may_not_start_is_named_with_the_folder_that_is_closed() {
        let folder = std::env::temp_dir().join(format!("linerate-closed-{}", std::process::id()));
        let program = folder.join("server");
        fs::create_dir_all(&folder).unwrap();
        fs::write(&program, "#!/no/interpreter\n").unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
        let user = Some((Uid::from_raw(65534), Gid::from_raw(65534)));
        let denied = cannot_start(&program, &io::ErrorKind::PermissionDenied.into(), user);
        let missing = cannot_start(&program, &io::ErrorKind::NotFound.into(), None);
        fs::remove_dir_all(&folder).unwrap();
        assert!(
            denied.contains("user 65534") && denied.contains(&format!("chmod o+rx {}", folder.display()))
        );
        assert!(missing.contains("the interpreter that it names is not there"), "{missing}");
    }
}
