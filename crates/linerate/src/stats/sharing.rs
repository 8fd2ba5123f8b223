//! How the two sides of a duet share the CPUs: by a rule that reads one solo trial of each cell, before the
//! pair's first unit.
//!
//! Side by side, noise cancels best, since both sides have the same nanoseconds. But a side that needs little
//! CPU time per operation also gets what the other leaves of a CPU, so the rates of unlike sides are biased.
//! In turns either side has the CPUs for itself, as in a solo trial (docs/method.md).

use crate::measurement::{Measurement, Sharing};
use linerate_contract::Role;

/// Up to this ratio of CPU times per operation, the rates of two sides side by side were those of solo
/// trials within their intervals.
const LIKE: f64 = 1.25;
/// Two sides that need no more of a CPU than this together do not take it from each other.
const ENOUGH: f64 = 1.1;
/// A role with less than this share of the CPU time decides nothing.
const MINOR: f64 = 0.1;

/// For two cells, from a trial of each.
#[must_use]
pub fn sharing(cells: [&Measurement; 2]) -> Sharing {
    let busiest: f64 = cells.iter().map(|cell| busiest(cell)).sum();
    if busiest <= ENOUGH || unlikeness(cells) <= LIKE { Sharing::Together } else { Sharing::Turns }
}

/// The largest share of a CPU that a role needed.
fn busiest(cell: &Measurement) -> f64 {
    let most = cell.cpu.values().map(|time| time.0).max().unwrap_or(0);
    most as f64 / cell.elapsed.0 as f64
}

/// The ratio of CPU times for the same work, of all roles or of one, whichever is farthest from 1. Infinite
/// where it is not known.
fn unlikeness(cells: [&Measurement; 2]) -> f64 {
    let [a, b] = cells;
    let has_bytes = a.bytes.0 > 0 && b.bytes.0 > 0;
    let work = |cell: &Measurement| if has_bytes { cell.bytes.0 } else { cell.operations } as f64;
    let total = |cell: &Measurement| cell.cpu.values().map(|time| time.0 as f64).sum::<f64>();
    let of = |cell: &Measurement, role: Role| cell.cpu.get(&role).map_or(0.0, |time| time.0 as f64);
    let is_major = |role: &Role| cells.iter().all(|cell| of(cell, *role) >= MINOR * total(cell));
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

    fn cell(operations: u64, client: u64, server: u64) -> Measurement {
        Measurement {
            elapsed: Nanos(1_000),
            operations,
            cpu: [(Role::Client, Nanos(client)), (Role::Server, Nanos(server))].into(),
            ..Measurement::default()
        }
    }

    #[test]
    fn cells_with_like_costs_run_side_by_side_and_others_in_turns() {
        assert_eq!(sharing([&cell(100, 900, 900), &cell(110, 900, 900)]), Sharing::Together);
        assert_eq!(sharing([&cell(100, 900, 900), &cell(140, 900, 900)]), Sharing::Turns);
        assert_eq!(sharing([&cell(140, 900, 900), &cell(100, 900, 900)]), Sharing::Turns);
    }

    #[test]
    fn one_unlike_role_is_enough() {
        assert_eq!(sharing([&cell(100, 500, 900), &cell(100, 900, 500)]), Sharing::Turns);
        assert_eq!(sharing([&cell(100, 10, 900), &cell(100, 20, 900)]), Sharing::Together, "a minor role");
    }

    #[test]
    fn cells_that_leave_the_cpus_to_each_other_run_side_by_side() {
        assert_eq!(sharing([&cell(100, 300, 300), &cell(500, 700, 700)]), Sharing::Together);
    }

    #[test]
    fn a_trial_without_work_or_times_decides_for_turns() {
        assert_eq!(sharing([&cell(0, 900, 900), &cell(100, 900, 900)]), Sharing::Turns);
        assert_eq!(sharing([&cell(100, 900, 900), &cell(100, 0, 900)]), Sharing::Turns);
    }
}
