//! The path of a cell, by the counts of its relay.

use crate::model::{PathReport, WayReport};
use linerate_model::path::NetworkPath;
use linerate_model::{Measurement, PacketCounts, WireCounts};
use std::collections::BTreeSet;

/// `None` where nothing on the path is impaired.
pub(super) fn path<'a>(
    path: &NetworkPath,
    good: impl Iterator<Item = &'a Measurement>,
) -> Option<PathReport> {
    if !path.is_impaired() {
        return None;
    }
    let wires: Vec<&WireCounts> = good.flat_map(|measurement| &measurement.wires).collect();
    let means: BTreeSet<&str> = wires.iter().map(|wire| wire.means.as_str()).collect();
    Some(PathReport {
        description: path.to_string(),
        means: means.into_iter().collect::<Vec<_>>().join("; "),
        up: way(wires.iter().filter_map(|wire| wire.up)),
        down: way(wires.iter().filter_map(|wire| wire.down)),
    })
}

/// Saturating, because a damaged journal may contain any number.
fn way(counts: impl Iterator<Item = PacketCounts>) -> Option<WayReport> {
    let sum = counts.reduce(|a, b| PacketCounts {
        packets: a.packets.saturating_add(b.packets),
        lost: a.lost.saturating_add(b.lost),
        overflowed: a.overflowed.saturating_add(b.overflowed),
        overrun: a.overrun.saturating_add(b.overrun),
        late: a.late.saturating_add(b.late),
    })?;
    let percent = |part: u64| part as f64 / sum.packets.max(1) as f64 * 100.0;
    Some(WayReport {
        packets: sum.packets,
        lost_percent: percent(sum.lost),
        overflowed_percent: percent(sum.overflowed),
        late_percent: percent(sum.late),
        overrun: sum.overrun,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::path::{Impairment, Shape};

    #[test]
    fn counts_of_all_trials_and_links_are_summed_and_an_unimpaired_path_has_none() {
        let mut impaired = NetworkPath::from(Shape::Router);
        assert_eq!(path(&impaired, [].into_iter()), None);
        impaired.links[0].up = Some(Impairment::default());
        let wire = |packets, lost| WireCounts {
            link: 1,
            means: "relay".into(),
            up: Some(PacketCounts { packets, lost, ..PacketCounts::default() }),
            ..WireCounts::default()
        };
        let trials = [wire(100, 1), wire(300, 3)]
            .map(|wire| Measurement { wires: vec![wire], ..Measurement::default() });
        let report = path(&impaired, trials.iter()).unwrap();
        assert_eq!((report.means.as_str(), report.down), ("relay", None));
        let up = report.up.unwrap();
        assert_eq!((up.packets, up.lost_percent), (400, 1.0));
    }
}
