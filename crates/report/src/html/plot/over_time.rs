//! Throughput over the time of a stream.

use super::lines::{BOTTOM, LEFT, LinePlot, PlotLine, RIGHT, TOP};
use super::of_group;
use crate::axis::Axis;
use crate::axis::short;
use crate::layout::Group;
use crate::model::SeriesReport;

/// `None` if no cell of the group has a series.
pub(super) fn plot(group: &Group<'_>) -> Option<LinePlot> {
    let series: Vec<(&str, &SeriesReport)> = group
        .members
        .iter()
        .filter_map(|member| Some((member.label.as_str(), member.cell.series.as_ref()?)))
        .filter(|(_, series)| series.gbit_per_second.len() > 1 && series.step_ms > 0.0)
        .collect();
    let seconds = |series: &SeriesReport| series.step_ms / 1e3 * series.gbit_per_second.len() as f64;
    let last = series.iter().map(|(_, series)| seconds(series)).reduce(f64::max)?;
    let values = series.iter().flat_map(|(_, series)| series.gbit_per_second.iter().copied());
    let highest = values.clone().filter(|value| value.is_finite()).reduce(f64::max).filter(|v| *v > 0.0)?;
    let lines = series.iter().map(|(name, series)| PlotLine {
        name: (*name).to_owned(),
        points: series
            .gbit_per_second
            .iter()
            .enumerate()
            .map(|(i, value)| (series.step_ms / 1e3 * (i + 1) as f64, *value))
            .collect(),
        band: Vec::new(),
        has_dots: true,
    });
    let x = Axis::linear(0.0, last, LEFT, RIGHT);
    Some(LinePlot {
        title: format!("Throughput over time{}", of_group(group)),
        caption: "Each point: the median of the trials alone in that step.".to_owned(),
        x_label: "seconds".to_owned(),
        y_label: "Gbit/s".to_owned(),
        is_of_times: false,
        x_ticks: x.ticks(5).into_iter().map(|tick| (tick, short(tick))).collect(),
        x,
        y: Axis::linear(0.0, highest * 1.05, BOTTOM, TOP),
        lines: lines.collect(),
        is_higher_better: true,
        ideal: Vec::new(),
    })
}
