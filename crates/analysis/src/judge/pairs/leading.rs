//! Trials alone of a pair: which reading is first, the CPU time where a role is saturated, else the rate; and
//! whether they contradict the units.

use crate::judge::{CellSummary, SoloRatio};
use crate::stats::bound::Bottleneck;
use crate::stats::compare::log_ratios;
use crate::stats::duet::log_rates;
use linerate_contract::Role;
use linerate_model::{Metric, PlannedComparison, PlannedSystem, Unit};

/// The saturated roles of a pair, by its trials alone.
pub(super) struct Leading {
    /// The roles that have two builds.
    pub(super) subject: Vec<Role>,
    /// The role that used a CPU all the time in both cells.
    saturated: Option<Role>,
    /// The client did in one of them, and is not the subject.
    pub(super) client_is_limit: bool,
}

impl Leading {
    pub(super) fn find([head, base]: [&CellSummary<'_>; 2], plan: &PlannedComparison) -> Self {
        let bound = [head, base].map(|cell| match cell.bound()? {
            Bottleneck::Role(role) => Some(role),
            _ => None,
        });
        let of_base = &base.planned.systems;
        let is_in_base = |system: &PlannedSystem| {
            of_base.iter().any(|other| (other.role, &other.build) == (system.role, &system.build))
        };
        let differing = || head.planned.systems.iter().filter(|system| !is_in_base(system));
        let subject = match plan.role() {
            Some(role) => vec![role],
            None => differing().map(|system| system.role).collect(),
        };
        let client_is_limit = bound.contains(&Some(Role::Client)) && !subject.contains(&Role::Client);
        Self { saturated: bound[0].filter(|_| bound[0] == bound[1]), subject, client_is_limit }
    }

    /// The rate of a saturated role follows its CPU time, which is several times as certain.
    pub(super) fn is_cpu_first(&self) -> bool {
        self.saturated.is_some() || self.client_is_limit
    }
}

/// The ratio of one or two trials alone of head and base, with an interval by the scatter of the units.
pub(super) fn few_trials(
    [head, base]: [&CellSummary<'_>; 2],
    units: &[&Unit],
    metric: Metric,
) -> Option<SoloRatio> {
    let logs = log_ratios(&head.values(metric), &base.values(metric), metric.better()).collect::<Vec<_>>();
    let (ours, theirs): (Vec<f64>, Vec<f64>) =
        units.iter().filter_map(|unit| log_rates(unit, metric)).map(|[ours, theirs]| (ours, theirs)).unzip();
    SoloRatio::from_scatter(&logs, [&ours, &theirs])
}
