//! `linerate list`.

use super::print;
use crate::cli::{ListArgs, Listed};
use crate::error::Error;
use crate::system::Registry;
use crate::{home, suite};
use linerate_contract::Layer::{self, H2, H2c, H3, Http, Https, Kcp, Quic, Tcp, Tls, Udp, WebSocket, Wss};
use linerate_contract::Workload;
use std::fmt::Write;
use std::process::ExitCode;

/// A workload, the layers that have it, and what it does.
type Row = (Workload, &'static [Layer], &'static str);

/// The table of sdk/CONTRACT.md; a test compares the two.
const WORKLOADS: [Row; 5] = [
    (
        Workload::Rr,
        &[Tcp, Tls, Udp, WebSocket, Wss, Http, Https, H2c, H2, H3, Quic],
        "request and response, one outstanding on each open connection or stream",
    ),
    (Workload::Crr, &[Tcp, Http, Https, H3, Quic], "connect, one request and response, close"),
    (Workload::Stream, &[Tcp, Tls, WebSocket, Wss, Udp, Kcp], "bulk transfer in one direction or both"),
    (Workload::Fanout, &[Tcp], "one message to every connection, complete after the slowest response"),
    (Workload::Dispatch, &[Layer::None], "post and run handlers of an event loop"),
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
        .map(|(name, layers, about)| {
            let layers: Vec<&str> = layers.iter().map(|layer| layer.as_str()).collect();
            format!("{name:9} {about}\n          layers: {}\n", layers.join(", "))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_listed_workloads_are_those_of_the_contract() {
        let contract = include_str!("../../../../sdk/CONTRACT.md");
        let mut expected: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for line in contract.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let name = cells[1].trim_matches('`');
            if cells.len() == 6 && WORKLOADS.iter().any(|row| row.0.as_str() == name) {
                expected.entry(name).or_default().extend(cells[2].split(", ").map(String::from));
            }
        }
        let listed = WORKLOADS.iter().map(|(name, layers, _)| {
            (name.as_str(), layers.iter().map(ToString::to_string).collect::<Vec<_>>())
        });
        assert_eq!(listed.collect::<BTreeMap<_, _>>(), expected);
    }

    #[test]
    fn each_workload_has_one_description_and_no_template() {
        let text = workloads();
        assert_eq!(text.lines().count(), 2 * WORKLOADS.len());
        assert!(text.contains("layers: tcp") && !text.contains("{{"), "{text}");
    }
}
