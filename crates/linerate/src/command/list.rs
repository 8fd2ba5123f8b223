//! `linerate list`.

use super::print;
use crate::cli::{ListArgs, Listed};
use crate::error::Error;
use crate::system::Registry;
use crate::{home, suite};
use linerate_contract::Workload;
use std::fmt::Write;
use std::process::ExitCode;

/// The contract, whose table of workloads says which layers have them.
const CONTRACT: &str = include_str!("../../../../sdk/CONTRACT.md");

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

/// Each workload with its description and its layers; what a program does on its own account has no layers.
fn workloads() -> String {
    let mut text = String::new();
    for workload in Workload::ALL {
        let layers = layers(*workload);
        if !layers.is_empty() {
            let about = workload.about().trim().trim_end_matches('.').to_lowercase();
            let _ = writeln!(text, "{workload:9} {about}\n          layers: {}", layers.join(", "));
        }
    }
    text
}

/// The layers of a workload in the contract's table, which has four columns.
fn layers(workload: Workload) -> Vec<&'static str> {
    let rows = CONTRACT.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let name = format!("`{workload}`");
    let of_workload = rows.filter(|cells| cells.len() == 6 && cells[1] == name);
    of_workload.flat_map(|cells| cells[2].split(", ").collect::<Vec<_>>()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Layer;

    #[test]
    fn each_workload_has_its_description_and_layers_that_exist() {
        let text = workloads();
        for part in [
            "rr        request and response, one outstanding",
            "\n          layers: tcp, http, https, h3, quic\n",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let listed: Vec<_> = Workload::ALL.iter().filter(|workload| !layers(**workload).is_empty()).collect();
        assert_eq!(text.lines().count(), 2 * listed.len());
        assert_eq!(listed.len(), Workload::ALL.len() - 1, "a relay has no layers of its own");
        for layer in Workload::ALL.iter().flat_map(|workload| layers(*workload)) {
            layer.parse::<Layer>().unwrap();
        }
    }
}
