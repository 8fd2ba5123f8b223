//! A page against the `report.json` of the same run: every row, every number and every mark.

use crate::drawing::{check_bars, check_cpu, check_forest, check_latencies, check_lengths};
use crate::element::Element;
use crate::numbers::{
    TIMES, begins_with, is_cost, is_estimate, is_longer, is_more, is_multiple, is_ratio, is_value, of_label,
    without_time,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

/// Checks the structure that each page has, whatever its report: one title, addresses that lead somewhere, no
/// part that needs a script or another file.
pub(crate) fn check_structure(page: &Element) {
    let ids: Vec<&str> = page.inside().iter().filter_map(|each| each.get("id")).collect();
    let addresses: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), addresses.len(), "an id occurs twice");
    for each in page.inside() {
        if let Some(target) = each.get("href").and_then(|href| href.strip_prefix('#')) {
            assert!(addresses.contains(target), "#{target} leads nowhere");
        }
        for label in ["aria-labelledby", "aria-describedby"].iter().filter_map(|name| each.get(name)) {
            assert!(addresses.contains(label), "{label} is no text");
        }
        assert!(each.get("src").is_none_or(|src| src.starts_with("data:")), "<{}> loads a file", each.name);
        let copies = each.get("data-copy").is_some();
        assert!(each.get("hidden").is_none() || copies, "<{}> needs a script", each.name);
    }
    assert_eq!((page.all("script").len(), page.all("style").len()), (1, 1));
    page.one("main");
    page.one("h1");
    let levels = page.inside().into_iter().filter_map(|e| e.name.strip_prefix('h')?.parse::<u32>().ok());
    // The suites of several may come before a title of the page.
    let deepest = levels.fold(1, |before, level| {
        assert!(level <= before + 1, "a heading of level {level} follows one of {before}");
        level
    });
    assert!(deepest <= 3);
    for table in page.all("table") {
        for row in table.all("tr") {
            let first = row.inside()[0];
            assert!(first.name == "th" && first.get("scope").is_some(), "a row without a head: {}", row.text);
        }
    }
}

/// A page of one run.
pub(crate) fn check_numbers(page: &Element, report: &Value) {
    check_run(page, report);
    for suite in array(report, "suites") {
        let section = page.with_id(&anchor(&[text(suite, "name")]));
        assert!(section.all("h2")[0].text.contains(text(suite, "question")));
        let cells: BTreeMap<&str, &Value> =
            array(suite, "cells").iter().map(|cell| (text(cell, "id"), cell)).collect();
        for table in array(suite, "tables") {
            let id = anchor(&[text(suite, "name"), text(table, "name")]);
            Table { id: &id, report: table, cells: &cells }.check(page.with_id(&id));
        }
        for cell in array(suite, "cells").iter().filter(|cell| cell.get("detail").is_some()) {
            let (id, detail) = (text(cell, "id"), text(cell, "detail"));
            let detail = detail.strip_prefix("not measured: ").unwrap_or(detail);
            let is_it = |row: &&Element| {
                row.all("th")[0].text.lines().any(|line| line == id)
                    && row.all("td.reason").iter().any(|reason| reason.text == detail)
            };
            assert_eq!(section.all("tr").into_iter().filter(is_it).count(), 1, "the reason of {id}");
        }
    }
}

fn check_run(page: &Element, report: &Value) {
    let run = &report["run"];
    assert_eq!(page.with_id("replay").text, text(run, "command"));
    let strip = page.one("dl.strip").definitions();
    assert_eq!(strip["seed"], run["seed"].to_string());
    // `6`, or `2 of 6` where rounds are missing.
    let rounds = [number(&run["rounds"]), number(&run["planned_rounds"])];
    let is_done = rounds[0] == rounds[1];
    assert!(
        begins_with(strip["trials alone"], if is_done { &rounds[..1] } else { &rounds }),
        "{}",
        strip["trials alone"]
    );
    assert_eq!(strip["trials alone"].contains("incomplete"), run["complete"] == false);
    assert_eq!(strip["trials alone"].contains("quick"), run["quick"] == true);
    assert!(strip["versions"].contains(text(run, "linerate")));
    let section = page.with_id("run");
    for flag in array(run, "flags") {
        assert!(section.text.contains(flag.as_str().unwrap()));
    }
    let facts = section.definitions();
    assert_eq!(facts["kernel"], text(&report["host"], "kernel"));
    for (name, value) in report["host"]["facts"].as_object().unwrap() {
        assert_eq!(facts[name.as_str()], value.as_str().unwrap());
    }
    let systems = array(report, "suites").iter().flat_map(|suite| array(suite, "cells"));
    for system in systems.flat_map(|cell| array(cell, "systems")) {
        let Some(version) = system["version"].as_str().filter(|version| !version.is_empty()) else {
            continue;
        };
        assert!(facts[text(system, "name")].contains(version), "{system}");
    }
    // The file inside the page is the report.
    let links = page.all("a");
    let link = links.iter().find_map(|link| link.get("href")?.split_once("base64,")).expect("a download").1;
    let mut json = String::new();
    let packed = STANDARD.decode(link).unwrap();
    flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut json).unwrap();
    assert!(serde_json::from_str::<Value>(&json).unwrap() == *report, "the download is another report");
}

struct Table<'a> {
    id: &'a str,
    report: &'a Value,
    cells: &'a BTreeMap<&'a str, &'a Value>,
}

impl Table<'_> {
    fn check(&self, section: &Element) {
        assert_eq!(section.all("h3")[0].text, text(self.report, "title"));
        for note in array(self.report, "notes") {
            assert!(section.text.contains(note.as_str().unwrap()), "{note}");
        }
        let entries = array(self.report, "cells");
        let first = entries.first().map_or(&Value::Null, |entry| &entry["metric"]);
        let list = section.one("table.list");
        let rows: BTreeMap<&str, &Element> =
            list.all("tr").into_iter().filter_map(|row| Some((row.get("id")?, row))).collect();
        let sentences = section.all("li");
        let wanted: Vec<String> = entries
            .iter()
            .filter(|entry| entry["metric"] == *first)
            .map(|entry| format!("{}.{}", self.id, anchor(&[text(entry, "id")])))
            .collect();
        let shown: BTreeSet<&str> = rows.keys().copied().collect();
        assert_eq!(shown, wanted.iter().map(String::as_str).collect(), "{}", self.id);
        assert_eq!(rows.len() + list.all("tr.group").len() + 1, list.all("tr").len(), "{}", self.id);
        for entry in entries {
            let id = text(entry, "id");
            let row = rows[format!("{}.{}", self.id, anchor(&[id])).as_str()];
            if entry["metric"] == *first {
                self.check_row(row, entry, self.cells[id]);
            } else {
                self.check_further(row, entry);
            }
            if let (Some(compared), true) = (entry["vs_baseline"].as_object(), entry["metric"] == *first) {
                let with = compared["with"].as_str().unwrap();
                let begin = format!("{id} is ");
                let is_it = |line: &&str| line.starts_with(&begin) && line.contains(&format!("x {with} ("));
                let found: Vec<&str> =
                    sentences.iter().map(|line| line.text.as_str()).filter(is_it).collect();
                // A large table has those of the best and the worst.
                let is_few = entries.iter().filter(|other| other["vs_baseline"].is_object()).count() <= 6;
                assert!(found.len() == 1 || !is_few, "a sentence about {id} and {with}");
                let Some(sentence) = found.first() else { continue };
                let behind = sentence[begin.len()..].replace(&format!(" {with} "), " ");
                let (ratio, ends) = (number(&compared["ratio"]), interval(&compared["ci95"]));
                assert!(is_multiple(&behind, ratio, ends, self.is_cost(entry)), "{behind}: {entry}");
            }
        }
        self.check_drawings(section, list, entries, first);
        for grid in section.all("details.matrix") {
            let shown: Vec<&str> = grid.all("strong").iter().map(|each| each.text.as_str()).collect();
            for entry in entries.iter().filter(|entry| !entry["value"].is_null()) {
                let is_it = |text: &&str| TIMES.iter().any(|(_, factor)| is_value(text, entry, *factor));
                assert!(shown.iter().any(is_it), "{entry} is not in the grid");
            }
        }
    }

    fn check_drawings(&self, section: &Element, list: &Element, entries: &[Value], first: &Value) {
        let margin = self.report.get("truth_tolerance").unwrap_or(&self.report["margin"]);
        let (mut bars, mut stacks) = (Vec::new(), Vec::new());
        for (group, body) in list.all("tbody").into_iter().enumerate() {
            let (mut curves, rows) = (Vec::new(), body.all("tr"));
            for entry in entries.iter().filter(|entry| entry["metric"] == *first) {
                let id = format!("{}.{}", self.id, anchor(&[text(entry, "id")]));
                let Some(row) = rows.iter().find(|row| row.get("id") == Some(&id)) else { continue };
                let cell = self.cells[text(entry, "id")];
                let mut compared = [entry.get("vs_baseline"), entry.get("vs_truth")].into_iter().flatten();
                if let Some(compared) = compared.find(|compared| compared.is_object()) {
                    let background = section.with_id(&format!("{}~{group}", self.id));
                    check_forest(row, background, compared, number(margin));
                }
                bars.extend(row.all(".bar").into_iter().map(|bar| (bar, number(&entry["value"]))));
                stacks.extend(row.all("td.c-cpu").into_iter().filter_map(|field| {
                    Some((check_cpu(field, cell, &entry["cpu"])?, micros(&entry["cpu"])))
                }));
                let is_limit = row.all(".part").iter().any(|part| part.text == "limit");
                if let Some(curve) = cell.get("latency_curve").filter(|_| !is_limit) {
                    curves.push((row.all("a")[0].text.as_str(), curve));
                }
            }
            let figure = format!("{}~latency{group}", self.id);
            let figures = section.all("figure");
            if let Some(figure) = figures.iter().find(|found| found.get("id") == Some(&figure)) {
                check_latencies(figure, &curves);
            }
        }
        check_bars(&bars);
        check_lengths(&stacks);
    }

    fn check_row(&self, row: &Element, entry: &Value, cell: &Value) {
        let fields = row.all("td");
        if entry["value"].is_null() {
            assert_eq!(row.one("td.none").text, text(cell, "outcome"), "{entry}");
        } else {
            let unit = text(self.report, "unit");
            let is_of_value =
                |field: &&&Element| field.get("data-v").is_some() && field.get("class").is_none();
            let value = fields.iter().filter(is_of_value).find(|field| field.get("data-l") != Some("tier"));
            let value = value.unwrap_or_else(|| panic!("no value in {unit}: {}", row.text));
            let factor = of_label(value.get("data-l").unwrap_or_default());
            assert!(is_value(&value.one(".v").text, entry, factor), "{}: {entry}", row.text);
            check_sort_key(value, number(&entry["value"]));
        }
        if let Some(compared) = entry.get("vs_baseline").filter(|compared| !compared.is_null()) {
            let ratio = row.one("td.ratio");
            let shown = &ratio.one(".v").text;
            let is_it = if self.is_cost(entry) { is_longer } else { is_ratio };
            assert!(
                is_it(shown, number(&compared["ratio"]), interval(&compared["ci95"])),
                "{shown}: {compared}"
            );
            assert_eq!(ratio.one(".sign").text, mark(compared), "{compared}");
            check_difference(ratio, compared);
            let verdict = text(compared, "verdict");
            let few = verdict == "cannot tell" && compared["n"].as_u64() < Some(6);
            let word = if few { "too few rounds" } else { verdict };
            assert_eq!(ratio.one(".sr").text, word);
            assert!(ratio.get("class").unwrap().ends_with(word));
            check_sort_key(ratio, number(&compared["ratio"]));
            let (cpu, ends) = (&compared["duet"]["cpu_ratio"], &compared["duet"]["cpu_ci95"]);
            if cpu.is_number() && ends.is_array() && !row.one("td.c-cpu").all(".sub").is_empty() {
                let shown = &row.one("td.c-cpu").one(".sub").text;
                assert!(is_more(shown, number(cpu), interval(ends)), "{shown}: {compared}");
            }
        }
        if let Some(found) = entry.get("vs_truth") {
            let shown = row.one("td.ratio");
            assert!(shown.get("class").unwrap().ends_with(text(found, "accuracy")));
            let error = |ratio: f64| (ratio - 1.0) * 100.0;
            let ends = interval(&found["ci95"]).map(error);
            assert!(
                is_estimate(&shown.one(".v").text, error(number(&found["ratio"])), ends),
                "{}",
                shown.text
            );
        }
        if let Some(bound) = cell["bound_by"].as_str() {
            assert!(row.one(".badge").text.starts_with(bound));
        }
        check_details(row.one("details.all").definitions(), cell);
    }

    /// Latencies and CPU times are so much more, all else has a percentage.
    fn is_cost(&self, entry: &Value) -> bool {
        is_cost(entry["metric"].as_str().unwrap_or_else(|| text(self.report, "unit")))
    }

    /// A metric after the first.
    fn check_further(&self, row: &Element, entry: &Value) {
        let (Some(metric), false) = (entry["metric"].as_str(), entry["value"].is_null()) else { return };
        let fields = row.all("td.c-more");
        let label = |field: &Element| field.get("data-l").unwrap_or_default().to_owned();
        let is_it = |field: &&&Element| without_time(&label(field)) == without_time(metric);
        let field = fields.iter().find(is_it).expect("a field");
        let factor = of_label(&label(field));
        assert!(is_value(&field.one(".v").text, entry, factor), "{}: {entry}", field.text);
        check_sort_key(field, number(&entry["value"]));
        if let Some(compared) = entry.get("vs_baseline").filter(|compared| !compared.is_null()) {
            let shown = &field.one(".sub").text;
            let is_it = if self.is_cost(entry) { is_longer } else { is_ratio };
            assert!(is_it(shown, number(&compared["ratio"]), interval(&compared["ci95"])), "{shown}");
            assert!(shown.ends_with(mark(compared)), "{shown}: {compared}");
            check_difference(field, compared);
        }
    }
}

/// The number of a CPU time, per operation or megabyte.
pub(crate) fn micros(cost: &Value) -> f64 {
    number(cost.get("us_per_mb").unwrap_or(&cost["us_per_op"]))
}

/// Latencies alone have one.
fn check_difference(field: &Element, compared: &Value) {
    let shown = field.all(".micros");
    let Some(found) = compared.get("difference") else { return assert!(shown.is_empty(), "{compared}") };
    let us = shown.first().map_or("", |shown| &shown.text).trim_start_matches('+');
    let (_, factor) = TIMES.iter().rfind(|(unit, _)| us.contains(&format!(" {unit}"))).expect("a unit");
    let [value, ends] =
        [[number(&found["us"]); 2], interval(&found["ci95"])].map(|us| us.map(|us| us * factor));
    assert!(is_estimate(us, value[0], ends), "{us}: {compared}");
}

/// All that is measured of a cell.
fn check_details(shown: BTreeMap<&str, &str>, cell: &Value) {
    let id = text(cell, "id");
    assert_eq!((shown["cell"], shown["n"]), (id, cell["n"].to_string().as_str()));
    for (name, key) in [("of limit", "vs_limit"), ("of reference", "vs_reference")] {
        if let Some(share) = cell.get(key).filter(|share| !share.is_null()) {
            let is_it = if is_cost(text(cell, "unit")) { is_longer } else { is_ratio };
            assert!(is_it(shown[name], number(&share["ratio"]), interval(&share["ci95"])), "{id}: {share}");
        }
    }
    for (role, cost) in cell["cpu"].as_object().unwrap() {
        let unit = if cost.get("us_per_mb").is_some() { "µs/MB" } else { "µs/op" };
        let text = shown[format!("{role} CPU {unit}").as_str()];
        let value = micros(cost);
        let is_it = match &cost["ci95"] {
            Value::Null => begins_with(text, &[value]),
            ends => is_estimate(text, value, interval(ends)),
        };
        assert!(is_it, "{id}: {text}: {cost}");
    }
    let latencies = ["mean", "min", "p50", "p90", "p99", "p99.9", "max"];
    let numbers = [
        ("datagrams", vec![("sent", "sent"), ("received", "received"), ("lost %", "lost_percent")]),
        ("tcp", vec![("retransmits", "retransmits"), ("RTT", "rtt_us"), ("cwnd", "cwnd")]),
        ("latency_us", latencies.iter().map(|name| (*name, *name)).collect()),
    ];
    for (part, fields) in numbers {
        for (name, key) in fields.into_iter().filter(|_| cell.get(part).is_some_and(Value::is_object)) {
            let value = number(&cell[part][key.replace('.', "")]);
            let of_unit =
                |(unit, factor): (&str, f64)| Some((*shown.get(&*format!("{name} {unit}"))?, factor));
            let in_unit = TIMES.into_iter().find_map(of_unit);
            let (text, factor) = in_unit.unwrap_or_else(|| (shown[name], 1.0));
            assert!(begins_with(text, &[value * factor]), "{id}: {name} of {}", cell[part]);
        }
    }
    for (kind, times) in cell["errors"].as_object().unwrap() {
        let text = shown["failed operations"].split(", ").find(|text| text.starts_with(kind.as_str()));
        assert!(begins_with(&text.unwrap()[kind.len()..], &[number(times)]), "{id}: {kind}");
    }
    for flag in array(cell, "flags") {
        assert!(shown["flags"].contains(flag.as_str().unwrap()), "{id}: {flag}");
    }
    for (role, found) in cell.get("sensitivity").and_then(Value::as_object).into_iter().flatten() {
        let text = shown["sensitivity"].lines().find(|line| line.starts_with(role.as_str())).unwrap();
        assert!(begins_with(&text[role.len()..], &[number(&found["value"])]), "{id}: {text}");
    }
}

/// The sign of a verdict: filled where it holds among all of its table.
fn mark(compared: &Value) -> &'static str {
    let is_sure = compared["q"].as_f64().is_none_or(|q| q <= 0.05);
    match text(compared, "verdict") {
        "cannot tell" if compared["n"].as_u64() < Some(6) => "?",
        "faster" => {
            if is_sure {
                "▲"
            } else {
                "△"
            }
        }
        "slower" => {
            if is_sure {
                "▼"
            } else {
                "▽"
            }
        }
        "differs by less than the margin" => "≠",
        "within the margin" => "≈",
        "cannot tell" => "?",
        other => panic!("the verdict {other}"),
    }
}

/// Columns are sorted by it.
fn check_sort_key(field: &Element, value: f64) {
    let key: f64 = field.get("data-v").unwrap().parse().unwrap();
    assert!((key - value).abs() <= value.abs() * 1e-5, "{key} is not {value}");
}

fn anchor(parts: &[&str]) -> String {
    parts.join(".").replace(char::is_whitespace, "_").replace('%', "percent")
}

pub(crate) fn array<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], |items| items)
}

pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} is no text in {value}"))
}

pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

pub(crate) fn interval(value: &Value) -> [f64; 2] {
    [number(&value[0]), number(&value[1])]
}
