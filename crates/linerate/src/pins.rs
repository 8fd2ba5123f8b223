//! Which role runs on which CPUs.

use linerate_contract::Role;
use std::collections::BTreeMap;

/// The flag of a cell whose roles had to share a CPU.
pub const SHARED: &str = "cpu-shared";

/// The flag of a cell whose roles have more threads than there are CPUs: the scheduler is part of what it measures.
pub const MORE_THREADS: &str = "more-threads-than-cpus";

/// Where the roles of a trial run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pins {
    /// An empty list: wherever the scheduler likes.
    pub cpus: BTreeMap<Role, Vec<u32>>,
    pub flags: Vec<&'static str>,
}

/// Gives each role that has processes its own CPUs, one for each of its threads. Where there are too few, nobody is
/// pinned, but for roles of a single thread: there the client keeps a CPU for itself, so that the instrument is not
/// slowed by what it measures, and the others share the rest.
#[must_use]
pub fn assign(cpus: &[u32], roles: &[Role], threads: usize) -> Pins {
    let mut order = roles.to_vec();
    order.sort();
    order.dedup();
    let nowhere = || order.iter().map(|role| (*role, Vec::new())).collect();
    let wanted = order.len() * threads.max(1);
    if threads > 1 && cpus.len() < wanted {
        return Pins { cpus: nowhere(), flags: vec![MORE_THREADS] };
    }
    if cpus.len() < 2 {
        let all = order.iter().map(|role| (*role, cpus.to_vec())).collect();
        return Pins { cpus: all, flags: if order.len() > 1 { vec![SHARED] } else { vec![] } };
    }
    if cpus.len() >= wanted {
        let own = order.iter().zip(cpus.chunks(threads.max(1)));
        return Pins { cpus: own.map(|(role, cpus)| (*role, cpus.to_vec())).collect(), flags: vec![] };
    }
    let pin = |role: &Role| match role {
        Role::Client => (*role, vec![cpus[0]]),
        _ => (*role, cpus[1..].to_vec()),
    };
    Pins { cpus: order.iter().map(pin).collect(), flags: vec![SHARED] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Role::{Client, Relay, Server};

    #[test]
    fn with_enough_cpus_everybody_is_alone() {
        let pins = assign(&[0, 1, 2, 3], &[Server, Relay, Client], 1);
        assert!(pins.flags.is_empty());
        assert_eq!(pins.cpus, BTreeMap::from([(Client, vec![0]), (Relay, vec![1]), (Server, vec![2])]));
    }

    #[test]
    fn with_two_cpus_the_client_is_alone_and_the_others_share() {
        let pins = assign(&[4, 6], &[Client, Relay, Server], 1);
        assert_eq!(pins.flags, [SHARED]);
        assert_eq!(pins.cpus, BTreeMap::from([(Client, vec![4]), (Relay, vec![6]), (Server, vec![6])]));
    }

    #[test]
    fn one_cpu_has_them_all() {
        let pins = assign(&[3], &[Client, Server], 1);
        assert_eq!((&pins.cpus[&Client], &pins.cpus[&Server]), (&vec![3], &vec![3]));
        assert_eq!(pins.flags, [SHARED]);
        assert!(assign(&[3], &[Client], 1).flags.is_empty());
    }

    #[test]
    fn threads_have_a_cpu_each_or_roam() {
        let pins = assign(&[0, 1, 2, 3], &[Client, Server], 2);
        assert_eq!(pins.cpus, BTreeMap::from([(Client, vec![0, 1]), (Server, vec![2, 3])]));
        assert!(pins.flags.is_empty());
        assert_eq!(assign(&[0, 1], &[Client], 2).cpus[&Client], [0, 1]);
        let crowded = assign(&[0, 1], &[Client, Server], 2);
        assert_eq!((crowded.cpus[&Server].len(), crowded.flags), (0, vec![MORE_THREADS]));
        assert_eq!(assign(&[0, 1], &[Client], 4).flags, [MORE_THREADS]);
    }
}
