//! CPU times during a client's run, so that they can be read at the ends of its window afterwards.
//!
//! The window begins and ends inside the client, which prints both times when it is over. Until then the
//! agent samples all clocks; between two samples a clock is taken to run evenly.

use super::process::Process;
use super::topology::Network;
use crate::protocol::{CpuTime, CpuTimes, ProcessId};
use linerate_contract::{Nanos, clock};
use std::collections::BTreeMap;

/// A sample takes some ten microseconds, so this costs less than a hundredth of a CPU. `/proc/stat` counts in
/// ticks of the same length.
const INTERVAL: Nanos = Nanos(10_000_000);

/// Samples since the start of a client's run.
#[derive(Default)]
pub(super) struct Recording {
    last: Nanos,
    processes: BTreeMap<ProcessId, Vec<(Nanos, Nanos)>>,
    cpus: Vec<(Nanos, Vec<CpuTime>)>,
    /// Packets that the server has sent, where they are counted.
    packets: Vec<(Nanos, u64)>,
}

impl Recording {
    /// Reads every clock, and the count of the server's packets.
    pub(super) fn sample(&mut self, processes: &mut BTreeMap<ProcessId, Process>, network: Option<&Network>) {
        let now = clock::now();
        self.last = now;
        for (id, process) in processes {
            if let Some(time) = process.cpu() {
                self.add(*id, now, time);
            }
        }
        self.cpus.push((now, super::cpu::cpu_times()));
        self.packets.extend(network.and_then(Network::server_packets).map(|count| (now, count)));
    }

    pub(super) fn is_due(&self) -> bool {
        clock::now() >= self.next()
    }

    /// When the next sample is due.
    pub(super) fn next(&self) -> Nanos {
        self.last + INTERVAL
    }

    /// The part of a window that the samples cover.
    pub(super) fn clamp(&self, window: [Nanos; 2]) -> [Nanos; 2] {
        let first = self.cpus.first().map_or(self.last, |(time, _)| *time);
        window.map(|time| time.clamp(first, self.last))
    }

    /// The server's packets at the ends of a window and at each sample in it, by `since`: the time since the
    /// start of the window in which the processes ran.
    pub(super) fn progress(
        &self,
        [start, end]: [Nanos; 2],
        since: impl Fn(Nanos) -> Nanos,
    ) -> Vec<(Nanos, u64)> {
        let inside = self.packets.iter().map(|(time, _)| *time).filter(|time| (start..end).contains(time));
        let times = [start].into_iter().chain(inside).chain([end]);
        let count = |time| {
            let (before, after, share) = around(&self.packets, time)?;
            Some((since(time), before + (after.saturating_sub(*before) as f64 * share) as u64))
        };
        times.filter_map(count).collect()
    }

    /// A process that has just started (no time) or ended (all of its time).
    pub(super) fn note(&mut self, id: ProcessId, time: Nanos) {
        self.add(id, clock::now(), time);
    }

    fn add(&mut self, id: ProcessId, now: Nanos, time: Nanos) {
        self.processes.entry(id).or_default().push((now, time));
    }

    /// The times at `at` on `CLOCK_MONOTONIC`.
    pub(super) fn at(&self, at: Nanos) -> CpuTimes {
        let of_process = |(id, series): (&ProcessId, &Vec<(Nanos, Nanos)>)| {
            let (before, after, share) = around(series, at)?;
            Some((*id, between(*before, *after, share)))
        };
        let cpus = around(&self.cpus, at).map_or_else(Vec::new, |(before, after, share)| {
            let pairs = before.iter().zip(after);
            pairs.map(|(before, after)| cpu_between(before, after, share)).collect()
        });
        CpuTimes { processes: self.processes.iter().filter_map(of_process).collect(), cpus }
    }
}

/// The values before and after a time, and the share of the way between them.
fn around<T>(series: &[(Nanos, T)], at: Nanos) -> Option<(&T, &T, f64)> {
    let next = series.partition_point(|(time, _)| *time <= at);
    let before = &series.get(next.saturating_sub(1))?;
    let after = series.get(next).unwrap_or(before);
    let share = at.since(before.0).0 as f64 / after.0.since(before.0).0.max(1) as f64;
    Some((&before.1, &after.1, share.min(1.0)))
}

fn between(before: Nanos, after: Nanos, share: f64) -> Nanos {
    before + Nanos((after.since(before).0 as f64 * share) as u64)
}

fn cpu_between(before: &CpuTime, after: &CpuTime, share: f64) -> CpuTime {
    let time = |of: fn(&CpuTime) -> Nanos| between(of(before), of(after), share);
    CpuTime {
        cpu: before.cpu,
        total: time(|cpu| cpu.total),
        busy: time(|cpu| cpu.busy),
        interrupts: time(|cpu| cpu.interrupts),
        steal: time(|cpu| cpu.steal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(recording: &Recording, at: u64) -> Vec<u64> {
        recording.at(Nanos(at)).processes.iter().map(|(_, time)| time.0).collect()
    }

    #[test]
    fn a_clock_runs_evenly_between_samples_and_stands_still_outside() {
        let mut recording = Recording::default();
        for (now, time) in [(100, 10), (200, 60), (300, 60)] {
            recording.add(ProcessId(1), Nanos(now), Nanos(time));
        }
        assert_eq!(
            [0, 100, 150, 199, 200, 250, 300, 900].map(|t| at(&recording, t)[0]),
            [10, 10, 35, 59, 60, 60, 60, 60]
        );
    }

    #[test]
    fn each_process_and_cpu_has_its_own_series() {
        let cpu = |busy: u64| CpuTime { cpu: 3, busy: Nanos(busy), ..CpuTime::default() };
        let mut recording = Recording {
            cpus: vec![(Nanos(0), vec![cpu(0)]), (Nanos(10), vec![cpu(100)])],
            ..Recording::default()
        };
        recording.add(ProcessId(1), Nanos(0), Nanos(5));
        recording.add(ProcessId(2), Nanos(0), Nanos(0));
        recording.add(ProcessId(2), Nanos(10), Nanos(10));
        assert_eq!(at(&recording, 5), [5, 5]);
        assert_eq!(recording.at(Nanos(7)).cpus, [cpu(70)]);
        assert_eq!(Recording::default().at(Nanos(7)), CpuTimes::default());
    }

    #[test]
    fn progress_begins_and_ends_with_the_window() {
        let packets = vec![(Nanos(0), 0), (Nanos(10), 100), (Nanos(20), 100), (Nanos(30), 160)];
        let recording = Recording { packets, ..Recording::default() };
        let progress = |window| recording.progress(window, |time| time.since(Nanos(5)));
        let expected = [(0, 50), (5, 100), (15, 100), (20, 130)].map(|(time, count)| (Nanos(time), count));
        assert_eq!(progress([Nanos(5), Nanos(25)]), expected);
        assert!(Recording::default().progress([Nanos(5), Nanos(25)], |time| time).is_empty());
    }
}
