//! Each of several requests by itself: under the second load where a pair has one, else in its own units. The
//! latencies are a family of their own, and decide nothing.

use super::finding::{Finding, Measure};
use super::series::{Looks, PairSeries, Rules, holm};
use super::{JudgedPair, Judgement};
use crate::judge::SortedJournal;
use crate::stats::duet::latencies;
use crate::stats::estimate::median;
use linerate_contract::{Counts, Errors};
use linerate_model::{Metric, PlannedRequest, Run, SideWindow, Sides, Together, Unit};
use serde::Serialize;
use std::cmp::Reverse;

/// One of several requests, with the numbers of base and head.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestFinding {
    pub method: String,
    pub path: String,
    /// Operations that succeeded, in all units together.
    pub operations: [u64; 2],
    /// Operations that failed, by kind.
    #[cfg_attr(feature = "schema", schemars(with = "[std::collections::BTreeMap<String, u64>; 2]"))]
    pub errors: [Errors; 2],
    /// p50 of an open loop: base in its units, and that by the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<Finding>,
    /// p99 of an open loop in microseconds, of all units together; absent where no operation is slower.
    pub p99_us: [Option<f64>; 2],
}

impl RequestFinding {
    /// Operations that failed.
    pub fn failed(&self) -> [u64; 2] {
        self.errors.each_ref().map(Errors::total)
    }
}

/// The requests of each pair of the judgement, the most frequent ones first; empty where there is but one.
pub fn by_request(run: &Run, judgement: &Judgement, journal: &SortedJournal<'_>) -> Vec<Vec<RequestFinding>> {
    let Some((plan, (_, load))) = run.policy().verdict().and_then(|plan| Some((plan, plan.servers()?)))
    else {
        return judgement.pairs.iter().map(|_| Vec::new()).collect();
    };
    let mut requests: Vec<(usize, &PlannedRequest)> = load.requests.iter().enumerate().collect();
    requests.sort_by_key(|(_, request)| Reverse(request.weight));
    let of_pair = |pair: &JudgedPair| {
        let units = units(pair, journal);
        requests.iter().filter_map(|(index, request)| Counted::new(&units, *index, request)).collect()
    };
    let pairs: Vec<Vec<Counted>> = judgement.pairs.iter().map(of_pair).collect();
    let looks = Looks::from_run(run, &journal.all().collect::<Vec<_>>());
    let series: Vec<&PairSeries> = pairs.iter().flatten().map(|request| &request.series).collect();
    let rules = Rules { is_gate: false, ..Rules::new(plan, &looks, series.len(), judgement.is_void) };
    let mut crossings = holm(&series, &looks, series.len()).into_iter();
    let mut judged = |request: &Counted| {
        let found = request.series.finding(Measure::P50, &looks, crossings.next().flatten(), &rules);
        let found = found.map(|found| Finding { decides: false, ..found });
        let p50 = found.zip(request.base).map(|(found, base)| found.with_base(base, |ratio| ratio));
        RequestFinding { p50, ..request.counts.clone() }
    };
    pairs.iter().map(|requests| requests.iter().map(&mut judged).collect()).collect()
}

/// The units of the second load, or those of the pair where it has none.
fn units<'a>(pair: &JudgedPair, journal: &SortedJournal<'a>) -> Vec<&'a Unit> {
    let sides = match pair.second_load {
        Some(_) => Sides::AtRate(pair.places),
        None => Sides::Two(pair.places),
    };
    journal.measured(pair.suite, sides).collect()
}

/// One of several requests in the units of a pair.
struct Counted {
    counts: RequestFinding,
    series: PairSeries,
    /// The median p50 of base, in microseconds.
    base: Option<f64>,
}

impl Counted {
    /// `None` where requests were not counted by themselves.
    fn new(units: &[&Unit], index: usize, request: &PlannedRequest) -> Option<Self> {
        let units: Vec<Unit> = units.iter().filter_map(|unit| of_request(unit, index)).collect();
        let units: Vec<&Unit> = units.iter().collect();
        units.first()?;
        // Sides are head and base.
        let windows = |side: usize| units.iter().filter_map(move |unit| Some(&unit.both()?[side]));
        let counts = RequestFinding {
            method: request.method.clone(),
            path: request.path.clone(),
            operations: [1, 0].map(|side| windows(side).map(|window| window.operations).sum()),
            errors: [1, 0].map(|side| {
                windows(side).fold(Errors::default(), |mut sum, window| {
                    sum.merge(&window.errors);
                    sum
                })
            }),
            p50: None,
            p99_us: [1, 0].map(|side| {
                let all = windows(side).filter_map(|window| Some(window.latency.as_ref()?.counts()));
                Counts::sum(all).supported_percentile(99.0).map(|nanos| nanos as f64 / 1e3)
            }),
        };
        let metric = Metric::P50Latency;
        let of_base = units.iter().filter_map(|unit| Some(latencies(unit, metric)?[1]));
        let base = median(of_base.collect::<Vec<_>>());
        Some(Self { counts, base, series: PairSeries::of_latency(&units, metric) })
    }
}

/// A unit as if this request had been the only one.
fn of_request(unit: &Unit, index: usize) -> Option<Unit> {
    let of_sides = |[head, base]: &[SideWindow; 2]| Some([head.of_request(index)?, base.of_request(index)?]);
    let both = unit.together()?;
    let together = Together {
        sides: Some(of_sides(both.sides.as_ref()?)?),
        windows: both.windows.iter().filter_map(of_sides).collect(),
        ..Together::new(both.sharing)
    };
    Some(Unit { number: unit.number, ..Unit::new(unit.sides, together.into()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::ErrorKind;
    use linerate_model::{Histogram, RequestWindow, Sharing};

    /// A unit in which head needs 1.5 times as long for the second of two requests, and fails it once.
    fn unit(number: u32) -> Unit {
        let request = |us: f64, failed: u64| {
            let nanos = (us * 1e3) as u64;
            let all = Counts { pairs: vec![(nanos, 40), (2 * nanos, 10)], min: nanos, max: 2 * nanos };
            let mut errors = Errors::default();
            errors.add(ErrorKind::Reset, failed);
            RequestWindow { operations: 50, errors, latency: Some(Histogram::from(all)) }
        };
        let side = |second| SideWindow { requests: vec![request(100.0, 0), second], ..SideWindow::default() };
        let sides = [side(request(300.0, 1)), side(request(200.0, 0))];
        let together = Together { sides: Some(sides), ..Together::new(Sharing::Alternating) };
        Unit { number, ..Unit::new(Sides::AtRate([1, 0]), together.into()) }
    }

    #[test]
    fn a_request_has_its_own_numbers_base_first() {
        let units: Vec<Unit> = (1..=4).map(unit).collect();
        let units: Vec<&Unit> = units.iter().collect();
        let request: PlannedRequest = serde_json::from_str(r#"{"method": "PUT", "path": "/a"}"#).unwrap();
        let [same, slower] = [0, 1].map(|index| Counted::new(&units, index, &request).unwrap());
        assert_eq!((same.base, slower.base), (Some(100.0), Some(200.0)));
        assert_eq!((same.counts.failed(), slower.counts.failed()), ([0, 0], [0, 4]));
        assert_eq!((slower.counts.operations, slower.counts.method.as_str()), ([200, 200], "PUT"));
        // Two of 200 are slower than p99, where one of 50 in a unit was not.
        assert_eq!(slower.counts.p99_us, [Some(400.0), Some(600.0)]);
        assert!(Counted::new(&units, 2, &request).is_none(), "it was not counted");
    }
}
