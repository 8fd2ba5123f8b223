//! `linerate repeat`.

use super::{Terminal, print, stored};
use crate::cli::RepeatArgs;
use crate::error::Error;
use crate::journal;
use crate::measurement::Sharing;
use crate::repeat::{Pairing, Repeated, RepeatedPair, pairs};
use crate::report::plain_table;
use crate::stats::calibration::clopper_pearson;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Prints how well several runs agree, pair by pair and for each kind of pair.
///
/// # Errors
/// A folder contains no run, no pair is in two of them, or the file cannot be written.
pub fn repeat(args: &RepeatArgs, terminal: Terminal) -> Result<ExitCode, Error> {
    let runs = args.folders.iter().map(|folder| stored(folder)).collect::<Result<Vec<_>, Error>>()?;
    let found = pairs(runs.iter().map(|stored| (&stored.run, &stored.trials[..], &stored.duets[..])));
    if found.is_empty() {
        return Err(Error::Input(
            "no pair has six units in two of these runs; run the same suite again with another --out".into(),
        ));
    }
    if let Some(file) = &args.json {
        let all: Vec<Value> = found.iter().map(as_json).collect();
        let text = serde_json::to_string_pretty(&all).expect("a pair has string keys only");
        journal::write(file, &(text + "\n"))?;
    }
    print(&(by_pair(&found, terminal) + "\n" + &by_pairing(&found, terminal)))
}

fn name(pairing: Pairing) -> &'static str {
    match pairing {
        Pairing::Duet(Sharing::Together) => "side by side",
        Pairing::Duet(Sharing::Turns) => "in turns",
        Pairing::Duet(Sharing::Alternating) => "alternating load",
        Pairing::Alone => "alone",
        Pairing::Mixed => "in different ways",
    }
}

fn by_pair(found: &[RepeatedPair], terminal: Terminal) -> String {
    let mut table = plain_table(terminal.style);
    let of_reading = ["ratio", "spread %", "half-width %", "inside"];
    let headers = ["pair", "measured", "runs"].into_iter().chain(of_reading);
    table.set_header(headers.chain(["CPU ratio", "spread %", "half-width %", "inside"]));
    let reading = |repeated: Option<&Repeated>| match repeated {
        Some(Repeated { runs, ratio, between, within, inside }) => [
            format!("{ratio:.4}"),
            format!("{:.2}", between * 100.0),
            format!("{:.2}", within * 100.0),
            format!("{inside} of {runs}"),
        ],
        None => ["-", "-", "-", "-"].map(str::to_owned),
    };
    for pair in found {
        let first = [format!("{}:{}", pair.suite, pair.cell), name(pair.pairing).into()];
        let first = first.into_iter().chain([pair.rate.runs.to_string()]);
        table.add_row(first.chain(reading(Some(&pair.rate))).chain(reading(pair.cpu.as_ref())));
    }
    format!("{}\n", table.trim_fmt())
}

/// How many intervals contain the mean, for each way of measuring and in all.
fn by_pairing(found: &[RepeatedPair], terminal: Terminal) -> String {
    let mut groups: BTreeMap<Option<Pairing>, Vec<&RepeatedPair>> = BTreeMap::new();
    for pair in found {
        groups.entry(Some(pair.pairing)).or_default().push(pair);
        groups.entry(None).or_default().push(pair);
    }
    let mut table = plain_table(terminal.style);
    table.set_header(["measured", "pairs", "rate: intervals with the mean", "CPU: intervals with the mean"]);
    let share = |readings: Vec<&Repeated>| {
        let sum = |of: fn(&Repeated) -> u64| readings.iter().map(|each| of(each)).sum::<u64>();
        let (inside, runs) = (sum(|each| each.inside), sum(|each| each.runs));
        if runs == 0 {
            return "-".to_owned();
        }
        let [low, high] = clopper_pearson(inside, runs).map(|bound| bound * 100.0);
        let percent = inside as f64 / runs as f64 * 100.0;
        format!("{inside} of {runs}: {percent:.0} % ({low:.0} to {high:.0})")
    };
    let (all, kinds): (Vec<_>, Vec<_>) = groups.into_iter().partition(|(pairing, _)| pairing.is_none());
    for (pairing, pairs) in kinds.into_iter().chain(all) {
        let rate = share(pairs.iter().map(|pair| &pair.rate).collect());
        let cpu = share(pairs.iter().filter_map(|pair| pair.cpu.as_ref()).collect());
        table.add_row([pairing.map_or("all", name).to_owned(), pairs.len().to_string(), rate, cpu]);
    }
    let about =
        "the mean contains each run itself: more than 95 % are to be expected where intervals are right";
    format!("{}\n{about}\n", table.trim_fmt())
}

fn as_json(pair: &RepeatedPair) -> Value {
    let reading = |repeated: &Repeated| {
        let Repeated { runs, ratio, between, within, inside } = *repeated;
        json!({"runs": runs, "ratio": ratio, "spread": between, "half_width": within, "inside": inside})
    };
    json!({
        "suite": pair.suite,
        "cell": pair.cell,
        "with": pair.with,
        "measured": name(pair.pairing),
        "rate": reading(&pair.rate),
        "cpu": pair.cpu.as_ref().map(reading),
    })
}
