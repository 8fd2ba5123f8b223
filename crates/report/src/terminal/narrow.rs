//! Tables that fit into the width of a terminal: what is left out, and which names are cut off.

use super::{INDENT, bold, empty, header, indented, width};
use crate::Style;
use crate::layout::TextTable;
use comfy_table::{Cell, CellAlignment, presets};

/// Names are cut off down to this.
const SHORTEST: usize = 12;

/// The table with its names cut off where it is wider than this; the headline has them in full.
pub(super) fn fitted(table: &TextTable, most: usize) -> TextTable {
    let mut fitted = table.clone();
    let width_of = |text: &String| console::measure_text_width(text);
    let of_rows: Vec<usize> = (0..table.headers.len())
        .map(|at| table.rows.iter().map(|row| width_of(&row[at])).max().unwrap_or(0))
        .collect();
    let widths = |headers: &[String]| -> Vec<usize> {
        headers.iter().zip(&of_rows).map(|(name, rows)| width_of(name).max(*rows)).collect()
    };
    // The column whose name has most to lose gives way, down to the width of its values.
    while widths(&fitted.headers).iter().map(|width| width + 2).sum::<usize>() > most {
        let surplus = |at: &usize| width_of(&fitted.headers[*at]).saturating_sub(of_rows[*at].max(SHORTEST));
        let Some(at) = (0..of_rows.len()).max_by_key(surplus).filter(|at| surplus(at) > 0) else { break };
        let shorter = width_of(&fitted.headers[at]) - 1;
        fitted.headers[at] = console::truncate_str(&table.headers[at], shorter, "...").into_owned();
    }
    let others: usize = widths(&fitted.headers).iter().skip(1).map(|width| width + 2).sum();
    let longest = most.saturating_sub(others + 2).max(SHORTEST);
    for row in &mut fitted.rows {
        row[0] = console::truncate_str(&row[0], longest, "...").into_owned();
    }
    fitted
}

/// A row for each request, in a line. Where there is no room, the number of responses is left out first, then
/// p99, then the end of names.
pub(super) fn requests_text(shown: &TextTable, style: Style) -> String {
    let rows = || std::iter::once(&shown.headers).chain(&shown.rows);
    let widest = |at: usize| rows().map(|row| console::measure_text_width(&row[at]) + 2).max().unwrap_or(0);
    let mut columns: Vec<usize> = (1..shown.headers.len()).collect();
    let room = |columns: &[usize]| {
        let others: usize = columns.iter().map(|at| widest(*at)).sum();
        width(style).saturating_sub(INDENT.len() + others + 2)
    };
    for most in [4, 3] {
        if room(&columns) < SHORTEST && columns.len() > most {
            columns.remove(if columns[0] == 1 { 0 } else { columns.len() - 1 });
        }
    }
    let longest = room(&columns).max(SHORTEST);
    let mut table = empty(style, presets::NOTHING);
    let names = columns.iter().map(|at| header(&shown.headers[*at], style));
    table.set_header(std::iter::once(Cell::new("")).chain(names));
    for row in &shown.rows {
        let name = console::truncate_str(&row[0], longest, "...");
        table.add_row(std::iter::once(&*name).chain(columns.iter().map(|at| &*row[*at])));
    }
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    let title = format!(" {}", bold(&shown.title, style));
    let lines = std::iter::once(title).chain([table.trim_fmt()]);
    let lines = lines.chain(shown.notes.iter().map(|note| format!(" {note}")));
    indented(&lines.collect::<Vec<_>>().join("\n")) + "\n\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_a_request_is_a_line_at_each_width_and_has_its_p50_and_its_change() {
        let headers = ["by request", "responses", "failed", "p50 µs", "change", "95 % interval", "p99 µs"];
        let row = ["GET /a/long/path", "24,000 -> 24,000", "0 -> 0", "120 -> 150", "+25 %", "(+24 to +26)"];
        let row = row.into_iter().chain(["300 -> 400"]).map(str::to_owned).collect();
        let table = TextTable::new("by request at 7,000/s", headers).with_rows([row].into_iter());
        for (width, left_out) in [(100, vec![]), (80, vec!["24,000"]), (60, vec!["24,000", "300 -> 400"])] {
            let text = requests_text(&table, Style { width: Some(width), ..Style::default() });
            assert_eq!(text.trim_end().lines().count(), 3, "{width}: {text}");
            assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{width}: {text}");
            assert!(text.contains("GET /a/lo") && text.contains("120 -> 150   +25 %"), "{width}: {text}");
            for word in ["24,000", "300 -> 400"] {
                assert_eq!(!text.contains(word), left_out.contains(&word), "{width}: {text}");
            }
        }
    }

    #[test]
    fn long_names_are_cut_off_and_values_are_not() {
        let (base, head) =
            ("the-first-of-two-long-names-of-servers", "the-second-of-two-long-names-of-servers");
        let headers = ["", base, head, "change", "95 % interval", ""];
        let row = ["requests/s", "41,500", "1,667", "-96 %", "(each window)", "slower"];
        let table = TextTable::new("", headers).with_rows([row.map(str::to_owned).to_vec()].into_iter());
        for most in [78, 60] {
            let shown = fitted(&table, most);
            assert_eq!(shown.rows, table.rows);
            let all = shown.headers.iter().zip(&shown.rows[0]);
            let widths = all.map(|(name, value)| name.chars().count().max(value.chars().count()) + 2);
            assert!(widths.sum::<usize>() <= most.max(72), "{shown:?}");
            assert!(shown.headers[1].ends_with("...") && shown.headers[1].len() >= SHORTEST, "{shown:?}");
        }
        assert_eq!(fitted(&table, 200).headers, table.headers);
    }
}
