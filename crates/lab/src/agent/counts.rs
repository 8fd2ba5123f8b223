//! Counts of the kernel about a lab's servers anyway: packets of their namespace, context switches, faults.

use super::process::Process;
use super::session::members;
use crate::protocol::ProcessId;
use linerate_model::Count;
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fs;

/// The counts of `/proc/net/snmp` and `/proc/net/netstat`, by protocol and name.
const OF_NETWORK: [(&str, &str, &str, Count); 5] = [
    ("snmp", "Tcp", "OutSegs", Count::Segments),
    ("snmp", "Tcp", "RetransSegs", Count::Retransmissions),
    ("snmp", "Udp", "OutDatagrams", Count::Datagrams),
    ("netstat", "TcpExt", "DelayedACKs", Count::DelayedAcks),
    ("netstat", "IpExt", "OutOctets", Count::Bytes),
];

/// All counts of the servers since they began; those that cannot be read are left out.
pub(super) fn of_servers(processes: &BTreeMap<ProcessId, Process>) -> BTreeMap<Count, u64> {
    read(&processes.values().map(|process| process.pid).collect::<Vec<_>>())
}

fn read(leaders: &[Pid]) -> BTreeMap<Count, u64> {
    let mut counts = BTreeMap::new();
    for leader in leaders {
        for (count, number) in members(*leader).iter().flatten().flat_map(|member| member.counts()) {
            *counts.entry(count).or_default() += number;
        }
    }
    // All are in one namespace of the network.
    let Some(first) = leaders.first() else { return counts };
    for (file, protocol, name, count) in OF_NETWORK {
        let text = fs::read_to_string(format!("/proc/{first}/net/{file}")).unwrap_or_default();
        counts.extend(of_network(&text, protocol, name).map(|number| (count, number)));
    }
    counts
}

/// The counts between two times.
pub(super) fn between(before: &BTreeMap<Count, u64>, after: BTreeMap<Count, u64>) -> BTreeMap<Count, u64> {
    let since = |(count, number): (Count, u64)| Some((count, number.saturating_sub(*before.get(&count)?)));
    after.into_iter().filter_map(since).collect()
}

/// A protocol has a line of names and one of numbers.
fn of_network(text: &str, protocol: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(':'));
    let place = lines.next()?.split_ascii_whitespace().position(|found| found == name)?;
    lines.next()?.split_ascii_whitespace().nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_found_by_its_protocol_and_name() {
        let text = "Udp: InDatagrams OutDatagrams\nUdp: 1 7\nTcp: InSegs OutSegs RetransSegs\nTcp: 4 5 6\n";
        assert_eq!(of_network(text, "Tcp", "OutSegs"), Some(5));
        assert_eq!(of_network(text, "Udp", "OutDatagrams"), Some(7));
        assert_eq!(of_network(text, "Tcp", "Missing"), None);
    }

    #[test]
    fn this_process_has_counts_that_grow() {
        let before = read(&[nix::unistd::getpid()]);
        let pages = vec![1_u8; 4 << 20];
        let counts = between(&before, read(&[nix::unistd::getpid()]));
        assert!(std::hint::black_box(pages).len() > 1 && counts[&Count::MinorFaults] > 0, "{counts:?}");
        assert!(counts.contains_key(&Count::VoluntarySwitches) && counts.contains_key(&Count::Segments));
    }
}
