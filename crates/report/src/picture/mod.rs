//! The picture of an answer, for the page and as a file: of two subjects or builds the change of each
//! quantity or cell, of more the sorted rows.

mod chart;

pub(crate) use chart::{Chart, NARROW, STYLE, WIDE};

use crate::Style;
use crate::comparison::{self, ComparedCell, ComparisonReport};
use crate::layout::{self, Alternative, Group, Note, Part, Phrase, Precision, Sentence, anchor};
use crate::model::{Quantity, Report, SuiteReport, TableReport};
use crate::numbers::{Ends, brief_error, brief_percent, cost, longer, signed};
use crate::words;
use chart::Row;
use linerate_analysis::judge::pairs::{Finding, Measure};
use linerate_analysis::stats::verdict::Verdict;
use linerate_model::Better;

/// The picture as an SVG file.
pub(crate) fn render(report: &Report, _: Style) -> String {
    of_report(report).file()
}

/// The picture of a report; of several suites that of the first one.
fn of_report(report: &Report) -> Chart {
    if let Some(changes) = report.comparison.as_ref().and_then(|compared| changes(report, compared)) {
        return changes;
    }
    let first = report.suites.first().and_then(|suite| of_suite(report, suite));
    let mut chart = first.unwrap_or_else(|| Chart {
        title: "Nothing was measured.".to_owned(),
        about: String::new(),
        axis: String::new(),
        is_right_better: None,
        rows: Vec::new(),
        heads: Default::default(),
        is_of_changes: false,
        foot: foot(report),
    });
    if let Some(compared) = &report.comparison {
        chart.title.clone_from(&compared.sentence);
    }
    chart.rows.iter_mut().for_each(|row| row.address = None);
    chart
}

/// The rows of a suite's first group that has a number, sorted. `None` without a number.
pub(crate) fn of_suite(report: &Report, suite: &SuiteReport) -> Option<Chart> {
    let groups = layout::groups_by_what_is_known(suite);
    let of_builds = || {
        let table = suite.tables.first()?;
        Some((table, layout::groups(suite, table).into_iter().next()?))
    };
    let (table, group) = groups.into_iter().next().or_else(of_builds)?;
    group.is_measured().then(|| of_group(report, suite, table, &group))
}

fn of_group(report: &Report, suite: &SuiteReport, table: &TableReport, group: &Group<'_>) -> Chart {
    let drawn = Drawn::new(table, group);
    let address = |member: &Alternative<'_>| {
        format!("{}.{}", anchor(&[&suite.name, &table.name]), anchor(&[&member.cell.id]))
    };
    let in_unit = |value: f64| drawn.precision.in_unit(drawn.shown, value);
    let label = |member: &Alternative<'_>| {
        let unsound = layout::notes(member.cell, member.entry, None).into_iter();
        let unsound = unsound.filter(|note| matches!(note, Note::FailedOperations(_) | Note::Lost(_)));
        let mark = Some(member.mark().to_owned()).filter(|mark| !mark.is_empty());
        match mark.into_iter().chain(unsound.map(|note| note.brief())).collect::<Vec<_>>().join("; ") {
            of_row if of_row.is_empty() => member.label.clone(),
            of_row => format!("{} ({of_row})", member.label),
        }
    };
    let row = |member: &Alternative<'_>| Row {
        label: label(member),
        text: text(&drawn, member),
        value: member.entry.value.map(in_unit),
        ends: member.entry.ci95.map(|ends| ends.map(in_unit)),
        // All that are tied for first; nothing where there is no order.
        class: if member.tier == Some(1) { "first" } else { "" },
        is_apart: member.is_apart,
        is_baseline: member.part == Part::Baseline,
        address: Some(address(member)),
        ..Row::default()
    };
    let place = if group.label.is_empty() { String::new() } else { format!(" ({})", group.label) };
    Chart {
        title: words_of(&layout::answer(table, group).lead),
        about: format!("{}{place}", table.title),
        axis: drawn.name.clone(),
        is_right_better: table.truth_tolerance.is_none().then_some(drawn.is_right_better),
        rows: group.members.iter().map(row).collect(),
        heads: [drawn.name.clone(), compared_with(&drawn, group)],
        is_of_changes: false,
        foot: foot(report),
    }
}

/// The heading of ratios: `of nginx`. Empty without any.
fn compared_with(drawn: &Drawn, group: &Group<'_>) -> String {
    let has_ratio = group.members.iter().any(|member| member.entry.vs_baseline.is_some());
    let Some(baseline) = group.baseline().filter(|_| has_ratio) else { return String::new() };
    let word = if drawn.precision.has_changes() { "against" } else { "of" };
    format!("{word} {}", baseline.label)
}

/// A quantity as a chart shows it.
struct Drawn {
    name: String,
    is_right_better: bool,
    shown: Option<Quantity>,
    precision: Precision,
}

impl Drawn {
    fn new(table: &TableReport, group: &Group<'_>) -> Self {
        let precision = Precision::for_groups(table, std::slice::from_ref(group));
        let shown = table.quantity();
        Self {
            name: shown.map(|quantity| precision.name(quantity)).unwrap_or_default(),
            precision,
            is_right_better: shown.is_some_and(|quantity| quantity.metric.better() == Better::Higher),
            shown,
        }
    }
}

/// The value, and the ratio with its mark, without intervals: `8,990` and `42.1 % ▼`.
fn text(drawn: &Drawn, member: &Alternative<'_>) -> [String; 2] {
    let Some(value) = drawn.precision.brief_value(member.entry) else {
        return [String::new(), words::outcome_name(member.cell.outcome).to_owned()];
    };
    let share = member.entry.vs_baseline.as_ref().map(|found| {
        let share = match drawn.precision.has_changes() {
            true if drawn.shown.is_some_and(words::is_cost) => longer(found.ratio, Ends::Unknown),
            true => cost(found.ratio, Ends::Unknown),
            false => brief_percent(found.ratio),
        };
        format!("{share} {}", layout::mark(found))
    });
    let truth = member.entry.vs_truth.as_ref().map(brief_error);
    // Its label says that it is the baseline. A longer text would take the room of names on a phone.
    let itself = if drawn.precision.has_changes() { "0 %" } else { "100 %" };
    let of_itself = || (member.part == Part::Baseline).then(|| itself.to_owned());
    let n = || member.entry.alone.map(|alone| format!("n={}", alone.n));
    let share = share.or(truth).or_else(of_itself).or_else(n).unwrap_or_default();
    [value, share]
}

fn words_of(sentence: &Sentence) -> String {
    let text = |phrase: &Phrase| match phrase {
        Phrase::Plain(text) | Phrase::Name(text) => text.clone(),
    };
    sentence.iter().map(text).collect::<String>().trim_end_matches('.').to_owned()
}

/// The changes of two servers by quantity, or of two builds by cell; `None` of several servers.
pub(crate) fn changes(report: &Report, compared: &ComparisonReport) -> Option<Chart> {
    let is_of_servers = !compared.commands.is_empty();
    let rows: Vec<Row> = match &compared.cells[..] {
        [one] if is_of_servers => {
            let shown = |found: &&Finding| ![Measure::Mean, Measure::P999].contains(&found.measure);
            one.findings.0.iter().filter(shown).map(|found| change(one, found, name(found))).collect()
        }
        cells if !is_of_servers => {
            let main = |cell: &ComparedCell| Some(change(cell, cell.findings.main()?, cell.id.clone()));
            cells.iter().filter_map(main).collect()
        }
        _ => return None,
    };
    let base = compared.commands.first().map_or("base", |one| one.name.as_str());
    let answer = comparison::answer(report).map(|answer| answer.facts);
    Some(Chart {
        title: compared.sentence.clone(),
        about: report
            .suites
            .first()
            .and_then(|suite| suite.tables.first())
            .map_or_else(String::new, |table| {
                [Some(table.title.clone()), answer].into_iter().flatten().collect::<Vec<_>>().join("; ")
            }),
        axis: format!("change against {base}, %"),
        is_right_better: None,
        rows,
        heads: Default::default(),
        is_of_changes: true,
        foot: foot(report),
    })
}

fn name(found: &Finding) -> String {
    match found.measure {
        Measure::Rate => "requests/s".to_owned(),
        Measure::Cpu => "CPU/request".to_owned(),
        latency => latency.name().to_owned(),
    }
}

/// The change by one measure, with the units of the deciding one.
fn change(cell: &ComparedCell, found: &Finding, label: String) -> Row {
    let is_main = cell.findings.main().is_some_and(|main| main.measure == found.measure);
    let units = if is_main { &cell.unit_ratios[..] } else { &[] };
    // Units are in terms of performance, latencies are not.
    let of_unit = |unit: &f64| if found.measure == Measure::Rate { *unit } else { 1.0 / unit };
    Row {
        label,
        text: [values(cell, found), signed(found)],
        value: Some(found.percent()),
        ends: found.percent_ci95(),
        units: units.iter().map(|unit| (of_unit(unit) - 1.0) * 100.0).collect(),
        class: match found.verdict {
            Verdict::Faster => "up",
            Verdict::Slower => "down",
            _ => "",
        },
        ..Row::default()
    }
}

/// The values of base and head: `29,750 to 19,610`.
fn values(cell: &ComparedCell, found: &Finding) -> String {
    found.values.map_or_else(String::new, |_| comparison::value_words(cell, found).join(" to "))
}

/// Day, host and kernel.
fn foot(report: &Report) -> String {
    let day = report.run.started.split('T').next().unwrap_or_default();
    let host = &report.host;
    let quick = if report.run.quick { ", quick form" } else { "" };
    format!(
        "linerate {}, {day}{quick}, {} x {}, Linux {}",
        report.run.linerate, host.cpus, host.cpu_model, host.kernel
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build;
    use crate::fixture::{journal, run, trials};
    use linerate_model::journal::Journal;

    #[test]
    fn rows_are_sorted_what_is_no_choice_is_last_and_a_longer_bar_is_better() {
        let report = build(&run(), &journal(&run(), &trials()));
        let chart = of_suite(&report, &report.suites[0]).unwrap();
        assert!(chart.title.starts_with("iptables costs 1"), "{}", chart.title);
        assert_eq!((chart.axis.as_str(), chart.is_right_better), ("operations/s", Some(true)));
        assert_eq!(chart.heads, ["operations/s", "against direct"]);
        assert_eq!(
            chart.about, "2000 requests, 5 at a time (server nginx)",
            "no other unit than the axis has"
        );
        let labels: Vec<&str> = chart.rows.iter().map(|row| row.label.as_str()).collect();
        assert_eq!(
            (labels.len(), labels[0], labels[4], labels[5]),
            (6, "iptables", "direct (baseline)", "limit (limit)")
        );
        let choices: Vec<f64> =
            chart.rows.iter().filter(|row| !row.is_apart).filter_map(|row| row.value).collect();
        assert!(choices.len() > 2 && choices.is_sorted_by(|a, b| a >= b), "{choices:?}");
        let missing = chart.rows.iter().find(|row| row.label == "sslh-ev").unwrap();
        assert_eq!((missing.value, missing.text[1].as_str()), (None, "missing"));
    }

    #[test]
    fn a_report_without_a_number_has_a_picture_that_says_so() {
        let picture = render(&build(&run(), &Journal::default()), Style::default());
        assert!(picture.contains("Nothing was measured."), "{picture}");
    }
}
