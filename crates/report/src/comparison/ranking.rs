//! The table of several subjects beside one baseline.

use super::answer::{change_words, interval_words, label, value_words};
use super::latency::margin;
use super::model::{ComparedCell, ComparisonReport, NamedCommand};
use crate::layout::TextTable;
use crate::words;
use linerate_analysis::judge::pairs::Measure;
use linerate_analysis::stats::verdict::Verdict;

/// The column of a ranking that there is with a second load only.
const LATENCY: usize = 5;

/// A row for each of several subjects, the best first.
pub(super) fn ranking(
    cells: &[ComparedCell],
    base: &NamedCommand,
    comparison: &ComparisonReport,
) -> (TextTable, Vec<Option<Verdict>>) {
    let of_base = cells.iter().find_map(|cell| Some((cell, cell.findings.main()?)));
    let Some((first, main)) = of_base else { return (TextTable::new("", [""]), Vec::new()) };
    let cpu_of = |cell: &ComparedCell, side: usize| {
        cell.findings.cpu().map_or_else(String::new, |cpu| value_words(cell, cpu)[side].clone())
    };
    let second_of = |cell: &ComparedCell| {
        let second = cell.second_load.as_ref()?;
        // At another load than the others' it is none of their column.
        let load = Some(second.load.clone()).filter(|load| load.share.is_some())?;
        Some((load, *second.findings.by(Measure::P50)?))
    };
    // One value of the baseline for all rows: whoever divides gets the ratio.
    let latency_of_base = second_of(first).and_then(|(_, p50)| p50.values).map(|values| values[0]);
    let latency_of = |cell: &ComparedCell, side: usize| {
        let of_cell = second_of(cell).zip(latency_of_base);
        of_cell.map_or_else(String::new, |((_, mut p50), base)| {
            p50.values = Some([base, base * p50.ratio]);
            value_words(cell, &p50)[side].clone()
        })
    };
    let mut rows: Vec<(f64, Vec<String>, Option<Verdict>)> = vec![(
        1.0,
        vec![
            base.name.clone(),
            value_words(first, main)[0].clone(),
            "baseline".to_owned(),
            String::new(),
            cpu_of(first, 0),
            latency_of(first, 0),
            String::new(),
        ],
        None,
    )];
    for cell in cells {
        let Some(main) = cell.findings.main() else { continue };
        let words = words::deciding(&cell.findings, cell.verdict, &margin(cell, comparison));
        let row = vec![
            cell.id.clone(),
            value_words(cell, main)[1].clone(),
            change_words(main),
            interval_words(main),
            cpu_of(cell, 1),
            latency_of(cell, 1),
            words,
        ];
        rows.push((main.performance(), row, Some(cell.verdict)));
    }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let rate = label(first, main, first.load.as_ref());
    let cpu = first.findings.cpu().map_or_else(String::new, |cpu| label(first, cpu, first.load.as_ref()));
    let latency = second_of(first).map(|(load, p50)| label(first, &p50, Some(&load)));
    let mut headers =
        vec!["", &*rate, "change", "95 % interval", &*cpu, latency.as_deref().unwrap_or_default(), ""];
    if latency.is_none() {
        headers.remove(LATENCY);
        rows.iter_mut().for_each(|(_, row, _)| drop(row.remove(LATENCY)));
    }
    let (rows, verdicts): (Vec<_>, Vec<_>) = rows.into_iter().map(|(_, row, verdict)| (row, verdict)).unzip();
    (TextTable::new("", headers).with_rows(rows.into_iter()), verdicts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_analysis::judge::pairs::Findings;
    use serde_json::json;

    #[test]
    fn a_verdict_of_another_quantity_than_the_ratio_beside_it_names_that_quantity() {
        let findings = |[rate, cpu]: [&str; 2]| -> Findings {
            serde_json::from_value(json!([
                { "measure": "rate", "ratio": 0.959, "verdict": rate },
                { "measure": "cpu", "ratio": 1.087, "ci95": [1.07, 1.1], "verdict": cpu },
            ]))
            .unwrap()
        };
        for (found, verdict, words) in [
            (["cannot tell", "slower"], Verdict::Slower, "more CPU"),
            (["cannot tell", "within the margin"], Verdict::WithinMargin, "CPU: no difference"),
            (["slower", "slower"], Verdict::Slower, "slower"),
            (["faster", "slower"], Verdict::Faster, "faster"),
            (["within the margin", "cannot tell"], Verdict::CannotTell, "CPU: undecided"),
            (["slower", "slower"], Verdict::CannotTell, "undecided"),
            (["slower", "slower"], Verdict::Failed, "failed"),
        ] {
            assert_eq!(words::deciding(&findings(found), verdict, "1 %"), words, "{found:?}");
        }
    }
}
