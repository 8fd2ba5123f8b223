//! Which roles of which cells are probed, and why others are not.

use super::pairs::obstacle;
use crate::measurement::{PlannedCell, PlannedProbe, PlannedSuite};
use crate::system::Registry;

/// Every role with a process, of each cell.
pub(super) fn of(suite: &PlannedSuite, registry: &Registry) -> Vec<PlannedProbe> {
    let of_cell = |cell: &PlannedCell| {
        let no_probe = no_probe(cell, registry);
        let has_process = |name: &str, role| {
            registry.variant(name, role).is_ok_and(|chosen| chosen.variant.start.is_some())
        };
        let roles = cell.systems.iter().filter(|system| has_process(&system.name, system.role));
        let probe = |system: &crate::measurement::PlannedSystem| PlannedProbe {
            cell: cell.id.clone(),
            role: system.role,
            no_probe: no_probe.map(str::to_owned),
        };
        roles.map(probe).collect::<Vec<_>>()
    };
    suite.cells.iter().flat_map(of_cell).collect()
}

/// The brake stops all of a role at once, for the CPU time that all of its threads have used together.
fn no_probe(cell: &PlannedCell, registry: &Registry) -> Option<&'static str> {
    let threads = cell.parameters.threads.unwrap_or(1);
    if threads > 1 { Some("a role has several threads") } else { obstacle(cell, registry) }
}
