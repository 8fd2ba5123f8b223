//! Samples of what the processes of servers do, in units of their own that decide nothing.
//!
//! A process opens its events itself, between fork and exec, so that every thread and child has them. They
//! are disabled until a client runs, and write into one ring of the agent for each CPU.

#![allow(unsafe_code, reason = "ioctl(2) has no safe wrapper; descriptors arrive as bare numbers")]

use super::symbols::Symbols;
use crate::host;
use linerate_contract::Nanos;
use linerate_model::{SampledStack, StackSample};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::request_code_none;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, UnixAddr, recvmsg, sendmsg};
use perf_event::data::Record;
use perf_event::events::Software;
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
/// Room for the samples of a CPU between two times that the agent reads them.
const RING: usize = 128 << 10;
/// Descriptors that a message can have, see unix(7).
const MOST_CPUS: usize = 253;

/// Opens events in the process itself.
pub(super) struct SampleMaker {
    sender: UnixDatagram,
    cpus: Vec<u32>,
}

impl SampleMaker {
    /// The maker for the child, and the socket through which the agent receives the events.
    pub(super) fn pair() -> io::Result<(Self, UnixDatagram)> {
        let (sender, receiver) = UnixDatagram::pair()?;
        receiver.set_nonblocking(true)?;
        Ok((Self { sender, cpus: cpus() }, receiver))
    }

    /// Called between fork and exec. It is no error if perf is not allowed: the reason is sent.
    pub(super) fn run(&self) -> io::Result<()> {
        let (with_kernel, events) = match self.open(true) {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => (false, self.open(false)),
            events => (true, events),
        };
        let (word, events) = match events {
            Ok(events) => (if with_kernel { "all" } else { "user" }.to_owned(), events),
            Err(e) => (e.to_string(), Vec::new()),
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

    fn open(&self, with_kernel: bool) -> io::Result<Vec<OwnedFd>> {
        let event = |cpu: &u32| {
            let mut builder = builder(Software::CPU_CLOCK, *cpu);
            builder.inherit(true).sample_period(PERIOD.0).exclude_kernel(!with_kernel);
            let counter = builder.build()?;
            // SAFETY: `into_raw_fd` gives up the only owner of the descriptor.
            Ok(unsafe { OwnedFd::from_raw_fd(counter.into_raw_fd()) })
        };
        self.cpus.iter().map(event).collect()
    }
}

fn cpus() -> Vec<u32> {
    host::usable_cpus().into_iter().take(MOST_CPUS).collect()
}

/// A disabled event of the caller on one CPU, whose samples have process, time and stack.
fn builder(event: Software, cpu: u32) -> Builder<'static> {
    let mut builder = Builder::new(event);
    builder
        .observe_self()
        .one_cpu(cpu as usize)
        .exclude_hv(true)
        .enabled(false)
        .clockid(Clock::MONOTONIC)
        .sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::CALLCHAIN);
    builder
}

/// The events of all processes of servers, and their samples.
#[derive(Default)]
pub(super) struct Sampling {
    rings: Vec<Sampler>,
    events: Vec<OwnedFd>,
    symbols: Symbols,
    samples: Vec<Sample>,
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
}

impl Sampling {
    /// Adds the events of a process that has just been started.
    pub(super) fn add(&mut self, receiver: &UnixDatagram) {
        let added = receive(receiver).and_then(|(word, events)| {
            if events.is_empty() {
                return Err(not_allowed(&word));
            }
            if word == "user" {
                self.lack("the kernel's functions need root, or sysctl kernel.perf_event_paranoid=1");
            }
            self.connect(events).map_err(|e| format!("no room for samples: {e}; run it as root"))
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

    fn connect(&mut self, events: Vec<OwnedFd>) -> io::Result<()> {
        if self.rings.is_empty() {
            let ring = |cpu: u32| builder(Software::DUMMY, cpu).build()?.sampled(RING);
            self.rings = cpus().into_iter().map(ring).collect::<Result<_, _>>()?;
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
        self.lacking.clear();
        self.is_on = false;
        self.symbols.forget_programs();
    }

    pub(super) fn start(&mut self) {
        self.drain();
        self.samples.clear();
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
                    Ok(Record::Sample(sample)) => self.samples.extend(Sample::from_record(&sample)),
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
        let mut counts = BTreeMap::<(u32, Vec<u64>), u64>::new();
        for sample in samples.into_iter().filter(|sample| (start..end).contains(&sample.time)) {
            *counts.entry((sample.process, sample.chain)).or_default() += 1;
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
            lost: self.lost,
            lacking: self.lacking.clone(),
        }
    }
}

impl Sample {
    fn from_record(sample: &perf_event::data::Sample<'_>) -> Option<Self> {
        let (process, time) = (sample.pid()?, Nanos(sample.time()?));
        Some(Self { time, process, chain: sample.callchain()?.to_vec() })
    }
}

/// The reason why a process has no events.
fn not_allowed(reason: &str) -> String {
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
