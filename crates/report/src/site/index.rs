//! The first page: the newest answer of each suite, and all runs by suite, host and date.

use super::SiteRun;
use crate::html::sentence;
use crate::layout;
use crate::model::{SuiteReport, TableReport};
use maud::{Markup, html};

/// Answers of a suite on this page; the run's page has all.
const ANSWERS: usize = 4;

pub(super) fn body(runs: &[SiteRun]) -> Markup {
    let newest = newest(runs);
    html! {
        h1 { "Network stacks, measured side by side" }
        p { "Each answer is made from the verdicts of a run: medians with 95 % intervals, ratios of cells \
             that ran at the same time, CPU cost, and what bound them. " a href="method.html" { "The method" }
            " explains each number and its limits." }
        h2 { "Newest answers" }
        div.answers {
            @for (run, suite) in &newest {
                article {
                    h3 { a href={ (run.file()) "#" (suite.name) } { (suite.name) } ": " (suite.question) }
                    @if let Some(compared) = &run.report.comparison { p { (compared.sentence) } }
                    @for (i, (place, answer)) in answers(suite).iter().take(ANSWERS).enumerate() {
                        p {
                            @if !place.is_empty() { span.where { (place) ": " } }
                            (sentence(&answer.lead))
                            @if i == 0 { @for more in &answer.rest { " " (sentence(more)) } }
                        }
                    }
                    p.caption { (run.day()) ", " (run.host()) @if run.report.run.quick { ", quick form" } }
                }
            }
        }
        h2 { "All runs" }
        @if runs.is_empty() { p { "No run has been published yet." } } @else { (list(runs)) }
    }
}

/// The newest run of each suite, in full before in the quick form, in the order in which suites first occur.
fn newest(runs: &[SiteRun]) -> Vec<(&SiteRun, &SuiteReport)> {
    let mut newest: Vec<(&SiteRun, &SuiteReport)> = Vec::new();
    let of_form = |is_quick: bool| runs.iter().rev().filter(move |run| run.report.run.quick == is_quick);
    for run in of_form(false).chain(of_form(true)) {
        for suite in &run.report.suites {
            if !newest.iter().any(|(_, other)| other.name == suite.name) {
                newest.push((run, suite));
            }
        }
    }
    newest
}

/// With table and group, where there are several.
fn answers(suite: &SuiteReport) -> Vec<(String, layout::GroupAnswer)> {
    let with_place = |(table, group): &(&TableReport, layout::Group<'_>)| {
        let answer = layout::answer(table, group);
        (layout::place(suite, table, &answer), answer)
    };
    layout::groups_by_what_is_known(suite).iter().map(with_place).collect()
}

fn list(runs: &[SiteRun]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="all runs" {
            table.list data-table="runs" {
                thead { tr {
                    th scope="col" { "date" } th scope="col" { "run" } th scope="col" { "host" }
                    th scope="col" { "suites" } th scope="col" { "rounds" } th scope="col" { "linerate" }
                } }
                tbody { @for run in runs.iter().rev() {
                    tr id={ "run." (run.name) } {
                        td data-l="date" { time datetime=(run.report.run.started) { (run.day()) } }
                        th scope="row" { a href=(run.file()) { (run.name) } }
                        td data-l="host" { (run.host()) }
                        td data-l="suites" { @for suite in &run.report.suites {
                            a href={ (run.file()) "#" (suite.name) } { (suite.name) } " "
                        } }
                        td data-l="rounds" {
                            (run.report.run.rounds) @if run.report.run.quick { ", quick" }
                        }
                        td data-l="linerate" { (run.report.run.linerate) }
                    }
                } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build;
    use crate::fixture::{journal, run, trials};

    #[test]
    fn a_full_run_is_shown_before_a_later_quick_one() {
        let of = |name: &str, is_quick: bool| {
            let mut report = build(&run(), &journal(&run(), &trials()));
            report.run.quick = is_quick;
            SiteRun { name: name.to_owned(), report }
        };
        let runs = [of("full", false), of("quick", true)];
        assert!(newest(&runs).iter().all(|(run, _)| run.name == "full"));
        assert_eq!(newest(&runs[1..]).len(), runs[1].report.suites.len());
    }
}
