//! `linerate calibrate`.

use super::{Terminal, print};
use crate::arm::Arm;
use crate::cli::CalibrateArgs;
use crate::error::Error;
use crate::measurement::{ComparisonKind, Duet, Metric, PlannedSuite, Stored};
use crate::report::{self, plain_table};
use crate::stats::calibration::{Detection, clopper_pearson};
use crate::stats::duet::{log_cpu_ratio, log_ratio};
use crate::stats::ratio::RatioEstimate;
use std::collections::BTreeMap;
use std::path::PathBuf;
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
    print(&counts(&args.folders, terminal)?)
}

/// What the comparisons of stored runs found: those of gates by their verdicts, those of tables by groups of
/// units.
///
/// # Errors
/// As of [`calibrate`].
pub(super) fn counts(folders: &[PathBuf], terminal: Terminal) -> Result<String, Error> {
    let (mut controls, mut planted) = (Vec::new(), Vec::new());
    let mut gates = BTreeMap::<u32, (Detection, f64)>::new();
    for folder in folders {
        let stored = super::stored(folder)?;
        if stored.run.policy().verdict().is_some_and(|plan| plan.kind == ComparisonKind::Gate) {
            let Some(gate) = report::from_stored(&stored).comparison else { continue };
            let (found, seconds) = gates.entry(iterations(&gate.head.arm)).or_default();
            *found = found.and(Detection::one(gate.conclusion));
            *seconds += gate.seconds;
            continue;
        }
        for pair in pairs(&stored) {
            if pair.is_control() { controls.push(pair) } else { planted.push(pair) }
        }
    }
    planted.retain(|pair| pair.suite == PLANTED);
    if controls.is_empty() && gates.is_empty() {
        return Err(Error::Input(
            "no A/A control and no gate in these runs; `linerate run calibration` makes some".into(),
        ));
    }
    let mut text = String::new();
    for (title, pairs) in [
        ("False alarms: cells in duet with themselves", &controls),
        ("Planted differences: 0 iterations is what each is compared with", &planted),
    ] {
        if !pairs.is_empty() {
            text += &(table(title, pairs, terminal) + "\n");
        }
    }
    Ok(text + &all_together(&controls, &gates, terminal))
}

/// The planted iterations of a gate's head.
fn iterations(head: &str) -> u32 {
    Arm::parse(head).ok().and_then(|arm| arm.plant).unwrap_or(0)
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
    fn from_duets(suite: &PlannedSuite, cells: &[String; 2], duets: &[Duet]) -> Option<Self> {
        let metric = metric(suite, &cells[0])?;
        let mut units: Vec<&Duet> = duets
            .iter()
            .filter(|duet| {
                duet.suite == suite.name && duet.cells == *cells && !duet.warmup && duet.probe.is_none()
            })
            .collect();
        units.sort_by_key(|duet| duet.unit);
        let logs: Vec<f64> = units.iter().filter_map(|duet| log_ratio(duet, metric)).collect();
        let cpu = units.iter().filter_map(|duet| log_cpu_ratio(duet, metric, &[])).collect();
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
            RatioEstimate::from_logs(logs.iter().copied()).map_or_else(String::new, |found| {
                let [low, high] = found.ci95.unwrap_or(found.range);
                format!("{:.4} ({low:.4} to {high:.4})", found.ratio)
            })
        };
        let first = [format!("{}:{}", self.suite, self.cells[0]), self.logs.len().to_string()];
        let found = UNITS.map(|units| self.found(units));
        first.into_iter().chain([ratio(&self.logs), ratio(&self.cpu)]).chain(found).collect()
    }

    /// `3 of 40 in 5 s`.
    fn found(&self, units: usize) -> String {
        let all = Detection::count(&self.logs, units);
        let found = if self.is_control() { all.slower + all.faster } else { all.slower };
        let wrong = match all.faster {
            wrong @ 1.. if !self.is_control() => format!(", {wrong} wrong"),
            _ => String::new(),
        };
        match all.comparisons() {
            0 => "-".into(),
            n => format!("{found} of {n}{wrong} in {:.0} s", self.seconds * units as f64),
        }
    }
}

fn pairs(stored: &Stored) -> Vec<Pair> {
    let of_suite = |suite: &PlannedSuite| {
        let pairs = suite.pairs.iter().filter_map(|pair| Pair::from_duets(suite, &pair.cells, &stored.duets));
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

/// All controls together, by the number of their units, and all gates, by what was planted.
fn all_together(controls: &[Pair], gates: &BTreeMap<u32, (Detection, f64)>, terminal: Terminal) -> String {
    let mut table = plain_table(terminal.style);
    table.set_header(["planted", "comparisons", "slower", "faster", "neither", "share (95 %)", "each"]);
    let mut add = |name: String, all: Detection, found: u64, time: f64| {
        let share = |count: f64| format!("{:.1}", count * 100.0);
        let n = all.comparisons();
        let [low, high] = clopper_pearson(found, n).map(share);
        let counts = [n, all.slower, all.faster, all.none].map(|count| count.to_string());
        let last =
            [format!("{} % ({low} to {high})", share(found as f64 / n as f64)), format!("{time:.1} s")];
        table.add_row([name].into_iter().chain(counts).chain(last));
    };
    for units in UNITS {
        let all = controls.iter().map(|pair| Detection::count(&pair.logs, units));
        let all = all.fold(Detection::default(), Detection::and);
        let of_unit = controls.iter().map(|pair| pair.seconds).sum::<f64>() / controls.len() as f64;
        if all.comparisons() > 0 {
            let name = format!("nothing, {units} units each");
            add(name, all, all.slower + all.faster, of_unit * units as f64);
        }
    }
    for (iterations, (all, time)) in gates {
        let planted =
            if *iterations == 0 { "nothing".to_owned() } else { format!("{iterations} iterations") };
        add(format!("{planted}, gate"), *all, all.slower, time / all.comparisons() as f64);
    }
    let about = "share: of comparisons that found a difference, of gates a slowdown; where nothing is \
                 planted these are false alarms, else it is the power";
    format!("{}\n{about}\n", table.trim_fmt())
}
