//! The comparisons of a table as sentences.

use crate::model::{Comparison, DuetReport, SuiteReport, TableReport};
use crate::numbers::{Ends, counted, difference, longer, percent, plain, times, value_and_range};
use crate::words::{self, detectable};
use linerate_analysis::stats::verdict::Verdict;
use linerate_model::Sharing;

/// Up to this number, all comparisons become sentences.
const FEW: usize = 6;

/// The comparisons of a table as sentences; in a large table the best and the worst of each column.
pub(crate) fn sentences(suite: &SuiteReport, table: &TableReport) -> Vec<String> {
    let compared: Vec<(&str, &Comparison)> =
        table.main_cells().filter_map(|cell| Some((cell.id.as_str(), cell.vs_baseline.as_ref()?))).collect();
    let chosen: Vec<&(&str, &Comparison)> = if compared.len() <= FEW {
        compared.iter().collect()
    } else {
        let of_column = |column: &String| {
            let here = compared.iter().filter(|(id, _)| is_in_column(suite, table, id, column));
            best_and_worst(here.collect())
        };
        table.column_values.iter().flat_map(of_column).collect()
    };
    let is_cost = table.quantity().is_some_and(words::is_cost);
    let best_of = table.best_of.iter().map(|result| {
        let metric = words::metric(result.metric);
        let found = sentence(&result.id, &result.vs_best, words::is_cost(result.metric));
        format!("best of the competitors, {metric}: {found}")
    });
    let scaling = table.main_cells().filter_map(|cell| {
        let found = cell.scaling.as_ref()?;
        Some(format!("scaling: {}", sentence(&cell.id, found, is_cost)))
    });
    let sentences = chosen.into_iter().map(|(id, comparison)| sentence(id, comparison, is_cost));
    sentences
        .chain(scaling)
        .chain(best_of)
        .chain(table.aa.as_ref().map(|control| aa(table, control)))
        .collect()
}

/// Contradictions between trials alone and the ratios of the rows, by the first metric, in words: a row has
/// one number. A sentence for each baseline, number of trials and consequence.
pub(crate) fn warnings(table: &TableReport) -> Vec<String> {
    let is_cost = table.quantity().is_some_and(words::is_cost);
    let share = |ratio: f64, ends: Ends| if is_cost { longer(ratio, ends) } else { percent(ratio, ends) };
    let mut warnings: Vec<(String, Vec<String>)> = Vec::new();
    for entry in table.main_cells() {
        let Some(found) = entry.vs_baseline.as_ref() else { continue };
        let Some(alone) = found.denied_by() else { continue };
        let end = if found.is_in_doubt() { "no verdict" } else { "rows show the pairs" };
        let what = format!(
            "warning: in {} alone the ratio to {} differs from that in pairs ({end})",
            counted(alone.n, "trial"),
            found.with,
        );
        let row = format!(
            "{} {}, not {}",
            name_beside(&entry.id, &found.with),
            share(alone.ratio, alone.ci95.into()),
            share(found.ratio, found.into()),
        );
        match warnings.iter_mut().find(|(known, _)| *known == what) {
            Some((_, rows)) => rows.push(row),
            None => warnings.push((what, vec![row])),
        }
    }
    warnings.into_iter().map(|(what, rows)| format!("{what}: {}", rows.join("; "))).collect()
}

/// An id without what it shares with another: `netty` of `http/netty` beside `http/go`.
fn name_beside<'a>(id: &'a str, other: &str) -> &'a str {
    let common = id.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    &id[id[..common].rfind('/').map_or(0, |at| at + 1)..]
}

fn aa(table: &TableReport, control: &Comparison) -> String {
    let end = if table.control_fails() { "; the verdicts of this table's duets are withdrawn" } else { "" };
    let is_cost = table.quantity().is_some_and(words::is_cost);
    format!("A/A: {}{end}", measured(&control.with, control, is_cost))
}

fn is_in_column(suite: &SuiteReport, table: &TableReport, id: &str, column: &str) -> bool {
    suite.cells.iter().any(|cell| cell.id == id && cell.axes.get(&table.columns) == Some(column))
}

fn best_and_worst<'a>(
    mut compared: Vec<&'a (&'a str, &'a Comparison)>,
) -> Vec<&'a (&'a str, &'a Comparison)> {
    compared.sort_by(|a, b| b.1.ratio.total_cmp(&a.1.ratio));
    if compared.len() > 2 {
        compared.drain(1..compared.len() - 1);
    }
    compared
}

/// `nginx/haproxy-http is 0.73x nginx/direct (0.71 to 0.75, n=10)`, and the reason where there is no verdict.
/// A cost, such as a latency, is told as itself and not as performance.
fn sentence(id: &str, comparison: &Comparison, is_cost: bool) -> String {
    let verdict = match comparison.verdict {
        _ if comparison.ci95_is_range => ": too few rounds for a verdict".to_owned(),
        Verdict::WithinMargin => ": within the margin".to_owned(),
        Verdict::SmallDifference => ": differs by less than the margin".to_owned(),
        Verdict::CannotTell => cannot_tell(comparison),
        Verdict::NotSlower => ": not slower by the margin".to_owned(),
        Verdict::Faster | Verdict::Slower | Verdict::Failed | Verdict::Missing => String::new(),
    };
    measured(id, comparison, is_cost) + &verdict
}

/// A comparison without its verdict: `nginx/direct is 1.003x nginx/direct (0.998 to 1.014, n=6)`.
fn measured(id: &str, comparison: &Comparison, is_cost: bool) -> String {
    let Comparison { with, n, duet, difference: micros, .. } = comparison;
    let told = |ratio: f64| if is_cost { ratio.recip() } else { ratio };
    let (ratio, range) = value_and_range(told(comparison.ratio), Ends::from(comparison.ci95).map(told));
    let range = range.map_or_else(String::new, |range| format!("{range}, "));
    let duet = duet.as_ref().map_or_else(String::new, duet_text);
    let micros = micros.as_ref().map_or_else(String::new, |micros| format!(", {}", difference(micros)));
    format!("{id} is {ratio}x {with} ({range}n={n}{duet}){micros}")
}

/// With what contradicts or disturbs the ratio, or the difference that this number of units would probably
/// have found.
fn cannot_tell(comparison: &Comparison) -> String {
    if comparison.duet.as_ref().is_some_and(|duet| duet.contradicted_by.is_some()) {
        return ": undecided, its trials alone contradict it".to_owned();
    }
    if let Some(share) = comparison.duet.as_ref().and_then(|duet| duet.strangers) {
        return format!(
            ": undecided, other processes used {} % of the CPU time in too many pairs",
            plain(share * 100.0)
        );
    }
    if comparison.client_is_limit {
        return ": undecided, the client was the limit".to_owned();
    }
    let found = comparison.smallest_detectable.map(|smallest| format!(" ({})", detectable(smallest)));
    format!(": undecided{}", found.unwrap_or_default())
}

/// ` pairs in duet; CPU 1.02x (1.01 to 1.03)`.
fn duet_text(duet: &DuetReport) -> String {
    let cpu = duet.cpu_ratio.zip(duet.cpu_ci95).map(|(ratio, ci95)| format!("; CPU {}", times(ratio, ci95)));
    let units = match duet.sharing {
        Some(Sharing::Turns) => " pairs in turns",
        Some(Sharing::Alternating) => " pairs of alternating load",
        _ => " pairs in duet",
    };
    let through = duet.through.as_ref().map(|third| format!(", each beside {third}"));
    format!("{units}{}{}", through.unwrap_or_default(), cpu.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SoloRatio;
    use linerate_analysis::stats::difference::LatencyDifference;

    fn comparison() -> Comparison {
        Comparison {
            with: "nginx/direct".to_owned(),
            with_value: None,
            ratio: 0.7312,
            ci95: [0.71, 0.749],
            ci95_is_range: false,
            ci90: None,
            difference: None,
            p: Some(0.002),
            q: None,
            smallest_detectable: Some(0.0312),
            n: 10,
            units: Vec::new(),
            verdict: Verdict::Slower,
            autocorrelation: None,
            client_is_limit: false,
            duet: None,
        }
    }

    #[test]
    fn a_latency_is_told_as_itself_and_not_as_performance() {
        let comparison = Comparison { ratio: 0.4, ci95: [0.38, 0.42], n: 10, ..comparison() };
        let told = measured("haproxy", &comparison, true);
        assert_eq!(told, "haproxy is 2.50x nginx/direct (2.38 to 2.63, n=10)");
    }

    #[test]
    fn a_comparison_has_its_reason_where_it_is_undecided() {
        let mut comparison = comparison();
        let slower = "nginx/haproxy-http is 0.73x nginx/direct (0.71 to 0.75, n=10)";
        assert_eq!(sentence("nginx/haproxy-http", &comparison, false), slower);
        comparison.verdict = Verdict::WithinMargin;
        assert_eq!(
            sentence("nginx/haproxy-http", &comparison, false),
            format!("{slower}: within the margin")
        );
        comparison.verdict = Verdict::CannotTell;
        let found = ": undecided (only differences above 3.12 % can be seen)";
        assert_eq!(sentence("nginx/haproxy-http", &comparison, false), format!("{slower}{found}"));
        comparison.smallest_detectable = Some(11.3);
        let found = ": undecided (only differences above 12.3x can be seen)";
        assert_eq!(sentence("nginx/haproxy-http", &comparison, false), format!("{slower}{found}"));
        comparison.duet = Some(DuetReport {
            cpu_ratio: Some(1.0212),
            cpu_ci95: Some([1.0114, 1.0309]),
            ..DuetReport::default()
        });
        assert!(
            sentence("a", &comparison, false).contains("n=10 pairs in duet; CPU 1.021x (1.011 to 1.031)"),
            "{}",
            sentence("a", &comparison, false)
        );
        comparison.duet = Some(DuetReport { strangers: Some(0.312), ..DuetReport::default() });
        let disturbed = ": undecided, other processes used 31.2 % of the CPU time in too many pairs";
        assert!(
            sentence("a", &comparison, false).ends_with(disturbed),
            "{}",
            sentence("a", &comparison, false)
        );
        let alone = SoloRatio { ratio: 0.804, ci95: [0.79, 0.82], n: 7 };
        comparison.duet = Some(DuetReport { contradicted_by: Some(alone), ..DuetReport::default() });
        let denied = ": undecided, its trials alone contradict it";
        assert!(sentence("a", &comparison, false).ends_with(denied), "{}", sentence("a", &comparison, false));
        comparison.duet = None;
        comparison.difference = LatencyDifference::from_ratio(0.96, [0.955, 0.965], 10.08);
        let micros = ", n=10), +0.42 µs (0.37 to 0.47): undecided";
        assert!(sentence("a", &comparison, false).contains(micros), "{}", sentence("a", &comparison, false));
        comparison.difference = None;
        (comparison.n, comparison.ci95_is_range) = (5, true);
        assert!(sentence("a", &comparison, false).ends_with(", n=5): too few rounds for a verdict"));
        (comparison.n, comparison.ci95) = (1, [comparison.ratio; 2]);
        assert_eq!(
            sentence("a", &comparison, false),
            "a is 0.7312x nginx/direct (n=1): too few rounds for a verdict"
        );
    }
}
