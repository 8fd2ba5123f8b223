//! Which cells are compared, and which of these pairs are measured in duet.

use crate::axes::Axes;
use crate::measurement::{PlannedCell, PlannedPair, PlannedSuite, PlannedTable};
use crate::stats::duet::is_of_windows;
use crate::system::Registry;
use linerate_contract::{Choice, Role, Shape};

/// Every pair that a table of the suite compares, each once: cells with their baseline, and an A/A control
/// for each table.
pub(super) fn plan_pairs(suite: &PlannedSuite, registry: &Registry) -> Vec<PlannedPair> {
    let mut pairs: Vec<PlannedPair> = Vec::new();
    let is_paced = |table: &PlannedTable| {
        suite.cells.iter().any(|cell| cell.is_paced_in_turns() && table.cells.contains(&cell.id))
    };
    let compares =
        |table: &&PlannedTable| (is_of_windows(table.metric) || is_paced(table)) && table.truth.is_none();
    for table in suite.tables.iter().filter(compares) {
        let cells: Vec<&PlannedCell> =
            suite.cells.iter().filter(|cell| table.cells.contains(&cell.id)).collect();
        let baseline = |cell: &PlannedCell| {
            let axes: Axes = cell.axes.with(&table.baseline);
            cells.iter().find(|other| other.axes == axes).copied()
        };
        let control = cells.iter().find(|cell| baseline(cell).is_some_and(|base| base.id == cell.id));
        let competitors = cells.iter().filter(|cell| !cell.is_limit);
        let compared = competitors.filter_map(|cell| Some((*cell, baseline(cell)?)));
        for (cell, other) in
            control.map(|cell| (*cell, *cell)).into_iter().chain(compared.filter(|(a, b)| a.id != b.id))
        {
            let ids = [cell.id.clone(), other.id.clone()];
            if !pairs.iter().any(|pair| pair.cells == ids) {
                let no_duet = [cell, other].into_iter().find_map(|cell| obstacle(cell, registry));
                pairs.push(PlannedPair { cells: ids, no_duet: no_duet.map(str::to_owned) });
            }
        }
    }
    pairs
}

/// Why a cell cannot be measured in duet. The windows of a duet are common by time, so a client that works
/// for a count cannot take part; the other reasons are kinds of cells in which duets are not proven yet
/// (docs/method.md).
pub(super) fn obstacle(cell: &PlannedCell, registry: &Registry) -> Option<&'static str> {
    let is_open = cell.parameters.rate.is_some() && !cell.is_paced_in_turns();
    if is_open || cell.options.contains_key("search") {
        Some("open loop: its latencies are those of a load that it has alone")
    } else if cell.path.is_impaired() {
        Some("impaired path: its delays and queues go on while a side that takes turns is stopped")
    } else {
        no_window(cell, registry)
    }
}

/// Why a cell has no rate in a window of given length.
pub(super) fn no_window(cell: &PlannedCell, registry: &Registry) -> Option<&'static str> {
    let client = cell.systems.iter().find(|system| system.role == Role::Client)?;
    let chosen = registry.variant(&client.name, Role::Client).ok();
    let is_timed = chosen.as_ref().is_some_and(|client| client.is_timed());
    if chosen.is_some_and(|client| client.variant.starts_late) {
        Some("the client begins long after its start, so its window is not that of the other side")
    } else if cell.options.get(Shape::OPTION).is_some_and(|shape| shape == Shape::Run.word()) {
        Some("its window opens when all handlers are posted, so it is not that of the other side")
    } else {
        (!is_timed).then_some("the client works for a count, not for a time")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Run;
    use crate::plan::Step;
    use crate::suite::{self, Form};
    use std::path::Path;

    fn pairs(name: &str, form: Form) -> Vec<PlannedPair> {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let registry = Registry::load(&home).unwrap();
        let suites = suite::choose(suite::load_all(&home).unwrap(), &[name.to_owned()]).unwrap();
        plan_pairs(&suites[0].expand(&registry, form).unwrap(), &registry)
    }

    fn no_duet(pairs: &[PlannedPair], cells: [&str; 2]) -> Option<String> {
        let pair = pairs.iter().find(|pair| pair.cells == cells);
        pair.unwrap_or_else(|| panic!("{cells:?} is not compared")).no_duet.clone()
    }

    #[test]
    fn cells_are_paired_with_their_baseline_and_each_table_has_a_control() {
        let proxy = pairs("proxy", Form::Quick);
        assert_eq!(no_duet(&proxy, ["nginx/haproxy-tcp", "nginx/direct"]), None);
        let mut controls: Vec<&str> =
            proxy.iter().filter(|pair| pair.cells[0] == pair.cells[1]).map(|pair| &*pair.cells[0]).collect();
        controls.sort_unstable();
        assert_eq!(controls, ["nginx/direct", "published/nginx/direct"]);
    }

    #[test]
    fn both_ends_in_one_loop_are_measured_in_duet_and_a_run_of_posted_handlers_is_not() {
        let runtime = pairs("runtime", Form::Complete);
        let no_duet = |id: &str| no_duet(&runtime, [&format!("{id}/asio-async"), &format!("{id}/asio-coro")]);
        for id in ["published-rr/64x1", "published-http/32x1", "published-stream/both/1024"] {
            assert_eq!(no_duet(id), None, "{id}");
        }
        assert_eq!(no_duet("published-dispatch/single/1"), None);
        assert!(no_duet("published-dispatch/run/1").unwrap().contains("all handlers are posted"));
    }

    #[test]
    fn published_tables_alone_have_three_trials_of_a_cell_in_duet_and_one_of_others_in_each_round() {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let registry = Registry::load(&home).unwrap();
        let choice = crate::plan::Choice {
            suites: vec!["proxy".to_owned()],
            quick: true,
            published: true,
            ..Default::default()
        };
        let chosen = suite::choose(suite::load_all(&home).unwrap(), &choice.suites).unwrap();
        let suites = crate::plan::suites(&chosen, &registry, &choice).unwrap();
        let mut run = Run { suites, published: true, quick: true, ..Run::default() };
        let pair = "published/nginx/iptables | published/nginx/direct";
        let count = |run: &Run, id: &str| {
            let is_it = |step: &&Step| step.sides.id(&run.suites[step.suite]) == id && !step.warmup;
            crate::plan::order(run).iter().filter(is_it).count()
        };
        assert_eq!(count(&run, "published/nginx/direct"), 3);
        assert_eq!(count(&run, "published-lan/nginx/direct"), 6);
        assert_eq!(count(&run, pair), 6);
        // Compared by solo trials, it needs as many of its baseline as of itself.
        let compared = run.suites[0].pairs.iter_mut().find(|planned| planned.id() == pair).unwrap();
        compared.no_duet = Some("a test".to_owned());
        assert_eq!(count(&run, "published/nginx/direct"), 6);
    }

    #[test]
    fn open_loops_and_limits_take_no_part_and_streams_do() {
        assert_eq!(no_duet(&pairs("proxy", Form::Complete), ["nginx/direct/ab", "nginx/direct"]), None);
        let generators = pairs("generators", Form::Complete);
        let of_k6 = no_duet(&generators, ["ceiling/nginx/k6", "ceiling/nginx/wrk"]);
        assert!(of_k6.unwrap().contains("long after its start"));
        let stalling = generators.iter().filter(|pair| pair.cells[0].starts_with("stalling-server"));
        assert!(stalling.clone().count() == 0, "{stalling:?}");
        for suite in ["runtime", "transport", "websocket"] {
            let all = pairs(suite, Form::Complete);
            assert!(all.iter().all(|pair| !pair.cells.concat().contains("limit")), "{suite}");
        }
        let websocket = pairs("websocket", Form::Complete);
        let is_over_the_lan = |pair: &PlannedPair| pair.cells[0].starts_with("published-lan/");
        assert!(websocket.iter().all(|pair| pair.no_duet.is_none() || is_over_the_lan(pair)));
    }
}
