//! The small plot beside a ratio: interval, estimate and units on the table's logarithmic axis, with margin,
//! limit and reference.

use crate::axis::{Axis, px};
use crate::layout::{Group, Part};
use crate::model::{Comparison, TableCell, TableReport};
use linerate_model::Better;
use maud::{Markup, html};
use std::fmt::Write;

/// The size of the drawing, which a page stretches. Lines keep their width, and dots are lines of no length,
/// so they stay round.
const WIDTH: f64 = 200.0;
const HEIGHT: f64 = 24.0;

/// A limit farther from the rows would squash them; the details contain its distance.
const FAR: f64 = 3.0;

/// The axis of all ratios of a table; `None` without one.
pub(crate) struct Forest {
    axis: Axis,
    /// The difference that matters, to both sides of 1.
    margin: f64,
}

impl Forest {
    pub(super) fn for_table(table: &TableReport, groups: &[Group<'_>]) -> Option<Self> {
        let margin = table.truth_tolerance.unwrap_or(table.margin);
        let members = || groups.iter().flat_map(|group| &group.members).map(|member| member.entry);
        let intervals = members().filter_map(interval).map(|(_, ci95)| ci95);
        Self::spanning(intervals, groups.iter().flat_map(marks).map(|(_, ratio)| ratio), margin)
    }

    /// An axis for these intervals, and for those of the marks that are near; `None` without an interval.
    pub(crate) fn spanning(
        intervals: impl Iterator<Item = [f64; 2]>,
        marks: impl Iterator<Item = f64>,
        margin: f64,
    ) -> Option<Self> {
        let mut ends = intervals.flatten().filter(|ratio| ratio.is_finite() && *ratio > 0.0).peekable();
        ends.peek()?;
        let widened = |(low, high): (f64, f64), ratio: f64| (low.min(ratio), high.max(ratio));
        // Some room on both sides of the margin.
        let around = (1.0 / (1.0 + 2.0 * margin), 1.0 + 2.0 * margin);
        let rows = ends.fold(around, widened);
        let is_near = |ratio: &f64| (rows.0 / FAR..=rows.1 * FAR).contains(ratio);
        let (low, high) = marks.filter(is_near).fold(rows, widened);
        let room = (high / low).powf(0.03);
        Some(Self { axis: Axis::log(low / room, high * room, 0.0, WIDTH), margin })
    }

    /// The background of all rows of a group, to be defined once.
    pub(super) fn background(&self, id: &str, group: &Group<'_>) -> Markup {
        self.background_with(id, &marks(group))
    }

    pub(crate) fn background_with(&self, id: &str, marks: &[(Part, f64)]) -> Markup {
        let [from, to] = [1.0 / (1.0 + self.margin), 1.0 + self.margin].map(|ratio| self.axis.x(ratio));
        html! {
            g id=(id) {
                rect.band x=(px(from)) y="0" width=(px(to - from)) height=(HEIGHT) {}
                path.base d={ "M" (px(self.axis.x(1.0))) " 0V" (HEIGHT) } {}
                @for (part, ratio) in marks.iter().filter(|(_, ratio)| self.axis.contains(*ratio)) {
                    path class=(part.name()) d={ "M" (px(self.axis.x(*ratio))) " 0V" (HEIGHT) } {}
                }
            }
        }
    }

    /// The numbers of the axis, for the head of the column.
    pub(crate) fn scale(&self, text: fn(f64) -> String) -> Markup {
        html! {
            span.scale aria-hidden="true" {
                @for tick in self.axis.ticks(4) {
                    span style={ "left:" (px(self.axis.x(tick) / WIDTH * 100.0)) "%" } {
                        (text(tick))
                    }
                }
            }
        }
    }

    /// Empty for a cell without a ratio.
    pub(super) fn row(&self, background: &str, entry: &TableCell) -> Markup {
        let units = entry.vs_baseline.as_ref().map(|c| self.units(&c.units)).unwrap_or_default();
        interval(entry).map_or(html! {}, |(ratio, ci95)| self.drawing(background, ratio, ci95, &units))
    }

    /// The baseline against itself.
    pub(super) fn control(&self, background: &str, aa: &Comparison) -> Markup {
        self.drawing(background, aa.ratio, aa.ci95, &self.units(&aa.units))
    }

    /// An estimate and its interval, above its dots and the background of this id.
    pub(crate) fn drawing(&self, background: &str, ratio: f64, ci95: [f64; 2], units: &str) -> Markup {
        let [from, to] = ci95.map(|ratio| px(self.axis.x(ratio)));
        html! {
            svg.forest viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" aria-hidden="true" {
                use href={ "#" (background) } {}
                path.dots d=(units) {}
                path.ci d={ "M" (from) " 12H" (to) } {}
                path.mid d={ "M" (px(self.axis.x(ratio))) " 7v10" } {}
            }
        }
    }

    /// A dot for each unit, from the first at the top to the last at the bottom.
    pub(crate) fn units(&self, ratios: &[f64]) -> String {
        let last = ratios.len().saturating_sub(1).max(1) as f64;
        let mut path = String::new();
        for (i, unit) in ratios.iter().enumerate().filter(|(_, unit)| **unit > 0.0) {
            let y = 3.0 + (HEIGHT - 6.0) * i as f64 / last;
            let _ = write!(path, "M{} {}h0", px(self.axis.x(*unit)), px(y));
        }
        path
    }
}

/// The ratio of a row with its interval: against the baseline, or against the truth.
fn interval(entry: &TableCell) -> Option<(f64, [f64; 2])> {
    let baseline = entry.vs_baseline.as_ref().map(|c| (c.ratio, c.ci95));
    let found = baseline.or_else(|| entry.vs_truth.as_ref().map(|truth| (truth.ratio, truth.ci95)));
    let is_drawable = |(ratio, [low, high]): &(f64, [f64; 2])| {
        [ratio, low, high].iter().all(|value| value.is_finite() && **value > 0.0)
    };
    found.filter(is_drawable)
}

/// Limit and reference of a group in relation to its baseline.
fn marks(group: &Group<'_>) -> Vec<(Part, f64)> {
    let Some(baseline) = group.baseline() else { return Vec::new() };
    let of_values = |entry: &TableCell| {
        let (ours, theirs) = (entry.value?, baseline.entry.value?);
        Some(if baseline.cell.better == Better::Higher { ours / theirs } else { theirs / ours })
    };
    let marked = group.members.iter().filter(|m| matches!(m.part, Part::Limit | Part::Reference));
    let ratio = |entry: &TableCell| {
        entry
            .vs_baseline
            .as_ref()
            .map(|c| c.ratio)
            .or_else(|| of_values(entry))
            .filter(|r| r.is_normal() && *r > 0.0)
    };
    marked.filter_map(|member| Some((member.part, ratio(member.entry)?))).collect()
}
