//! Where a difference comes from, as a section of a page: a table of functions, and flame graphs.

use super::text_table;
use crate::comparison::{WhyReport, change_words, values};
use crate::layout::TextTable;
use crate::model::Report;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use inferno::flamegraph::{Options, from_lines};
use linerate_analysis::why::{CallDifference, FunctionDifference};
use linerate_model::PairProfile;
use maud::{Markup, html};
use std::collections::BTreeMap;

/// Functions of the table.
const ROWS: usize = 20;
/// All pictures of a page, in bytes.
const LARGEST: usize = 750_000;
/// A picture that is too large is drawn without what is narrower, in percent.
const NARROW: [f64; 5] = [0.1, 0.3, 1.0, 3.0, 10.0];

/// The reasons of a comparison, or of rows beside their baselines.
pub(super) fn sections(report: &Report) -> Markup {
    let mut all: Vec<([&str; 2], &WhyReport, &[String])> = Vec::new();
    if let Some(comparison) = &report.comparison {
        let base = comparison.commands.first().map_or("the baseline", |base| base.name.as_str());
        let explained = comparison.cells.iter().filter_map(|cell| Some((cell, cell.why.as_ref()?)));
        all.extend(explained.map(|(cell, why)| ([base, cell.id.as_str()], why, cell.hints.as_slice())));
    }
    for row in report.suites.iter().flat_map(|suite| &suite.reasons) {
        all.push(([&row.baseline, &row.id], &row.why, &row.hints));
    }
    let most = LARGEST / 3 / all.len().max(1);
    html! { @for (names, why, hints) in all { (section(names, why, hints, most)) } }
}

/// The reason of one subject beside its baseline, whose name is the first. `most`: bytes of a picture.
fn section(names: [&str; 2], why: &WhyReport, hints: &[String], most: usize) -> Markup {
    let functions = why.explanation.as_ref().map_or(&[][..], |found| &found.functions);
    html! {
        section {
            h2 { "Why: " (names[1]) " beside " (names[0]) }
            p { (why.sentence) }
            @if !functions.is_empty() {
                (text_table("functions", None, &table(functions, names, why.operation)))
            }
            @let calls = why.explanation.as_ref().map_or(&[][..], |found| &found.calls);
            @if !calls.is_empty() { (text_table("calls", None, &of_calls(calls, names, why.operation))) }
            @if !hints.is_empty() { ul { @for hint in hints { li { (hint) } } } }
            @for what in &why.profile.lacking { p.caption { (what) } }
            @for (title, picture) in pictures(&why.profile, why.operation, names, most) {
                details {
                    summary { (title) }
                    div.scroll tabindex="0" role="region" aria-label=(title) {
                        iframe.flames title=(title) loading="lazy"
                            src={ "data:image/svg+xml;base64," (STANDARD.encode(picture)) } {}
                    }
                }
            }
        }
    }
}

fn table(functions: &[FunctionDifference], [base, head]: [&str; 2], operation: &str) -> TextTable {
    let row = |function: &FunctionDifference| {
        let [one, two] = values(&function.cost);
        let itself = function.self_us.map(|us| format!("{us:.2}")).join(" -> ");
        let total = function.total_us.map(|us| format!("{us:.2}")).join(" -> ");
        vec![function.name.clone(), one, two, change_words(&function.cost), itself, total]
    };
    let each = format!("µs per {operation}");
    let headers = [&*each, base, head, "change (95 %)", "itself", "with what it calls"];
    TextTable::new("Functions whose cost differs for certain", headers)
        .with_rows(functions.iter().take(ROWS).map(row))
}

fn of_calls(calls: &[CallDifference], [base, head]: [&str; 2], operation: &str) -> TextTable {
    let row = |call: &CallDifference| {
        let [one, two] = call.per_operation.map(|count| format!("{count:.2}"));
        let [low, high] = call.ci95;
        vec![call.name.clone(), one, two, format!("{:+.2} ({low:+.2} to {high:+.2})", call.difference)]
    };
    let each = format!("calls per {operation}");
    let headers = [&*each, base, head, "change (95 %)"];
    TextTable::new("System calls whose number differs for certain", headers)
        .with_rows(calls.iter().take(ROWS).map(row))
}

/// The difference as a flame graph, and each side's own; none without samples.
fn pictures(
    profile: &PairProfile,
    operation: &str,
    [base, head]: [&str; 2],
    most: usize,
) -> Vec<(String, Vec<u8>)> {
    let costs = costs(profile);
    let of_both = costs.iter().map(|(stack, [base, head])| format!("{stack} {base} {head}")).collect();
    let of_side = |side: usize| -> Vec<String> {
        let own = costs.iter().filter(|(_, costs)| costs[side] > 0);
        own.map(|(stack, costs)| format!("{stack} {}", costs[side])).collect()
    };
    let all = [
        (format!("Flame graph of {head}: red costs more than in {base}, blue less"), of_both),
        (format!("Flame graph of {base}"), of_side(0)),
        (format!("Flame graph of {head} alone"), of_side(1)),
    ];
    all.into_iter()
        .filter_map(|(title, lines)| Some((title.clone(), picture(&title, &lines, operation, most)?)))
        .collect()
}

/// Nanoseconds for a request by stack, of the baseline and of the other.
fn costs(profile: &PairProfile) -> BTreeMap<String, [u64; 2]> {
    let mut sums = vec![[0.0; 2]; profile.stacks.len()];
    for side in [0, 1] {
        let windows = || profile.rounds.iter().map(|sides| &sides[1 - side]);
        let operations: u64 = windows().map(|window| window.operations).sum();
        for window in windows() {
            let scale = window.scale();
            for (stack, time) in &window.stacks {
                sums[*stack as usize][side] += time.0 as f64 * scale / operations.max(1) as f64;
            }
        }
    }
    // A semicolon would begin another frame, a space at its end a number.
    let plain = |name: &u32| profile.names[*name as usize].replace([';', ' '], "_");
    let stack = |frames: &Vec<u32>| frames.iter().map(plain).collect::<Vec<_>>().join(";");
    let mut all = BTreeMap::<String, [u64; 2]>::new();
    for (frames, sum) in profile.stacks.iter().zip(sums).filter(|(frames, _)| !frames.is_empty()) {
        let known = all.entry(stack(frames)).or_default();
        (0..2).for_each(|side| known[side] += sum[side].round() as u64);
    }
    all
}

/// The picture, searchable, in one file of at most this size, as far as the names allow it.
fn picture(title: &str, lines: &[String], operation: &str, most: usize) -> Option<Vec<u8>> {
    let draw = |narrowest: f64| {
        let mut options = Options::default();
        title.clone_into(&mut options.title);
        options.count_name = format!("ns per {operation}");
        (options.min_width, options.deterministic, options.hash) = (narrowest, true, true);
        let mut picture = Vec::new();
        from_lines(&mut options, lines.iter().map(String::as_str), &mut picture).ok().map(|()| picture)
    };
    let mut drawn = NARROW.into_iter().filter_map(draw).peekable();
    while let Some(picture) = drawn.next() {
        if picture.len() <= most || drawn.peek().is_none() {
            return Some(picture);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Nanos;
    use linerate_model::{SampledStack, Spent, StackSample};

    fn profile(name: &str) -> PairProfile {
        let stacks = vec![SampledStack { frames: vec![0, 1], time: Nanos(2_000_000) }];
        let sample =
            StackSample { names: vec!["main".into(), name.into()], stacks, ..StackSample::default() };
        let mut pair = PairProfile::default();
        let spent = |operations| Spent { operations, cpu: Nanos(1) };
        pair.add(0, [(spent(1_000), &sample, None), (spent(2_000), &sample, None)]);
        pair
    }

    #[test]
    fn a_flame_graph_is_of_a_request_and_names_are_data() {
        let costs = costs(&profile("a;b <script> c"));
        assert_eq!(costs, BTreeMap::from([("main;a_b_<script>_c".to_owned(), [1_000, 2_000])]));
        let all = pictures(&profile("a <script> c"), "request", ["v1", "v2"], LARGEST);
        assert_eq!(all.len(), 3);
        for (_, picture) in all {
            let text = String::from_utf8(picture).unwrap();
            assert!(text.contains("a_&lt;script&gt;_c") && !text.contains("a_<script>"), "{text}");
        }
        assert!(pictures(&PairProfile::default(), "request", ["v1", "v2"], LARGEST).is_empty());
    }
}
