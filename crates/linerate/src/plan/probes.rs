//! Which roles of which cells are probed, and why others are not.

use super::pairs::no_window;
use crate::measurement::{PlannedCell, PlannedProbe, PlannedSuite, PlannedSystem};
use crate::system::Registry;

/// Every role with a process, of each cell.
pub(super) fn plan_probes(suite: &PlannedSuite, registry: &Registry) -> Vec<PlannedProbe> {
    let has_process = |system: &&PlannedSystem| {
        let chosen = registry.variant(&system.name, system.role);
        chosen.is_ok_and(|chosen| chosen.variant.start.is_some())
    };
    let of_cell = |cell: &PlannedCell| {
        let reason = no_probe(cell, registry).map(str::to_owned);
        let roles = cell.systems.iter().filter(has_process).map(|system| system.role);
        let probe = |role| PlannedProbe { cell: cell.id.clone(), role, no_probe: reason.clone() };
        roles.map(probe).collect::<Vec<_>>()
    };
    suite.cells.iter().flat_map(of_cell).collect()
}

/// The brake stops all threads of a role at once, for the CPU time that they have used together.
fn no_probe(cell: &PlannedCell, registry: &Registry) -> Option<&'static str> {
    if cell.parameters.threads.unwrap_or(1) > 1 {
        Some("its roles have several threads")
    } else if cell.options.contains_key("search") {
        Some("a search has many rates")
    } else {
        no_window(cell, registry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite;
    use linerate_contract::Role;
    use std::path::Path;

    fn roles(name: &str, cell: &str) -> Vec<(Role, Option<String>)> {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let registry = Registry::load(&home).unwrap();
        let suites = suite::choose(suite::load_all(&home).unwrap(), &[name.to_owned()]).unwrap();
        let probes =
            plan_probes(&suites[0].expand(&registry, crate::suite::Form::Complete).unwrap(), &registry);
        probes
            .into_iter()
            .filter(|probe| probe.cell == cell)
            .map(|probe| (probe.role, probe.no_probe))
            .collect()
    }

    #[test]
    fn each_role_with_a_process_is_probed() {
        let all = [Role::Client, Role::Relay, Role::Server].map(|role| (role, None));
        assert_eq!(roles("proxy", "nginx/haproxy-tcp"), all);
        assert_eq!(roles("proxy", "nginx/nftables"), [all[0].clone(), all[2].clone()]);
    }

    #[test]
    fn a_cell_without_a_rate_by_time_is_not_probed_and_the_plan_has_the_reason() {
        let counts = roles("generators", "h3/nginx-current-h3/10x10/tquic-h3");
        assert!(!counts.is_empty() && counts.iter().all(|(_, reason)| reason.is_some()), "{counts:?}");
    }
}
