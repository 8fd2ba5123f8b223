//! An interval plot in SVG: for each cell its interval as a line, with a dot at the median.

use crate::report::model::{SuiteReport, TableReport};
use crate::report::numbers::{plain, with_interval};
use maud::{Markup, html};

/// In pixels.
const LABELS: f64 = 260.0;
const WIDTH: f64 = 900.0;
const ROW: f64 = 20.0;
const AXIS: f64 = 30.0;
const MARGIN: f64 = 30.0;

/// From this ratio of the largest to the smallest value the axis is logarithmic.
const LOG_FROM: f64 = 10.0;
const TICKS: f64 = 5.0;

/// One colour for each column, distinguishable with most forms of colour blindness (Okabe and Ito 2008).
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f"];

struct Line<'a> {
    id: &'a str,
    column: usize,
    median: f64,
    interval: [f64; 2],
}

/// Empty if nothing was measured.
pub(super) fn plot(suite: &SuiteReport, table: &TableReport) -> Markup {
    let lines = lines(suite, table);
    let Some(axis) = Axis::of(&lines) else { return html! {} };
    let height = AXIS + ROW * lines.len() as f64;
    html! {
        svg role="img" aria-label={ "medians and intervals: " (table.title) }
            viewBox={ "0 0 " (WIDTH) " " (height) }
            width=(WIDTH) {
            @for tick in axis.ticks() {
                @let x = px(axis.x(tick));
                line x1=(x) x2=(x) y1="0" y2=(height - AXIS) stroke="#888" stroke-opacity="0.3" {}
                text x=(x) y=(height - AXIS / 3.0) text-anchor="middle" { (plain(tick)) }
            }
            @for (i, line) in lines.iter().enumerate() {
                @let y = px(ROW * (i as f64 + 0.5));
                @let colour = COLOURS[line.column % COLOURS.len()];
                text x=(LABELS - 10.0) y=(y) text-anchor="end" dominant-baseline="middle" { (line.id) }
                line x1=(px(axis.x(line.interval[0]))) x2=(px(axis.x(line.interval[1]))) y1=(y) y2=(y)
                    stroke=(colour) stroke-width="2" {}
                circle cx=(px(axis.x(line.median))) cy=(y) r="3" fill=(colour) {
                    title { (line.id) ": " (with_interval(line.median, line.interval)) }
                }
            }
        }
    }
}

fn lines<'a>(suite: &SuiteReport, table: &'a TableReport) -> Vec<Line<'a>> {
    let column = |id: &str| {
        let value =
            suite.cells.iter().find(|cell| cell.id == id).and_then(|cell| cell.axes.get(&table.columns));
        table
            .column_values
            .iter()
            .position(|column| Some(column.as_str()) == value)
            .unwrap_or(COLOURS.len() - 1)
    };
    let line = |cell: &'a crate::report::model::TableCell| {
        let (median, interval) = (cell.median?, cell.ci95?);
        let is_drawable = [median, interval[0], interval[1]].iter().all(|v| v.is_finite() && *v > 0.0);
        is_drawable.then(|| Line { id: &cell.id, column: column(&cell.id), median, interval })
    };
    table.main_cells().filter_map(line).collect()
}

/// Value to pixel: linear from zero, or logarithmic.
struct Axis {
    from: f64,
    to: f64,
    is_log: bool,
}

impl Axis {
    fn of(lines: &[Line<'_>]) -> Option<Self> {
        let lowest = lines.iter().map(|line| line.interval[0]).reduce(f64::min)?;
        let to = lines.iter().map(|line| line.interval[1]).reduce(f64::max)?;
        let is_log = to / lowest > LOG_FROM;
        Some(Self { from: if is_log { lowest } else { 0.0 }, to, is_log })
    }

    fn x(&self, value: f64) -> f64 {
        let share = if self.is_log {
            (value.ln() - self.from.ln()) / (self.to.ln() - self.from.ln())
        } else {
            (value - self.from) / (self.to - self.from)
        };
        LABELS + share * (WIDTH - LABELS - MARGIN)
    }

    /// Round values: multiples of 1, 2 or 5 times a power of ten; on a logarithmic axis, 1, 2 and 5 times
    /// each power.
    fn ticks(&self) -> Vec<f64> {
        let within = |tick: &f64| (self.from..=self.to).contains(tick);
        if !self.is_log {
            let step = round_up(self.to / TICKS);
            return (0..=TICKS as u32).map(|i| step * f64::from(i)).filter(within).collect();
        }
        let (first, last) = (self.from.log10().floor() as i32, self.to.log10().ceil() as i32);
        let every = ((last - first) / TICKS as i32).max(1);
        let leading: &[f64] = if every == 1 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let powers =
            (first..=last).filter(|power| (power - first) % every == 0).map(|power| 10_f64.powi(power));
        powers.flat_map(|power| leading.iter().map(move |digit| digit * power)).filter(within).collect()
    }
}

/// The next 1, 2 or 5 times a power of ten.
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|digit| digit * power)
        .into_iter()
        .find(|round| *round >= value)
        .unwrap_or(value)
}

/// A tenth of a pixel is finer than a screen.
fn px(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(from: f64, to: f64) -> Axis {
        let line = Line { id: "a", column: 0, median: from, interval: [from, to] };
        Axis::of(&[line]).expect("there is a line")
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(axis(0.2, 0.9).ticks(), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8]);
        assert_eq!(axis(1.5, 160.0).ticks(), [2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        for wide in [axis(1e-9, 1e9), axis(1e-300, 1e300), axis(f64::MIN_POSITIVE, f64::MAX)] {
            assert!((1..=8).contains(&wide.ticks().len()), "{:?}", wide.ticks());
        }
    }

    #[test]
    fn the_ends_of_the_axis_are_the_ends_of_the_plot() {
        for axis in [axis(0.2, 0.9), axis(1.0, 1000.0)] {
            assert_eq!((axis.x(axis.from), axis.x(axis.to)), (LABELS, WIDTH - MARGIN));
        }
    }
}
