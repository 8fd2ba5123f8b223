//! CPU pinning of roles.

use crate::lab::hosts::CPUS_OF_HOST;
use crate::measurement::LabFlag;
use linerate_contract::Role;
use std::collections::{BTreeMap, BTreeSet};

/// The CPUs of a trial's roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pins {
    /// CPU numbers by role; an empty list: not pinned.
    pub cpus: BTreeMap<Role, Vec<u32>>,
    pub flags: Vec<LabFlag>,
}

impl Pins {
    /// True if no other role has one of the role's CPUs.
    pub fn has_own(&self, role: Role) -> bool {
        let cpus = self.cpus.get(&role).map_or(&[][..], Vec::as_slice);
        let mut others = self.cpus.iter().filter(|(other, _)| **other != role).flat_map(|(_, cpus)| cpus);
        !cpus.is_empty() && !others.any(|cpu| cpus.contains(cpu))
    }
}

/// As [`assign`], for roles on several hosts, each by itself.
pub fn assign_by_host(cpus: &[u32], roles: &[Role], threads: usize, host: impl Fn(Role) -> usize) -> Pins {
    let mut all = Pins { cpus: BTreeMap::new(), flags: Vec::new() };
    let hosts: BTreeSet<usize> = roles.iter().map(|role| host(*role)).collect();
    for index in hosts {
        let cpus: Vec<u32> =
            cpus.iter().copied().filter(|cpu| (cpu / CPUS_OF_HOST) as usize == index).collect();
        let roles: Vec<Role> = roles.iter().copied().filter(|role| host(*role) == index).collect();
        let pins = assign(&cpus, &roles, threads);
        all.cpus.extend(pins.cpus);
        all.flags.extend(pins.flags);
    }
    all.flags.dedup();
    all
}

/// Assigns each role with processes its own CPUs, one per thread. With too few CPUs no role is pinned, except
/// roles with a single thread: then the client has its own CPU, so that the systems under test do not slow it
/// down, and the others share the rest.
pub fn assign(cpus: &[u32], roles: &[Role], threads: usize) -> Pins {
    let mut order = roles.to_vec();
    order.sort();
    order.dedup();
    let unpinned = || order.iter().map(|role| (*role, Vec::new())).collect();
    let wanted = order.len() * threads.max(1);
    if threads > 1 && cpus.len() < wanted {
        return Pins { cpus: unpinned(), flags: vec![LabFlag::MoreThreadsThanCpus] };
    }
    if cpus.len() < 2 {
        let all = order.iter().map(|role| (*role, cpus.to_vec())).collect();
        return Pins { cpus: all, flags: if order.len() > 1 { vec![LabFlag::CpuShared] } else { vec![] } };
    }
    if cpus.len() >= wanted {
        let own = order.iter().zip(cpus.chunks(threads.max(1)));
        return Pins { cpus: own.map(|(role, cpus)| (*role, cpus.to_vec())).collect(), flags: vec![] };
    }
    let pin = |role: &Role| match role {
        Role::Client => (*role, vec![cpus[0]]),
        _ => (*role, cpus[1..].to_vec()),
    };
    Pins { cpus: order.iter().map(pin).collect(), flags: vec![LabFlag::CpuShared] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Role::{Client, Relay, Server};

    #[test]
    fn with_enough_cpus_each_role_has_its_own() {
        let pins = assign(&[0, 1, 2, 3], &[Server, Relay, Client], 1);
        assert!(pins.flags.is_empty());
        assert_eq!(pins.cpus, BTreeMap::from([(Client, vec![0]), (Relay, vec![1]), (Server, vec![2])]));
    }

    #[test]
    fn with_two_cpus_the_client_has_one_and_the_other_roles_share_one() {
        let pins = assign(&[4, 6], &[Client, Relay, Server], 1);
        assert_eq!(pins.flags, [LabFlag::CpuShared]);
        assert_eq!(pins.cpus, BTreeMap::from([(Client, vec![4]), (Relay, vec![6]), (Server, vec![6])]));
    }

    #[test]
    fn a_single_cpu_is_shared_by_all_roles() {
        let pins = assign(&[3], &[Client, Server], 1);
        assert_eq!((&pins.cpus[&Client], &pins.cpus[&Server]), (&vec![3], &vec![3]));
        assert_eq!(pins.flags, [LabFlag::CpuShared]);
        assert!(assign(&[3], &[Client], 1).flags.is_empty());
    }

    #[test]
    fn roles_on_different_hosts_do_not_share_a_cpu() {
        let far = CPUS_OF_HOST;
        let host = |role: Role| usize::from(role != Client);
        let pins = assign_by_host(&[0, 1, far, far + 1], &[Client, Relay, Server], 1, host);
        let own = BTreeMap::from([(Client, vec![0]), (Relay, vec![far]), (Server, vec![far + 1])]);
        assert_eq!((pins.cpus, pins.flags.len()), (own, 0));
        let alone = assign_by_host(&[4, 6], &[Client, Server], 1, |_| 0);
        assert_eq!(alone, assign(&[4, 6], &[Client, Server], 1));
    }

    #[test]
    fn threads_have_a_cpu_each_or_are_not_pinned() {
        let pins = assign(&[0, 1, 2, 3], &[Client, Server], 2);
        assert_eq!(pins.cpus, BTreeMap::from([(Client, vec![0, 1]), (Server, vec![2, 3])]));
        assert!(pins.flags.is_empty());
        assert_eq!(assign(&[0, 1], &[Client], 2).cpus[&Client], [0, 1]);
        let crowded = assign(&[0, 1], &[Client, Server], 2);
        assert_eq!((crowded.cpus[&Server].len(), crowded.flags), (0, vec![LabFlag::MoreThreadsThanCpus]));
        assert_eq!(assign(&[0, 1], &[Client], 4).flags, [LabFlag::MoreThreadsThanCpus]);
    }
}
