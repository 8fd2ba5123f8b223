//! Datagrams, TCP information, and throughput over time.

use super::estimate::median;
use linerate_contract::{Datagrams, Nanos, Sample, TcpEnds, TcpInfo};
use linerate_model::Measurement;
use serde::Serialize;

const BITS_PER_GBIT: f64 = 1e9;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DatagramReport {
    pub sent: u64,
    /// Good ones, each once.
    pub received: u64,
    pub lost: u64,
    /// Percent of those sent.
    pub lost_percent: f64,
    pub reordered: u64,
    pub duplicates: u64,
}

/// Datagrams of several trials together.
pub fn datagrams<'a>(measurements: impl IntoIterator<Item = &'a Measurement>) -> Option<DatagramReport> {
    let all = measurements.into_iter().filter_map(|m| m.datagrams);
    let sum = all.reduce(|sum, other| Datagrams {
        sent: sum.sent.saturating_add(other.sent),
        received: sum.received.saturating_add(other.received),
        lost: sum.lost.saturating_add(other.lost),
        reordered: sum.reordered.saturating_add(other.reordered),
        duplicates: sum.duplicates.saturating_add(other.duplicates),
        damaged: sum.damaged.saturating_add(other.damaged),
    })?;
    let Datagrams { sent, received, lost, reordered, duplicates, .. } = sum;
    let lost_percent = if sent == 0 { 0.0 } else { lost as f64 / sent as f64 * 100.0 };
    Some(DatagramReport { sent, received, lost, lost_percent, reordered, duplicates })
}

/// TCP information: medians over the trials.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TcpReport {
    pub retransmits: f64,
    pub rtt_us: f64,
    /// Segments.
    pub cwnd: f64,
    /// RFC 6349: percent of the bytes sent that were not retransmissions.
    pub efficiency_percent: f64,
    /// RFC 6349: (mean - min) / min of the round trip, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_delay_percent: Option<f64>,
}

/// The end that sent more: the other has no retransmissions, and its window was not used.
pub fn tcp<'a>(measurements: impl IntoIterator<Item = &'a Measurement>) -> Option<TcpReport> {
    let sender =
        |ends: TcpEnds| [ends.server, ends.client].into_iter().flatten().max_by_key(|end| end.bytes_sent);
    let known: Vec<(TcpInfo, &Measurement)> =
        measurements.into_iter().filter_map(|m| Some((sender(m.tcp?)?, m))).collect();
    let of = |value: &dyn Fn(&TcpInfo, &Measurement) -> Option<f64>| {
        median(known.iter().filter_map(|(info, m)| value(info, m)))
    };
    Some(TcpReport {
        retransmits: of(&|info, _| Some(info.retransmits as f64))?,
        rtt_us: of(&|info, m| Some(mean_rtt(m).unwrap_or(info.rtt_us as f64)))?,
        cwnd: of(&|info, _| Some(info.cwnd as f64))?,
        efficiency_percent: of(&|info, _| {
            let retransmitted = info.bytes_retransmitted.min(info.bytes_sent) as f64;
            Some(if info.bytes_sent == 0 { 1.0 } else { 1.0 - retransmitted / info.bytes_sent as f64 })
        })? * 100.0,
        buffer_delay_percent: of(&|info, m| {
            let min = (info.min_rtt_us > 0).then_some(info.min_rtt_us as f64)?;
            Some((mean_rtt(m)? - min) / min * 100.0)
        }),
    })
}

fn mean_rtt(measurement: &Measurement) -> Option<f64> {
    let known: Vec<f64> = measurement.series.iter().filter_map(|s| Some(s.rtt_us? as f64)).collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

/// A transfer over time: for each step the median over the trials.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeriesReport {
    /// Length of a step.
    pub step_ms: f64,
    pub gbit_per_second: Vec<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    /// Percent of the datagrams expected; empty for a reliable transport.
    pub lost_percent: Vec<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    /// Empty where no end reports it.
    pub rtt_us: Vec<f64>,
}

/// As long as the shortest series; `None` if no series has two steps.
pub fn series<'a>(measurements: impl IntoIterator<Item = &'a Measurement>) -> Option<SeriesReport> {
    let all: Vec<&[Sample]> =
        measurements.into_iter().map(|m| &m.series[..]).filter(|s| s.len() >= 2).collect();
    let steps = all.iter().map(|samples| samples.len()).min()?;
    let over = |value: &dyn Fn(&[Sample], usize) -> Option<f64>| -> Vec<f64> {
        let step = |index| median(all.iter().filter_map(|samples| value(samples, index)));
        (0..steps).map_while(step).collect()
    };
    let step = Nanos(median(all.iter().map(|s| s[1].at_ns.since(s[0].at_ns).0 as f64))? as u64);
    Some(SeriesReport {
        step_ms: (step.as_micros_f64() / 1e3).round(),
        gbit_per_second: over(&|samples, index| {
            let before = index.checked_sub(1).map_or(Nanos::ZERO, |before| samples[before].at_ns);
            let seconds = samples[index].at_ns.since(before).as_secs_f64();
            let speed = samples[index].bytes.0 as f64 * 8.0 / BITS_PER_GBIT / seconds;
            speed.is_finite().then_some(speed)
        }),
        lost_percent: over(&|samples, index| {
            let lost = samples[index].lost?.max(0) as f64;
            let expected = lost + samples[index].operations as f64;
            Some(if expected > 0.0 { lost / expected * 100.0 } else { 0.0 })
        }),
        rtt_us: over(&|samples, index| Some(samples[index].rtt_us? as f64)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Bytes;

    fn sample(at: u64, bytes: u64, operations: u64, lost: Option<i64>, rtt_us: Option<u64>) -> Sample {
        Sample { at_ns: Nanos(at), operations, bytes: Bytes(bytes), failed: 0, latency: None, lost, rtt_us }
    }

    #[test]
    fn loss_is_a_share_of_the_datagrams_sent() {
        let with = |sent, lost| Measurement {
            datagrams: Some(Datagrams { sent, received: sent - lost, lost, ..Datagrams::default() }),
            ..Measurement::default()
        };
        let sum = datagrams(&[with(100, 0), with(300, 4)]).unwrap();
        assert_eq!((sum.sent, sum.received, sum.lost), (400, 396, 4));
        assert!((sum.lost_percent - 1.0).abs() < 1e-12);
        assert_eq!(datagrams(&[with(0, 0)]).unwrap().lost_percent, 0.0);
        assert_eq!(datagrams(&[Measurement::default()]), None);
    }

    #[test]
    fn tcp_facts_follow_rfc_6349() {
        let info = TcpInfo {
            retransmits: 3,
            rtt_us: 900,
            min_rtt_us: 100,
            cwnd: 10,
            bytes_sent: 1_000,
            bytes_retransmitted: 20,
        };
        let measurement = Measurement {
            tcp: Some(TcpEnds { client: Some(info), server: None }),
            series: vec![sample(1, 1, 0, None, Some(100)), sample(2, 1, 0, None, Some(200))],
            ..Measurement::default()
        };
        let facts = tcp(std::slice::from_ref(&measurement)).unwrap();
        assert_eq!((facts.retransmits, facts.rtt_us, facts.cwnd), (3.0, 150.0, 10.0));
        assert!((facts.efficiency_percent - 98.0).abs() < 1e-12);
        assert_eq!(facts.buffer_delay_percent, Some(50.0));
        let receiver = TcpInfo { retransmits: 9, bytes_sent: 8, ..info };
        let both = Measurement {
            tcp: Some(TcpEnds { server: Some(receiver), client: Some(info) }),
            ..measurement.clone()
        };
        assert_eq!(tcp(&[both]).map(|facts| facts.retransmits), Some(3.0));
        let without = Measurement { series: Vec::new(), ..measurement };
        assert_eq!(tcp(&[without]).map(|f| (f.rtt_us, f.buffer_delay_percent)), Some((900.0, None)));
        assert_eq!(tcp(&[Measurement::default()]), None);
    }

    #[test]
    fn a_series_has_the_median_of_each_step() {
        let with = |bytes: [u64; 3], lost| Measurement {
            series: vec![
                sample(100_000_000, bytes[0], 90, Some(lost), None),
                sample(200_000_000, bytes[1], 100, Some(-5), None),
                sample(300_000_000, bytes[2], 0, Some(0), None),
            ],
            ..Measurement::default()
        };
        let mut short = with([12_500_000; 3], 10);
        short.series.pop();
        let medians = series(&[with([12_500_000, 25_000_000, 0], 10), short.clone()]).unwrap();
        assert_eq!(medians.step_ms, 100.0);
        assert_eq!(medians.gbit_per_second, [1.0, 1.5]);
        assert_eq!(medians.lost_percent, [10.0, 0.0]);
        assert!(medians.rtt_us.is_empty());
        short.series.clear();
        assert_eq!(series(&[short]), None);
    }
}
