//! Progress of streams: a separate thread reads the connections' counters from the kernel, so the workers do
//! nothing for it.

use crate::process::{emit, spawn};
use crate::refusal::{Doing, Refusal};
use crate::{clock, tcp_info};
use linerate_contract::{Bytes, Event, Nanos, Sample, TcpInfo};
use nix::errno::Errno;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;

/// Prints samples until it is dropped.
#[derive(Debug)]
pub(super) struct TcpInfoSampler {
    /// Dropped to end the thread.
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl TcpInfoSampler {
    /// Samples these connections at the interval `every`.
    pub(super) fn start(every: Nanos, sockets: &[OwnedFd]) -> Result<Self, Refusal> {
        if every == Nanos::ZERO {
            return Err(Refusal::BadSpec("\"sample_ns\" must be above 0".into()));
        }
        let own = sockets.iter().map(|socket| {
            socket
                .try_clone()
                .map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(0)))
                .doing("dup of a socket")
        });
        let own = own.collect::<Result<Vec<_>, _>>()?;
        let (over, waiting) = channel();
        let start = clock::now();
        let thread = spawn(move || {
            let (mut before, mut next) = (0, start + every);
            while waiting.recv_timeout(next.since(clock::now()).into()) == Err(RecvTimeoutError::Timeout) {
                let passed = own.iter().filter_map(|socket| tcp_info::passed(socket).ok()).sum::<u64>();
                let infos = own.iter().filter_map(|socket| tcp_info::info(socket).ok());
                let worst = infos.reduce(TcpInfo::with);
                emit(&Event::Sample(Sample {
                    at_ns: clock::now().since(start),
                    operations: 0,
                    bytes: Bytes(passed.saturating_sub(before)),
                    failed: 0,
                    latency: None,
                    lost: None,
                    rtt_us: worst.map(|info| info.rtt_us),
                }));
                before = passed;
                next += every;
            }
        })?;
        Ok(Self { over: Some(over), thread: Some(thread) })
    }
}

impl Drop for TcpInfoSampler {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the sampler loses samples only.
            let _ = thread.join();
        }
    }
}
