//! Facts about the machine that influence results.

use linerate_model::Host;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Files with one fact each; files that this kernel lacks are left out.
const FACTS: [(&str, &str); 9] = [
    ("clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    ("turbo off", "/sys/devices/system/cpu/intel_pstate/no_turbo"),
    ("smt", "/sys/devices/system/cpu/smt/control"),
    ("rmem_max", "/proc/sys/net/core/rmem_max"),
    ("wmem_max", "/proc/sys/net/core/wmem_max"),
    ("default_qdisc", "/proc/sys/net/core/default_qdisc"),
    ("bpf_jit_enable", "/proc/sys/net/core/bpf_jit_enable"),
    ("perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid"),
];

/// The lab's links: veth(4) with the kernel's offloads. Their MTU belongs to the path of each suite.
const LINKS: &str = "veth, kernel default offloads";

/// Facts about this machine that can be read without root.
pub fn facts(privileges: &str) -> Host {
    let mut facts: BTreeMap<String, String> =
        FACTS.iter().filter_map(|(name, file)| Some(((*name).to_owned(), read(file)?))).collect();
    facts.insert("links".into(), LINKS.into());
    facts.insert("mitigations".into(), mitigations());
    facts.insert("virtualised".into(), if has_cpu_flag("hypervisor") { "yes" } else { "no" }.into());
    if let Some(system) = os_name() {
        facts.insert("system".into(), system);
    }
    Host {
        name: name(),
        kernel: read("/proc/sys/kernel/osrelease").unwrap_or_default(),
        cpu_model: cpu_info("model name").unwrap_or_else(|| std::env::consts::ARCH.into()),
        cpus: u32::try_from(usable_cpus().len()).unwrap_or(u32::MAX),
        memory_bytes: memory_bytes(),
        privileges: privileges.into(),
        facts,
    }
}

/// The variable whose value is this machine's name in reports, in place of its host name.
pub const NAME: &str = "LINERATE_HOST";

fn name() -> String {
    let given = std::env::var(NAME).ok().filter(|name| !name.trim().is_empty());
    let of_kernel = || read("/proc/sys/kernel/hostname").unwrap_or_default();
    given.map_or_else(of_kernel, |name| name.trim().to_owned())
}

/// The numbers of the CPUs that this process may run on.
pub fn usable_cpus() -> Vec<u32> {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).map(|cpu| cpu as u32).collect()
}

fn read(file: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn cpu_info(key: &str) -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn has_cpu_flag(flag: &str) -> bool {
    cpu_info("flags").is_some_and(|flags| flags.split(' ').any(|f| f == flag))
}

fn memory_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Each vulnerability of the CPU with the kernel's mitigation, in one line.
fn mitigations() -> String {
    let mut all: Vec<String> = fs::read_dir("/sys/devices/system/cpu/vulnerabilities")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let state = read(entry.path().to_str()?)?;
            (state != "Not affected").then(|| format!("{}: {state}", entry.file_name().to_string_lossy()))
        })
        .collect();
    all.sort();
    if all.is_empty() { "none".into() } else { all.join("; ") }
}

fn os_name() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

/// True if the scheduler groups processes by session (sched(7), autogroup): the switch is on, and this
/// process is in the root of the cpu controller. In another cgroup the kernel does not group by session.
pub fn has_autogroup() -> bool {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    read("/proc/sys/kernel/sched_autogroup_enabled").as_deref() == Some("1") && is_in_root_task_group(&groups)
}

/// Lines of `/proc/PID/cgroup`, cgroups(7): `ID:CONTROLLERS:PATH`; version 2 lists no controllers.
fn is_in_root_task_group(groups: &str) -> bool {
    groups.lines().all(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let version_1 = controllers.split(',').any(|name| name == "cpu");
        let weight = || Path::new("/sys/fs/cgroup").join(path.trim_start_matches('/')).join("cpu.weight");
        path == "/" || !(version_1 || (controllers.is_empty() && weight().exists()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_outside_of_the_root_of_the_cpu_controller_is_not_grouped_by_session() {
        assert!(is_in_root_task_group("4:memory:/box\n2:cpuacct:/\n1:cpu:/\n0::/\n"));
        assert!(!is_in_root_task_group("1:cpu,cpuacct:/box\n"));
    }
}
