//! Latency by percentile: the x axis has a step for each tenth of the operations left.

use super::lines::{BOTTOM, LEFT, LinePlot, PlotLine, RIGHT, TOP};
use super::of_group;
use crate::axis::Axis;
use crate::layout::{Group, Part};
use linerate_analysis::stats::latency::LatencyCurve;

/// With more lines than these, bands would cover each other.
const MOST_BANDS: usize = 4;

/// Operations of an axis that ends at 99.95 % and beyond.
const LONG: f64 = 2_000.0;

/// `None` if no cell of the group has a histogram.
pub(super) fn plot(group: &Group<'_>) -> Option<LinePlot> {
    let curves: Vec<(&str, &LatencyCurve)> = group
        .members
        .iter()
        // A limit may be a thousand times faster, and would squash the others.
        .filter(|member| member.part != Part::Limit)
        .filter_map(|member| Some((member.label.as_str(), member.cell.latency_curve.as_ref()?)))
        .filter(|(_, curve)| curve.us.len() > 1)
        .collect();
    let last =
        curves.iter().flat_map(|(_, curve)| &curve.percent).filter_map(|p| slower(*p)).reduce(f64::max)?;
    let has_bands = curves.len() <= MOST_BANDS;
    let values = curves.iter().flat_map(|(_, curve)| curve.us.iter().copied());
    let bands = curves.iter().filter(|_| has_bands).flat_map(|(_, c)| c.trials_us.iter().flatten().copied());
    let lines = curves.iter().map(|(name, curve)| PlotLine {
        name: (*name).to_owned(),
        points: curve.percent.iter().zip(&curve.us).filter_map(|(p, us)| Some((slower(*p)?, *us))).collect(),
        band: curve
            .percent
            .iter()
            .zip(&curve.trials_us)
            .filter(|_| has_bands)
            .filter_map(|(percent, [low, high])| Some((slower(*percent)?, *low, *high)))
            .collect(),
        has_dots: false,
    });
    let ticks = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999, 99.99999];
    let x_ticks = ticks.into_iter().filter_map(|p| {
        let at = slower(p).filter(|at| *at <= last * 1.001)?;
        // Where the axis is long, there is no room for a number between its start and the median.
        Some((at, if p == 0.0 && last > LONG { String::new() } else { p.to_string() }))
    });
    Some(LinePlot {
        title: format!("Latency by percentile{}", of_group(group)),
        caption: if has_bands {
            "Lower is better. Bands: smallest to largest of the trials.".to_owned()
        } else {
            "Lower is better.".to_owned()
        },
        x_label: "operations that were at least as fast, %".to_owned(),
        y_label: "latency".to_owned(),
        is_of_times: true,
        x: Axis::log(1.0, last, LEFT, RIGHT),
        y: Axis::fitting(values.chain(bands), BOTTOM, TOP)?,
        x_ticks: x_ticks.collect(),
        lines: lines.collect(),
        is_higher_better: false,
        ideal: Vec::new(),
    })
}

/// One in how many operations is slower; `None` at 100 %, which has no place on the axis.
fn slower(percent: f64) -> Option<f64> {
    Some(1.0 / (1.0 - percent / 100.0)).filter(|at| at.is_finite())
}
