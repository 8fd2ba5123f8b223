//! Time in which the client of a case was ready to run and had no CPU. The server's waits are in its ground
//! truth.

use linerate_contract::Nanos;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Threads that end between two readings lose at most this much. A reading takes a CPU from one of two ends
/// that never sleep: at 20 ms a case of 5 s had 530 preemptions on two CPUs, and at 100 ms it had 334.
const INTERVAL: Duration = Duration::from_millis(100);
/// Nanoseconds of a tick in `/proc/stat` (USER_HZ is 100 on all of Linux's common architectures).
const TICK: u64 = 10_000_000;

/// Reads the account of a process until it is asked for the sum.
#[derive(Debug)]
pub struct Watch {
    ended: Arc<AtomicBool>,
    waits: JoinHandle<u64>,
    steal: u64,
}

impl Watch {
    /// Watches the process with this id.
    pub fn start(process: u32) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ended);
        let waits = std::thread::spawn(move || {
            let mut of_threads = BTreeMap::new();
            while !flag.load(Ordering::Relaxed) {
                read(process, &mut of_threads);
                std::thread::sleep(INTERVAL);
            }
            of_threads.into_values().sum()
        });
        Self { ended, waits, steal: steal() }
    }

    /// All time that was lost: waits for a CPU, and what a hypervisor took (steal) of any CPU.
    pub fn sum(self) -> Nanos {
        self.ended.store(true, Ordering::Relaxed);
        let waits = self.waits.join().expect("a panic aborts the process");
        Nanos(waits + steal().saturating_sub(self.steal))
    }
}

/// Nanoseconds that each thread waited on a run queue so far: the second number of
/// `/proc/PID/task/TID/schedstat` (kernel, Documentation/scheduler/sched-stats.rst). Nothing where the kernel
/// keeps no such account.
fn read(process: u32, of_threads: &mut BTreeMap<PathBuf, u64>) {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return };
    for thread in threads.flatten() {
        let path = thread.path();
        let text = fs::read_to_string(path.join("schedstat")).unwrap_or_default();
        if let Some(wait) = text.split_whitespace().nth(1).and_then(|wait| wait.parse().ok()) {
            of_threads.insert(path, wait);
        }
    }
}

/// Nanoseconds that a hypervisor took of all CPUs (proc(5), `/proc/stat`).
fn steal() -> u64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks: Option<u64> = text.split_whitespace().nth(8).and_then(|ticks| ticks.parse().ok());
    ticks.unwrap_or(0) * TICK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_busy_threads_than_cpus_lose_time() {
        // Nothing waits for a CPU while the machine stands still.
        let loses = || lost_by_busy_threads() > Nanos(50_000_000);
        let has_account = fs::exists("/proc/self/schedstat").unwrap_or(false);
        assert!(!has_account || (0..5).any(|_| loses()));
    }

    fn lost_by_busy_threads() -> Nanos {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let watch = Watch::start(std::process::id());
        let end = std::time::Instant::now() + Duration::from_millis(300);
        let work = move || while std::time::Instant::now() < end {};
        let threads: Vec<_> = (0..=cpus).map(|_| std::thread::spawn(work)).collect();
        threads.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
        watch.sum()
    }
}
