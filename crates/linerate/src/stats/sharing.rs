//! How the two sides of a duet share the CPUs: by a rule that reads the pair's warm-up unit.
//!
//! Side by side, noise cancels best, since both sides have the same nanoseconds. But a side that needs little
//! CPU time per operation also gets what the other leaves of a CPU, so the rates of unlike sides are biased.
//! In turns either side has the CPUs for itself, as in a solo trial (docs/method.md). The rule looks at CPU
//! times for the same work, which are true in both ways, and not at rates.

use crate::measurement::{Sharing, SideWindow};
use linerate_contract::Role;

/// Up to this ratio of CPU times for the same work, the rates of two sides side by side were those of solo
/// trials within their intervals.
const LIKE: f64 = 1.25;
/// Two sides that used no more of a CPU than this together did not take it from each other.
const ENOUGH: f64 = 0.8;
/// A role with less than this share of the CPU time decides nothing.
const MINOR: f64 = 0.1;

/// From the sides of a unit that ran side by side.
#[must_use]
pub fn sharing(sides: &[SideWindow; 2]) -> Sharing {
    let busiest: f64 = sides.iter().map(busiest).sum();
    if busiest <= ENOUGH || unlikeness(sides) <= LIKE { Sharing::Together } else { Sharing::Turns }
}

/// The largest share of a CPU that a role needed.
fn busiest(side: &SideWindow) -> f64 {
    let most = side.cpu.values().map(|time| time.0).max().unwrap_or(0);
    most as f64 / side.elapsed.0 as f64
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
    let roles = [Role::Client, Role::Relay, Role::Server]
        .into_iter()
        .filter(is_major)
        .map(|role| of(a, role) / of(b, role));
    let ratios = roles.chain([total(a) / total(b)]).map(|ratio| ratio * work(b) / work(a));
    ratios
        .map(|ratio| ratio.max(1.0 / ratio))
        .fold(1.0, |most, ratio| if ratio.is_nan() { f64::INFINITY } else { f64::max(most, ratio) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Nanos;

    fn side(operations: u64, client: u64, server: u64) -> SideWindow {
        SideWindow {
            elapsed: Nanos(1_000),
            operations,
            cpu: [(Role::Client, Nanos(client)), (Role::Server, Nanos(server))].into(),
            ..SideWindow::default()
        }
    }

    #[test]
    fn sides_with_like_costs_run_side_by_side_and_others_in_turns() {
        assert_eq!(sharing(&[side(100, 480, 480), side(110, 480, 480)]), Sharing::Together);
        assert_eq!(sharing(&[side(100, 480, 480), side(140, 480, 480)]), Sharing::Turns);
        assert_eq!(sharing(&[side(140, 480, 480), side(100, 480, 480)]), Sharing::Turns);
    }

    #[test]
    fn one_unlike_role_is_enough() {
        assert_eq!(sharing(&[side(100, 300, 480), side(100, 480, 300)]), Sharing::Turns);
        assert_eq!(sharing(&[side(100, 10, 480), side(100, 20, 480)]), Sharing::Together, "a minor role");
    }

    #[test]
    fn sides_that_leave_the_cpus_to_each_other_run_side_by_side() {
        assert_eq!(sharing(&[side(100, 200, 200), side(500, 500, 500)]), Sharing::Together);
    }

    #[test]
    fn a_side_without_work_or_times_decides_for_turns() {
        assert_eq!(sharing(&[side(0, 480, 480), side(100, 480, 480)]), Sharing::Turns);
        assert_eq!(sharing(&[side(100, 480, 480), side(100, 0, 480)]), Sharing::Turns);
    }
}
