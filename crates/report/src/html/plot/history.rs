//! Ratios of one cell, run after run.

use crate::axis::{Axis, px};
use maud::{Markup, html};

/// The size of a drawing.
const WIDTH: f64 = 200.0;
const HEIGHT: f64 = 36.0;

/// A ratio, and its 95 % interval.
pub(crate) struct HistoryMark {
    pub(crate) ratio: f64,
    pub(crate) ci95: Option<[f64; 2]>,
    /// A version or the host is another than at the mark before.
    pub(crate) is_changed: bool,
}

/// Estimates with their intervals from left to right, on a logarithmic axis around 1. The text beside it has
/// the same.
pub(crate) fn history(marks: &[HistoryMark]) -> Markup {
    let values = marks.iter().flat_map(|mark| mark.ci95.unwrap_or([mark.ratio; 2])).filter(|v| v.is_normal());
    let (low, high) = values.fold((0.97, 1.03), |(low, high): (f64, f64), v| (low.min(v), high.max(v)));
    if low <= 0.0 {
        return html! {};
    }
    let y = Axis::log(low, high, HEIGHT - 3.0, 3.0);
    let step = WIDTH / marks.len() as f64;
    html! {
        svg.forest.history viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none"
            aria-hidden="true" {
            path.base d={ "M0 " (px(y.x(1.0))) "H" (WIDTH) } {}
            @for (i, mark) in marks.iter().enumerate() {
                @let x = px(step * (i as f64 + 0.5));
                @if mark.is_changed {
                    path.change d={ "M" (px(step * i as f64)) " 0V" (HEIGHT) } {}
                }
                @if let Some([from, to]) = mark.ci95.map(|ends| ends.map(|bound| px(y.x(bound)))) {
                    path.ci d={ "M" (x) " " (from) "V" (to) } {}
                }
                path.dots d={ "M" (x) " " (px(y.x(mark.ratio))) "h0" } {}
            }
        }
    }
}
