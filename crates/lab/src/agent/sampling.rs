//! Samples of what the processes of servers do, in units of their own that decide nothing.
//!
//! A process opens its events itself, between fork and exec, so that every thread and child has them. They
//! are disabled until a client runs, and write into one ring of the agent for each CPU.

#![allow(unsafe_code, reason = "ioctl(2) has no safe wrapper; descriptors arrive as bare numbers")]

use super::calls::{self, Call};
use super::symbols::{Symbols, USER_MARK};
use super::unwind::{REGISTERS, Stopped, Tables};
use crate::{Sampling, host};
use linerate_contract::Nanos;
use linerate_model::{SampledStack, StackSample};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::request_code_none;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, UnixAddr, recvmsg, sendmsg};
use perf_event::data::{Record, SampleRegsAbi};
use perf_event::events::{Software, Tracepoint};
use perf_event::{Builder, Clock, SampleFlag, Sampler};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixDatagram;

nix::ioctl_none!(enable, b'$', 0);
nix::ioctl_none!(disable, b'$', 1);
nix::ioctl_write_int_bad!(set_output, request_code_none!(b'$', 5));

/// CPU time between two samples: no multiple of a millisecond, at which timers of programs fire. A sample
/// with its stack takes some microseconds, so this costs two percent.
const PERIOD: Nanos = Nanos(211_000);
/// The part of a stack that a sample has, in which callers are looked for.
const STACK: u32 = 16 << 10;
/// Room for the samples of a CPU between two times that the agent reads them, and what each user has.
const RINGS: [usize; 2] = [2 << 20, 512 << 10];
/// The beginning of the reason why system calls are not recorded.
const NO_CALLS: &str = "counts of system calls by name need root: ";
/// Descriptors that a message can have, see unix(7).
const MOST_CPUS: usize = 253;

/// Opens events in the process itself.
pub(super) struct SampleMaker {
    sender: UnixDatagram,
    cpus: Vec<u32>,
    event: Result<Recorded, String>,
}

impl SampleMaker {
    /// The maker for the child, and the socket through which the agent receives the events.
    pub(super) fn pair(what: Sampling) -> io::Result<Option<(Self, UnixDatagram)>> {
        let event = match what {
            Sampling::Off => return Ok(None),
            Sampling::Stacks => Ok(Recorded::Stacks),
            Sampling::Calls => calls::tracepoint().map(Recorded::Calls),
        };
        let (sender, receiver) = UnixDatagram::pair()?;
        receiver.set_nonblocking(true)?;
        Ok(Some((Self { sender, cpus: cpus(), event }, receiver)))
    }

    /// Called between fork and exec. It is no error if perf is not allowed: the reason is sent.
    pub(super) fn run(&self) -> io::Result<()> {
        let (word, events) = match self.event {
            Ok(event) => match (event, self.open(event, true)) {
                (Recorded::Stacks, Err(e)) if e.kind() == io::ErrorKind::PermissionDenied => {
                    ("user", self.open(event, false))
                }
                (Recorded::Stacks, events) => ("all", events),
                (Recorded::Calls(_), events) => ("calls", events),
            },
            Err(ref reason) => ("", Err(io::Error::other(reason.clone()))),
        };
        let (word, events) = match events {
            Ok(events) => (word.to_owned(), events),
            Err(e) if self.event == Ok(Recorded::Stacks) => (e.to_string(), Vec::new()),
            Err(e) => (format!("{NO_CALLS}{e}"), Vec::new()),
        };
        let fds: Vec<RawFd> = events.iter().map(AsRawFd::as_raw_fd).collect();
        let rights = [ControlMessage::ScmRights(&fds)];
        let rights = if fds.is_empty() { &rights[..0] } else { &rights };
        sendmsg::<UnixAddr>(
            self.sender.as_raw_fd(),
            &[IoSlice::new(word.as_bytes())],
            rights,
            MsgFlags::empty(),
            None,
        )?;
        Ok(())
    }

    fn open(&self, event: Recorded, with_kernel: bool) -> io::Result<Vec<OwnedFd>> {
        let event = |cpu: &u32| {
            let mut builder = event.builder(*cpu, true);
            let counter = builder.inherit(true).exclude_kernel(!with_kernel).build()?;
            // SAFETY: `into_raw_fd` gives up the only owner of the descriptor.
            Ok(unsafe { OwnedFd::from_raw_fd(counter.into_raw_fd()) })
        };
        self.cpus.iter().map(event).collect()
    }
}

fn cpus() -> Vec<u32> {
    host::usable_cpus().into_iter().take(MOST_CPUS).collect()
}

/// The records of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recorded {
    Stacks,
    /// Each system call, at its end: by this tracepoint.
    Calls(u64),
}

impl Recorded {
    /// A disabled event of the caller on one CPU. One that does not occur has a ring for those that do, since
    /// its records have the same form.
    fn builder(self, cpu: u32, occurs: bool) -> Builder<'static> {
        let mut builder = match self {
            Self::Stacks if occurs => Builder::new(Software::CPU_CLOCK),
            Self::Calls(tracepoint) if occurs => Builder::new(Tracepoint::with_id(tracepoint)),
            Self::Stacks | Self::Calls(_) => Builder::new(Software::DUMMY),
        };
        let (parts, period) = match self {
            Self::Stacks => {
                (SampleFlag::CALLCHAIN | SampleFlag::REGS_USER | SampleFlag::STACK_USER, PERIOD.0)
            }
            Self::Calls(_) => (SampleFlag::RAW, 1),
        };
        builder
            .observe_self()
            .one_cpu(cpu as usize)
            .exclude_hv(true)
            .enabled(false)
            .clockid(Clock::MONOTONIC)
            .sample(SampleFlag::TID | SampleFlag::TIME | parts);
        if self == Self::Stacks {
            builder.sample_regs_user(REGISTERS).sample_stack_user(STACK);
        }
        if occurs {
            builder.sample_period(period);
        }
        builder
    }
}

/// The events of all processes of servers, and their samples.
#[derive(Default)]
pub(super) struct Recorder {
    rings: Vec<Sampler>,
    events: Vec<OwnedFd>,
    symbols: Symbols,
    tables: Tables,
    samples: Vec<Sample>,
    calls: Vec<Call>,
    is_on: bool,
    lost: u64,
    /// Sources that are missing, and how to get them.
    lacking: Vec<String>,
}

struct Sample {
    time: Nanos,
    process: u32,
    /// As the kernel has it: the innermost frame first, with marks between kernel and user frames.
    chain: Vec<u64>,
    /// The source of the callers in the program.
    stopped: Option<Stopped>,
}

impl Recorder {
    /// Adds the events of a process that has just been started.
    pub(super) fn add(&mut self, receiver: &UnixDatagram) {
        let added = receive(receiver).and_then(|(word, events)| {
            if events.is_empty() {
                return Err(not_allowed(&word));
            }
            if word == "user" {
                self.lack("the kernel's functions need root, or sysctl kernel.perf_event_paranoid=1");
            }
            let recorded = if word == "calls" { Recorded::Calls(0) } else { Recorded::Stacks };
            self.connect(events, recorded).map_err(|e| format!("no room for samples: {e}; run it as root"))
        });
        if let Err(reason) = added {
            self.lack(&reason);
        }
    }

    fn lack(&mut self, what: &str) {
        if self.lacking.iter().all(|known| known != what) {
            self.lacking.push(what.to_owned());
        }
    }

    fn connect(&mut self, events: Vec<OwnedFd>, recorded: Recorded) -> io::Result<()> {
        if self.rings.is_empty() {
            let ring = |cpu: u32, room| recorded.builder(cpu, false).build()?.sampled(room);
            let rings = |room| cpus().into_iter().map(|cpu| ring(cpu, room)).collect::<io::Result<_>>();
            self.rings = rings(RINGS[0]).or_else(|_| rings(RINGS[1]))?;
        }
        for (event, ring) in events.iter().zip(&self.rings) {
            // SAFETY: both descriptors are open events of one CPU.
            unsafe { set_output(event.as_raw_fd(), ring.as_raw_fd()) }?;
        }
        self.events.extend(events);
        Ok(())
    }

    /// Forgets processes that have ended, and what was lacking.
    pub(super) fn forget(&mut self) {
        self.rings.clear();
        self.events.clear();
        self.samples.clear();
        self.calls.clear();
        self.lacking.clear();
        self.is_on = false;
        self.symbols.forget_programs();
        self.tables.forget_programs();
    }

    pub(super) fn start(&mut self) {
        self.drain();
        self.samples.clear();
        self.calls.clear();
        (self.is_on, self.lost) = (true, 0);
        for event in &self.events {
            // SAFETY: the descriptor is an open event. Its process may have ended, which is no matter.
            let _ = unsafe { enable(event.as_raw_fd()) };
        }
    }

    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Takes what the rings have.
    pub(super) fn drain(&mut self) {
        for ring in &mut self.rings {
            while let Some(record) = ring.next_record() {
                match record.parse_record() {
                    Ok(Record::Sample(sample)) => match sample.raw() {
                        Some(raw) => self.calls.extend(Call::new(sample.time().map(Nanos), raw)),
                        None => self.samples.extend(Sample::from_record(&sample)),
                    },
                    Ok(Record::Lost(lost)) => self.lost += lost.lost,
                    _ => {}
                }
            }
        }
    }

    /// Ends the samples; those of the window by stack.
    pub(super) fn end(&mut self, [start, end]: [Nanos; 2]) -> StackSample {
        for event in &self.events {
            // SAFETY: as in `start`.
            let _ = unsafe { disable(event.as_raw_fd()) };
        }
        self.drain();
        self.is_on = false;
        let samples = std::mem::take(&mut self.samples);
        let mut programs = BTreeMap::new();
        let mut counts = BTreeMap::<(u32, Vec<u64>), u64>::new();
        for sample in samples.into_iter().filter(|sample| (start..end).contains(&sample.time)) {
            let program =
                programs.entry(sample.process).or_insert_with(|| self.tables.program(sample.process));
            let chain = match (program, &sample.stopped) {
                (Some(program), Some(stopped)) => {
                    with_callers(&sample.chain, self.tables.unwind(program, stopped))
                }
                _ => sample.chain,
            };
            *counts.entry((sample.process, chain)).or_default() += 1;
        }
        let mut names = BTreeMap::<String, u32>::new();
        let mut stacks = BTreeMap::<Vec<u32>, u64>::new();
        for (chain, count) in self.symbols.resolve(counts) {
            let index = |name: String| {
                let next = names.len() as u32;
                *names.entry(name).or_insert(next)
            };
            *stacks.entry(chain.into_iter().map(index).collect()).or_default() += count;
        }
        let mut by_index: Vec<(u32, String)> = names.into_iter().map(|(name, index)| (index, name)).collect();
        by_index.sort_unstable();
        StackSample {
            names: by_index.into_iter().map(|(_, name)| name).collect(),
            stacks: stacks
                .into_iter()
                .map(|(frames, count)| SampledStack { frames, time: Nanos(count * PERIOD.0) })
                .collect(),
            calls: calls::by_name(&std::mem::take(&mut self.calls), start..end),
            lost: self.lost,
            lacking: self.lacking.clone(),
        }
    }
}

impl Sample {
    fn from_record(sample: &perf_event::data::Sample<'_>) -> Option<Self> {
        let (process, time) = (sample.pid()?, Nanos(sample.time()?));
        let registers = sample.regs_user().filter(|registers| registers.abi == SampleRegsAbi::ABI_64);
        let stopped = registers.and_then(|found| Stopped::new(&found.regs, sample.stack_user()?));
        Some(Self { time, process, chain: sample.callchain()?.to_vec(), stopped })
    }
}

/// A chain with the program's frames that tables found, and after them those by frame pointers, which may go
/// on where tables end; only these where they are more and have none of the others.
fn with_callers(chain: &[u64], (mut found, is_whole): (Vec<u64>, bool)) -> Vec<u64> {
    let user = chain.iter().position(|address| *address == USER_MARK);
    let (kernel, by_pointers) = chain.split_at(user.map_or(chain.len(), |at| at + 1));
    if !is_whole {
        // A function without a frame pointer hides its caller from the others, so that these are fewer.
        let common = (1..found.len()).rev().find_map(|at| {
            let before = &by_pointers[..by_pointers.len().min(at + 1)];
            Some((at, before.iter().rposition(|address| *address == found[at])?))
        });
        match common {
            Some((at, in_pointers)) => {
                found.truncate(at + 1);
                found.extend(&by_pointers[in_pointers + 1..]);
            }
            None if found.len() < by_pointers.len() => return chain.to_vec(),
            None => {}
        }
    }
    let mark = user.is_none().then_some(USER_MARK);
    kernel.iter().copied().chain(mark).chain(found).collect()
}

/// The reason why a process has no events.
fn not_allowed(reason: &str) -> String {
    if reason.starts_with(NO_CALLS) {
        return reason.to_owned();
    }
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    format!(
        "profiles are not allowed ({reason}; kernel.perf_event_paranoid is {}): run it as root, or \
         sysctl kernel.perf_event_paranoid=1",
        paranoid.trim()
    )
}

fn receive(receiver: &UnixDatagram) -> Result<(String, Vec<OwnedFd>), String> {
    let mut bytes = [0; 200];
    let mut buffer = [IoSliceMut::new(&mut bytes)];
    let mut space = cmsg_space!([RawFd; MOST_CPUS]);
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let failed = |e: Errno| not_allowed(e.desc());
    let message = recvmsg::<UnixAddr>(receiver.as_raw_fd(), &mut buffer, Some(&mut space), flags);
    let message = message.map_err(failed)?;
    let length = message.bytes;
    let mut events = Vec::new();
    for control in message.cmsgs().map_err(failed)? {
        if let ControlMessageOwned::ScmRights(fds) = control {
            // SAFETY: the kernel has just created these descriptors; they have no other owner.
            events.extend(fds.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
        }
    }
    Ok((String::from_utf8_lossy(&bytes[..length]).into_owned(), events))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_that_tables_find_are_followed_by_those_of_frame_pointers() {
        let chain = |user: &[u64]| [&[USER_MARK], user].concat();
        let of = |found: &[u64], is_whole, by_pointers: &[u64]| {
            with_callers(&chain(by_pointers), (found.to_vec(), is_whole))
        };
        // A function without a frame hides its caller, 2, from frame pointers; tables end at 4.
        assert_eq!(of(&[1, 2, 3, 4], false, &[1, 3, 4, 5, 6]), chain(&[1, 2, 3, 4, 5, 6]));
        assert_eq!(of(&[1, 2], true, &[1, 7, 8]), chain(&[1, 2]));
        assert_eq!(of(&[1, 2], false, &[1, 7, 8]), chain(&[1, 7, 8]));
        assert_eq!(of(&[1, 2, 3], false, &[1, 7]), chain(&[1, 2, 3]));
        // A function that calls itself is there as often as it was.
        assert_eq!(of(&[1, 5, 5], false, &[1, 5, 5, 5, 6]), chain(&[1, 5, 5, 5, 6]));
        assert_eq!(with_callers(&[9], (vec![1], true)), [9, USER_MARK, 1]);
    }
}
