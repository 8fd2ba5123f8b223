//! Ratios of one comparison on several hosts: what they have in common, and which host disagrees.

use super::estimate::FEWEST_ROUNDS;

/// A ratio that was measured within one host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HostRatio {
    pub ratio: f64,
    /// 95 %; with fewer than [`FEWEST_ROUNDS`] units their range.
    pub interval: [f64; 2],
    pub n: u32,
}

impl HostRatio {
    fn is_apart(&self, other: &Self) -> bool {
        self.interval[1] < other.interval[0] || other.interval[1] < self.interval[0]
    }
}

/// The median of the hosts' ratios and their range; `None` without a ratio. Every host counts once, whatever
/// its number of units.
pub fn median_and_range(ratios: &[HostRatio]) -> Option<(f64, [f64; 2])> {
    let mut sorted: Vec<f64> = ratios.iter().map(|host| host.ratio).filter(|r| r.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let (first, last) = (*sorted.first()?, *sorted.last()?);
    let half = sorted.len() / 2;
    // Geometric for two: 0.5 and 2 have the median 1.
    let median = if sorted.len() % 2 == 1 { sorted[half] } else { (sorted[half - 1] * sorted[half]).sqrt() };
    Some((median, [first, last]))
}

/// The hosts that disagree, as places in `ratios`, each with the median of the others: its interval overlaps
/// with those of fewer than half of the other hosts, and its ratio differs from their median by more than
/// the margin. Hosts with fewer than [`FEWEST_ROUNDS`] units have no interval and take no part.
pub fn disagreeing(ratios: &[HostRatio], margin: f64) -> Vec<(usize, f64)> {
    let takes_part = |host: &HostRatio| host.n >= FEWEST_ROUNDS && host.ratio.is_finite();
    let of_host = |(index, host): (usize, &HostRatio)| {
        let others: Vec<HostRatio> = ratios
            .iter()
            .enumerate()
            .filter(|(other, ratio)| *other != index && takes_part(ratio))
            .map(|(_, ratio)| *ratio)
            .collect();
        let overlapping = others.iter().filter(|other| !host.is_apart(other)).count();
        let (median, _) = median_and_range(&others)?;
        let differs = (host.ratio / median).ln().abs() > (1.0 + margin).ln();
        (takes_part(host) && differs && overlapping * 2 < others.len()).then_some((index, median))
    };
    ratios.iter().enumerate().filter_map(of_host).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(low: f64, ratio: f64, high: f64) -> HostRatio {
        HostRatio { ratio, interval: [low, high], n: 12 }
    }

    #[test]
    fn each_host_counts_once_in_median_and_range() {
        let three = [host(0.4, 0.5, 0.6), host(0.7, 0.8, 0.9), host(0.5, 0.6, 0.7)];
        assert_eq!(median_and_range(&three), Some((0.6, [0.5, 0.8])));
        assert_eq!(median_and_range(&[host(0.5, 0.5, 0.5), host(2.0, 2.0, 2.0)]), Some((1.0, [0.5, 2.0])));
        assert_eq!(median_and_range(&[]), None);
    }

    #[test]
    fn the_host_that_is_apart_from_most_others_disagrees() {
        let three = [host(0.49, 0.5, 0.51), host(0.48, 0.5, 0.52), host(0.7, 0.8, 0.9)];
        assert_eq!(disagreeing(&three, 0.03), [(2, 0.5)]);
        let two = [host(0.49, 0.5, 0.51), host(0.7, 0.8, 0.9)];
        assert_eq!(disagreeing(&two, 0.03), [(0, 0.8), (1, 0.5)]);
    }

    #[test]
    fn narrow_intervals_within_the_margin_and_few_units_are_no_disagreement() {
        let close = [host(0.999, 1.0, 1.001), host(1.018, 1.02, 1.022)];
        assert_eq!(disagreeing(&close, 0.03), []);
        assert_eq!(disagreeing(&close, 0.01).len(), 2);
        let few = HostRatio { n: FEWEST_ROUNDS - 1, ..host(0.1, 0.1, 0.1) };
        assert_eq!(disagreeing(&[few, host(0.9, 1.0, 1.1)], 0.03), []);
        assert_eq!(disagreeing(&[host(0.9, 1.0, 1.1)], 0.03), []);
    }
}
