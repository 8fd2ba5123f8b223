//! The part that each layer adds: the time for the same work, from that of the plain socket on.

use super::lines::WIDTH;
use super::of_group;
use crate::axis::short;
use crate::axis::{Axis, px};
use crate::layout::{self, Group, Part, Precision};
use crate::model::TableReport;
use crate::numbers::plain;
use linerate_model::Better;
use maud::{Markup, html};

const AXIS: &str = "layer";
/// Sizes in the drawing.
const LABELS: f64 = 90.0;
const NUMBERS: f64 = 64.0;
const ROW: f64 = 26.0;
const FOOT: f64 = 34.0;

/// Layers of one system.
pub(super) struct Waterfall {
    title: String,
    unit: String,
    /// Time of the plain layer, from which others begin.
    base: f64,
    /// Name, time for the work, ratio to the base.
    steps: Vec<(String, f64)>,
}

impl Waterfall {
    /// `None` unless the group compares layers.
    pub(super) fn for_group(table: &TableReport, group: &Group<'_>) -> Option<Self> {
        let base = group.baseline()?;
        let is_layer = |label: &str| group.members.iter().any(|m| m.cell.axes.get(AXIS) == Some(label));
        if !group.members.iter().all(|member| is_layer(&member.label)) {
            return None;
        }
        let is_rate = table.better == Better::Higher;
        let precision = Precision::for_table(table);
        let in_unit = |value: f64| precision.in_unit(table.quantity(), value);
        let time = |value: f64| if is_rate { 1.0 / value } else { in_unit(value) };
        let base_time = base.entry.value.map(time).filter(|time| time.is_normal() && *time > 0.0)?;
        // By the ratio, which is better known than the values.
        let step = |member: &layout::Alternative<'_>| {
            let ratio = member.ratio().filter(|ratio| ratio.is_normal() && *ratio > 0.0)?;
            Some((member.label.clone(), base_time / ratio))
        };
        let measured = group.members.iter().filter(|member| member.part != Part::Limit);
        let steps: Vec<(String, f64)> = measured.filter_map(step).collect();
        let unit = precision.unit();
        (steps.len() > 1).then(|| Self {
            title: format!("What each layer adds{}", of_group(group)),
            unit: if is_rate { format!("time for the work, 1 / ({unit})") } else { unit },
            base: base_time,
            steps,
        })
    }

    pub(super) fn markup(&self, id: &str) -> Markup {
        let (title, text) = (format!("{id}~t"), format!("{id}~d"));
        let most = self.steps.iter().map(|(_, time)| *time).fold(self.base, f64::max);
        let axis = Axis::linear(0.0, most, LABELS, WIDTH - NUMBERS);
        let height = ROW * self.steps.len() as f64;
        html! {
            figure.plot id=(id) {
                svg role="img" aria-labelledby=(title) aria-describedby=(text)
                    viewBox={ "0 0 " (WIDTH) " " (height + FOOT) } {
                    title id=(title) { (self.title) }
                    desc id=(text) {
                        @for (name, time) in &self.steps { (name) ": " (self.added(*time)) ". " }
                    }
                    g.grid {
                        @for tick in axis.ticks(4) {
                            path d={ "M" (px(axis.x(tick))) " 0V" (height) } {}
                            text x=(px(axis.x(tick))) y=(height + 14.0) text-anchor="middle" { (short(tick)) }
                        }
                        text x=(px((LABELS + WIDTH - NUMBERS) / 2.0)) y=(height + 30.0) text-anchor="middle" {
                            (self.unit)
                        }
                    }
                    @for (i, (name, time)) in self.steps.iter().enumerate() {
                        @let y = ROW * i as f64 + 5.0;
                        @let (from, to) = (axis.x(self.base.min(*time)), axis.x(self.base.max(*time)));
                        g.fall {
                            text x=(LABELS - 8.0) y=(px(y + 12.0)) text-anchor="end" { (name) }
                            rect.own x=(LABELS) y=(px(y)) width=(px(from - LABELS)) height="16" {}
                            rect class={ @if *time < self.base { "less" } @else { "more" } }
                                x=(px(from)) y=(px(y)) width=(px(to - from)) height="16" {}
                            text x=(px(to + 5.0)) y=(px(y + 12.0)) { (self.added(*time)) }
                        }
                    }
                }
                figcaption { strong { (self.title) } " Dark: the plain layer; light: what is added to it." }
            }
        }
    }

    /// `+43 %`.
    fn added(&self, time: f64) -> String {
        let percent = (time / self.base - 1.0) * 100.0;
        if percent == 0.0 {
            "base".to_owned()
        } else {
            format!("{}{} %", if percent > 0.0 { "+" } else { "" }, plain(percent))
        }
    }
}
