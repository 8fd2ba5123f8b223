//! The drawing of a chart: rows on one axis, as an SVG that refers to nothing else.

use crate::axis::{Axis, px, round_up, short};
use maud::{Markup, PreEscaped, html};

/// Colours in light and dark; the page has them in its own style.
pub(crate) const STYLE: &str = include_str!("chart.css");

/// Rows on one axis.
pub(crate) struct Chart {
    /// The finding.
    pub(crate) title: String,
    /// The measured quantity.
    pub(crate) about: String,
    /// The name of the axis.
    pub(crate) axis: String,
    /// Which way is better; `None` where rows differ in that.
    pub(crate) is_right_better: Option<bool>,
    pub(crate) rows: Vec<Row>,
    /// Values are changes against a baseline, and not sizes: they have both signs.
    pub(crate) is_of_changes: bool,
    /// Date and host.
    pub(crate) foot: String,
}

/// A row of a chart.
#[derive(Default)]
pub(crate) struct Row {
    pub(crate) label: String,
    /// The value in words, and what it is against the baseline.
    pub(crate) text: [String; 2],
    pub(crate) value: Option<f64>,
    pub(crate) ends: Option<[f64; 2]>,
    /// Values of single units.
    pub(crate) units: Vec<f64>,
    /// `first`, `up`, `down` or nothing.
    pub(crate) class: &'static str,
    pub(crate) is_apart: bool,
    pub(crate) is_baseline: bool,
    /// Where the page has its numbers.
    pub(crate) address: Option<String>,
}

/// A file names it; a page needs no name.
const NAMESPACE: &str = "http://www.w3.org/2000/svg";

/// Widths of a desktop's drawing and of a phone's, on which a label is above its bar.
pub(crate) const WIDE: f64 = 860.0;
pub(crate) const NARROW: f64 = 360.0;

/// Places in a drawing of one width.
struct Frame {
    width: f64,
    is_narrow: bool,
    /// Ends of the axis.
    left: f64,
    right: f64,
    row: f64,
    /// The end of the values, left of what they are against the baseline.
    values: f64,
    /// The place of the first row, and of the end of the last one.
    top: f64,
    bottom: f64,
}

/// The mean width of a letter in an SVG's 13 pixels.
const LETTER: f64 = 7.6;
const LINE: f64 = 22.0;
/// The largest row may be as many times longer than the best choice.
const FAR: f64 = 3.0;
const FOOT: f64 = 52.0;

impl Chart {
    /// As a file.
    pub(crate) fn file(&self) -> String {
        format!("{}\n", self.draw(WIDE, Some(STYLE), "picture").into_string())
    }

    /// A drawing inside a page, of this id.
    pub(crate) fn inside_page(&self, width: f64, id: &str) -> Markup {
        self.draw(width, None, id)
    }

    fn draw(&self, width: f64, style: Option<&str>, id: &str) -> Markup {
        let title = lines(&self.title, ((width - 8.0) / 10.4) as usize);
        let about = lines(&self.about, (width / 7.0) as usize);
        let frame = self.frame(width, title.len() as f64 * LINE + about.len() as f64 * 16.0 + 14.0);
        let axis = self.scale(&frame);
        let is_cut = self.rows.iter().any(|row| row.value.is_some_and(|value| !axis.contains(value)));
        let gap = if is_cut { "; bars with a gap are longer than the axis" } else { "" };
        let foot = lines(&format!("{}{gap}", self.foot), (width / 7.0) as usize);
        let height = frame.bottom + FOOT + 16.0 * foot.len() as f64;
        let named = format!("{id}~t");
        // The parts of an image are nothing by themselves, and links are.
        let role = if self.rows.iter().any(|row| row.address.is_some()) { "group" } else { "img" };
        html! {
            svg.chart xmlns=[style.map(|_| NAMESPACE)] role=(role) aria-labelledby=(named) id=(id)
                viewBox={ "0 0 " (width) " " (px(height)) } width=(width) height=(px(height)) {
                title id=(named) { (self.title) " " (self.about) }
                @if let Some(style) = style { style { (PreEscaped(style)) } }
                rect.ground width=(width) height=(px(height)) {}
                @for (at, line) in title.iter().enumerate() {
                    text.title x="2" y=(px(18.0 + LINE * at as f64)) { (line) }
                }
                @for (at, line) in about.iter().enumerate() {
                    text.quiet x="2" y=(px(LINE * title.len() as f64 + 14.0 + 16.0 * at as f64)) { (line) }
                }
                (self.axis(&frame, &axis))
                @for (at, row) in self.rows.iter().enumerate() {
                    (draw_row(row, self.is_of_changes, &frame, &axis, frame.top + frame.row * at as f64))
                    @if at > 0 && row.is_apart && !self.rows[at - 1].is_apart {
                        path.rule d={ "M0 " (px(frame.top + frame.row * at as f64)) "H" (width) } {}
                    }
                }
                @for (at, line) in foot.iter().enumerate() {
                    text.quiet x="2" y=(px(frame.bottom + FOOT + 16.0 * at as f64)) { (line) }
                }
            }
        }
    }

    fn frame(&self, width: f64, top: f64) -> Frame {
        let is_narrow = width < 600.0;
        let widest = |text: &dyn Fn(&Row) -> usize| {
            let letters = self.rows.iter().map(text).max().unwrap_or(0);
            if letters == 0 { 0.0 } else { letters as f64 * LETTER + 14.0 }
        };
        let [value, share] = [0, 1].map(|at| widest(&|row| row.text[at].chars().count()));
        let values = width - share;
        let (left, right) = match is_narrow {
            true => (4.0, width - 8.0),
            false => (widest(&|row| row.label.chars().count()).min(330.0), values - value),
        };
        let row = if is_narrow { 40.0 } else { 26.0 };
        Frame { width, is_narrow, left, right, row, values, top, bottom: top + row * self.rows.len() as f64 }
    }

    fn scale(&self, frame: &Frame) -> Axis {
        let values = |row: &Row| {
            let ends = row.ends.into_iter().flatten().chain(row.value).chain(row.units.iter().copied());
            ends.filter(|value| value.is_finite()).collect::<Vec<_>>()
        };
        let of_scale = self.rows.iter().filter(|row| !row.is_apart || row.is_baseline);
        let choices = of_scale.flat_map(values).fold(0.0, f64::max);
        // A limit far beyond would squash the others; its bar ends with the axis, and has a gap.
        let is_near = |value: &f64| choices == 0.0 || *value <= choices * FAR;
        let sound: Vec<f64> = self.rows.iter().flat_map(values).filter(is_near).collect();
        let [low, high] =
            [sound.iter().copied().fold(0.0, f64::min), sound.iter().copied().fold(0.0, f64::max)];
        let room = if high > low { (high - low) * 0.04 } else { 1.0 };
        let from = if self.is_of_changes { low - room } else { 0.0 };
        Axis::linear(from, high + room, frame.left, frame.right)
    }

    fn axis(&self, frame: &Frame, axis: &Axis) -> Markup {
        let wanted = if frame.is_narrow { 4.0 } else { 8.0 };
        let [from, to] = axis.ends();
        let step = round_up((to - from) / wanted);
        let first = (from / step).ceil() as i64;
        let ticks = (first..first + 12).map(|tick| tick as f64 * step).filter(|tick| *tick <= to);
        let ticks: Vec<f64> = ticks.collect();
        let tick_text = |tick: f64| match (self.is_of_changes, tick > 0.0) {
            (true, true) => format!("+{}", short(tick)),
            _ => short(tick),
        };
        let y = frame.bottom;
        html! {
            @for tick in &ticks {
                @let place = px(axis.x(*tick));
                path class=(if *tick == 0.0 { "zero" } else { "grid" })
                    d={ "M" (place) " " (px(frame.top)) "V" (px(y)) } {}
                text.quiet x=(place) y=(px(y + 15.0)) text-anchor="middle" { (tick_text(*tick)) }
            }
            text.quiet x=(px(frame.left)) y=(px(y + 32.0)) { (self.axis) }
            @match self.is_right_better {
                Some(true) => text.better x=(px(frame.right)) y=(px(y + 32.0)) text-anchor="end" {
                    "better \u{2192}"
                },
                Some(false) => text.better x=(px(frame.right)) y=(px(y + 32.0)) text-anchor="end" {
                    "\u{2190} better"
                },
                None => {},
            }
        }
    }
}

fn draw_row(row: &Row, is_of_changes: bool, frame: &Frame, axis: &Axis, top: f64) -> Markup {
    let (text, bar) = if frame.is_narrow { (top + 14.0, top + 21.0) } else { (top + 17.0, top + 6.0) };
    let height = 14.0;
    let middle = px(bar + height / 2.0);
    let class = if row.is_apart { "apart" } else { row.class };
    let last = row.units.len().saturating_sub(1).max(1) as f64;
    let dot = |(at, unit): (usize, &f64)| {
        format!("M{} {}h0", px(axis.x(*unit)), px(bar - 3.0 + (height + 6.0) * at as f64 / last))
    };
    let dots: String = row.units.iter().enumerate().map(dot).collect();
    let [label_x, anchor] = match frame.is_narrow {
        true => ["4".to_owned(), "start".to_owned()],
        false => [px(frame.left - 10.0), "end".to_owned()],
    };
    let label = html! { text x=(label_x) y=(px(text)) text-anchor=(anchor) { (row.label) } };
    html! {
        g class=[Some(class).filter(|class| !class.is_empty())] {
            @if let Some(address) = &row.address { a href={ "#" (address) } { (label) } } @else { (label) }
            @for (end, part) in [frame.values, frame.width].into_iter().zip(&row.text) {
                @if !part.is_empty() {
                    text.value x=(px(end - 4.0)) y=(px(text)) text-anchor="end" { (part) }
                }
            }
            @if let (Some(value), false) = (row.value, is_of_changes) {
                rect.size x=(px(frame.left)) y=(px(bar)) height=(height)
                    width=(px((axis.x(value) - frame.left).max(1.0))) {}
                @if !axis.contains(value) {
                    path.gap d={ "M" (px(frame.right - 18.0)) " " (px(bar + height)) "l5 -14h5l-5 14z" } {}
                }
            }
            @if let Some([from, to]) = row.ends.map(|ends| ends.map(|end| px(axis.x(end)))) {
                path class=(if is_of_changes { "span" } else { "ends" })
                    d={ "M" (from) " " (middle) "H" (to) } {}
            }
            @if !dots.is_empty() { path.dots d=(dots) {} }
            @if let (Some(value), true) = (row.value, is_of_changes) {
                path.ends d={ "M" (px(axis.x(value))) " " (px(bar)) "v" (height) } {}
            }
        }
    }
}

/// A text in lines of at most this number of letters, broken between words.
fn lines(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let row = |label: &str, value: f64, is_apart: bool| Row {
            label: label.to_owned(),
            text: [value.to_string(), String::new()],
            value: Some(value),
            ends: Some([value * 0.9, value * 1.1]),
            is_apart,
            ..Row::default()
        };
        Chart {
            title: "a & b are <first>".to_owned(),
            about: "all".to_owned(),
            axis: "requests/s".to_owned(),
            is_right_better: Some(true),
            rows: vec![row("a", 20.0, false), row("b", 10.0, false), row("limit", 40.0, true)],
            is_of_changes: false,
            foot: String::new(),
        }
    }

    #[test]
    fn a_file_has_its_style_its_axis_and_bars_as_long_as_their_values() {
        let file = chart().file();
        assert!(file.starts_with("<svg") && file.contains("prefers-color-scheme: dark"), "{file}");
        assert!(file.contains("a &amp; b are &lt;first&gt;") && file.contains("better \u{2192}"), "{file}");
        let widths = file.split("<rect class=\"size\"").skip(1).map(|rest| {
            let width = rest.split("width=\"").nth(1).unwrap().split('"').next().unwrap();
            width.parse::<f64>().unwrap()
        });
        let widths: Vec<f64> = widths.collect();
        assert!((widths[0] / widths[1] - 2.0).abs() < 0.02 && (widths[2] / widths[0] - 2.0).abs() < 0.02);
        assert_eq!(file.matches("class=\"rule\"").count(), 1);
    }

    #[test]
    fn a_bar_beyond_the_axis_has_a_gap_and_the_baseline_is_within() {
        let mut chart = chart();
        assert!(!chart.file().contains("class=\"gap\""), "{}", chart.file());
        chart.rows[2].value = Some(90.0);
        let file = chart.file();
        assert!(file.contains("class=\"gap\"") && file.contains("bars with a gap are longer"), "{file}");
        chart.rows[2].is_baseline = true;
        assert!(!chart.file().contains("with a gap"), "{}", chart.file());
    }

    #[test]
    fn long_titles_are_broken_between_words() {
        assert_eq!(lines("one two three", 7), ["one two", "three"]);
    }
}
