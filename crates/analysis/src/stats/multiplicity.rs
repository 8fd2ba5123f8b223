//! Multiple comparisons: q values of Benjamini and Hochberg (1995, J. R. Stat. Soc. B 57).

/// The q value of each p value: with "q <= 0.05" as the rule, at most 5 % of the differences found are
/// expected to be none.
pub fn q_values(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*b].total_cmp(&p[*a]));
    let mut q = vec![1.0; p.len()];
    let mut least = 1.0_f64;
    for (from_last, index) in order.into_iter().enumerate() {
        let rank = p.len() - from_last;
        least = least.min(p[index] * (p.len() as f64 / rank as f64));
        q[index] = least;
    }
    q
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    fn close(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12)
    }

    /// As R's `p.adjust(p, "BH")` prints.
    #[test]
    fn q_values_by_hand() {
        let p = [0.01, 0.04, 0.03, 0.005, 0.5];
        assert!(close(&q_values(&p), &[0.025, 0.05, 0.05, 0.025, 0.5]), "{:?}", q_values(&p));
        assert!(close(&q_values(&[0.2]), &[0.2]));
        assert!(q_values(&[]).is_empty());
    }

    #[test]
    fn a_q_value_is_at_least_its_p_value_and_keeps_the_order() {
        let mut rng = Pcg64::seed_from_u64(8);
        for n in 1..40 {
            let p: Vec<f64> = (0..n).map(|_| rng.random()).collect();
            let q = q_values(&p);
            for i in 0..n {
                assert!(q[i] >= p[i] && q[i] <= 1.0);
                assert!((0..n).all(|j| p[i] > p[j] || q[i] <= q[j]));
            }
        }
    }

    /// Some of 40 comparisons without any difference have q <= 0.05 in at most 5 % of the runs; 1.4 % is
    /// four standard errors of 4,000 runs.
    #[test]
    fn tables_without_differences_have_findings_in_at_most_five_percent() {
        let mut rng = Pcg64::seed_from_u64(9);
        let runs = 4_000;
        let with_finding = (0..runs).filter(|_| {
            let p: Vec<f64> = (0..40).map(|_| rng.random()).collect();
            q_values(&p).iter().any(|q| *q <= 0.05)
        });
        let share = with_finding.count() as f64 / f64::from(runs);
        assert!(share <= 0.064, "{share}");
    }
}
