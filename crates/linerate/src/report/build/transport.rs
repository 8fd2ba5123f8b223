//! Datagrams, TCP and series of a cell.

use crate::measurement::Measurement;
use crate::report::model::{DatagramReport, SeriesReport, TcpReport};
use crate::stats::transport as stats;

pub(super) fn datagrams<'a>(good: impl Iterator<Item = &'a Measurement>) -> Option<DatagramReport> {
    let sum = stats::datagrams(good)?;
    Some(DatagramReport {
        sent: sum.sent,
        received: sum.received,
        lost: sum.lost,
        lost_percent: stats::lost_share(&sum) * 100.0,
        reordered: sum.reordered,
        duplicates: sum.duplicates,
    })
}

pub(super) fn tcp<'a>(good: impl Iterator<Item = &'a Measurement>) -> Option<TcpReport> {
    let facts = stats::tcp(good)?;
    Some(TcpReport {
        retransmits: facts.retransmits,
        rtt_us: facts.rtt_us,
        cwnd: facts.cwnd,
        efficiency_percent: facts.efficiency * 100.0,
        buffer_delay_percent: facts.buffer_delay.map(|delay| delay * 100.0),
    })
}

pub(super) fn series<'a>(good: impl Iterator<Item = &'a Measurement>) -> Option<SeriesReport> {
    let series = stats::series(good)?;
    Some(SeriesReport {
        step_ms: (series.step.as_micros_f64() / 1e3).round(),
        gbit_per_second: series.gbit_per_second,
        lost_percent: series.lost_percent,
        rtt_us: series.rtt_us,
    })
}
