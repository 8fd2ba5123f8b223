//! The plots of a page against the numbers that they draw: places are measured in the drawing.

use crate::element::Element;
use crate::page::{array, interval, number, text};
use serde_json::Value;

/// Places are written with one digit behind the point.
const ROUNDING: f64 = 0.06;

/// A row's plot: its interval, its estimate and a dot for each unit, on the axis that margin and baseline of
/// the background define.
pub(crate) fn check_forest(row: &Element, background: &Element, compared: &Value, margin: f64) {
    let plot = row.one("td.ratio").one("svg.forest");
    let band = background.one("rect.band");
    let width: f64 = band.get("width").unwrap().parse().unwrap();
    let one = places(background.one("path.base").get("d").unwrap())[0];
    let per_log = width / (2.0 * (1.0 + margin).ln());
    // The error of the width grows with the distance from the baseline.
    let is_at = |place: f64, ratio: f64| {
        let wanted = (one + per_log * ratio.ln()).clamp(0.0, 200.0);
        let allowed = 2.0 * ROUNDING + (wanted - one).abs() * 2.0 * ROUNDING / width;
        (place - wanted).abs() <= allowed
    };
    let [low, high] = interval(&compared["ci95"]);
    let line = places(plot.one("path.ci").get("d").unwrap());
    assert!(is_at(line[0], low) && is_at(line[2], high), "{line:?} is not {low} to {high}");
    let middle = places(plot.one("path.mid").get("d").unwrap())[0];
    assert!(is_at(middle, number(&compared["ratio"])), "{middle}: {compared}");
    let dots = plot.one("path.dots").get("d").unwrap();
    let dots: Vec<f64> = dots.split('M').skip(1).map(|dot| places(dot)[0]).collect();
    let units: Vec<f64> = array(compared, "units").iter().map(number).filter(|unit| *unit > 0.0).collect();
    assert_eq!(dots.len(), units.len(), "a dot for each unit");
    for (dot, unit) in dots.iter().zip(units) {
        assert!(is_at(*dot, unit), "{dot} is not {unit}");
    }
}

/// Bars of values have one scale, from 0.
pub(crate) fn check_bars(bars: &[(&Element, f64)]) {
    let width = |bar: &Element| places(bar.get("style").unwrap().trim_start_matches("--v:"))[0];
    check_lengths(&bars.iter().map(|(bar, value)| (width(bar), *value)).collect::<Vec<_>>());
}

/// Lengths in percent of the scale, each with its value: on one scale, from 0.
pub(crate) fn check_lengths(bars: &[(f64, f64)]) {
    let Some((most, value)) = bars.iter().max_by(|a, b| a.1.total_cmp(&b.1)) else { return };
    assert!(*most > 0.0 && *most <= 100.2, "{most} %");
    for (width, other) in bars {
        let wanted = other / value * most;
        assert!((width - wanted).abs() <= 3.0 * ROUNDING, "{width} % for {other}, not {wanted} %");
    }
}

/// Parts of the CPU time in the order of the path, with lengths in proportion to those of the trials alone.
/// Returns the length of all together. `row`: the CPU time of the row, and the roles whose it is.
pub(crate) fn check_cpu(field: &Element, cell: &Value, row: &Value) -> Option<f64> {
    let stack = field.all(".stack").first().copied()?;
    let is_meant = |role: &str| row.get("of").is_none() || array(row, "of").iter().any(|of| of == role);
    let cost = |role: &str| {
        let cost = &cell["cpu"][role];
        cost["us_per_op"].as_f64().or(cost["us_per_mb"].as_f64())
    };
    let parts: Vec<(f64, f64)> = stack
        .inside()
        .into_iter()
        .filter_map(|part| {
            let length = places(part.get("style")?.trim_start_matches("width:"))[0];
            Some((length, cost(part.get("class")?)?))
        })
        .collect();
    let known = ["client", "relay", "server"].iter().filter(|role| cost(role).is_some() && is_meant(role));
    let roles = known.count();
    assert_eq!(parts.len(), roles, "{}: {}", text(cell, "id"), cell["cpu"]);
    for (length, cost) in &parts {
        let (first, of_first) = parts[0];
        assert!((length * of_first - first * cost).abs() <= 2.0 * ROUNDING * (cost + of_first), "{parts:?}");
    }
    Some(parts.iter().map(|(length, _)| length).sum())
}

/// A figure of latencies by percentile: a line for each row that has a curve, with a point for each
/// percentile on one axis, linear or logarithmic.
pub(crate) fn check_latencies(figure: &Element, curves: &[(&str, &Value)]) {
    let lines: Vec<&Element> = figure.all("g").into_iter().filter(|g| g.get("data-name").is_some()).collect();
    assert_eq!(lines.len(), curves.len());
    let mut points = Vec::new();
    for (name, curve) in curves {
        let line = lines.iter().find(|line| line.get("data-name") == Some(name)).expect("a line of each row");
        let us: Vec<f64> = array(curve, "us").iter().map(number).collect();
        let path = places(line.one("path.line").get("d").unwrap());
        let heights: Vec<f64> = path.into_iter().skip(1).step_by(2).collect();
        assert_eq!(heights.len(), us.len(), "{name}");
        points.extend(us.into_iter().zip(heights));
    }
    assert!(is_line(&points, |us| us) || is_line(&points, f64::ln), "{points:?} are on no axis");
}

/// True if all points are on the line through the lowest and the highest.
fn is_line(points: &[(f64, f64)], scale: fn(f64) -> f64) -> bool {
    let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.0.total_cmp(&b.0);
    let (Some(low), Some(high)) = (points.iter().min_by(by_value), points.iter().max_by(by_value)) else {
        return false;
    };
    let slope = (high.1 - low.1) / (scale(high.0) - scale(low.0));
    // Larger is higher in the drawing.
    let is_near = |(us, y): &(f64, f64)| {
        let wanted = low.1 + slope * (scale(*us) - scale(low.0));
        low.0 == high.0 || (y - wanted).abs() <= 2.0 * ROUNDING
    };
    (low.0 == high.0 || slope < 0.0) && points.iter().all(is_near)
}

/// The numbers of a path or a length.
fn places(path: &str) -> Vec<f64> {
    let is_sign = |c: char| !c.is_ascii_digit() && c != '.' && c != '-';
    path.split(is_sign).filter_map(|place| place.parse().ok()).collect()
}
