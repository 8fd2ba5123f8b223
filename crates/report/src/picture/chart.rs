//! The drawing of a chart: rows on one axis, as an SVG that refers to nothing else.

use crate::axis::{Axis, px, round_up, short, text_width};
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
    /// Above the texts of the rows: a unit, and what the value is compared with.
    pub(crate) heads: [String; 2],
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
/// The width of a file, which a phone shows with letters that can be read.
const FILE: f64 = 420.0;

/// Places in a drawing of one width.
struct Frame {
    width: f64,
    is_narrow: bool,
    /// Ends of the axis.
    left: f64,
    right: f64,
    row: f64,
    /// Places in a row: the lines of its label and of its numbers, and the top of its bar.
    label: f64,
    numbers: f64,
    bar: f64,
    /// The end of the values, left of what they are against the baseline.
    values: f64,
    /// Above the values, as far as there is room.
    heads: [String; 2],
    /// The place of the first row, and of the end of the last one.
    top: f64,
    bottom: f64,
}

/// The mean width of a letter in an SVG's 13 pixels.
const LETTER: f64 = 7.6;
const LINE: f64 = 22.0;
/// The sizes of letters in the style sheet: of rows, and of what is around them.
const LETTERS: f64 = 13.0;
const SMALL: f64 = 12.0;
/// The most room of labels beside bars.
const LABELS: f64 = 330.0;
/// A bar, and the room above and below it that single units need.
const BAR: f64 = 14.0;
const AROUND_BAR: f64 = 4.0;
/// The room between two texts, and the most of a heading that names a baseline.
const BETWEEN: f64 = 8.0;
const HEADING: f64 = 120.0;
/// The largest row may be as many times longer than the best choice.
const FAR: f64 = 3.0;
const FOOT: f64 = 52.0;

impl Chart {
    /// As a file.
    pub(crate) fn file(&self) -> String {
        format!("{}\n", self.draw(FILE, Some(STYLE), "picture").into_string())
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
                @for (end, head) in [frame.values, frame.width].into_iter().zip(&frame.heads) {
                    @if !head.is_empty() {
                        text.quiet x=(px(end - 4.0)) y=(px(frame.top - 5.0)) text-anchor="end" { (head) }
                    }
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
        let [value, mut share] = [0, 1].map(|at| widest(&|row| row.text[at].chars().count()));
        let mut heads = [String::new(), String::new()];
        if share > 0.0 && !self.heads[1].is_empty() {
            heads[1] = shortened(&self.heads[1], HEADING, SMALL);
            share = share.max(text_width(&heads[1], SMALL) + BETWEEN + 4.0);
        }
        let values = width - share;
        if value > 0.0 {
            heads[0] = shortened(&self.heads[0], values - BETWEEN, SMALL);
        }
        let top = top + if heads.iter().all(String::is_empty) { 0.0 } else { 16.0 };
        let (left, right) = match is_narrow {
            true => (4.0, width - 8.0),
            false => (widest(&|row| row.label.chars().count()).min(LABELS), values - value),
        };
        // All rows are alike: one label that would cover its numbers gives each a line of its own.
        let is_crowded = |row: &Row| {
            let free = [values, width].into_iter().zip(&row.text).filter(|(_, text)| !text.is_empty());
            let starts = free.map(|(end, text)| end - 4.0 - text_width(text, LETTERS));
            4.0 + text_width(&row.label, LETTERS) + BETWEEN > starts.fold(width, f64::min)
        };
        let [row, label, numbers, bar] = match is_narrow {
            false => [26.0, 17.0, 17.0, 6.0],
            true if self.rows.iter().any(is_crowded) => [62.0, 18.0, 33.0, 41.0],
            true => [40.0, 14.0, 14.0, 21.0],
        };
        let bottom = top + row * self.rows.len() as f64;
        Frame { width, is_narrow, left, right, row, label, numbers, bar, values, heads, top, bottom }
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
        let tick_text = |tick: f64| match (self.is_of_changes, tick > 0.0) {
            (true, true) => format!("+{}", short(tick)),
            _ => short(tick),
        };
        let ticks: Vec<(f64, String)> = ticks.map(|tick| (tick, tick_text(tick))).collect();
        let y = frame.bottom;
        html! {
            @for (tick, _) in &ticks {
                path class=(if *tick == 0.0 { "zero" } else { "grid" })
                    d=(self.line_at(frame, &px(axis.x(*tick)))) {}
            }
            @for label in axis.labels(&ticks, SMALL, frame.width) {
                text.quiet x=(px(label.x)) y=(px(y + 15.0)) text-anchor=(label.anchor) { (label.text) }
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

    /// From the top to the bottom; where texts are above the bars, beside the bars alone.
    fn line_at(&self, frame: &Frame, x: &str) -> String {
        if !frame.is_narrow {
            return format!("M{x} {}V{}", px(frame.top), px(frame.bottom));
        }
        let beside = |at: usize| {
            let bar = frame.top + frame.row * at as f64 + frame.bar;
            format!("M{x} {}V{}", px(bar - AROUND_BAR), px(bar + BAR + AROUND_BAR))
        };
        (0..self.rows.len()).map(beside).collect()
    }
}

fn draw_row(row: &Row, is_of_changes: bool, frame: &Frame, axis: &Axis, top: f64) -> Markup {
    let (numbers, bar, height) = (px(top + frame.numbers), top + frame.bar, BAR);
    let middle = px(bar + height / 2.0);
    let class = if row.is_apart { "apart" } else { row.class };
    let last = row.units.len().saturating_sub(1).max(1) as f64;
    let dot = |(at, unit): (usize, &f64)| {
        format!("M{} {}h0", px(axis.x(*unit)), px(bar - 3.0 + (height + 6.0) * at as f64 / last))
    };
    let dots: String = row.units.iter().enumerate().map(dot).collect();
    let (label_x, anchor, room) = match frame.is_narrow {
        true => (4.0, "start", frame.width - 8.0),
        false if frame.left < LABELS => (frame.left - 10.0, "end", f64::INFINITY),
        false => (frame.left - 10.0, "end", frame.left - 10.0),
    };
    let name = shortened(&row.label, room, LETTERS);
    let label = html! { text x=(px(label_x)) y=(px(top + frame.label)) text-anchor=(anchor) { (name) } };
    html! {
        g class=[Some(class).filter(|class| !class.is_empty())] {
            @if name != row.label { title { (row.label) } }
            @if let Some(address) = &row.address { a href={ "#" (address) } { (label) } } @else { (label) }
            @for (end, part) in [frame.values, frame.width].into_iter().zip(&row.text) {
                @if !part.is_empty() {
                    text.value x=(px(end - 4.0)) y=(numbers) text-anchor="end" { (part) }
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

/// As much of a text as this room has, with a mark where more would follow.
fn shortened(text: &str, room: f64, size: f64) -> String {
    let mut short = text.to_owned();
    while text_width(&short, size) > room && short.chars().count() > 1 {
        short = short.trim_end_matches('\u{2026}').to_owned();
        short.pop();
        short.push('\u{2026}');
    }
    short
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
mod tests;
