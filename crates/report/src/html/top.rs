//! The first screen: the question of each suite, its answer, and the run in a strip.

use super::anchor;
use super::picture::picture;
use super::{sentence, text_table};
use crate::comparison::{self, margins};
use crate::layout;
use crate::model::{Flag, Report, SuiteReport};
use crate::numbers::{counted, seconds, shows_bias};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use linerate_analysis::stats::verdict::MARGIN;
use maud::{Markup, html};
use std::io::Write;

/// Groups whose answers are on the first screen; the others are a link away.
const GROUPS_OF_ONE_SUITE: usize = 8;
const GROUPS_OF_EACH_SUITE: usize = 2;

pub(super) fn top(report: &Report) -> Markup {
    let is_one = report.suites.len() == 1;
    html! {
        header {
            @if let Some(answer) = comparison::answer(report) {
                @for (line, _) in &answer.headlines { h1 { (line) } }
                (text_table("the answer", Some("answer"), &answer.table))
                @for reason in &answer.reasons { p { (reason) } }
                p { (answer.facts) }
                @for doubt in &answer.doubts { p { (doubt) } }
            } @else if let Some(compared) = &report.comparison { h1 { (compared.sentence) } }
            @if let Some(line) = layout::warning(report) { p { strong.bad { (line) } } }
            @if report.comparison.is_none() {
                @if !is_one { h1 { "linerate: " (report.suites.len()) " suites" } }
                div.answers.one[is_one] {
                    @for suite in &report.suites { (answer(suite, is_one)) }
                }
            }
            (strip(report))
        }
    }
}

fn answer(suite: &SuiteReport, is_one: bool) -> Markup {
    let most = if is_one { GROUPS_OF_ONE_SUITE } else { GROUPS_OF_EACH_SUITE };
    let groups = layout::groups_by_what_is_known(suite);
    let shown = &groups[..groups.len().min(most)];
    html! {
        article {
            @if is_one { h1 { (suite.question) } } @else {
                h2 { a href={ "#" (anchor(&[&suite.name])) } { (suite.name) } ": " (suite.question) }
            }
            @for (i, (table, group)) in shown.iter().enumerate() {
                @let answer = layout::answer(table, group);
                p {
                    @if suite.tables.len() > 1 || !answer.label.is_empty() {
                        a.where href={ "#" (anchor(&[&suite.name, &table.name])) } {
                            (layout::place(suite, table, &answer)) ":"
                        } " "
                    }
                    (sentence(&answer.lead))
                    @if i > 0 && is_one { @for more in &answer.rest { " " (sentence(more)) } }
                }
                // The first answer is that of the suite's main table: the sentence, what it means, the rest.
                @if i == 0 {
                    @if let Some(picture) = picture(suite, table, group) { (picture) }
                    @if !answer.rest.is_empty() { p { @for more in &answer.rest { (sentence(more)) " " } } }
                }
            }
            @if groups.len() > shown.len() {
                p { a href={ "#" (anchor(&[&suite.name])) } { (more_answers(groups.len() - shown.len())) } }
            }
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
            div { dt { "rounds" } dd { (rounds) (quick) } }
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
            "Faster or slower than the baseline: ▲ ▼ (△ ▽ by one comparison alone); ≠ differs by less than "
            (margin) "; ≈ within " (margin) "; ? cannot tell. Limit: a part of the work of every row, so "
            "nothing is above it. Values are that of the baseline alone by the ratio of each row, with 95 % \
             intervals. "
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
            @if let Some(bias) = seen.max_by(f64::total_cmp) { ": " (shows_bias(bias)) }
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

/// What other work did to the trials: the number of cells with each flag.
fn noise(report: &Report) -> String {
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
