//! Results by a parameter: an axis of the table that has numbers, such as threads, connections or sizes. With
//! threads or CPUs: the line of ideal scaling. By offered load: latency and CPU, whatever the table's metric.

use super::lines::{BOTTOM, LEFT, LinePlot, PlotLine, RIGHT, TOP};
use crate::axis::Axis;
use crate::axis::short;
use crate::html::bars;
use crate::layout::{self, Alternative, Group};
use crate::model::{CellReport, TableCell, TableReport};
use crate::numbers::TimeUnit;
use crate::words;
use linerate_analysis::stats::cost::Consumer;
use linerate_analysis::stats::latency::Latency;
use linerate_contract::Role;
use linerate_model::Better;
use linerate_model::Metric;
use std::collections::BTreeSet;

/// The drawn part of a cell: the value and its interval.
type Value<'a> = Box<dyn Fn(&Alternative<'_>) -> Option<(f64, [f64; 2])> + 'a>;

pub(super) use crate::model::LOAD_AXIS as LOAD;

const LATENCY: &str = "latency";
/// Axes by which a rate should grow in proportion.
const SCALING: [&str; 2] = ["threads", "cpus"];

pub(super) fn plots(table: &TableReport, groups: &[Group<'_>]) -> Vec<LinePlot> {
    let mut plots = Vec::new();
    for axis in [&table.rows, &table.columns] {
        let points = points(axis, groups);
        let numbers: BTreeSet<u64> = points.iter().map(|point| point.x.to_bits()).collect();
        let members: usize = groups.iter().map(|group| group.members.len()).sum();
        // All cells, since a word such as `all` among the numbers has no place on the axis.
        if numbers.len() < 2 || points.len() < members || table.truth_tolerance.is_some() {
            continue;
        }
        let mut panels: Vec<&str> = points.iter().map(|point| point.panel.as_str()).collect();
        panels.sort_unstable();
        panels.dedup();
        for panel in panels {
            let here: Vec<&Point<'_>> = points.iter().filter(|point| point.panel == panel).collect();
            for what in figures(table, axis) {
                plots.extend(plot(table, axis, panel, &here, &what));
            }
        }
    }
    plots
}

/// A cell on the axis.
struct Point<'a> {
    x: f64,
    /// The line of the point, and the figure that has the line.
    line: String,
    panel: String,
    member: &'a Alternative<'a>,
}

/// A cell's line has the values of all other axes in which its neighbours differ.
fn points<'a>(axis: &str, groups: &'a [Group<'a>]) -> Vec<Point<'a>> {
    let cells: Vec<&CellReport> =
        groups.iter().flat_map(|group| &group.members).map(|member| member.cell).collect();
    let varies = |name: &str| {
        let mut values = cells.iter().map(|cell| cell.axes.get(name));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    // Where the axis is what is compared, a group is a line; else a line goes through the groups.
    let is_compared = groups.iter().any(|group| {
        let values: BTreeSet<Option<&str>> = group.members.iter().map(|m| m.cell.axes.get(axis)).collect();
        values.len() > 1
    });
    let others = |cell: &CellReport, compared: &Group<'_>| {
        let same = |name: &str| {
            compared.members.iter().all(|member| member.cell.axes.get(name) == cell.axes.get(name))
        };
        layout::named(cell.axes.0.iter().filter(|(name, _)| name != axis && same(name) && varies(name)))
    };
    let mut points = Vec::new();
    for group in groups {
        for member in &group.members {
            let Some(x) = member.cell.axes.get(axis).and_then(number) else { continue };
            let (line, panel) = if is_compared {
                (group.label.clone(), String::new())
            } else {
                (member.label.clone(), others(member.cell, group))
            };
            points.push(Point { x, line, panel, member });
        }
    }
    points
}

/// `64`, `1%`, `20ms`; `None` for words.
fn number(value: &str) -> Option<f64> {
    let end = value.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(value.len());
    let is_unit = ["", "%", "ms", "us", "s", "k", "B"].contains(&value[end..].trim());
    value[..end].parse().ok().filter(|number: &f64| is_unit && number.is_finite())
}

/// The part of each cell that a figure draws.
struct Drawn<'a> {
    title: String,
    unit: String,
    is_of_times: bool,
    value: Value<'a>,
    is_rate: bool,
}

fn figures<'a>(table: &'a TableReport, axis: &str) -> Vec<Drawn<'a>> {
    let latency = table.quantity().filter(|of| of.metric.is_latency());
    let own = Drawn {
        title: format!("Result by {axis}"),
        unit: latency
            .map_or_else(|| layout::unit(table), |of| words::parts(of, TimeUnit::Micros).0.to_owned()),
        is_of_times: latency.is_some(),
        value: Box::new(|member| of_row(member.entry)),
        is_rate: table.better == Better::Higher,
    };
    if axis != LOAD {
        return vec![own];
    }
    // As the table has it, else of the trials alone.
    let latency = |title: &str, metric: Metric, alone: fn(&Latency) -> f64| Drawn {
        title: title.to_owned(),
        unit: LATENCY.to_owned(),
        is_of_times: true,
        value: Box::new(move |member| {
            let mut cells = table.cells.iter().filter(|entry| entry.id == member.cell.id);
            let entry = cells.find(|entry| entry.metric.is_some_and(|of| of.metric == metric));
            let alone = || member.cell.latency_us.as_ref().map(|found| (alone(found), [alone(found); 2]));
            entry.and_then(of_row).or_else(alone)
        }),
        is_rate: false,
    };
    vec![
        latency("Median latency by offered load", Metric::P50Latency, |latency| latency.p50),
        latency("p90 latency by offered load", Metric::P90Latency, |latency| latency.p90),
        latency("p99 latency by offered load", Metric::P99Latency, |latency| latency.p99),
        Drawn {
            title: "Server CPU by offered load".to_owned(),
            unit: "µs/operation".to_owned(),
            is_of_times: false,
            value: Box::new(|member| {
                let row = member.entry.cpu.as_ref().filter(|row| row.cost.us_per_op.is_some())?;
                let parts = bars::parts(member.cell, row);
                let (_, server) = parts.iter().find(|(role, _)| *role == Consumer::Role(Role::Server))?;
                let share = server / row.cost.micros()?;
                Some((*server, row.cost.ci95.map_or([*server; 2], |ends| ends.map(|end| end * share))))
            }),
            is_rate: false,
        },
    ]
}

/// The value of a row, and its interval; of width 0 without one.
fn of_row(entry: &TableCell) -> Option<(f64, [f64; 2])> {
    let value = entry.value?;
    Some((value, entry.ci95.unwrap_or([value; 2])))
}

fn plot(
    table: &TableReport,
    axis: &str,
    panel: &str,
    points: &[&Point<'_>],
    what: &Drawn<'_>,
) -> Option<LinePlot> {
    let mut lines: Vec<PlotLine> = Vec::new();
    for point in points {
        let Some((value, [low, high])) = (what.value)(point.member) else { continue };
        if ![value, low, high].iter().all(|v| v.is_finite()) {
            continue;
        }
        let at = lines.iter().position(|line| line.name == point.line).unwrap_or_else(|| {
            let name = point.line.clone();
            lines.push(PlotLine { name, points: vec![], band: vec![], has_dots: true });
            lines.len() - 1
        });
        lines[at].points.push((point.x, value));
        lines[at].band.push((point.x, low, high));
    }
    lines.retain(|line| line.points.len() > 1);
    for line in &mut lines {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        line.band.sort_by(|a, b| a.0.total_cmp(&b.0));
        if line.name.is_empty() {
            line.name.clone_from(&table.name);
        }
    }
    let all = || lines.iter().flat_map(|line| line.points.iter().copied());
    let xs: BTreeSet<u64> = all().map(|(x, _)| x.to_bits()).collect();
    let xs: Vec<f64> = xs.into_iter().map(f64::from_bits).collect();
    let x = match xs.last() {
        // Where a line bends is a share of the capacity.
        Some(most) if axis == LOAD => Axis::linear(0.0, most * 1.05, LEFT, RIGHT),
        _ => Axis::fitting(xs.iter().copied(), LEFT, RIGHT)?,
    };
    let ideal = ideal(axis, what, &lines);
    let y =
        Axis::fitting(lines.iter().flat_map(|l| l.band.iter().flat_map(|(_, a, b)| [*a, *b])), BOTTOM, TOP)?;
    let caption = match table.better {
        _ if what.unit == LATENCY => "Where a line bends upwards, the load is near the capacity.",
        Better::Higher => "Higher is better.",
        Better::Lower => "Lower is better.",
    };
    let has_bands = lines.iter().flat_map(|line| &line.band).any(|(_, low, high)| low < high);
    let bands = if has_bands { " Bands: 95 % intervals." } else { "" };
    Some(LinePlot {
        title: if panel.is_empty() { what.title.clone() } else { format!("{}, {panel}", what.title) },
        caption: format!("{caption}{bands}"),
        x_label: if axis == LOAD { "load, % of the closed loop".into() } else { axis.to_owned() },
        y_label: what.unit.clone(),
        is_of_times: what.is_of_times,
        x_ticks: if xs.len() <= 8 {
            xs.iter().map(|x| (*x, short(*x))).collect()
        } else {
            x.ticks(6).into_iter().map(|tick| (tick, short(tick))).collect()
        },
        x,
        y,
        lines,
        is_higher_better: what.is_rate,
        ideal,
    })
}

/// From the best value at the smallest number, in proportion.
fn ideal(axis: &str, what: &Drawn<'_>, lines: &[PlotLine]) -> Vec<(f64, f64)> {
    if !SCALING.contains(&axis) || !what.is_rate {
        return Vec::new();
    }
    let firsts = lines.iter().filter_map(|line| line.points.first());
    let Some((x, y)) = firsts.max_by(|a, b| a.1.total_cmp(&b.1)) else { return Vec::new() };
    let last = lines.iter().filter_map(|line| line.points.last()).map(|point| point.0).fold(*x, f64::max);
    vec![(*x, *y), (last, y * last / x)]
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_with_a_unit_have_a_place_on_an_axis_and_words_have_none() {
        let found = ["64", "0.5%", "20ms", "all", "64-byte", ""].map(number);
        assert_eq!(found, [Some(64.0), Some(0.5), Some(20.0), None, None, None]);
    }
}
