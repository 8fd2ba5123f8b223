//! Two stored runs as text.

use crate::Style;
use crate::numbers::{plain, signed_percent};
use crate::terminal::plain_table;
use crate::words::verdict_name;
use linerate_analysis::judge::pairs::stored::{INTERLEAVE, StoredCell, StoredComparison};
use linerate_analysis::stats::verdict::Verdict;
use std::fmt::Write;

/// The comparison of two runs at different times, in words.
pub fn of_stored(compared: &StoredComparison, style: Style) -> String {
    let StoredComparison { runs: [one, two], cells, doubts, controls, spread } = compared;
    if cells.is_empty() {
        return format!("{one} and {two} have no cell in common\n");
    }
    let mut text = format!("{two} against {one}: {} cells in common\n\n", cells.len());
    let mut table = plain_table(style);
    table.set_header(["cell", "systems", "change (95 %)", ""]);
    for cell in cells {
        let systems = if cell.is_changed { "changed" } else { "the same" };
        let id = format!("{}:{}", cell.suite, cell.id);
        table.add_row([id, systems.to_owned(), change(cell), word(cell, !doubts.is_empty())]);
    }
    let _ = writeln!(text, "{}\n", table.trim_fmt());
    for doubt in doubts {
        let _ = writeln!(text, "indicative only: {doubt}");
    }
    if let Some(spread) = spread {
        let spread = plain(spread * 100.0);
        let _ =
            writeln!(text, "spread between the runs, by {controls} cells with the same systems: {spread} %");
    }
    if cells.iter().any(|cell| cell.is_changed && cell.ratio.ln().abs() < INTERLEAVE) {
        let _ = writeln!(
            text,
            "below {:.0} %, compare both builds at the same time: linerate compare SUITE --head ARM",
            INTERLEAVE * 100.0
        );
    }
    text
}

fn change(cell: &StoredCell) -> String {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    match cell.interval {
        Some(ends) => signed_percent(percent(cell.ratio), Some(ends.map(percent))),
        None => format!("{:+.1} %", percent(cell.ratio)),
    }
}

fn word(cell: &StoredCell, is_doubtful: bool) -> String {
    let doubt = if is_doubtful { " (indicative)" } else { "" };
    match cell.verdict {
        Verdict::CannotTell => "open".into(),
        found => verdict_name(found).to_owned() + doubt,
    }
}
