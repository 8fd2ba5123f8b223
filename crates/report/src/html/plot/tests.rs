//! Which figures the numbers of a table allow.

use super::{Colours, figures};
use crate::build;
use crate::fixture::{journal, run, trials};
use crate::model::SuiteReport;

/// A suite of the fixture with another name of an axis.
fn suite(number: usize, axis: &str, name: &str) -> SuiteReport {
    let mut suite = build(&run(), &journal(&run(), &trials())).suites.swap_remove(number);
    let renamed = |old: &mut String| {
        if old == axis {
            name.clone_into(old);
        }
    };
    for table in &mut suite.tables {
        [&mut table.rows, &mut table.columns].into_iter().for_each(renamed);
    }
    for cell in &mut suite.cells {
        cell.axes.0.iter_mut().for_each(|(axis, _)| renamed(axis));
    }
    suite
}

fn titles(suite: &SuiteReport) -> Vec<String> {
    let markup = figures(suite, &suite.tables[0], &Colours::new(&[])).into_string();
    let title = regex::Regex::new("<title[^>]*>([^<]*)<").unwrap();
    title.captures_iter(&markup).map(|found| found[1].to_owned()).collect()
}

#[test]
fn an_axis_of_numbers_is_drawn_and_one_of_words_is_not() {
    let by_size = titles(&suite(1, "size", "size"));
    assert!(by_size.contains(&"Result by size, direction client-reads".to_owned()), "{by_size:?}");
    let proxy = titles(&suite(0, "path", "path"));
    assert!(!proxy.iter().any(|title| title.starts_with("Result by")), "{proxy:?}");
    assert!(proxy.contains(&"Latency by percentile, server nginx".to_owned()), "{proxy:?}");
}

#[test]
fn threads_are_drawn_beside_the_line_of_proportion() {
    let of = |name: &str| {
        let suite = suite(1, "size", name);
        figures(&suite, &suite.tables[0], &Colours::new(&[])).into_string()
    };
    assert!(of("threads").contains("class=\"ideal\""));
    assert!(!of("size").contains("class=\"ideal\""));
}

#[test]
fn offered_load_is_drawn_with_latency_and_cpu() {
    let mut suite = suite(1, "size", "load");
    let latency = build(&run(), &journal(&run(), &trials())).suites[0].cells[0].latency_us.clone();
    suite.cells.iter_mut().for_each(|cell| cell.latency_us.clone_from(&latency));
    let titles = titles(&suite);
    for title in ["Median latency by offered load", "p99 latency by offered load"] {
        assert!(titles.iter().any(|other| other.starts_with(title)), "{title}: {titles:?}");
    }
    let markup = figures(&suite, &suite.tables[0], &Colours::new(&[])).into_string();
    assert!(markup.starts_with("<details class=\"figures\" open"), "{markup}");
    let of_latencies = markup.matches("bends upwards").count();
    assert!(of_latencies > 0 && of_latencies.is_multiple_of(3), "a CPU time has another caption: {markup}");
}

#[test]
fn layers_are_bars_that_begin_where_the_plain_one_ends() {
    let suite = suite(0, "path", "layer");
    let markup = figures(&suite, &suite.tables[0], &Colours::new(&[])).into_string();
    assert!(markup.contains("What each layer adds, server nginx"), "{markup}");
    // haproxy-http needs 0.221 s where direct needs 0.136.
    assert!(markup.contains("haproxy-http: +6"), "{markup}");
    assert!(!titles(&self::suite(0, "path", "path")).iter().any(|title| title.contains("layer")));
}

#[test]
fn a_series_is_drawn_over_time() {
    let titles = titles(&suite(1, "size", "size"));
    assert!(titles.iter().any(|title| title.starts_with("Throughput over time")), "{titles:?}");
}

#[test]
fn a_curve_with_a_point_at_a_hundred_percent_is_drawn_without_it() {
    let mut suite = suite(0, "path", "path");
    let ends = [0.0, 50.0, 99.0, 99.9999, 100.0];
    for curve in suite.cells.iter_mut().filter_map(|cell| cell.latency_curve.as_mut()) {
        curve.percent = ends.to_vec();
        curve.us = vec![1.0, 2.0, 3.0, 4.0, 5.0];
        curve.trials_us = vec![[1.0, 9.0]; ends.len()];
    }
    let markup = figures(&suite, &suite.tables[0], &Colours::new(&[])).into_string();
    let figure = markup.split("<figure").find(|part| part.contains("Latency by percentile")).unwrap();
    let line = figure.split("class=\"line\" d=\"M").nth(1).unwrap().split('"').next().unwrap();
    let places: Vec<f64> = line.split('L').map(|at| at.split(' ').next().unwrap().parse().unwrap()).collect();
    assert_eq!(places.len(), 4, "{line}");
    assert!(places.is_sorted_by(|a, b| b - a > 19.0), "{line}");
    assert!(figure.contains("text-anchor=\"end\">99.9999</text>"), "{figure}");
}

#[test]
fn a_system_has_one_colour_in_all_figures_of_a_page() {
    let page = crate::html::render(&build(&run(), &journal(&run(), &trials())), crate::Style::default());
    let line = regex::Regex::new("<g class=\"s (s\\d+)[^\"]*\" data-name=\"([^\"]*)\"").unwrap();
    let mut found = std::collections::BTreeMap::<String, Vec<String>>::new();
    for line in line.captures_iter(&page) {
        found.entry(line[2].to_owned()).or_default().push(line[1].to_owned());
    }
    assert!(found.values().any(|colours| colours.len() > 1), "{found:?}");
    for (system, colours) in &found {
        assert!(colours.iter().all(|colour| *colour == colours[0]), "{system}: {colours:?}");
    }
}
