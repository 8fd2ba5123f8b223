//! A figure of lines, with bands, in a frame with two axes and a legend.

use super::colours::Colours;
use crate::axis::{Axis, px, short};
use crate::numbers::{plain, tick, time};
use maud::{Markup, html};
use std::fmt::Write;

/// The size of the drawing. On a phone of 380 pixels its letters have nine of them.
pub(super) const WIDTH: f64 = 480.0;
pub(super) const HEIGHT: f64 = 280.0;
/// The size of letters in the style sheet.
const LETTERS: f64 = 13.0;
/// The inner frame.
pub(super) const LEFT: f64 = 68.0;
pub(super) const RIGHT: f64 = WIDTH - 22.0;
pub(super) const TOP: f64 = 10.0;
pub(super) const BOTTOM: f64 = HEIGHT - 42.0;
/// The best lines are drawn; the others when a reader opens their list.
const SHOWN: usize = 5;

pub(super) struct LinePlot {
    pub(super) title: String,
    /// The caption: what a reader should see in the figure.
    pub(super) caption: String,
    pub(super) x_label: String,
    pub(super) y_label: String,
    /// In microseconds; each tick has its own unit.
    pub(super) is_of_times: bool,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) x_ticks: Vec<(f64, String)>,
    pub(super) lines: Vec<PlotLine>,
    pub(super) is_higher_better: bool,
    /// A line for comparison, such as ideal scaling.
    pub(super) ideal: Vec<(f64, f64)>,
}

pub(super) struct PlotLine {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
    /// Place, lower end, upper end.
    pub(super) band: Vec<(f64, f64, f64)>,
    pub(super) has_dots: bool,
}

impl LinePlot {
    pub(super) fn markup(&self, id: &str, colours: &Colours) -> Markup {
        let (title, text) = (format!("{id}~t"), format!("{id}~d"));
        let lines = self.sorted();
        let classes = colours.classes(&lines);
        let all: Vec<(&PlotLine, &str)> =
            lines.iter().zip(&classes).map(|(line, class)| (*line, class.as_str())).collect();
        let (shown, more) = all.split_at(all.len().min(SHOWN));
        html! {
            figure.plot id=(id) {
                svg role="img" aria-labelledby=(title) aria-describedby=(text)
                    viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } {
                    title id=(title) { (self.title) }
                    desc id=(text) { (self.text()) }
                    (self.frame())
                    @for (i, (line, class)) in all.iter().enumerate() {
                        g class={ (class) @if i >= SHOWN { " more" } } data-name=(line.name) {
                            @if line.band.len() > 1 { path.area d=(self.area(line)) {} }
                            path.line d=(self.path(&line.points)) {}
                            @if line.has_dots { path.point d=(self.dots(line)) {} }
                        }
                    }
                    @if self.ideal.len() > 1 { path.ideal d=(self.path(&self.ideal)) {} }
                }
                figcaption {
                    strong { (self.title) } " " (self.caption)
                    (legend(shown, self.ideal.len() > 1))
                    @if !more.is_empty() {
                        details.lines { summary { (more.len()) " more" } (legend(more, false)) }
                    }
                }
            }
        }
    }

    /// The best line first, by the geometric mean of its points.
    fn sorted(&self) -> Vec<&PlotLine> {
        let mean = |line: &PlotLine| {
            let logs = line.points.iter().map(|(_, y)| y.max(f64::MIN_POSITIVE).ln());
            logs.sum::<f64>() / line.points.len().max(1) as f64
        };
        let merit = |line: &PlotLine| if self.is_higher_better { -mean(line) } else { mean(line) };
        let mut lines: Vec<&PlotLine> = self.lines.iter().collect();
        if lines.len() > SHOWN {
            lines.sort_by(|a, b| merit(a).total_cmp(&merit(b)));
        }
        lines
    }

    fn frame(&self) -> Markup {
        html! {
            g.grid {
                @for tick in self.y.ticks(5) {
                    path d={ "M" (LEFT) " " (px(self.y.x(tick))) "H" (RIGHT) } {}
                    text x=(LEFT - 6.0) y=(px(self.y.x(tick) + 4.0)) text-anchor="end" { (self.tick(tick)) }
                }
                @for (tick, _) in &self.x_ticks {
                    path d={ "M" (px(self.x.x(*tick))) " " (TOP) "V" (BOTTOM) } {}
                }
                @for label in self.x.labels(&self.x_ticks, LETTERS, WIDTH) {
                    text x=(px(label.x)) y=(BOTTOM + 17.0) text-anchor=(label.anchor) { (label.text) }
                }
                text x=(px((LEFT + RIGHT) / 2.0)) y=(HEIGHT - 6.0) text-anchor="middle" { (self.x_label) }
                text transform={ "translate(12 " (px((TOP + BOTTOM) / 2.0)) ") rotate(-90)" }
                    text-anchor="middle" {
                    (self.y_label)
                }
            }
        }
    }

    /// The plot in words: both ends of each line.
    fn text(&self) -> String {
        let number = |value: f64| if self.is_of_times { time(value) } else { plain(value) };
        let mut text = format!("{} by {}. ", self.y_label, self.x_label);
        for line in &self.lines {
            if let (Some(first), Some(last)) = (line.points.first(), line.points.last()) {
                let [first, last] = [first.1, last.1].map(number);
                let _ = write!(text, "{}: {first} to {last}. ", line.name);
            }
        }
        text
    }

    fn at(&self, (x, y): (f64, f64)) -> String {
        format!("{} {}", px(self.x.x(x)), px(self.y.x(y)))
    }

    fn tick(&self, value: f64) -> String {
        if self.is_of_times { tick(value) } else { short(value) }
    }

    fn path(&self, points: &[(f64, f64)]) -> String {
        let places: Vec<String> = points.iter().map(|point| self.at(*point)).collect();
        format!("M{}", places.join("L"))
    }

    fn area(&self, line: &PlotLine) -> String {
        let there = line.band.iter().map(|(x, low, _)| self.at((*x, *low)));
        let back = line.band.iter().rev().map(|(x, _, high)| self.at((*x, *high)));
        format!("M{}Z", there.chain(back).collect::<Vec<_>>().join("L"))
    }

    fn dots(&self, line: &PlotLine) -> String {
        line.points.iter().map(|point| format!("M{}h0", self.at(*point))).collect()
    }
}

/// Colour and dash of each line, with its name.
fn legend(lines: &[(&PlotLine, &str)], has_ideal: bool) -> Markup {
    html! {
        ul.legend {
            @for (line, class) in lines {
                li data-name=(line.name) { (sample(class, "line")) " " (line.name) }
            }
            @if has_ideal { li { (sample("", "ideal")) " in proportion" } }
        }
    }
}

fn sample(class: &str, line: &str) -> Markup {
    html! {
        svg.sample viewBox="0 0 28 8" aria-hidden="true" {
            g class=(class) { path class=(line) d="M0 4H28" {} }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_has_a_title_and_its_ends_in_words() {
        let line = PlotLine {
            name: "a".to_owned(),
            points: vec![(1.0, 10.0), (2.0, 30.0)],
            band: vec![],
            has_dots: true,
        };
        let plot = LinePlot {
            title: "Rate".to_owned(),
            caption: String::new(),
            x_label: "threads".to_owned(),
            y_label: "operations/s".to_owned(),
            is_of_times: false,
            x: Axis::linear(0.0, 2.0, LEFT, RIGHT),
            y: Axis::linear(0.0, 30.0, BOTTOM, TOP),
            x_ticks: vec![(1.0, "1".to_owned())],
            lines: vec![line],
            is_higher_better: true,
            ideal: vec![(1.0, 10.0), (2.0, 20.0)],
        };
        let markup = plot.markup("p", &Colours::new(&[])).into_string();
        assert!(markup.contains("<title id=\"p~t\">Rate</title>"), "{markup}");
        assert!(markup.contains("operations/s by threads. a: 10.0 to 30.0. "), "{markup}");
        assert!(markup.contains("M263 162L458 10"), "{markup}");
        assert!(markup.contains("in proportion"));
    }
}
