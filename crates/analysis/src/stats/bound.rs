//! The bottleneck: the role that saturated its CPU.
//!
//! Public leaderboards have been found to rank the limit of their load generator, so each number has its
//! bottleneck: a CPU that is busy for the whole window, and the role with most of the time on it. On a path
//! with a router where interrupts have most of the time and no relay has a process, the answer is the path.
//! Where a fifth of the time went to processes outside the trial, it is unknown; [`disturbance`] returns
//! their share. Where no CPU is busy for the whole window, all roles wait for each other. A role that spins
//! is busy whatever bounds the result, so it is named only as spinning, and only where no other role is
//! busy.
//!
//! Times are summed over the trials first: `/proc/stat` counts ticks of 10 ms, and a quick trial has only a
//! dozen.

use linerate_contract::Role;
use linerate_model::{CpuWindow, LabFlag, Measurement};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A CPU busy for more than this share of its time is saturated. Not 1: a closed loop leaves gaps at each
/// wake-up, and ticks are rounded. Not 0.8: queues of five connections keep an unsaturated relay that busy.
const SATURATED: f64 = 0.9;
/// Shares this close count as equal, and then the client is named: a doubted number is better than a wrong
/// one.
const TIE: f64 = 0.05;

/// Each end of a window is off by up to a tick: a share of 50 ticks by up to 0.04.
const FEWEST_TICKS: f64 = 50.0;
/// The kernel's tick, in nanoseconds.
const TICK: f64 = 1e7;

/// A CPU of whose busy time the trials had less was shared with others: whether a role waited for it, or for
/// another role, is not known.
const OWN: f64 = 0.8;

/// The lab's own agent, kernel threads and the rounding of ticks stay below this share of the CPUs' time.
pub(crate) const DISTURBED: f64 = 0.1;

/// The bottleneck of the cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bottleneck {
    /// The kernel between client and server: links, routes, packet filter.
    Path,
    /// No role used its CPU for the whole window: the result is a latency.
    Waiting,
    /// Only roles that are always busy used their CPU for the whole window.
    Spinning,
    /// Other processes had a CPU, or the clock is too coarse.
    Unknown,
    #[serde(untagged)]
    Role(Role),
}

/// Facts of a cell that its CPU times are read with.
#[derive(Debug, Clone, Copy)]
pub struct Placement<'a> {
    /// As set by its workload.
    pub threads: u64,
    /// Whether its path has a router.
    pub has_router: bool,
    /// Roles that are always busy.
    pub spinning: &'a [Role],
}

/// The bottleneck of all measurements of a cell. `None` without CPU times.
pub fn bound<'a>(
    measurements: impl IntoIterator<Item = &'a Measurement>,
    placement: Placement<'_>,
) -> Option<Bottleneck> {
    let Placement { threads, has_router, spinning } = placement;
    let load = Load::from_measurements(measurements);
    if load.cpus.is_empty() && load.roles.is_empty() {
        return None;
    }
    let mut saturated: Vec<(f64, Bottleneck)> =
        load.saturated_cpus(has_router).chain(load.saturated_roles(threads)).collect();
    let is_clear = !load.is_coarse() && saturated.is_empty();
    let spins = |bound: &Bottleneck| spinning.iter().any(|role| *bound == Bottleneck::Role(*role));
    let is_spinning = saturated.iter().any(|(_, bound)| spins(bound));
    saturated.retain(|(_, bound)| *bound != Bottleneck::Unknown && !spins(bound));
    let highest = saturated.iter().map(|s| s.0).fold(0.0, f64::max);
    let client = |(share, bound): &&(f64, Bottleneck)| {
        *bound == Bottleneck::Role(Role::Client) && share + TIE >= highest
    };
    let first = saturated.iter().find(client).or_else(|| saturated.iter().find(|s| s.0 >= highest));
    Some(match first {
        Some((_, bound)) => *bound,
        None if is_spinning => Bottleneck::Spinning,
        None if is_clear => Bottleneck::Waiting,
        None => Bottleneck::Unknown,
    })
}

/// The mean CPU use of other processes, by their own clocks. `None` where a measurement does not know it.
fn seen<'a>(measurements: impl Iterator<Item = &'a Measurement>) -> Option<f64> {
    let shares: Vec<f64> = measurements.map(|measurement| measurement.others).collect::<Option<_>>()?;
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

/// The share of the lab's CPU time that went to processes outside of the trials, if it is more than 10 %:
/// what these were seen to use. Where they were not seen, the difference of the CPUs' ticks and the trials'
/// own clocks; process times include some interrupts that are counted separately too. `None` also where the
/// process times are incomplete.
pub fn disturbance<'a>(
    measurements: impl IntoIterator<Item = &'a Measurement, IntoIter: Clone>,
) -> Option<f64> {
    let measurements = measurements.into_iter();
    if let Some(share) = seen(measurements.clone()) {
        return (share > DISTURBED).then_some(share);
    }
    let load = Load::from_measurements(measurements);
    let others: f64 = load.cpus.values().map(|cpu| (cpu.busy - load.own(cpu)).max(0.0)).sum();
    let others = (others - load.paths).max(0.0);
    let share = others / load.cpus.values().map(|cpu| cpu.available).sum::<f64>();
    (load.is_whole && !load.roles.is_empty() && share.is_finite() && share > DISTURBED).then_some(share)
}

/// The share of the lab's CPU time in a unit of a duet that went to processes of neither side. A lower bound,
/// and `None`, as for [`disturbance`]; whatever its size.
pub fn strangers(sides: [&Measurement; 2]) -> Option<f64> {
    if let Some(share) = seen(sides.into_iter()) {
        return Some(share);
    }
    let loads = sides.map(|side| Load::from_measurements([side]));
    let of_cpus = |of: fn(&Cpu) -> f64| loads.iter().flat_map(|load| load.cpus.values()).map(of).sum::<f64>();
    let own: f64 = loads.iter().map(|load| load.paths + load.roles.values().sum::<f64>()).sum();
    // Both windows are of the same time and the same CPUs, so each CPU is counted twice.
    let others = of_cpus(|cpu| cpu.busy - cpu.interrupts) / 2.0 - own;
    let share = others.max(0.0) / (of_cpus(|cpu| cpu.available) / 2.0);
    (loads.iter().all(|load| load.is_whole) && share.is_finite()).then_some(share)
}

/// Times of all trials together, in nanoseconds.
#[derive(Default)]
struct Load {
    /// Whether the process times are complete.
    is_whole: bool,
    elapsed: f64,
    /// Process time.
    roles: BTreeMap<Role, f64>,
    cpus: BTreeMap<u32, Cpu>,
    /// CPUs that the relays of impaired links used; they are not pinned.
    paths: f64,
}

#[derive(Default)]
struct Cpu {
    roles: BTreeSet<Role>,
    /// The window without steal.
    available: f64,
    busy: f64,
    interrupts: f64,
}

impl Load {
    fn from_measurements<'a>(measurements: impl IntoIterator<Item = &'a Measurement>) -> Self {
        let mut load = Self { is_whole: true, ..Self::default() };
        for measurement in measurements {
            load.is_whole &= !measurement.flags.contains(&LabFlag::CpuFromProc);
            load.elapsed += measurement.elapsed.0 as f64;
            load.paths += measurement.wires.iter().map(|wire| wire.cpu.0 as f64).sum::<f64>();
            // A client that polls does nothing else: it has time left.
            let polling = measurement.polling.map_or(0.0, |time| time.0 as f64);
            for (role, time) in &measurement.cpu {
                let polling = if *role == Role::Client { polling } else { 0.0 };
                *load.roles.entry(*role).or_default() += time.0 as f64 - polling;
            }
            let is_clients = |window: &CpuWindow| window.roles.contains(&Role::Client);
            let clients = measurement.cpus.iter().filter(|window| is_clients(window)).count();
            for window in &measurement.cpus {
                let polling = if is_clients(window) { polling / clients as f64 } else { 0.0 };
                let cpu = load.cpus.entry(window.cpu).or_default();
                cpu.roles.extend(&window.roles);
                cpu.available += window.total.since(window.steal).0 as f64;
                cpu.busy += (window.busy.0 as f64 - polling).max(0.0);
                cpu.interrupts += window.interrupts.0 as f64;
            }
        }
        load
    }

    /// `/proc/stat` counts in ticks, and process times from `/proc` do too.
    fn is_coarse(&self) -> bool {
        !self.is_whole && self.elapsed < FEWEST_TICKS * TICK
    }

    /// By ticks, or by the process times of the roles, which are exact.
    fn saturated_cpus(&self, has_router: bool) -> impl Iterator<Item = (f64, Bottleneck)> {
        self.cpus.values().filter(|cpu| !cpu.roles.is_empty()).filter_map(move |cpu| {
            let share = cpu.busy.max(self.of_roles(cpu)) / cpu.available;
            (share.is_finite() && share >= SATURATED).then(|| (share, self.busiest_on(cpu, has_router)))
        })
    }

    /// The role with most of this CPU's time.
    fn busiest_on(&self, cpu: &Cpu, has_router: bool) -> Bottleneck {
        let relay_has_process = self.roles.get(&Role::Relay).is_some_and(|time| *time > 0.0);
        if self.is_whole && self.own(cpu) < OWN * cpu.busy {
            return Bottleneck::Unknown;
        }
        if has_router && cpu.interrupts > cpu.busy / 2.0 && !relay_has_process {
            return Bottleneck::Path;
        }
        let busiest = cpu.roles.iter().max_by(|a, b| self.time_on_one(**a).total_cmp(&self.time_on_one(**b)));
        busiest.map_or(Bottleneck::Unknown, |role| Bottleneck::Role(*role))
    }

    fn of_roles(&self, cpu: &Cpu) -> f64 {
        cpu.roles.iter().map(|role| self.time_on_one(*role)).sum()
    }

    /// The most that the trials can have had of this CPU's time: interrupts may be part of process times.
    fn own(&self, cpu: &Cpu) -> f64 {
        cpu.interrupts + self.of_roles(cpu)
    }

    /// A role's process time on each of its CPUs.
    fn time_on_one(&self, role: Role) -> f64 {
        self.roles.get(&role).map_or(0.0, |time| time / self.cpus_of(role) as f64)
    }

    /// Roles on several CPUs that use as much time as their threads can, although no single CPU is saturated:
    /// the scheduler migrates threads.
    fn saturated_roles(&self, threads: u64) -> impl Iterator<Item = (f64, Bottleneck)> {
        self.roles.iter().filter_map(move |(role, time)| {
            let cpus = self.cpus_of(*role) as f64;
            let share = time / self.elapsed / cpus.min(threads.max(1) as f64);
            let alone = cpus > 1.0 || self.cpus.is_empty();
            (alone && share.is_finite() && share >= SATURATED).then_some((share, Bottleneck::Role(*role)))
        })
    }

    /// How many CPUs the role is pinned to; all of them if it is not pinned.
    fn cpus_of(&self, role: Role) -> usize {
        match self.cpus.values().filter(|cpu| cpu.roles.contains(&role)).count() {
            0 => self.cpus.len().max(1),
            pinned => pinned,
        }
    }
}

#[cfg(test)]
mod tests;
