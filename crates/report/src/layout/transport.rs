//! Columns for datagrams, TCP, and throughput over time as a line of bars.

use super::details::{Column, Depth};
use crate::model::{CellReport, DatagramReport, SeriesReport, TcpReport};
use crate::numbers::{TimeUnit, count, plain};

/// From zero to the maximum.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Longer series are reduced to this number of bars, each the mean of several steps.
const MOST_BARS: usize = 20;

/// Columns that do not apply have no text in any cell; the caller omits them.
pub(super) fn columns<'a>(cells: &[&CellReport], depth: Depth) -> Vec<Column<'a>> {
    let mut columns = vec![
        datagrams("sent", |d| count(d.sent)),
        datagrams("received", |d| count(d.received)),
        datagrams("lost %", |d| plain(d.lost_percent)),
    ];
    if depth == Depth::Full {
        columns.extend([
            datagrams("reordered", |d| count(d.reordered)),
            datagrams("duplicates", |d| count(d.duplicates)),
        ]);
    }
    columns.extend([
        tcp("retrans-\nmits", |t| plain(t.retransmits)),
        round_trip(cells),
        tcp("cwnd", |t| plain(t.cwnd)),
    ]);
    if depth == Depth::Full {
        columns.extend([
            tcp("efficiency %", |t| plain(t.efficiency_percent)),
            tcp("buffer delay %", |t| t.buffer_delay_percent.map_or(String::new(), plain)),
        ]);
    }
    let step = cells.iter().find_map(|cell| cell.series.as_ref()).map_or(0.0, |series| series.step_ms);
    let each = |what: &str| format!("{what}\neach {} ms", plain(step));
    columns.push(series(each("Gbit/s"), |s| &s.gbit_per_second));
    if depth == Depth::Full {
        columns.push(series(each("lost %"), |s| &s.lost_percent));
        columns.push(series(each("RTT µs"), |s| &s.rtt_us));
    }
    columns
}

fn datagrams<'a>(header: &str, text: fn(&DatagramReport) -> String) -> Column<'a> {
    Column::new(header, move |cell| cell.datagrams.as_ref().map_or(String::new(), text))
}

fn tcp<'a>(header: &str, text: fn(&TcpReport) -> String) -> Column<'a> {
    Column::new(header, move |cell| cell.tcp.as_ref().map_or(String::new(), text))
}

fn round_trip<'a>(cells: &[&CellReport]) -> Column<'a> {
    let unit = TimeUnit::fitting(cells.iter().filter_map(|cell| Some(cell.tcp.as_ref()?.rtt_us)));
    let text = move |found: &TcpReport| plain(unit.of_micros(found.rtt_us));
    Column::new(format!("RTT {}", unit.name()), move |cell: &CellReport| {
        cell.tcp.as_ref().map_or_else(String::new, text)
    })
}

fn series<'a>(header: String, values: fn(&SeriesReport) -> &Vec<f64>) -> Column<'a> {
    Column::new(header, move |cell| cell.series.as_ref().map_or(String::new(), |s| bars(values(s))))
}

/// A line of bars on a scale from 0, with the minimum and the maximum.
fn bars(values: &[f64]) -> String {
    let steps: Vec<f64> = values
        .chunks(values.len().div_ceil(MOST_BARS).max(1))
        .map(|chunk| chunk.iter().sum::<f64>() / chunk.len() as f64)
        .collect();
    let highest = steps.iter().copied().fold(0.0, f64::max);
    if highest <= 0.0 {
        return String::new();
    }
    let lowest = steps.iter().copied().fold(f64::INFINITY, f64::min);
    let bar = |value: &f64| {
        BARS[((value / highest * (BARS.len() - 1) as f64).round() as usize).min(BARS.len() - 1)]
    };
    format!("{} {} to {}", steps.iter().map(bar).collect::<String>(), plain(lowest), plain(highest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_scaled_from_zero_to_the_maximum() {
        assert_eq!(bars(&[0.0, 3.5, 7.0]), "▁▅█ 0.00 to 7.00");
        assert_eq!(bars(&[2.0, 2.0]), "██ 2.00 to 2.00");
        assert_eq!(bars(&[]), "");
        assert_eq!(bars(&[0.0, 0.0]), "");
    }

    #[test]
    fn a_long_series_is_reduced_to_20_bars() {
        let long: Vec<f64> = (0..100).map(f64::from).collect();
        let line = bars(&long);
        assert_eq!(line.chars().take_while(|c| BARS.contains(c)).count(), MOST_BARS);
        assert!(line.ends_with("2.00 to 97.0"), "{line}");
    }
}
