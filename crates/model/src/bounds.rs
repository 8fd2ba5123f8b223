//! Bounds of the numbers of a run: those of the flags that give them. A stored run has the same bounds, since
//! its folder may come from someone else.

use crate::{Found, LatencyMargin, PlannedComparison, PlannedRate, PlannedSuite, Run, Unit};
use linerate_contract::Nanos;

/// Measured rounds of a suite.
pub const MOST_ROUNDS: u32 = 10_000;
/// Units of a pair, each of which takes at least some tenths of a second.
pub const MOST_UNITS: u32 = 1_000_000;
/// Connections of a load: more than one machine has ports for.
pub const MOST_CONNECTIONS: u32 = 1_000_000;
/// Requests under way on each connection.
pub const MOST_STREAMS: u16 = 1_000;
/// A month.
const LONGEST_BUDGET: Nanos = Nanos(31 * 24 * 3_600 * 1_000_000_000);
/// The longest time that can be learned of a server: the longest warm-up is some seconds.
const LONGEST_LEARNED: Nanos = Nanos(3_600 * 1_000_000_000);
/// Operations per second of an open loop.
const HIGHEST_RATE: u64 = 10_000_000;
/// The highest rate of a closed loop, which is measured.
const HIGHEST_CAPACITY: f64 = 1e10;

/// A relative difference that matters.
///
/// # Errors
/// The number is out of bounds; the message has these.
pub fn margin(share: f64) -> Result<f64, String> {
    let wrong = "expected a difference above 0 and below 50%, such as 1%";
    if share > 0.0 && share < 0.5 { Ok(share) } else { Err(wrong.into()) }
}

/// A difference of latencies that matters, in microseconds.
///
/// # Errors
/// The number is out of bounds; the message has these.
pub fn microseconds(us: f64) -> Result<f64, String> {
    if us > 0.0 && us < 1e9 { Ok(us) } else { Err("expected microseconds above 0, such as 5".into()) }
}

/// The rate of open loops.
///
/// # Errors
/// The number is out of bounds; the message has these.
pub fn rate(rate: PlannedRate) -> Result<PlannedRate, String> {
    match rate {
        PlannedRate::Share(share) if share > 0.0 && share < 1.0 => Ok(rate),
        PlannedRate::PerSecond(1..=HIGHEST_RATE) => Ok(rate),
        _ => {
            Err("expected operations per second such as 5000, or a share of the baseline's capacity such as \
                  50%"
            .into())
        }
    }
}

/// The time of a run.
///
/// # Errors
/// The time is out of bounds; the message has these.
pub fn budget(time: Nanos) -> Result<Nanos, String> {
    if time > Nanos::ZERO && time <= LONGEST_BUDGET {
        Ok(time)
    } else {
        Err("expected a time above zero and of at most a month, such as 5m".into())
    }
}

impl Run {
    /// Checks that each number is one that a flag or a suite could have given, or a run have learned.
    ///
    /// # Errors
    /// The first that is not, with its place.
    pub fn check(&self) -> Result<(), String> {
        at("budget", self.budget.map_or(Ok(()), |time| budget(time).map(drop)))?;
        at("comparison", self.comparison.as_ref().map_or(Ok(()), check_comparison))?;
        at("rounds", up_to(self.rounds, MOST_ROUNDS))?;
        self.suites.iter().try_for_each(|suite| at(&suite.name, check_suite(suite)))?;
        at("learned.capacity", capacity(self.learned.capacity))?;
        let warmups = self.learned.servers.iter().filter_map(|server| server.warmup);
        let longest = warmups.map(|warmup| warmup.time.max(warmup.response)).max();
        match longest.filter(|time| *time > LONGEST_LEARNED) {
            Some(Nanos(time)) => Err(format!("learned.servers: no server takes {time} ns to be warm")),
            None => Ok(()),
        }
    }
}

impl Unit {
    /// # Errors
    /// The number of a unit that no run has, or a share that is none.
    pub(crate) fn check(&self) -> Result<(), String> {
        at("unit", up_to(self.number, MOST_UNITS))?;
        let Found::Together(together) = &self.found else { return Ok(()) };
        match together.probe.filter(|probe| probe.side > 1 || !(0.0..=1.0).contains(&probe.share)) {
            Some(probe) => Err(format!("probe: side {} and share {}", probe.side, probe.share)),
            None => Ok(()),
        }
    }
}

fn check_comparison(comparison: &PlannedComparison) -> Result<(), String> {
    at("margin", margin(comparison.margin))?;
    at(
        "latency_margin",
        match comparison.latency_margin {
            LatencyMargin::Share(share) => margin(share),
            LatencyMargin::Microseconds(us) => microseconds(us),
        },
    )?;
    let Some(load) = &comparison.load else {
        return comparison.rate.map_or(Ok(()), |all| at("rate", rate(all)));
    };
    for (place, all) in [("rate", comparison.rate), ("load.rate", load.rate)] {
        all.map_or(Ok(()), |all| at(place, rate(all)))?;
    }
    at("load.connections", up_to(load.connections, MOST_CONNECTIONS))?;
    at("load.streams", up_to(load.streams.unwrap_or(1), MOST_STREAMS))
}

fn check_suite(suite: &PlannedSuite) -> Result<(), String> {
    let PlannedSuite { rounds, warmup_rounds, solos, units, .. } = suite;
    let counts = [("rounds", *rounds), ("warmup_rounds", *warmup_rounds)].into_iter();
    let counts = counts.chain(solos.map(|solos| ("solos", solos))).chain(units.map(|units| ("units", units)));
    counts.into_iter().try_for_each(|(place, count)| at(place, up_to(count, MOST_ROUNDS)))?;
    if let Some(precision) = suite.precision {
        at("precision.time", budget(precision.time))?;
        at("precision.half_width", margin(precision.half_width))?;
    }
    for truth in suite.tables.iter().filter_map(|table| table.truth.as_ref()) {
        at("truth.tolerance", margin(truth.tolerance))?;
    }
    suite.cells.iter().try_for_each(|cell| at(&cell.id, capacity(cell.capacity)))
}

fn capacity(found: Option<f64>) -> Result<(), String> {
    match found.filter(|rate| !(0.0..=HIGHEST_CAPACITY).contains(rate)) {
        Some(rate) => Err(format!("no server has a rate of {rate}/s")),
        None => Ok(()),
    }
}

fn up_to<T: PartialOrd + std::fmt::Display>(count: T, most: T) -> Result<(), String> {
    if count <= most { Ok(()) } else { Err(format!("{count} is above {most}")) }
}

fn at<T>(place: &str, checked: Result<T, String>) -> Result<(), String> {
    checked.map(drop).map_err(|reason| format!("{place}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Learned, PlannedCell};
    use serde_json::json;

    fn refused(run: &Run) -> String {
        run.check().unwrap_err()
    }

    #[test]
    fn a_number_that_no_flag_accepts_is_refused_with_its_place() {
        let suite = |suite: PlannedSuite| Run { suites: vec![suite], ..Run::default() };
        let of = |change: fn(&mut PlannedSuite)| {
            let mut planned = PlannedSuite { name: "proxy".into(), ..PlannedSuite::default() };
            change(&mut planned);
            suite(planned)
        };
        assert_eq!(of(|suite| suite.rounds = MOST_ROUNDS).check(), Ok(()));
        assert_eq!(refused(&of(|suite| suite.rounds = u32::MAX)), "proxy: rounds: 4294967295 is above 10000");
        assert!(refused(&of(|suite| suite.solos = Some(u32::MAX))).starts_with("proxy: solos"));
        let cell = |suite: &mut PlannedSuite| {
            suite.cells =
                vec![PlannedCell { id: "a".into(), capacity: Some(1e308), ..PlannedCell::default() }];
        };
        assert!(refused(&of(cell)).starts_with("proxy: a: no server has a rate"));
        let long = Run { budget: Some(Nanos(u64::MAX)), ..Run::default() };
        assert!(refused(&long).starts_with("budget: expected a time"));
        let learned = Learned { capacity: Some(-1.0), ..Learned::default() };
        assert!(refused(&Run { learned, ..Run::default() }).starts_with("learned.capacity"));
    }

    #[test]
    fn a_stored_comparison_has_the_bounds_of_its_flags() {
        let with = |key: &str, value: serde_json::Value| {
            let load = json!({ "folder": "/", "port": 1, "requests": [], "connections": 1, "threads": 1 });
            let mut all = json!({ "kind": "gate", "subjects": [], "margin": 0.01, "load": load });
            *all.pointer_mut("").unwrap().as_object_mut().unwrap().entry(key).or_insert(json!(0)) = value;
            Run { comparison: Some(serde_json::from_value(all).unwrap()), ..Run::default() }
        };
        assert_eq!(with("margin", json!(0.01)).check(), Ok(()));
        for (key, value) in [
            ("margin", json!(1e308)),
            ("latency_margin", json!({ "microseconds": 1e300 })),
            ("rate", json!({ "share": -1.0 })),
            ("rate", json!({ "per-second": u64::MAX })),
        ] {
            assert!(refused(&with(key, value)).starts_with(&format!("comparison: {key}: expected")), "{key}");
        }
    }
}
