//! Places of texts and bars in a drawing.

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
        heads: ["requests/s".to_owned(), "of b".to_owned()],
        is_of_changes: false,
        foot: String::new(),
    }
}

#[test]
fn a_file_has_its_style_its_axis_and_bars_as_long_as_their_values() {
    let file = chart().file();
    assert!(file.starts_with("<svg") && file.contains("prefers-color-scheme: dark"), "{file}");
    // On a phone of 380 pixels letters of 13 have eleven.
    assert!(file.contains("viewBox=\"0 0 420 "), "{file}");
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

/// Texts of a drawing with their places: left end, right end, baseline.
fn texts(drawing: &str) -> Vec<(String, [f64; 3])> {
    let text = regex::Regex::new(r#"<text([^>]*)>([^<]*)<"#).unwrap();
    let all = text.captures_iter(drawing).map(|found| {
        let get = |name: &str| found[1].split(&format!(" {name}=\"")).nth(1)?.split('"').next();
        let place = |name| get(name).unwrap().parse::<f64>().unwrap();
        let size = if found[1].contains("quiet") { SMALL } else { LETTERS };
        let (x, wide) = (place("x"), text_width(&found[2], size));
        let left = x - match get("text-anchor") {
            Some("end") => wide,
            Some("middle") => wide / 2.0,
            _ => 0.0,
        };
        (found[2].to_owned(), [left, left + wide, place("y")])
    });
    all.collect()
}

#[test]
fn no_text_of_a_phone_is_on_another_or_on_a_line_or_outside() {
    let mut chart = chart();
    chart.title = String::new();
    chart.rows[2].label = "a-name-of-a-server-with-all-of-its-layers-and-parts + and-another".to_owned();
    for name in ["b", "beast-async-whole-tls + websocketpp-tls", "CPU/request"] {
        chart.rows[1].label = name.to_owned();
        chart.rows[1].text = ["70.3 \u{b5}s to 119 \u{b5}s".to_owned(), "+69 % (+40 to +104)".to_owned()];
        for (of_changes, width) in [(false, NARROW), (true, NARROW), (false, WIDE)] {
            chart.is_of_changes = of_changes;
            let drawing = chart.inside_page(width, "x").into_string();
            let all = texts(&drawing);
            for (at, (text, [left, right, y])) in all.iter().enumerate() {
                assert!(*left >= -0.1 && *right <= width + 0.1, "{text}: {left} to {right}");
                let is_on = |(_, [from, to, line]): &&(String, [f64; 3])| {
                    (line - y).abs() < 12.0 && from.max(*left) < to.min(*right)
                };
                assert!(all[..at].iter().find(is_on).is_none(), "{text} is on another: {drawing}");
            }
            assert!(drawing.contains(name) && drawing.contains(&chart.rows[2].label), "{drawing}");
        }
    }
    let drawing = chart.inside_page(NARROW, "x").into_string();
    assert_eq!(
        drawing.split("class=\"zero\" d=\"").nth(1).unwrap().split('"').next().unwrap().matches('M').count(),
        3
    );
    assert!(drawing.contains(">requests/s</text>") && drawing.contains(">of b</text>"), "{drawing}");
}

#[test]
fn long_titles_are_broken_between_words() {
    assert_eq!(lines("one two three", 7), ["one two", "three"]);
}
