//! Several runs of the same pairs: does the interval of one run contain what all of them found?
//!
//! An interval is computed from the units of its run. What belongs to the run (where the kernel placed the
//! processes, the state of the machine over minutes) is the same for all these units, so that only a second
//! run shows it.

use crate::judge::{self, Comparison, SortedJournal};
use crate::stats::estimate::{median, standard_deviation};
use linerate_model::{Duet, Run, Sharing, Trial};
use std::collections::BTreeMap;

/// How the units of a pair were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pairing {
    /// In duet, in this way in all runs.
    Duet(Sharing),
    /// In trials of their own.
    Alone,
    /// In different ways in different runs.
    Mixed,
}

/// A pair of cells that several runs compare.
#[derive(Debug, Clone, PartialEq)]
pub struct RepeatedPair {
    pub suite: String,
    pub cell: String,
    /// The baseline.
    pub with: String,
    pub pairing: Pairing,
    pub rate: Repeated,
    /// CPU time per operation; `None` where fewer than two runs have it.
    pub cpu: Option<Repeated>,
}

/// A ratio with its 95 % interval from each of several runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repeated {
    pub runs: u64,
    /// Geometric mean of the runs' ratios.
    pub ratio: f64,
    /// Sample standard deviation of the runs' log ratios: 0.01 is about 1 %.
    pub between: f64,
    /// Median over the runs: half of the width of the interval of the log ratio.
    pub within: f64,
    /// Runs whose interval contains `ratio`.
    pub inside: u64,
}

impl Repeated {
    /// `None` with fewer than two runs. The mean contains each run itself, so that more than 95 % of the
    /// intervals should contain it.
    pub fn from_runs(runs: &[(f64, [f64; 2])]) -> Option<Self> {
        let logs: Vec<f64> = runs.iter().map(|(ratio, _)| ratio.ln()).collect();
        let between = standard_deviation(&logs)?;
        let ratio = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
        let is_inside = |(_, [low, high]): &&(f64, [f64; 2])| (*low..=*high).contains(&ratio);
        Some(Self {
            runs: runs.len() as u64,
            ratio,
            between,
            within: median(runs.iter().map(|(_, [low, high])| (high / low).ln() / 2.0))?,
            inside: runs.iter().filter(is_inside).count() as u64,
        })
    }
}

/// The pairs of suites that at least two of the runs compare, by the first metric of their tables.
///
/// An interval of fewer than six units is left out: it is a range.
pub fn pairs<'a>(runs: impl IntoIterator<Item = (&'a Run, &'a [Trial], &'a [Duet])>) -> Vec<RepeatedPair> {
    by_pair(runs.into_iter().map(|(run, trials, duets)| comparisons(run, trials, duets)))
}

/// A comparison with its suite and cell.
type Compared = ((String, String), Comparison);

fn comparisons(run: &Run, trials: &[Trial], duets: &[Duet]) -> Vec<Compared> {
    let journal = SortedJournal::sort(run, trials, duets);
    let in_suite = |planned| {
        let tables = judge::suite(planned, &journal, None).tables.into_iter();
        let entries = tables.flat_map(|table| {
            let metric = table.planned.metric;
            table.entries.into_iter().filter(move |entry| entry.metric == metric)
        });
        let compared = |entry: judge::Entry| Some(((planned.name.clone(), entry.id), entry.vs_baseline?));
        entries.filter_map(compared).collect::<Vec<Compared>>()
    };
    run.suites.iter().flat_map(in_suite).collect()
}

fn by_pair(runs: impl Iterator<Item = Vec<Compared>>) -> Vec<RepeatedPair> {
    let mut found: BTreeMap<(String, String, String), Vec<Comparison>> = BTreeMap::new();
    for run in runs {
        // A cell may be in several tables.
        let mut of_run = BTreeMap::new();
        for ((suite, cell), comparison) in run {
            of_run.entry((suite, cell, comparison.with.clone())).or_insert(comparison);
        }
        for (pair, comparison) in of_run {
            found.entry(pair).or_default().push(comparison);
        }
    }
    let repeated = |((suite, cell, with), all): ((String, String, String), Vec<Comparison>)| {
        let decided: Vec<Comparison> = all.into_iter().filter(|c| c.ci90.is_some()).collect();
        let rates: Vec<_> = decided.iter().map(|c| (c.ratio, c.ci95)).collect();
        let cpu = |c: &Comparison| c.duet.as_ref().and_then(|duet| duet.cpu_ratio.zip(duet.cpu_ci95));
        let cpus: Vec<_> = decided.iter().filter_map(cpu).collect();
        let mut ways: Vec<Pairing> = decided.iter().map(pairing).collect();
        ways.dedup();
        Some(RepeatedPair {
            suite,
            cell,
            with,
            pairing: if let [one] = ways[..] { one } else { Pairing::Mixed },
            rate: Repeated::from_runs(&rates)?,
            cpu: Repeated::from_runs(&cpus),
        })
    };
    found.into_iter().filter_map(repeated).collect()
}

fn pairing(comparison: &Comparison) -> Pairing {
    comparison.duet.as_ref().and_then(|duet| duet.sharing).map_or(Pairing::Alone, Pairing::Duet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::DuetReport;
    use crate::stats::verdict::Verdict;

    fn comparison(ratio: f64, half: f64, sharing: Option<Sharing>) -> Comparison {
        Comparison {
            with: "direct".into(),
            with_value: None,
            ratio,
            ci95: [ratio - half, ratio + half],
            ci95_is_range: false,
            ci90: Some([ratio - half, ratio + half]),
            difference: None,
            p: None,
            q: None,
            smallest_detectable: None,
            n: 12,
            units: Vec::new(),
            verdict: Verdict::Slower,
            autocorrelation: None,
            client_is_limit: false,
            duet: sharing.map(|sharing| DuetReport {
                sharing: Some(sharing),
                cpu_ratio: Some(2.0 * ratio),
                cpu_ci95: Some([1.9 * ratio, 2.1 * ratio]),
                ..DuetReport::default()
            }),
        }
    }

    fn repeated(runs: &[Comparison]) -> Vec<RepeatedPair> {
        let compared = |run: &Comparison| (("proxy".into(), "haproxy".into()), run.clone());
        by_pair(runs.iter().map(|run| vec![compared(run), compared(run)]))
    }

    #[test]
    fn runs_that_agree_contain_their_mean_and_runs_that_do_not_agree_miss_it() {
        let turns = Some(Sharing::Turns);
        let runs = [0.50, 0.51, 0.49].map(|ratio| comparison(ratio, 0.02, turns));
        let [pair] = &repeated(&runs)[..] else { panic!("one pair") };
        assert_eq!((pair.rate.inside, pair.rate.runs), (3, 3));
        assert_eq!(pair.pairing, Pairing::Duet(Sharing::Turns));
        assert!((pair.rate.ratio - 0.5).abs() < 1e-3 && (pair.rate.between - 0.02).abs() < 1e-3);
        assert!((pair.rate.within - 0.04).abs() < 1e-3 && (pair.cpu.unwrap().ratio - 1.0).abs() < 1e-3);
        let runs = [0.50, 0.60, 0.40].map(|ratio| comparison(ratio, 0.01, turns));
        assert_eq!(repeated(&runs)[0].rate.inside, 1);
    }

    #[test]
    fn a_pair_that_was_measured_in_two_ways_is_mixed_and_one_run_is_no_repetition() {
        let of = |sharing| comparison(0.5, 0.02, sharing);
        let two = repeated(&[of(Some(Sharing::Turns)), of(Some(Sharing::Together))]);
        assert_eq!(two[0].pairing, Pairing::Mixed);
        let alone = repeated(&[of(None), of(None)]);
        assert_eq!((alone[0].pairing, alone[0].cpu), (Pairing::Alone, None));
        assert_eq!(repeated(&[of(None)]), []);
    }

    #[test]
    fn the_range_of_a_few_units_is_no_interval() {
        let few = Comparison { ci90: None, ..comparison(0.5, 0.02, None) };
        assert_eq!(repeated(&[few.clone(), few]), []);
    }
}
