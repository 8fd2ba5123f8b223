//! `report.json` against its schema, and its numbers against each other.

use crate::page::{array, interval, micros, number, text};
use crate::schema::faults;
use serde_json::Value;
use std::fs;
use std::path::Path;

#[track_caller]
pub(crate) fn check_schema(file: &str, document: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file);
    let schema = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(faults(&schema, document), Vec::<String>::new(), "{file}");
}

/// Checks the numbers that every report has.
pub(crate) fn check_numbers(report: &Value) {
    for suite in array(report, "suites") {
        for cell in array(suite, "cells") {
            check_cell(cell);
        }
        for table in array(suite, "tables") {
            for entry in array(table, "cells") {
                check_comparison(&entry["vs_baseline"]);
                check_row(entry);
                check_cpu(entry);
                let cell = array(suite, "cells").iter().find(|cell| cell["id"] == entry["id"]);
                let cell = cell.unwrap_or_else(|| panic!("{} has no cell", entry["id"]));
                assert!(text(cell, "outcome") == "ok" || entry["value"].is_null(), "{entry}");
            }
        }
    }
}

fn check_cell(cell: &Value) {
    let values: Vec<f64> = array(cell, "values").iter().map(number).collect();
    if text(cell, "outcome") != "ok" {
        assert!(cell["value"].is_null() && cell["ci95"].is_null() && cell["alone"].is_null(), "{cell}");
        assert!(cell.get("detail").is_some(), "{} has no number and no reason", cell["id"]);
        return;
    }
    let alone = &cell["alone"];
    if alone.is_null() {
        return assert!(cell["value"].is_null(), "{cell}");
    }
    check_row(cell);
    let mut sorted = values;
    sorted.sort_by(f64::total_cmp);
    let ends = alone.get("ci95").unwrap_or(&alone["range"]);
    let (median, [low, high]) = (number(&alone["value"]), interval(ends));
    assert_eq!(alone["n"], sorted.len(), "{}", cell["id"]);
    assert_eq!(alone.get("ci95").is_some(), sorted.len() >= 6, "a range is no interval: {}", cell["id"]);
    let middle = (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0;
    assert!((median - middle).abs() <= middle.abs() * 1e-12, "{}: {median} of {sorted:?}", cell["id"]);
    assert!(sorted[0] <= low && low <= median, "{}: {low}", cell["id"]);
    assert!(median <= high && high <= sorted[sorted.len() - 1], "{}: {high}", cell["id"]);
}

/// A row with a ratio is the value of its baseline by the ratio; any other is that of its trials alone.
fn check_row(entry: &Value) {
    let (Some(value), compared) = (entry["value"].as_f64(), &entry["vs_baseline"]) else { return };
    let is = |value: f64, wanted: f64| {
        assert!((value - wanted).abs() <= wanted.abs() * 1e-9, "{value} is not {wanted}: {entry}");
    };
    let Some(baseline) = compared["with_value"].as_f64() else {
        return is(value, number(&entry["alone"]["value"]));
    };
    let (ratio, ends) = (number(&compared["ratio"]), interval(&compared["ci95"]));
    let is_inverse = (value / (baseline / ratio) - 1.0).abs() < 1e-9;
    let of = |ratio: f64| if is_inverse { baseline / ratio } else { baseline * ratio };
    is(value, of(ratio));
    match compared.get("ci95_is_range") {
        Some(_) => assert!(entry["ci95"].is_null(), "{entry}"),
        None => {
            let (shown, wanted) = (interval(&entry["ci95"]), ends.map(of));
            is(shown[0], wanted[0].min(wanted[1]));
            is(shown[1], wanted[0].max(wanted[1]));
        }
    }
}

/// Checks the entry of the CPU time.
fn check_cpu(entry: &Value) {
    let duet = &entry["vs_baseline"]["duet"];
    let (Some(ratio), Some(baseline)) = (duet["cpu_ratio"].as_f64(), duet["with_cpu_us"].as_f64()) else {
        return;
    };
    if let Some(cpu) = entry.get("cpu") {
        let (shown, wanted) = (micros(cpu), baseline * ratio);
        assert!((shown - wanted).abs() <= wanted * 1e-9, "{shown} is not {wanted}: {entry}");
    }
}

fn check_comparison(compared: &Value) {
    if compared.is_null() {
        return;
    }
    let (ratio, [low, high]) = (number(&compared["ratio"]), interval(&compared["ci95"]));
    assert!(low <= ratio && ratio <= high, "{compared}");
    let units: Vec<f64> = array(compared, "units").iter().map(number).collect();
    assert_eq!(units.len() as u64, compared["n"].as_u64().unwrap(), "{compared}");
    // Intervals by ranks, and ranges, end at units. Fewer than six units decide by an early look alone.
    let is_early = units.len() < 6 && matches!(text(compared, "verdict"), "faster" | "slower");
    // Units are stored with four digits.
    let least = units.iter().copied().fold(f64::INFINITY, f64::min);
    let most = units.iter().copied().fold(0.0, f64::max);
    let is_within = least <= low * 1.000_5 && high <= most * 1.000_5;
    assert!(is_within || is_early, "an interval beyond its units: {compared}");
    match text(compared, "verdict") {
        "faster" => assert!(low > 1.0, "{compared}"),
        "slower" => assert!(high < 1.0, "{compared}"),
        "differs by less than the margin" => {
            assert!((low > 1.0 || high < 1.0) && low >= 0.97 && high <= 1.03, "{compared}");
        }
        _ => {}
    }
    if let Some(q) = compared["q"].as_f64() {
        assert!(q >= number(&compared["p"]) && q <= 1.0, "{compared}");
    }
}

/// A row of `report.csv` has the numbers of its cell.
pub(crate) fn check_csv(csv: &str, report: &Value) {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let names = reader.headers().unwrap().clone();
    let mut rows = reader.records().map(Result::unwrap);
    for suite in array(report, "suites") {
        for cell in array(suite, "cells") {
            let row = rows.next().expect("a row for each cell");
            let field = |name: &str| {
                let at = names.iter().position(|other| other == name);
                at.map_or("", |at| &row[at])
            };
            assert_eq!((field("suite"), field("cell")), (text(suite, "name"), text(cell, "id")));
            let compared = &cell["vs_baseline"];
            let numbers = [
                ("value", &cell["value"]),
                ("low", &cell["ci95"][0]),
                ("high", &cell["ci95"][1]),
                ("n", &cell["n"]),
                ("ratio", &compared["ratio"]),
                ("ratio_low", &compared["ci95"][0]),
                ("ratio_high", &compared["ci95"][1]),
                ("difference_us", &compared["difference"]["us"]),
                ("difference_us_high", &compared["difference"]["ci95"][1]),
                ("vs_limit", &cell["vs_limit"]["ratio"]),
                ("vs_reference", &cell["vs_reference"]["ratio"]),
                ("reported_over_true", &cell["vs_truth"]["ratio"]),
                ("alone.latency_us.p99", &cell["latency_us"]["p99"]),
                ("operations", &cell["operations"]),
            ];
            for (name, wanted) in numbers {
                assert_eq!(field(name).parse::<f64>().ok(), wanted.as_f64(), "{name} of {}", cell["id"]);
            }
            for (role, cost) in cell["cpu"].as_object().unwrap() {
                let shown =
                    ["op", "mb"].map(|per| field(&format!("alone.cpu.{role}.us_per_{per}")).parse().ok());
                assert_eq!(shown, [cost["us_per_op"].as_f64(), cost["us_per_mb"].as_f64()], "{role}");
            }
            for (kind, times) in cell["errors"].as_object().unwrap() {
                assert_eq!(field(&format!("errors.{kind}")), times.to_string());
            }
            for (axis, value) in cell["axes"].as_object().unwrap() {
                assert_eq!(field(&format!("axis.{axis}")), value.as_str().unwrap());
            }
            for (name, wanted) in [("outcome", &cell["outcome"]), ("verdict", &compared["verdict"])] {
                assert_eq!(field(name), wanted.as_str().unwrap_or_default(), "{name} of {}", cell["id"]);
            }
        }
    }
    assert!(rows.next().is_none(), "a row without a cell");
}
