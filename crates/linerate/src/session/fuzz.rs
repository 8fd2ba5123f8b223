//! The whole road of a stored run, which may come from someone else: read, judged, reported, planned.

use crate::journal;
use crate::measurement::Stored;
use crate::measurement::journal::read_journal;
use crate::plan;
use crate::report::{self, Style};
use crate::stopping::Made;
use serde_json::Value;
use std::path::Path;

/// A report is not longer than this multiple of what is stored, and some more.
const MOST_OF_STORED: usize = 200;
const MOST_OF_NOTHING: usize = 1 << 20;

/// Runs in which values are replaced: the inputs that are no text of a run choose which.
const SEEDS: [&str; 2] = [
    include_str!("../../../../fuzz/seeds/stored/tables"),
    include_str!("../../../../fuzz/seeds/stored/commands"),
];

/// Code of the fuzz target `stored`. A text is a run: run.json in its first line, then the journal. Another
/// input is changes of a run that is whole: a place in two bytes and a value in one.
pub fn fuzz_stored(input: &[u8]) {
    match input.split_first() {
        Some((b'{', _)) => go(input),
        Some((seed, changes)) => go(changed(SEEDS[usize::from(*seed) % SEEDS.len()], changes).as_bytes()),
        None => {}
    }
}

fn go(input: &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (plan, lines) = input.split_at(end);
    let Ok(Ok(run)) = std::str::from_utf8(plan).map(|text| journal::parse_run(Path::new("run.json"), text))
    else {
        return;
    };
    let Ok(made) = read_journal(&run, "journal.jsonl", lines) else { return };
    let stored = Stored { run, journal: made };
    let report = report::from_stored(&stored);
    let most = MOST_OF_STORED * input.len() + MOST_OF_NOTHING;
    for format in report::FORMATS {
        let text = format.render(&report, Style::default());
        assert!(text.len() <= most, "{} bytes as {}", text.len(), format.name);
    }
    if let Some(comparison) = &report.comparison {
        let _ = report::comparison::comment(&report, comparison);
    }
    let Stored { run, journal: made } = &stored;
    let made = Made { run, units: &made.units };
    for suite in 0..run.suites.len() {
        let _ = (plan::order_of(run, suite).len(), made.needs(suite).len(), made.prospect(suite, 1));
    }
}

/// The run with other values at some places.
fn changed(seed: &str, changes: &[u8]) -> String {
    let mut lines: Vec<Value> =
        seed.lines().map(|line| serde_json::from_str(line).expect("a seed is JSON")).collect();
    for change in changes.chunks_exact(3) {
        let mut leaves = Vec::new();
        lines.iter_mut().for_each(|line| gather(line, &mut leaves));
        let at = usize::from(u16::from_be_bytes([change[0], change[1]])) % leaves.len();
        *leaves.swap_remove(at) = hostile(change[2]);
    }
    lines.into_iter().map(text_of).collect()
}

/// A line; the kind of an entry is its first key.
fn text_of(mut line: Value) -> String {
    let kind = line.as_object_mut().and_then(|map| map.remove("kind"));
    let rest = line.to_string();
    match kind {
        Some(kind) => format!("{{\"kind\":{kind},{}\n", &rest[1..]),
        None => rest + "\n",
    }
}

fn gather<'a>(value: &'a mut Value, leaves: &mut Vec<&'a mut Value>) {
    let is_leaf = match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(all) => all.is_empty(),
        _ => true,
    };
    match value {
        leaf if is_leaf => leaves.push(leaf),
        Value::Object(map) => map.values_mut().for_each(|value| gather(value, leaves)),
        Value::Array(all) => all.iter_mut().for_each(|value| gather(value, leaves)),
        _ => {}
    }
}

/// Values at the ends of their types, and of other types.
fn hostile(number: u8) -> Value {
    match number % 16 {
        0 => Value::Null,
        1 => 0.into(),
        2 => 1.into(),
        3 => u32::MAX.into(),
        4 => u64::MAX.into(),
        5 => (-1).into(),
        6 => 1e308.into(),
        7 => 5e-324.into(),
        8 => (-1e308).into(),
        9 => 0.5.into(),
        10 => "".into(),
        11 => "=<b>@x|\u{1b}[2J".into(),
        12 => "x".repeat(300).into(),
        13 => Value::Array(Vec::new()),
        14 => true.into(),
        _ => 9_999.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;
    use std::time::{Duration, Instant};

    #[test]
    fn every_seed_and_changes_of_it_are_reported_or_refused() {
        crate::each_seed::each_seed("stored", fuzz_stored);
    }

    /// One value at a time, anywhere in the files.
    #[test]
    fn no_value_of_a_stored_run_takes_long_or_ends_the_program() {
        let mut random = Pcg64Mcg::seed_from_u64(7);
        for number in 0..400 {
            let change: [u8; 4] = [(number % 2) as u8, random.random(), random.random(), random.random()];
            let begin = Instant::now();
            fuzz_stored(&change);
            // A thousand times as long as usual: a size that a value has chosen.
            assert!(begin.elapsed() < Duration::from_secs(60), "{change:?}");
        }
    }

    #[test]
    fn the_seeds_are_runs() {
        for seed in SEEDS {
            let (plan, _) = seed.split_once('\n').unwrap();
            assert!(journal::parse_run(Path::new("run.json"), plan).is_ok());
        }
    }
}
