//! The state that must not change: the host and its processes.

use crate::{MARK, name_of_test};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// State that must be equal before and after: the host's name, addresses, routes, rules, network sysctls,
/// mounts.
pub(crate) fn host_state() -> String {
    let mut state = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    for file in ["/proc/net/dev", "/proc/net/route", "/proc/net/ipv6_route", "/proc/net/if_inet6"] {
        let text = fs::read_to_string(file).unwrap_or_default();
        // Only the names of links; their counters change.
        let columns = if file == "/proc/net/dev" { 1 } else { usize::MAX };
        let lines = text.lines().map(|l| l.split_whitespace().take(columns).collect::<Vec<_>>().join(" "));
        state += &format!("{file}\n{}\n", lines.collect::<Vec<_>>().join("\n"));
    }
    state += &fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for (program, args) in [("ip", &["addr"][..]), ("ip", &["netns", "list"]), ("nft", &["list", "ruleset"])]
    {
        if let Ok(out) = Command::new(program).args(args).output() {
            let text = String::from_utf8_lossy(&out.stdout);
            let steady = text.lines().filter(|line| !line.contains("valid_lft"));
            state += &format!("{program}\n{}\n", steady.collect::<Vec<_>>().join("\n"));
        }
    }
    let names = ["ip_forward", "ip_local_port_range", "tcp_tw_reuse", "ip_unprivileged_port_start"];
    for name in names.iter().chain(&["tcp_congestion_control", "tcp_rmem", "tcp_wmem", "conf/all/rp_filter"])
    {
        state += &fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
    }
    state
}

/// Pids of linerate as this test started it, of its agents, and of all processes in their pid namespaces.
pub(crate) fn lab_processes() -> BTreeSet<String> {
    let link = |pid: &str, name: &str| fs::read_link(format!("/proc/{pid}/{name}")).ok();
    let mark = format!("{MARK}={}", name_of_test());
    let is_of_test = |pid: &str| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    let pids = fs::read_dir("/proc").unwrap().flatten().map(|e| e.file_name().to_string_lossy().into_owned());
    let pids: Vec<String> = pids.filter(|name| name.bytes().all(|b| b.is_ascii_digit())).collect();
    let is_linerate = |pid: &&String| {
        let exe = link(pid, "exe");
        exe.is_some_and(|exe| exe == Path::new(env!("CARGO_BIN_EXE_linerate"))) && is_of_test(pid)
    };
    let own = link("self", "ns/pid");
    let labs: BTreeSet<_> = pids
        .iter()
        .filter(is_linerate)
        .map(|pid| link(pid, "ns/pid"))
        .filter(|namespace| *namespace != own)
        .collect();
    let is_ours = |pid: &&String| is_linerate(pid) || labs.contains(&link(pid, "ns/pid"));
    pids.iter().filter(is_ours).cloned().collect()
}

/// Waits until all processes of the lab that were started since `before` have ended.
pub(crate) fn assert_all_gone(before: &BTreeSet<String>) {
    for _ in 0..100 {
        if lab_processes().is_subset(before) {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("left behind: {:?}", lab_processes().difference(before).collect::<Vec<_>>());
}
