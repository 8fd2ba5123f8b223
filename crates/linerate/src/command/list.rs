//! `linerate list`.

use super::print;
use crate::cli::{ListArgs, Listed};
use crate::error::Error;
use crate::system::Registry;
use crate::{home, suite};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::ExitCode;

/// Lists suites, systems, workloads or cells: what the folders hold.
///
/// # Errors
/// A file there is not valid.
pub fn list(args: &ListArgs) -> Result<ExitCode, Error> {
    let home = home::find()?;
    let registry = Registry::load(&home)?;
    let suites = suite::load_all(&home)?;
    let mut text = String::new();
    match args.what {
        Listed::Suites => {
            for suite in &suites {
                let _ = writeln!(text, "{:12} {}", suite.name, suite.file.question);
            }
        }
        Listed::Systems => {
            for chosen in registry.variants() {
                let _ = writeln!(text, "{:22} {}", chosen.name, chosen.variant.about);
            }
        }
        Listed::Workloads => {
            let mut workloads: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
            for suite in &suites {
                for table in &suite.file.tables {
                    let users = workloads.entry((&table.workload, &table.layer)).or_default();
                    if !users.contains(&suite.name.as_str()) {
                        users.push(&suite.name);
                    }
                }
            }
            for ((workload, layer), users) in workloads {
                let _ = writeln!(text, "{workload:12} over {layer:10} in {}", users.join(", "));
            }
        }
        Listed::Cells => {
            for suite in &suites {
                for cell in suite.expand(&registry, false)?.cells {
                    let _ = writeln!(text, "{}:{}", suite.name, cell.id);
                }
            }
        }
    }
    print(&text)
}
