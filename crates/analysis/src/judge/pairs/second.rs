//! The second load of a comparison: an open loop at a share of the baseline's capacity, on the same launches.
//! Its findings are a family of their own, and decide nothing (docs/decisions/latency.md).

use super::Compared;
use super::finding::{Finding, Findings, Measure};
use super::load;
use super::pair::OfferedLoad;
use super::series::{Looks, PairSeries, Rules, holm};
use crate::judge::SortedJournal;
use crate::stats::duet::{cpu_per_operation, latencies, log_cpu_ratio_of};
use crate::stats::early;
use crate::stats::estimate::median;
use linerate_contract::Role;
use linerate_model::{Metric, PlannedRate, SecondLoadRate, Sides, Unit};
use serde::Serialize;

/// Operations of a side in a unit of which its p99 is known: ten are slower.
const FOR_P99: u64 = 1_000;

/// The findings about two subjects under the second load.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SecondLoad {
    pub load: OfferedLoad,
    /// Units of which both sides succeeded.
    pub units: u32,
    /// p50 and, of enough operations, p99; and the CPU time per operation.
    pub findings: Findings,
}

/// The units of a pair under its second load.
struct Second<'a> {
    units: Vec<&'a Unit>,
    rate: SecondLoadRate,
    cpu_of: &'a [Role],
    series: Vec<(Measure, PairSeries)>,
}

/// The second load of each pair, in their order; `None` where no unit of it was made.
pub(super) fn judge<'a>(
    compared: &'a [Compared<'a>],
    journal: &SortedJournal<'a>,
    looks: &Looks,
    rules: &Rules,
) -> Vec<Option<SecondLoad>> {
    let all: Vec<Option<Second<'_>>> = compared.iter().map(|pair| Second::new(pair, journal)).collect();
    let series: Vec<&PairSeries> =
        all.iter().flatten().flat_map(|one| &one.series).map(|(_, series)| series).collect();
    let mut crossings = holm(&series, looks, series.len()).into_iter();
    let rules = Rules { early_alpha: early::alpha(series.len()), is_gate: false, ..rules.clone() };
    all.into_iter()
        .map(|second| {
            let second = second?;
            let of_pair = crossings.by_ref().take(second.series.len()).collect::<Vec<_>>();
            let found = second.series.iter().zip(of_pair);
            let found = found.filter_map(|((measure, series), crossing)| {
                Some(second.with_values(series.finding(*measure, looks, crossing, &rules)?))
            });
            let SecondLoadRate { per_second, of_capacity } = second.rate;
            let planned = of_capacity.map(|[share, _]| PlannedRate::Share(share));
            let capacity = of_capacity.map(|[_, capacity]| capacity);
            Some(SecondLoad {
                findings: Findings(found.collect()),
                units: second.units.iter().filter(|unit| unit.both().is_some()).count() as u32,
                load: load::offered(per_second, planned, capacity, &second.units),
            })
        })
        .collect()
}

impl SecondLoad {
    /// The load beside the capacities that a closed loop has found.
    pub(super) fn beside(self, rate: Option<&Finding>) -> Self {
        Self { load: self.load.beside(rate), ..self }
    }
}

impl<'a> Second<'a> {
    fn new(pair: &'a Compared<'a>, journal: &SortedJournal<'a>) -> Option<Self> {
        let place = &pair.place;
        let units: Vec<&Unit> = journal.measured(place.index, Sides::AtRate(place.cells)).collect();
        // Of a kind without open loops no unit succeeded.
        let rate = units.iter().find(|unit| unit.both().is_some())?.together()?.second_load?;
        let cpu_of = &pair.cpu_of[..];
        let operations = |unit: &&Unit| {
            let sides = unit.both().into_iter().flatten();
            sides.map(|side| side.operations).min()
        };
        let has_p99 = units.iter().filter_map(operations).all(|operations| operations >= FOR_P99);
        let latencies = [Measure::P50].into_iter().chain(has_p99.then_some(Measure::P99));
        let of_latency =
            |measure: Measure| Some((measure, PairSeries::of_latency(&units, measure.latency()?)));
        let mut series: Vec<(Measure, PairSeries)> = latencies.filter_map(of_latency).collect();
        let cpu = PairSeries::from_units(&units, |sides| {
            log_cpu_ratio_of(sides, Metric::OperationsPerSecond, cpu_of).map(|log| -log)
        });
        series.push((Measure::Cpu, cpu));
        Some(Self { units, rate, cpu_of, series })
    }

    /// A finding with the median of base in its units.
    fn with_values(&self, found: Finding) -> Finding {
        let of_base = |unit: &&Unit| match found.measure.latency() {
            Some(metric) => Some(latencies(unit, metric)?[1]),
            None => {
                let base = &unit.both()?[1];
                let cost = cpu_per_operation(base, Metric::OperationsPerSecond, self.cpu_of) / 1e3;
                cost.is_finite().then_some(cost)
            }
        };
        let base = median(self.units.iter().filter_map(of_base).collect::<Vec<_>>());
        base.map_or(found, |base| found.with_base(base, |ratio| ratio))
    }
}
