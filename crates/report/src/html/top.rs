//! The first screen: the question of each suite, its answer, and the run in a strip.

use super::anchor;
use super::{sentence, text_table};
use crate::comparison::{self, ComparisonReport, margins};
use crate::layout::{self, Group};
use crate::model::{Flag, Report, SuiteReport, TableReport};
use crate::numbers::{counted, plus_minus, seconds};
use crate::picture::{self, Chart, NARROW, WIDE};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use linerate_analysis::stats::verdict::MARGIN;
use maud::{Markup, html};
use std::io::Write;

/// Groups whose answers are on the first screen; the others are folded.
const GROUPS_OF_ONE_SUITE: usize = 8;
const GROUPS_OF_EACH_SUITE: usize = 2;

/// Requests of a mix that are on the first screen; more are folded.
const ROWS: usize = 10;

pub(super) fn top(report: &Report) -> Markup {
    let is_one = report.suites.len() == 1;
    html! {
        header {
            @if let Some(compared) = &report.comparison { (comparison(report, compared)) }
            @else if !is_one { h1 { "linerate: " (report.suites.len()) " suites" } }
            @if let Some(line) = layout::warning(report) { p { strong.bad { (line) } } }
            @if report.comparison.is_none() {
                @for suite in &report.suites { (answer(report, suite, is_one)) }
            }
            (strip(report))
        }
    }
}

/// The answer of a comparison, as on the terminal, and its picture.
fn comparison(report: &Report, compared: &ComparisonReport) -> Markup {
    let answer = comparison::answer(report);
    let chart = picture::changes(report, compared);
    let several = || report.suites.first().and_then(|suite| picture::of_suite(report, suite));
    html! {
        @if let Some(answer) = &answer {
            @for (at, (line, _)) in answer.headlines.iter().enumerate() {
                @if at == 0 { h1 { (line) } } @else { p.answer { strong { (line) } } }
            }
            (text_table("the answer", Some("answer"), &answer.table))
            @for table in &answer.requests {
                @if table.rows.len() <= ROWS { (text_table(&table.title, None, table)) } @else {
                    details { summary { (table.title) } (text_table(&table.title, None, table)) }
                }
            }
            @for reason in &answer.reasons { p { (reason) } }
            @if chart.is_none() { p { (answer.facts) } }
            @for doubt in &answer.doubts { p { (doubt) } }
        } @else { h1 { (compared.sentence) } }
        @if let Some(chart) = chart.or_else(several) {
            (figure("picture", &Chart { title: String::new(), ..chart }, &html! {
                "Thick: the 95 % interval; dots: single pairs of runs."
            }))
        }
    }
}

/// The question of a suite, the picture of its main table, and an answer in a line for each other group.
fn answer(report: &Report, suite: &SuiteReport, is_one: bool) -> Markup {
    let most = if is_one { GROUPS_OF_ONE_SUITE } else { GROUPS_OF_EACH_SUITE };
    let groups = layout::groups_by_what_is_known(suite);
    let further = groups.get(1..).unwrap_or_default();
    let (shown, folded) = further.split_at(further.len().min(most));
    let address = anchor(&[&suite.name]);
    html! {
        section.first {
            @if is_one { h1 { (suite.name) ": " (suite.question) } } @else {
                h2 { a href={ "#" (address) } { (suite.name) } ": " (suite.question) }
            }
            @if let Some((table, group)) = groups.first() {
                @let answer = layout::answer(table, group);
                @if let Some(chart) = picture::of_suite(report, suite) {
                    (figure(&format!("{address}~picture"), &chart, &html! {
                        "Lines: 95 % intervals" @if has_range(group) { ", of n=3 to 5 the range" } ". "
                        @if has_rule(group) {
                            "Below the dashed rule is what nobody chooses between, such as limits. "
                        }
                        a href={ "#" (anchor(&[&suite.name, &table.name])) } { "All numbers" }
                    }))
                } @else { p.answer { (sentence(&answer.lead)) } }
                @for warning in layout::warnings(table) { p.caption { (warning) } }
                @if is_one && !answer.rest.is_empty() {
                    p { @for more in &answer.rest { (sentence(more)) " " } }
                }
            }
            @if !shown.is_empty() { (findings(suite, shown)) }
            @if !folded.is_empty() {
                details { summary { (more_answers(folded.len())) } (findings(suite, folded)) }
            }
        }
    }
}

/// A value in the chart is of a few trials alone.
fn has_range(group: &Group<'_>) -> bool {
    group.members.iter().any(|m| m.entry.ci95.is_none() && m.entry.alone.is_some_and(|a| a.range.is_some()))
}

/// Some rows are above the rule, and others below.
fn has_rule(group: &Group<'_>) -> bool {
    (1..group.members.len()).contains(&group.choices())
}

/// An answer in a line for each group.
fn findings(suite: &SuiteReport, groups: &[(&TableReport, Group<'_>)]) -> Markup {
    html! {
        ul.findings {
            @for (table, group) in groups {
                @let answer = layout::answer(table, group);
                li {
                    a.where href={ "#" (anchor(&[&suite.name, &table.name])) } {
                        (layout::place(suite, table, &answer))
                    } " " (sentence(&answer.lead)) (contradicted(layout::warnings(table).len()))
                }
            }
        }
    }
}

/// A remark on rows of which trials alone say something else.
fn contradicted(rows: usize) -> String {
    match rows {
        0 => String::new(),
        1 => " Trials alone contradict a row of this table.".to_owned(),
        rows => format!(" Trials alone contradict {rows} rows of this table."),
    }
}

/// A chart for wide windows and for phones.
fn figure(id: &str, chart: &Chart, caption: &Markup) -> Markup {
    html! {
        figure.picture {
            div.wide { (chart.inside_page(WIDE, &format!("{id}~w"))) }
            div.narrow { (chart.inside_page(NARROW, &format!("{id}~n"))) }
            figcaption { (caption) }
        }
    }
}

fn more_answers(number: usize) -> String {
    format!("{number} more {}", if number == 1 { "answer" } else { "answers" })
}

fn strip(report: &Report) -> Markup {
    let (run, host) = (&report.run, &report.host);
    let day = run.started.split('T').next().unwrap_or_default();
    let share = if run.wall_seconds > 0.0 { run.measuring_seconds / run.wall_seconds * 100.0 } else { 0.0 };
    let virtualised = host.facts.get("virtualised").is_some_and(|value| value == "yes");
    let rounds = if run.complete {
        format!("{} of each cell", run.rounds)
    } else {
        format!("{} of {}, incomplete", run.rounds, run.planned_rounds)
    };
    let quick = if run.quick { ", quick form: a first look" } else { "" };
    let usual = || format!("{} %", MARGIN * 100.0);
    let margin = report.comparison.as_ref().map_or_else(usual, margins);
    html! {
        dl.strip {
            div { dt { "host" } dd {
                (host.cpus) " x " (host.cpu_model) @if virtualised { ", virtual machine" }
                ", Linux " (host.kernel)
            } }
            div { dt { "date" } dd { time datetime=(run.started) { (day) } } }
            div { dt { "trials alone" } dd { (rounds) (quick) } }
            div { dt { "seed" } dd { (run.seed) } }
            div { dt { "A/A check" } dd { (aa(report)) } }
            div { dt { "noise" } dd { (noise(report)) } }
            div { dt { "time measuring" } dd {
                (format!("{share:.0} %")) " of " (seconds(run.wall_seconds))
            } }
            div { dt { "versions" } dd { "linerate " (run.linerate) ", " a href="#versions" { "systems" } } }
        }
        div.replay {
            span { "Repeat it:" }
            pre tabindex="0" { code #replay { (run.command) } }
            button hidden data-copy="replay" { "Copy" }
            (download(report))
        }
        p.key {
            "Faster or slower than the baseline: ▲ ▼ (△ ▽ by one comparison alone); "
            "≠ a difference of less than "
            (margin) "; ≈ no difference above " (margin) "; ? undecided. "
            @if report.comparison.is_none() {
                "Limit: a part of the work of every row, so nothing is above it. "
            }
            "Each value is that of the baseline, measured alone, times the ratio of its row. "
            a href="#reading" { "How to read it" }
        }
    }
}

/// `report.json`, compressed, in a link: it needs no script.
fn download(report: &Report) -> Markup {
    let json = serde_json::to_vec(report).expect("a report has string keys only, so it always serialises");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&json).expect("memory can be written");
    let packed = encoder.finish().expect("memory can be written");
    html! {
        a download="report.json.gz" href={ "data:application/gzip;base64," (STANDARD.encode(packed)) } {
            "Download the numbers (JSON)"
        }
    }
}

/// Baselines against themselves, over all tables.
fn aa(report: &Report) -> Markup {
    let tables = || report.suites.iter().flat_map(|suite| suite.tables.iter().map(move |t| (suite, t)));
    let checked: Vec<_> = tables().filter(|(_, table)| table.aa.is_some()).collect();
    let failed: Vec<_> = checked.iter().filter(|(_, table)| table.control_fails()).collect();
    let seen = checked.iter().filter_map(|(_, table)| table.smallest_bias);
    html! {
        @if checked.is_empty() { "not run" }
        @else if failed.is_empty() {
            "passed in " (counted(checked.len() as u64, "table"))
            @if let Some(bias) = seen.max_by(f64::total_cmp) { " (" (plus_minus(bias)) ")" }
        }
        @else {
            strong.bad { "failed" } " in "
            @for (i, (suite, table)) in failed.iter().enumerate() {
                @if i > 0 { ", " }
                a href={ "#" (anchor(&[&suite.name, &table.name])) } { (suite.name) " " (table.name) }
            }
            ": no verdicts there"
        }
    }
}

/// Noise of other work: as in the warning where there is one, else the number of cells with each flag.
fn noise(report: &Report) -> String {
    if let Some(found) = layout::disturbance(report) {
        return found;
    }
    let cells = || report.suites.iter().flat_map(|suite| &suite.cells).filter(|cell| cell.n > 0);
    let count = |is_kind: fn(&Flag) -> bool| cells().filter(|cell| cell.flags.iter().any(is_kind)).count();
    let kinds = [
        (count(|flag| matches!(flag, Flag::Steal(_))), "lost CPU time to other guests"),
        (count(|flag| matches!(flag, Flag::Disturbed(_))), "ran beside other processes"),
    ];
    let all = cells().count();
    let found = kinds.iter().filter(|(count, _)| *count > 0);
    let texts: Vec<String> = found.map(|(count, what)| format!("{count} of {all} cells {what}")).collect();
    if texts.is_empty() { "none found".to_owned() } else { texts.join(", ") }
}
