//! `linerate calibrate`.

use super::{Terminal, print};
use crate::cli::CalibrateArgs;
use crate::error::Error;
use crate::journal;
use crate::measurement::{Duet, Metric, PlannedSuite, Stored};
use crate::progress::note;
use crate::report::plain_table;
use crate::stats::calibration::{Detection, clopper_pearson};
use crate::stats::duet::{log_cpu_ratio, log_ratio};
use crate::stats::ratio::RatioEstimate;
use std::process::ExitCode;

/// Units of a comparison: the fewest with a 95 % interval, those of a quick and a full run, and more.
const UNITS: [usize; 5] = [6, 12, 20, 60, 120];
/// The suite with planted differences; of others only the A/A controls are used.
const PLANTED: &str = "calibration";

/// Prints how often the comparisons of stored runs found a difference.
///
/// # Errors
/// A folder contains no run, or none contains a duet that can be used.
pub fn calibrate(args: &CalibrateArgs, terminal: Terminal) -> Result<ExitCode, Error> {
    let mut controls = Vec::new();
    let mut planted = Vec::new();
    for folder in &args.folders {
        let stored = journal::read(folder)?;
        stored.warnings.iter().for_each(|warning| note(&format!("warning: {warning}")));
        for pair in pairs(&stored) {
            if pair.is_control() { controls.push(pair) } else { planted.push(pair) }
        }
    }
    planted.retain(|pair| pair.suite == PLANTED);
    if controls.is_empty() {
        return Err(Error::Input(
            "no A/A control in these runs; `linerate run calibration` makes some".into(),
        ));
    }
    let mut text = table("False alarms: cells in duet with themselves", &controls, terminal);
    text += &sum(&controls);
    if !planted.is_empty() {
        text += "\n";
        text += &table("Planted differences: 0 iterations is what each is compared with", &planted, terminal);
    }
    print(&text)
}

/// The units of a pair.
struct Pair {
    suite: String,
    cells: [String; 2],
    logs: Vec<f64>,
    cpu: Vec<f64>,
    /// Seconds of a unit, start and end included.
    seconds: f64,
}

impl Pair {
    fn of(suite: &PlannedSuite, cells: &[String; 2], duets: &[Duet]) -> Option<Self> {
        let metric = metric(suite, &cells[0])?;
        let mut units: Vec<&Duet> = duets
            .iter()
            .filter(|duet| {
                duet.suite == suite.name && duet.cells == *cells && !duet.warmup && duet.probe.is_none()
            })
            .collect();
        units.sort_by_key(|duet| duet.unit);
        let logs: Vec<f64> = units.iter().filter_map(|duet| log_ratio(duet, metric)).collect();
        let cpu = units.iter().filter_map(|duet| log_cpu_ratio(duet, metric, None)).collect();
        let seconds = units.iter().map(|duet| duet.time().as_secs_f64()).sum::<f64>() / units.len() as f64;
        (!logs.is_empty()).then(|| Self {
            suite: suite.name.clone(),
            cells: cells.clone(),
            logs,
            cpu,
            seconds,
        })
    }

    fn is_control(&self) -> bool {
        self.cells[0] == self.cells[1]
    }

    fn row(&self) -> Vec<String> {
        let ratio = |logs: &[f64]| {
            RatioEstimate::of(logs.iter().copied()).map_or_else(String::new, |found| {
                let [low, high] = found.ci95.unwrap_or(found.range);
                format!("{:.4} ({low:.4} to {high:.4})", found.ratio)
            })
        };
        let first = [format!("{}:{}", self.suite, self.cells[0]), self.logs.len().to_string()];
        let found = UNITS.map(|units| self.found(Detection::of(&self.logs, units)));
        first.into_iter().chain([ratio(&self.logs), ratio(&self.cpu)]).chain(found).collect()
    }

    /// `3 of 40 in 5 s`.
    fn found(&self, detection: Detection) -> String {
        let Detection { comparisons, slower, faster, units } = detection;
        let found = if self.is_control() { slower + faster } else { slower };
        let wrong =
            if self.is_control() || faster == 0 { String::new() } else { format!(", {faster} wrong") };
        let seconds = self.seconds * units as f64;
        if comparisons == 0 {
            "-".into()
        } else {
            format!("{found} of {comparisons}{wrong} in {seconds:.0} s")
        }
    }
}

fn pairs(stored: &Stored) -> Vec<Pair> {
    let of_suite = |suite: &PlannedSuite| {
        let pairs = suite.pairs.iter().filter_map(|pair| Pair::of(suite, &pair.cells, &stored.duets));
        pairs.collect::<Vec<_>>()
    };
    stored.run.suites.iter().flat_map(of_suite).collect()
}

fn metric(suite: &PlannedSuite, cell: &String) -> Option<Metric> {
    suite.tables.iter().find(|table| table.cells.contains(cell)).map(|table| table.metric)
}

fn table(title: &str, pairs: &[Pair], terminal: Terminal) -> String {
    let found = UNITS.map(|units| format!("found by {units} units"));
    let head = ["cell", "units", "ratio (95 %)", "CPU ratio (95 %)"].map(str::to_owned);
    let head: Vec<String> = head.into_iter().chain(found).collect();
    let mut table = plain_table(terminal.style);
    table.set_header(head).add_rows(pairs.iter().map(Pair::row));
    format!("{title}\n{}\n", table.trim_fmt())
}

/// The false alarms of all controls together.
fn sum(controls: &[Pair]) -> String {
    let line = |units: usize| {
        let all = controls.iter().map(|pair| Detection::of(&pair.logs, units));
        let all = all.reduce(Detection::and).filter(|all| all.comparisons > 0)?;
        let alarms = all.slower + all.faster;
        let [low, high] = clopper_pearson(alarms, all.comparisons).map(|p| p * 100.0);
        let share = alarms as f64 / all.comparisons as f64 * 100.0;
        Some(format!(
            "all, {units} units each: {alarms} of {} ({share:.1} %, 95 %: {low:.1} to {high:.1})\n",
            all.comparisons
        ))
    };
    UNITS.into_iter().filter_map(line).collect()
}
