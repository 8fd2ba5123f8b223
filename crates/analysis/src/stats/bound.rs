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

/// What bound all measurements of a cell. `None` without CPU times.
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

/// What processes of others were seen to use, by their own clocks: the mean. `None` where a measurement
/// does not know it.
fn seen<'a>(measurements: impl Iterator<Item = &'a Measurement>) -> Option<f64> {
    let shares: Vec<f64> = measurements.map(|measurement| measurement.others).collect::<Option<_>>()?;
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

/// The share of the lab's CPU time that went to processes outside of the trials, if it is more than 10 %: what
/// these were seen to use. Where they were not seen, the difference of the CPUs' ticks and the trials' own
/// clocks; process times include some interrupts that are counted separately too. `None` also where the
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
mod tests {
    use super::*;
    use linerate_contract::Nanos;
    use linerate_contract::Role::{Client, Relay, Server};

    fn cpu(cpu: u32, roles: &[Role], busy: u64, interrupts: u64) -> CpuWindow {
        let nanos = |percent: u64| Nanos(percent * 10_000_000);
        let (busy, interrupts) = (nanos(busy), nanos(interrupts));
        CpuWindow { cpu, roles: roles.to_vec(), total: nanos(100), busy, interrupts, steal: Nanos::ZERO }
    }

    fn second(process_percent: &[(Role, u64)], cpus: Vec<CpuWindow>) -> Measurement {
        let cpu =
            process_percent.iter().map(|(role, percent)| (*role, Nanos(percent * 10_000_000))).collect();
        Measurement { elapsed: Nanos(1_000_000_000), cpu, cpus, ..Measurement::default() }
    }

    fn bottleneck(m: &Measurement, threads: u64, has_router: bool) -> Option<Bottleneck> {
        bound([m], Placement { threads, has_router, spinning: &[] })
    }

    #[test]
    fn the_role_on_the_saturated_cpu_is_named() {
        let m = second(
            &[(Client, 40), (Relay, 80), (Server, 30)],
            vec![cpu(0, &[Client], 60, 15), cpu(1, &[Relay], 97, 15), cpu(2, &[Server], 50, 10)],
        );
        assert_eq!(bottleneck(&m, 1, true), Some(Bottleneck::Role(Relay)));
    }

    #[test]
    fn of_roles_that_share_a_cpu_the_one_with_most_time_is_named() {
        let m = second(
            &[(Client, 40), (Relay, 30), (Server, 50)],
            vec![cpu(0, &[Client], 60, 15), cpu(1, &[Relay, Server], 99, 19)],
        );
        assert_eq!(bottleneck(&m, 1, true), Some(Bottleneck::Role(Server)));
    }

    #[test]
    fn interrupts_without_a_relay_process_are_the_path() {
        let cpus = || vec![cpu(0, &[Client], 95, 60), cpu(1, &[Server], 50, 20)];
        let forwarded = second(&[(Client, 35), (Server, 30)], cpus());
        assert_eq!(bottleneck(&forwarded, 1, true), Some(Bottleneck::Path));
        assert_eq!(bottleneck(&forwarded, 1, false), Some(Bottleneck::Role(Client)), "there is no router");
        let proxied = second(&[(Client, 35), (Relay, 20), (Server, 30)], cpus());
        assert_eq!(bottleneck(&proxied, 1, true), Some(Bottleneck::Role(Client)));
    }

    #[test]
    fn process_times_show_a_busy_role_where_ticks_miss_it() {
        let m =
            second(&[(Client, 40), (Server, 96)], vec![cpu(0, &[Client], 60, 5), cpu(1, &[Server], 80, 5)]);
        assert_eq!(bottleneck(&m, 1, false), Some(Bottleneck::Role(Server)));
    }

    #[test]
    fn a_few_ticks_of_a_clock_that_counts_ticks_are_unknown() {
        let mut m = second(&[(Client, 10)], vec![cpu(0, &[Client], 12, 1)]);
        m.flags = vec![LabFlag::CpuFromProc];
        assert_eq!(bottleneck(&m, 1, false), Some(Bottleneck::Waiting));
        m.elapsed = Nanos(100_000_000);
        assert_eq!(bottleneck(&m, 1, false), Some(Bottleneck::Unknown));
    }

    #[test]
    fn a_tie_names_the_client() {
        let m =
            second(&[(Client, 90), (Server, 93)], vec![cpu(0, &[Client], 94, 4), cpu(1, &[Server], 97, 4)]);
        assert_eq!(bottleneck(&m, 1, true), Some(Bottleneck::Role(Client)));
        let clear =
            second(&[(Client, 88), (Server, 99)], vec![cpu(0, &[Client], 91, 3), cpu(1, &[Server], 100, 1)]);
        assert_eq!(bottleneck(&clear, 1, true), Some(Bottleneck::Role(Server)));
    }

    #[test]
    fn a_client_that_polls_until_an_operation_is_due_has_time_left() {
        let cpus = vec![cpu(0, &[Client], 100, 5), cpu(1, &[Server], 50, 10)];
        let m = second(&[(Client, 98), (Server, 45)], cpus);
        assert_eq!(bottleneck(&m, 1, false), Some(Bottleneck::Role(Client)));
        let polls = |percent: u64| Measurement { polling: Some(Nanos(percent * 10_000_000)), ..m.clone() };
        assert_eq!(bottleneck(&polls(60), 1, false), Some(Bottleneck::Waiting));
        assert_eq!(bottleneck(&polls(2), 1, false), Some(Bottleneck::Role(Client)));
    }

    #[test]
    fn a_role_that_spins_is_named_as_such_and_only_where_no_other_is_busy() {
        let spinning = Placement { threads: 1, has_router: false, spinning: &[Client] };
        let busy = |server| {
            let cpus = vec![cpu(0, &[Client], 99, 1), cpu(1, &[Server], server, 1)];
            second(&[(Client, 99), (Server, server)], cpus)
        };
        assert_eq!(bound([&busy(40)], spinning), Some(Bottleneck::Spinning));
        assert_eq!(bound([&busy(95)], spinning), Some(Bottleneck::Role(Server)));
        assert_eq!(bottleneck(&busy(40), 1, false), Some(Bottleneck::Role(Client)));
    }

    #[test]
    fn a_thread_that_migrates_over_four_cpus_is_found() {
        let migrating = |percent| {
            let four = (0..4).map(|i| cpu(i, &[Server], 25, 1)).collect();
            second(&[(Client, 10), (Server, percent)], four)
        };
        assert_eq!(bottleneck(&migrating(96), 1, true), Some(Bottleneck::Role(Server)));
        assert_eq!(bottleneck(&migrating(96), 4, true), Some(Bottleneck::Waiting));
    }

    #[test]
    fn what_neither_side_of_a_duet_used_is_of_strangers() {
        let side = |server| {
            let cpus = vec![cpu(0, &[Client], 40, 10), cpu(1, &[Server], 100, 10)];
            second(&[(Client, 10), (Server, server)], cpus)
        };
        let share = |a: &Measurement, b: &Measurement| strangers([a, b]);
        let found = share(&side(25), &side(25)).unwrap();
        assert!((found - 0.25).abs() < 1e-9, "1.2 s busy without interrupts, 0.7 s of the sides: {found}");
        assert_eq!(share(&side(70), &side(70)), Some(0.0));
        let coarse = Measurement { flags: vec![LabFlag::CpuFromProc], ..side(25) };
        assert_eq!(share(&coarse, &side(25)), None);
        assert_eq!(share(&Measurement::default(), &Measurement::default()), None);
    }

    #[test]
    fn what_others_were_seen_to_use_is_known_better_than_by_ticks() {
        let side = |others| {
            let cpus = vec![cpu(0, &[Client], 40, 10), cpu(1, &[Server], 100, 10)];
            Measurement { others, ..second(&[(Client, 10), (Server, 25)], cpus) }
        };
        assert_eq!(strangers([&side(Some(0.02)), &side(Some(0.04))]), Some(0.03));
        assert_eq!(disturbance([&side(Some(0.02))]), None);
        assert_eq!(disturbance([&side(Some(0.3)), &side(Some(0.1))]), Some(0.2));
        let by_ticks = strangers([&side(None), &side(Some(0.02))]).unwrap();
        assert!(by_ticks > 0.2, "{by_ticks}");
    }

    #[test]
    fn steal_is_not_available_time() {
        let mut half = cpu(0, &[Server], 48, 1);
        half.steal = Nanos(500_000_000);
        assert_eq!(bottleneck(&second(&[(Server, 47)], vec![half]), 1, true), Some(Bottleneck::Role(Server)));
    }

    #[test]
    fn idle_cpus_are_nothing_and_missing_times_are_none() {
        let idle = second(&[(Client, 10)], vec![cpu(0, &[Client], 12, 1)]);
        assert_eq!(bottleneck(&idle, 1, true), Some(Bottleneck::Waiting));
        assert_eq!(bottleneck(&Measurement::default(), 1, true), None);
        let busy_elsewhere = second(&[(Client, 10)], vec![cpu(0, &[Client], 12, 1), cpu(1, &[], 99, 1)]);
        assert_eq!(bottleneck(&busy_elsewhere, 1, true), Some(Bottleneck::Waiting));
    }

    #[test]
    fn no_role_is_named_for_cpu_time_of_other_processes() {
        let crowded = || vec![cpu(0, &[Client], 100, 8), cpu(1, &[Relay, Server], 99, 7)];
        let mut m = second(&[(Client, 11), (Relay, 42), (Server, 6)], crowded());
        assert_eq!(bottleneck(&m, 1, true), Some(Bottleneck::Unknown), "others had half of the relay's CPU");
        assert!(
            disturbance([&m]).is_some_and(|share| (share - 0.625).abs() < 1e-9),
            "{:?}",
            disturbance([&m])
        );
        m.cpu = BTreeMap::from([(Client, Nanos(110_000_000)), (Relay, Nanos(750_000_000))]);
        assert_eq!(bottleneck(&m, 1, true), Some(Bottleneck::Role(Relay)), "it had nearly all of its CPU");
        m.flags = vec![LabFlag::CpuFromProc];
        assert_eq!(bottleneck(&m, 1, true), Some(Bottleneck::Role(Client)), "the client's share is unknown");
        assert_eq!(disturbance([&m]), None);
    }

    #[test]
    fn a_quiet_machine_is_not_disturbed() {
        let m =
            second(&[(Client, 40), (Server, 60)], vec![cpu(0, &[Client], 60, 15), cpu(1, &[Server], 80, 15)]);
        assert_eq!(disturbance([&m]), None);
        assert_eq!(disturbance([&Measurement::default()]), None);
    }

    #[test]
    fn process_times_alone_are_sufficient() {
        assert_eq!(
            bottleneck(&second(&[(Client, 95), (Server, 30)], vec![]), 1, true),
            Some(Bottleneck::Role(Client))
        );
    }
}
