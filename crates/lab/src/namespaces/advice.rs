//! Advice to a user about a command of his own that does not serve.

use crate::protocol::ExitStatus;

/// Words of programs that miss another server or a name.
const ALONE: [&str; 8] = [
    "network is unreachable",
    "name resolution",
    "name or service not known",
    "no such host",
    "getaddrinfo",
    "eai_again",
    "connection refused",
    "econnrefused",
];

/// The next step, by how the process ended, if it has, and by the last lines of its output.
pub(super) fn advice(ended: Option<ExitStatus>, log: &str) -> Option<&'static str> {
    let log = log.to_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| log.contains(part));
    if has(&["no space left on device", "enospc"]) {
        Some(
            "what a server writes is kept in memory until its unit ends, a quarter of what is free at most: \
             --share PATH for what may be written to the disk",
        )
    } else if has(&["value too large for defined data type", "eoverflow"]) {
        Some("as an ordinary user, a server cannot change files of another owner or group: --share PATH")
    } else if has(&["address already in use", "eaddrinuse"]) {
        Some("another process beside it has the port: choose one by {port}, PORT or --port")
    } else if has(&ALONE) {
        Some("its network has nothing else: start what it needs by --with 'COMMAND'")
    } else {
        match ended {
            Some(ExitStatus::Code(0)) => {
                Some("a server has to stay in the foreground, such as nginx -g 'daemon off;'")
            }
            None => Some(
                "a server has to listen on a TCP port, or of datagrams on a UDP port; one that needs longer: \
                 --ready 60s; what it makes another program start, such as docker, is in another network",
            ),
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_step_is_found_by_the_output_and_by_the_exit_status() {
        for (ended, log, part) in [
            (Some(ExitStatus::Code(1)), "dial tcp 10.0.0.1:5432: connect: Network is unreachable", "--with"),
            (Some(ExitStatus::Code(1)), "Error: getaddrinfo EAI_AGAIN db", "--with"),
            (Some(ExitStatus::Code(1)), "bind: Address already in use", "--port"),
            (Some(ExitStatus::Code(1)), "write: No space left on device", "--share PATH"),
            (Some(ExitStatus::Code(0)), "", "foreground"),
            (None, "starting", "TCP port"),
        ] {
            assert!(advice(ended, log).is_some_and(|step| step.contains(part)), "{log}");
        }
        assert_eq!(advice(Some(ExitStatus::Code(3)), "no config"), None);
    }
}
