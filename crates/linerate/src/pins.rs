//! Which role runs on which CPUs.

use linerate_contract::Role;
use std::collections::BTreeMap;

/// The flag of a cell whose roles had to share a CPU.
pub const SHARED: &str = "cpu-shared";

/// Gives each role that has processes its own CPU. Where there are too few, the client keeps one for itself, so
/// that the instrument is not slowed by what it measures, and the others share the rest; true if anybody shares.
#[must_use]
pub fn assign(cpus: &[u32], roles: &[Role]) -> (BTreeMap<Role, Vec<u32>>, bool) {
    let mut order = roles.to_vec();
    order.sort();
    order.dedup();
    if cpus.len() < 2 {
        return (order.iter().map(|role| (*role, Vec::new())).collect(), order.len() > 1);
    }
    if cpus.len() >= order.len() {
        return (order.iter().zip(cpus).map(|(role, cpu)| (*role, vec![*cpu])).collect(), false);
    }
    let pin = |role: &Role| match role {
        Role::Client => (*role, vec![cpus[0]]),
        _ => (*role, cpus[1..].to_vec()),
    };
    (order.iter().map(pin).collect(), true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Role::{Client, Relay, Server};

    #[test]
    fn with_enough_cpus_everybody_is_alone() {
        let (pins, shared) = assign(&[0, 1, 2, 3], &[Server, Relay, Client]);
        assert!(!shared);
        assert_eq!(pins, BTreeMap::from([(Client, vec![0]), (Relay, vec![1]), (Server, vec![2])]));
    }

    #[test]
    fn with_two_cpus_the_client_is_alone_and_the_others_share() {
        let (pins, shared) = assign(&[4, 6], &[Client, Relay, Server]);
        assert!(shared);
        assert_eq!(pins, BTreeMap::from([(Client, vec![4]), (Relay, vec![6]), (Server, vec![6])]));
    }

    #[test]
    fn with_one_cpu_nobody_is_pinned() {
        assert_eq!(assign(&[0], &[Client, Server]).0[&Client], Vec::<u32>::new());
        assert!(assign(&[0], &[Client, Server]).1);
    }
}
