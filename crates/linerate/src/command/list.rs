//! `linerate list`.

use super::print;
use crate::cli::{ListArgs, Listed};
use crate::error::Error;
use crate::system::Registry;
use crate::{home, suite};
use std::fmt::Write;
use std::process::ExitCode;

/// A workload of the load engine, and the layers that have it.
struct Workload {
    name: &'static str,
    layers: &'static str,
    about: &'static str,
}

/// The table of sdk/CONTRACT.md; a test compares the two.
const WORKLOADS: [Workload; 5] = [
    Workload {
        name: "rr",
        layers: "tcp, tls, udp, websocket, wss, http, https, h2c, h2, h3, quic",
        about: "request and response, one outstanding on each open connection or stream",
    },
    Workload {
        name: "crr",
        layers: "tcp, http, https, h3, quic",
        about: "connect, one request and response, close",
    },
    Workload {
        name: "stream",
        layers: "tcp, tls, websocket, wss, udp, kcp",
        about: "bulk transfer in one direction or both",
    },
    Workload {
        name: "fanout",
        layers: "tcp",
        about: "one message to every connection, complete after the slowest response",
    },
    Workload { name: "dispatch", layers: "none", about: "post and run handlers of an event loop" },
];

/// Lists suites, systems, workloads or cells.
///
/// # Errors
/// A suite or manifest is not valid.
pub fn list(args: &ListArgs) -> Result<ExitCode, Error> {
    if matches!(args.what, Listed::Workloads) {
        return print(&workloads());
    }
    let home = home::find()?;
    let mut text = String::new();
    match args.what {
        Listed::Workloads => {}
        Listed::Suites => {
            for suite in suite::load_all(&home)? {
                let _ = writeln!(text, "{:12} {}", suite.name, suite.file.question);
            }
        }
        Listed::Systems => {
            for chosen in Registry::load(&home)?.variants() {
                let _ = writeln!(text, "{:22} {}", chosen.name, chosen.variant.about);
            }
        }
        Listed::Cells => {
            let registry = Registry::load(&home)?;
            for suite in suite::load_all(&home)? {
                for cell in suite.expand(&registry, suite::Form::Complete)?.cells {
                    let _ = writeln!(text, "{}:{}", suite.name, cell.id);
                }
            }
        }
    }
    print(&text)
}

fn workloads() -> String {
    WORKLOADS
        .iter()
        .map(|Workload { name, layers, about }| format!("{name:9} {about}\n          layers: {layers}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_listed_workloads_are_those_of_the_contract() {
        let contract = include_str!("../../../../sdk/CONTRACT.md");
        let mut expected: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for line in contract.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let name = cells[1].trim_matches('`');
            if cells.len() == 6 && WORKLOADS.iter().any(|workload| workload.name == name) {
                expected.entry(name).or_default().extend(cells[2].split(", "));
            }
        }
        let listed = WORKLOADS.iter().map(|w| (w.name, w.layers.split(", ").collect::<Vec<_>>()));
        assert_eq!(listed.collect::<BTreeMap<_, _>>(), expected);
    }

    #[test]
    fn each_workload_has_one_description_and_no_template() {
        let text = workloads();
        assert_eq!(text.lines().count(), 2 * WORKLOADS.len());
        assert!(text.contains("layers: tcp") && !text.contains("{{"), "{text}");
    }
}
