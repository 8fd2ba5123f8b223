//! How the two sides of a comparison share the CPUs: by a rule that reads the pair's warm-up unit.
//!
//! Side by side, noise cancels best, since both sides have the same nanoseconds. But a side that needs little
//! CPU time per operation also gets what the other leaves of a CPU, so the rates of unlike sides are biased.
//! In turns either side has the CPUs for itself, as in a solo trial (docs/method.md). The rule looks at CPU
//! times, which are true in both ways, and not at rates.

use linerate_contract::{Nanos, Role};
use linerate_model::LabFlag;
use linerate_model::{Measurement, Sharing, SideWindow};
use std::collections::BTreeMap;

/// Up to this ratio of CPU times for the same work, the rates of two sides side by side were those of solo
/// trials within their intervals.
const LIKE: f64 = 1.25;
/// Two sides whose roles used no more of a CPU than this, all together, did not take it from each other. All
/// roles count, since two of them may share a CPU: nginx as a proxy and its server filled one, and the other
/// side, which had 1 % of it, waited for a tick of the scheduler (4 ms) before each response.
const ENOUGH: f64 = 0.8;
/// A role with less than this share of the CPU time decides nothing.
const MINOR: f64 = 0.1;

/// By which factors the busiest roles of two cells that are alike may differ in their share of a CPU.
#[derive(Debug, Clone, Copy)]
pub struct Likeness {
    /// In trials alone. A cell that waits more has, side by side, more of its CPU in use than alone: iperf,
    /// busy for 85 %, beside Asio, busy for 99 %, had 1.13 of its rate, and 0.78 alone.
    alone: f64,
    /// Side by side. Either side should get the same of what is scarce: Asio's client, which waited for its
    /// socket now and then, got a tenth less of its CPU than iperf's beside it, and so a tenth less of the
    /// rate.
    here: f64,
}

impl Likeness {
    /// Equal commands differ by up to 1.14 alone and 1.05 side by side on a noisy machine.
    pub const OF_COMMANDS: Self = Self { alone: 1.15, here: 1.1 };
    /// Builds of one system wait alike. Of equal ones, 1.12 side by side and 1.6 in short trials alone were
    /// seen on a noisy machine, and turns made the noise of their units five times as large.
    pub const OF_BUILDS: Self = Self { alone: f64::INFINITY, here: f64::INFINITY };
}

/// From the sides of a unit that ran side by side, and a trial of each cell alone.
///
/// Two roles of one side on the same CPU keep it busy by turns, and the kernel lets a side that wakes up wait
/// for its next tick: of two equal sides of HAProxy and its server on one CPU, one had 1.0 to 43 times the
/// operations of the other in half a second.
pub fn sharing(sides: &[SideWindow; 2], alone: [&Measurement; 2], likeness: Likeness) -> Sharing {
    let leaves_room = sides.iter().map(used).sum::<f64>() <= ENOUGH;
    let is_even = |[a, b]: [f64; 2], factor: f64| a.max(b) <= factor * a.min(b);
    let busiest_alone = alone.map(|alone| busiest(&alone.cpu, |role| time_of(alone, role)));
    let busiest_here = [0, 1].map(|side: usize| busiest(&sides[side].cpu, |_| sides[side].elapsed.0 as f64));
    let is_alike = unlikeness(sides) <= LIKE
        && is_even(busiest_alone, likeness.alone)
        && is_even(busiest_here, likeness.here);
    let is_crowded = alone.iter().any(|alone| alone.flags.contains(&LabFlag::CpuShared));
    if leaves_room || is_alike && !is_crowded { Sharing::Together } else { Sharing::Turns }
}

/// The share of a CPU that the busiest role used, of the time that it could have.
fn busiest(cpu: &BTreeMap<Role, Nanos>, time: impl Fn(Role) -> f64) -> f64 {
    cpu.iter().map(|(role, used)| used.0 as f64 / time(*role)).fold(0.0, f64::max)
}

/// The window of a trial without what the hypervisor took from the CPUs of a role.
fn time_of(alone: &Measurement, role: Role) -> f64 {
    let own = || alone.cpus.iter().filter(|cpu| cpu.roles.contains(&role));
    let [total, stolen] = own()
        .fold([0.0, 0.0], |[total, stolen], cpu| [total + cpu.total.0 as f64, stolen + cpu.steal.0 as f64]);
    alone.elapsed.0 as f64 * if total > 0.0 { 1.0 - stolen / total } else { 1.0 }
}

/// CPU time of all roles, as a share of the window.
fn used(side: &SideWindow) -> f64 {
    side.cpu.values().map(|time| time.0 as f64).sum::<f64>() / side.elapsed.0 as f64
}

/// The ratio of CPU times for the same work, of all roles or of one, whichever is farthest from 1. Infinite
/// where it is not known.
fn unlikeness(sides: &[SideWindow; 2]) -> f64 {
    let [a, b] = sides;
    let has_bytes = a.bytes.0 > 0 && b.bytes.0 > 0;
    let work = |side: &SideWindow| if has_bytes { side.bytes.0 } else { side.operations } as f64;
    let total = |side: &SideWindow| side.cpu.values().map(|time| time.0 as f64).sum::<f64>();
    let of = |side: &SideWindow, role: Role| side.cpu.get(&role).map_or(0.0, |time| time.0 as f64);
    let is_major = |role: &Role| sides.iter().all(|side| of(side, *role) >= MINOR * total(side));
    let share = |role: Role| sides.iter().map(|side| of(side, role) / side.elapsed.0 as f64).sum::<f64>();
    let roles = [Role::Client, Role::Relay, Role::Server]
        .into_iter()
        .filter(|role| is_major(role) && share(*role) > ENOUGH)
        .map(|role| of(a, role) / of(b, role));
    let ratios = roles.chain([total(a) / total(b)]).map(|ratio| ratio * work(b) / work(a));
    ratios
        .map(|ratio| ratio.max(1.0 / ratio))
        .fold(1.0, |most, ratio| if ratio.is_nan() { f64::INFINITY } else { f64::max(most, ratio) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::CpuWindow;

    fn side(operations: u64, client: u64, server: u64) -> SideWindow {
        SideWindow {
            elapsed: Nanos(1_000),
            operations,
            cpu: [(Role::Client, Nanos(client)), (Role::Server, Nanos(server))].into(),
            ..SideWindow::default()
        }
    }

    /// Alone both cells fill a CPU.
    fn sharing(sides: &[SideWindow; 2]) -> Sharing {
        super::sharing(sides, [&alone(990), &alone(990)], Likeness::OF_COMMANDS)
    }

    fn alone(server: u64) -> Measurement {
        let cpu = [(Role::Client, Nanos(500)), (Role::Server, Nanos(server))].into();
        Measurement { elapsed: Nanos(1_000), cpu, ..Measurement::default() }
    }

    #[test]
    fn sides_with_like_costs_run_side_by_side_and_others_in_turns() {
        assert_eq!(sharing(&[side(100, 480, 480), side(110, 480, 480)]), Sharing::Together);
        assert_eq!(sharing(&[side(100, 480, 480), side(140, 480, 480)]), Sharing::Turns);
        assert_eq!(sharing(&[side(140, 480, 480), side(100, 480, 480)]), Sharing::Turns);
    }

    #[test]
    fn one_unlike_role_is_enough() {
        assert_eq!(sharing(&[side(100, 350, 490), side(100, 490, 350)]), Sharing::Turns);
        assert_eq!(sharing(&[side(100, 10, 480), side(100, 20, 480)]), Sharing::Together, "a minor role");
        let client = [side(100, 200, 480), side(100, 300, 480)];
        assert_eq!(sharing(&client), Sharing::Together, "clients with time left");
    }

    #[test]
    fn sides_that_leave_the_cpus_to_each_other_run_side_by_side() {
        assert_eq!(sharing(&[side(100, 100, 100), side(500, 300, 300)]), Sharing::Together);
    }

    /// Seen with nginx as a proxy beside a direct path.
    #[test]
    fn a_side_that_got_almost_nothing_of_a_shared_cpu_decides_for_turns() {
        assert_eq!(sharing(&[side(4425, 420, 970), side(42, 4, 2)]), Sharing::Turns);
    }

    #[test]
    fn a_side_without_work_or_times_decides_for_turns() {
        assert_eq!(sharing(&[side(0, 480, 480), side(100, 480, 480)]), Sharing::Turns);
        assert_eq!(sharing(&[side(100, 480, 480), side(100, 0, 480)]), Sharing::Turns);
    }

    #[test]
    fn a_cell_that_waits_alone_and_one_that_does_not_take_turns() {
        let alike = [side(100, 300, 480), side(100, 300, 480)];
        let decide = |a, b| super::sharing(&alike, [&alone(a), &alone(b)], Likeness::OF_COMMANDS);
        assert_eq!(decide(980, 990), Sharing::Together);
        assert_eq!(decide(700, 720), Sharing::Together);
        assert_eq!(decide(850, 990), Sharing::Turns);
        let builds = super::sharing(&alike, [&alone(850), &alone(990)], Likeness::OF_BUILDS);
        assert_eq!(builds, Sharing::Together);
    }

    #[test]
    fn time_that_the_hypervisor_took_is_no_waiting() {
        let cpu = |steal| CpuWindow {
            roles: vec![Role::Server],
            total: Nanos(1_000),
            steal: Nanos(steal),
            ..CpuWindow::default()
        };
        let alike = [side(100, 300, 480), side(100, 300, 480)];
        let decide = |stolen| {
            let one = Measurement { cpus: vec![cpu(stolen)], ..alone(850) };
            super::sharing(&alike, [&one, &alone(990)], Likeness::OF_COMMANDS)
        };
        assert_eq!((decide(0), decide(140)), (Sharing::Turns, Sharing::Together));
    }

    #[test]
    fn a_side_that_got_less_of_the_full_cpu_decides_for_turns() {
        assert_eq!(sharing(&[side(100, 480, 300), side(105, 500, 300)]), Sharing::Together);
        assert_eq!(sharing(&[side(100, 440, 300), side(115, 500, 300)]), Sharing::Turns);
    }

    #[test]
    fn cells_with_two_roles_on_a_cpu_take_turns() {
        let crowded = || Measurement { flags: vec![LabFlag::CpuShared], ..alone(990) };
        let alike = [side(100, 300, 480), side(100, 300, 480)];
        let sharing = super::sharing(&alike, [&crowded(), &crowded()], Likeness::OF_BUILDS);
        assert_eq!(sharing, Sharing::Turns);
    }
}
