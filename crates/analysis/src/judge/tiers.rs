//! Tiers in place of ranks: cells whose intervals overlap have no order that the run shows.

/// A cell that has a place among others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contender {
    /// The performance of the cell by that of the baseline, and the 95 % interval.
    pub ratio: f64,
    pub interval: [f64; 2],
    /// The cell has no verdict.
    pub is_open: bool,
}

/// More tiers than these are more than a reader looks at.
const MOST: usize = 4;

/// The tier of each contender, from 1 to 4; `None`: it has none. `None` in place of a contender: it takes no
/// part.
///
/// Of contenders with a verdict, a tier is the best one and all whose intervals overlap with its interval;
/// the best of the others begins the next. One without a verdict is in the tier whose best contender it
/// overlaps with, and in none if it overlaps with several: a wide interval would make one tier of them. Where
/// that makes more than four, those behind the first that are nearest to each other become one.
pub fn tiers(contenders: &[Option<Contender>]) -> Vec<Option<usize>> {
    let mut tiers = vec![None; contenders.len()];
    let mut order: Vec<(usize, Contender)> =
        contenders.iter().enumerate().filter_map(|(at, one)| Some((at, (*one)?))).collect();
    // One alone is first among none.
    if order.len() < 2 {
        return tiers;
    }
    order.sort_by(|(_, a), (_, b)| b.ratio.total_cmp(&a.ratio));
    let (open, decided): (Vec<_>, Vec<_>) = order.into_iter().partition(|(_, one)| one.is_open);
    // The interval of the best contender of each tier, and the ratios at its ends.
    let (mut best, mut ends): (Vec<[f64; 2]>, Vec<[f64; 2]>) = Default::default();
    for (at, Contender { interval, ratio, .. }) in decided {
        if best.last().is_none_or(|[lowest, _]| interval[1] < *lowest) {
            best.push(interval);
            ends.push([ratio; 2]);
        }
        ends[best.len() - 1][1] = ratio;
        tiers[at] = Some(best.len());
    }
    for (at, Contender { interval: [low, high], .. }) in open {
        let overlaps = |[lowest, highest]: &[f64; 2]| low <= *highest && *lowest <= high;
        let mut of_those = (0..best.len()).filter(|tier| overlaps(&best[*tier]));
        let only = of_those.next().filter(|_| of_those.next().is_none());
        tiers[at] = only.map(|tier| tier + 1);
    }
    while ends.len() > MOST {
        let gap = |tier: &usize| ends[*tier][1] / ends[*tier + 1][0];
        let nearest = (1..ends.len() - 1).min_by(|a, b| gap(a).total_cmp(&gap(b))).unwrap_or(1);
        ends[nearest][1] = ends.remove(nearest + 1)[1];
        tiers.iter_mut().flatten().filter(|tier| **tier > nearest + 1).for_each(|tier| *tier -= 1);
    }
    tiers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_that_overlap_with_the_best_of_a_tier_are_in_it() {
        let one = |low: f64, high: f64, is_open| {
            Some(Contender { ratio: f64::midpoint(low, high), interval: [low, high], is_open })
        };
        let all = [
            one(0.9, 1.1, false),
            one(0.8, 0.95, false),
            one(0.4, 0.6, false),
            one(0.55, 0.7, true),
            one(0.5, 1.0, true),
            None,
        ];
        assert_eq!(tiers(&all), [Some(1), Some(1), Some(2), Some(2), None, None]);
        assert_eq!(tiers(&all[..1]), [None]);
    }

    #[test]
    fn of_more_than_four_tiers_the_nearest_behind_the_first_become_one() {
        let exact = |ratio: f64| Some(Contender { ratio, interval: [ratio, ratio], is_open: false });
        let all = [1.0, 0.99, 0.8, 0.79, 0.5, 0.1].map(exact);
        assert_eq!(tiers(&all), [1, 2, 2, 2, 3, 4].map(Some));
    }
}
