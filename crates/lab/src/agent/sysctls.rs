//! Kernel settings of every namespace of the lab. All are per namespace, so the host's do not change.
//!
//! A new namespace copies some of them from the host, such as the congestion control and the socket buffers
//! of TCP. Here they have the same values on every host.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Name and value; where a kernel refuses the first value, the next one.
const SYSCTLS: [(&str, &[&str]); 12] = [
    // Linux's default. A namespace may use it only if it is in the host's
    // `tcp_allowed_congestion_control`; reno always is.
    ("net/ipv4/tcp_congestion_control", &["cubic", "reno"]),
    // Linux's defaults with a few GiB of memory.
    ("net/ipv4/tcp_rmem", &["4096 131072 6291456"]),
    ("net/ipv4/tcp_wmem", &["4096 16384 4194304"]),
    // No lookup of each packet's source address; interfaces copy `default`, and the larger of both applies.
    ("net/ipv4/conf/all/rp_filter", &["0"]),
    ("net/ipv4/conf/default/rp_filter", &["0"]),
    // 64,511 ports for each pair of addresses in place of 28,232: enough for ten thousand connections.
    ("net/ipv4/ip_local_port_range", &["1024 65535"]),
    // A port in TIME_WAIT may be reused after a second (RFC 6191).
    ("net/ipv4/tcp_tw_reuse", &["1"]),
    // Systems are not root and listen on port 80.
    ("net/ipv4/ip_unprivileged_port_start", &["0"]),
    // The system's listen backlog applies, not the kernel's limit.
    ("net/core/somaxconn", &["4096"]),
    // No duplicate address detection and router solicitation during the measurement.
    ("net/ipv6/conf/all/disable_ipv6", &["1"]),
    ("net/ipv6/conf/default/disable_ipv6", &["1"]),
    ("net/ipv4/ip_forward", &["0"]),
];

/// Sets all of them in the network namespace of this thread.
///
/// # Errors
/// A setting whose values are all refused.
pub(super) fn set_all() -> Result<(), String> {
    SYSCTLS.iter().try_for_each(|(name, values)| set_first(&file(name), values))
}

/// Makes this namespace forward packets.
///
/// # Errors
/// The kernel refuses.
pub(super) fn forward() -> Result<(), String> {
    set_first(&file("net/ipv4/ip_forward"), &["1"])
}

/// `lo` has `::1`, where some servers listen. A kernel without IPv6 has no such setting.
pub(super) fn allow_ipv6_on_loopback() {
    let _ = fs::write(file("net/ipv6/conf/lo/disable_ipv6"), "0");
}

/// The values of these settings in the network namespace of this thread, as the kernel reports them.
pub(super) fn current() -> BTreeMap<String, String> {
    let value = |name: &str| {
        let text = fs::read_to_string(file(name)).ok()?;
        Some((name.replace('/', "."), text.split_whitespace().collect::<Vec<_>>().join(" ")))
    };
    SYSCTLS.iter().filter_map(|(name, _)| value(name)).collect()
}

fn file(name: &str) -> PathBuf {
    Path::new("/proc/sys").join(name)
}

/// Settings that this kernel lacks (IPv6 may be compiled out) are skipped.
fn set_first(file: &Path, values: &[&str]) -> Result<(), String> {
    if !file.exists() {
        return Ok(());
    }
    let mut refused = Ok(());
    for value in values {
        refused = fs::write(file, value).map_err(|e| format!("{} = {value}: {e}", file.display()));
        if refused.is_ok() {
            break;
        }
    }
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_value_that_is_accepted_is_set_and_a_missing_setting_is_skipped() {
        assert_eq!(set_first(Path::new("/proc/sys/net/none"), &["1"]), Ok(()));
        // The kernel accepts -1000 to 1000; the value is the present one, so nothing changes.
        let score = Path::new("/proc/self/oom_score_adj");
        let present = fs::read_to_string(score).unwrap();
        assert_eq!(set_first(score, &["9999", present.trim()]), Ok(()));
        assert_eq!(fs::read_to_string(score).unwrap(), present);
        let error = set_first(score, &["9998", "9999"]).unwrap_err();
        assert!(error.starts_with("/proc/self/oom_score_adj = 9999: "), "{error}");
    }
}
