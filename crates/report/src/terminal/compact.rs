//! A table in at most a hundred columns: a row for each cell, with a bar, by the table's first metric; other
//! metrics where they differ.

use super::{answer_text, warnings, width, wrapped};
use crate::Style;
use crate::layout::{self, Alternative, Group, Note, Part, Precision};
use crate::model::{Comparison, SuiteReport, TableCell, TableReport};
use crate::numbers::{brief_error, plain, plus_minus};
use crate::words::{self, outcome_name};
use linerate_analysis::stats::accuracy::Accuracy;
use linerate_analysis::stats::verdict::Verdict;
use linerate_model::Better;
use std::fmt::Write;

/// The longest bar, in columns.
const BAR: usize = 8;
/// Eighths of a column.
const BLOCKS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
/// The columns of a row; where the terminal is narrow, those of [`LESS`] are left out, in this order.
const COLUMNS: usize = 9;
const LESS: [usize; 5] = [1, 3, 6, 7, 5];
/// The first of [`LESS`] say less than the interval of the value, which is left out next.
const LEAST: usize = 2;
const VALUE: usize = 2;
/// Two columns that change places where the CPU time is the first reading.
const RATIO: usize = 4;
const CPU: usize = 6;

/// Text and colour of each column.
type CompactRow = [(String, Option<Colour>); COLUMNS];

#[derive(Clone, Copy)]
enum Colour {
    Better,
    Worse,
    Absent,
}

pub(super) fn table(suite: &SuiteReport, table: &TableReport, style: Style) -> String {
    let groups = layout::groups(suite, table);
    let (usual, precision) = (layout::usual_rounds(table), Precision::for_groups(table, &groups));
    let members = || groups.iter().flat_map(|group| &group.members);
    let shown = members().filter(|member| has_bar(member));
    let most = shown.filter_map(|m| m.entry.value).filter(|v| v.is_finite()).fold(0.0, f64::max);
    let mut of_baseline = members().filter_map(|member| member.entry.vs_baseline.as_ref());
    let is_cpu_first = of_baseline.any(Comparison::is_cpu_first);
    let in_order = |mut row: CompactRow| {
        if is_cpu_first {
            row.swap(RATIO, CPU);
        }
        row
    };
    let has_intervals = members().any(|member| member.entry.ci95.is_some());
    let laid_out = |is_brief: bool| {
        let row = |member: &Alternative<'_>| {
            let mut row = row(table, member, most, usual, &precision);
            if let Some(value) = precision.brief_value(member.entry).filter(|_| is_brief) {
                row[VALUE].0 = value;
            }
            in_order(row)
        };
        let value = if has_intervals && !is_brief { "value (95 %)" } else { "value" };
        let is_of_truth = table.truth_tolerance.is_some();
        let ratio_name = if is_of_truth { "error" } else { precision.ratio_name() };
        let head = ["", "tier", value, "", ratio_name, "difference", "CPU", "bound by", ""];
        let head = in_order(head.map(|text| (text.to_owned(), None)));
        let rows = groups.iter().map(|group| group.members.iter().map(row).collect());
        (head, rows.collect::<Vec<Vec<CompactRow>>>())
    };
    let all = |head: &CompactRow, rows: &[Vec<CompactRow>], width: usize| {
        widths(std::iter::once(head).chain(rows.iter().flatten()), width)
    };
    let (mut head, mut rows) = laid_out(false);
    // The interval of the ratio says more than that of the value, and so does the CPU time.
    let fitted = all(&head, &rows, width(style));
    let is_lost = |(at, width): (usize, usize)| width > 0 && fitted[at] == 0 && !LESS[..LEAST].contains(&at);
    let are_lost = all(&head, &rows, usize::MAX - 1).into_iter().enumerate().any(is_lost);
    if are_lost || used(&fitted) > width(style) + 1 {
        (head, rows) = laid_out(true);
    }
    let widths = all(&head, &rows, width(style));
    let answer = |group: &Group<'_>| answer_text(&layout::answer(table, group), style);
    let caption = wrapped(&caption(table, usual), width(style));
    // The answer first, where there is one.
    let mut text = match &groups[..] {
        [only] if !table.is_sequential => answer(only) + &caption,
        _ => caption,
    };
    for (group, rows) in groups.iter().zip(&rows) {
        if !table.is_sequential && groups.len() > 1 {
            text.push_str(&answer(group));
        }
        text.push_str(&line(&head, &widths, Style { colour: false, ..style }));
        let rule = Some(group.choices()).filter(|choices| *choices > 0);
        for (at, row) in rows.iter().enumerate() {
            if Some(at) == rule {
                let _ = writeln!(text, " {}", "─".repeat(used(&widths).saturating_sub(2)));
            }
            text.push_str(&line(row, &widths, style));
        }
        text.push_str(&others(table, group, &precision, style));
        text.push('\n');
    }
    text.pop();
    text.push_str(&warnings(table, style));
    text
}

/// Unit, direction, rounds, and what the control shows.
fn caption(table: &TableReport, usual: Option<u32>) -> String {
    let better = match (table.truth_tolerance, table.better) {
        (Some(share), _) => format!("true values are best; right within {} %", plain(share * 100.0)),
        (None, Better::Higher) => "higher is better".to_owned(),
        (None, Better::Lower) => "lower is better".to_owned(),
    };
    let rounds = match usual {
        Some(n) if table.cells.iter().any(TableCell::is_by_ratio) => {
            format!(
                "; baseline: {}; other rows: that value times their ratio{}",
                words::of_trials(n),
                layout::of_pairs(table)
            )
        }
        Some(n) => format!("; n={n}"),
        None => String::new(),
    };
    let passed = table.smallest_bias.filter(|_| !table.control_fails());
    let same = |bias| format!("; the baseline beside itself: no difference ({})", plus_minus(bias));
    let control = passed.map_or_else(String::new, same);
    format!("{}, {better}{rounds}{control}", layout::unit(table))
}

fn row(
    table: &TableReport,
    member: &Alternative<'_>,
    most: f64,
    usual: Option<u32>,
    precision: &Precision,
) -> CompactRow {
    let Alternative { cell, entry, part, .. } = member;
    let absent = entry.value.is_none().then_some(Colour::Absent);
    let value = precision.value(entry).unwrap_or_else(|| outcome_name(cell.outcome).to_owned());
    let bar = entry.value.filter(|_| has_bar(member)).map(|value| bar(value / most));
    let (ratio, colour) = ratio(table, member, precision);
    let cpu = entry.vs_baseline.as_ref();
    let cpu = cpu.and_then(|c| Some(layout::with_cpu_mark(Precision::brief_cpu_share(c)?, c)));
    let longer = entry.vs_baseline.as_ref().and_then(|c| c.difference.as_ref());
    let longer = longer.map(|found| precision.difference(entry.metric, found));
    let mark = Some(member.mark().to_owned()).filter(|name| !name.is_empty() && *part != Part::Baseline);
    // The column before says who bound it.
    let notes = layout::notes(cell, entry, usual).into_iter().filter(|note| *note != Note::BoundByGenerator);
    let notes = notes.map(|note| note.brief());
    [
        (member.label.clone(), None),
        (member.tier.map_or(String::new(), |tier| tier.to_string()), None),
        (value, absent),
        (bar.unwrap_or_default(), None),
        (ratio, colour),
        (longer.unwrap_or_default(), None),
        (cpu.unwrap_or_default(), None),
        (cell.bound_by.filter(|_| absent.is_none()).map(words::bound).unwrap_or_default(), None),
        (mark.into_iter().chain(notes).collect::<Vec<_>>().join("; "), None),
    ]
}

fn ratio(table: &TableReport, member: &Alternative<'_>, precision: &Precision) -> (String, Option<Colour>) {
    let entry = member.entry;
    if let Some(truth) = &entry.vs_truth {
        let colour = match truth.accuracy {
            Accuracy::Right => Some(Colour::Better),
            Accuracy::Wrong => Some(Colour::Worse),
            Accuracy::CannotTell => None,
        };
        return (brief_error(truth), colour);
    }
    match &entry.vs_baseline {
        Some(comparison) => (share(entry, comparison, precision), colour(comparison)),
        None if member.part == Part::Baseline && entry.value.is_some() => {
            let failed = table.control_fails();
            (if failed { "baseline, A/A failed" } else { "baseline" }.to_owned(), None)
        }
        None => (String::new(), None),
    }
}

fn share(entry: &TableCell, comparison: &Comparison, precision: &Precision) -> String {
    format!("{} {}", precision.share(entry.metric, comparison), layout::mark(comparison))
}

fn colour(comparison: &Comparison) -> Option<Colour> {
    match comparison.verdict {
        _ if comparison.ci95_is_range => None,
        Verdict::Faster => Some(Colour::Better),
        Verdict::Slower => Some(Colour::Worse),
        _ => None,
    }
}

/// Rows that nobody chooses have none, since they would make the others' bars short.
fn has_bar(member: &Alternative<'_>) -> bool {
    !member.is_apart || member.part == Part::Baseline
}

/// From 0 to `share` 1.
fn bar(share: f64) -> String {
    let eighths = (share.clamp(0.0, 1.0) * (BAR * 8) as f64).round() as usize;
    let full = "█".repeat(eighths / 8);
    match eighths % 8 {
        0 if eighths == 0 => BLOCKS[0].to_string(),
        0 => full,
        part => full + &BLOCKS[part - 1].to_string(),
    }
}

/// The width of each column, and 0 for those that are left out.
fn widths<'a>(rows: impl Iterator<Item = &'a CompactRow>, width: usize) -> [usize; COLUMNS] {
    let mut widths = [0; COLUMNS];
    let mut has_text = [false; COLUMNS];
    for (number, row) in rows.enumerate() {
        for (i, (text, _)) in row.iter().enumerate() {
            widths[i] = widths[i].max(console::measure_text_width(text));
            // The first row has names of columns.
            has_text[i] |= number > 0 && !text.is_empty();
        }
    }
    (0..COLUMNS).filter(|i| !has_text[*i]).for_each(|i| widths[i] = 0);
    for less in LESS {
        if used(&widths) > width + 1 {
            widths[less] = 0;
        }
    }
    widths
}

/// The columns of a terminal that a line has.
fn used(widths: &[usize; COLUMNS]) -> usize {
    widths.iter().filter(|width| **width > 0).map(|width| width + 2).sum()
}

fn line(row: &CompactRow, widths: &[usize; COLUMNS], style: Style) -> String {
    let mut line = String::new();
    for ((text, colour), width) in row.iter().zip(widths).filter(|(_, width)| **width > 0) {
        let fill = " ".repeat(width.saturating_sub(console::measure_text_width(text)));
        let code = match colour.filter(|_| style.colour) {
            Some(Colour::Better) => "32",
            Some(Colour::Worse) => "31",
            Some(Colour::Absent) => "33",
            None => "",
        };
        let _ = if code.is_empty() {
            write!(line, " {text}{fill} ")
        } else {
            write!(line, " \u{1b}[{code}m{text}\u{1b}[0m{fill} ")
        };
    }
    line.trim_end().to_owned() + "\n"
}

/// Further metrics by which the verdict is another than by the first one: a line for each metric.
fn others(table: &TableReport, group: &Group<'_>, precision: &Precision, style: Style) -> String {
    let mut text = String::new();
    for metric in layout::further_metrics(table) {
        let of = |member: &Alternative<'_>| -> Option<&TableCell> {
            let is_it = |e: &&TableCell| e.id == member.cell.id && e.metric == Some(metric);
            table.cells.iter().find(is_it)
        };
        let differing = group.members.iter().filter_map(|member| {
            let entry = of(member)?;
            if let Some(truth) = &entry.vs_truth {
                let first = member.entry.vs_truth.as_ref().map(|truth| truth.accuracy);
                let is_news = first != Some(truth.accuracy);
                return is_news.then(|| format!("{} {}", member.label, brief_error(truth)));
            }
            let comparison = entry.vs_baseline.as_ref().filter(|c| colour(c).is_some())?;
            let first = member.entry.vs_baseline.as_ref().map(|c| c.verdict);
            let is_news = first != Some(comparison.verdict);
            let longer =
                comparison.difference.as_ref().map(|found| precision.difference(entry.metric, found));
            let longer = longer.map_or_else(String::new, |longer| format!(", {longer}"));
            let share = share(entry, comparison, precision);
            is_news.then(|| format!("{} {share}{longer}", member.label))
        });
        let differing: Vec<String> = differing.collect();
        if !differing.is_empty() {
            let metric = precision.name(metric);
            let line = format!("{metric}, another verdict: {}", differing.join("; "));
            text.push_str(&wrapped(&line, width(style)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_eighths_of_a_column_and_never_nothing() {
        assert_eq!([0.0, 0.0125, 0.5, 1.0, 7.0].map(bar), ["▏", "▏", "████", "████████", "████████"]);
        assert_eq!(bar(f64::NAN), "▏");
    }

    #[test]
    fn a_narrow_terminal_loses_tiers_first() {
        let row: CompactRow = std::array::from_fn(|_| ("0123456789".to_owned(), None));
        let kept = |width| widths([&row, &row].into_iter(), width).map(|width| width > 0);
        assert_eq!(kept(110), [true; COLUMNS]);
        assert_eq!(kept(100), [true, false, true, true, true, true, true, true, true]);
        assert!(kept(20)[2] && kept(20)[4], "value and ratio remain");
    }
}
