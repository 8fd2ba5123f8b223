//! The picture of a suite on the first screen: the rows of a group on the axis of their ratios.

use super::anchor;
use super::forest::Forest;
use crate::layout::{self, Alternative, Group, Part, Precision};
use crate::model::{SuiteReport, TableReport};
use crate::numbers::brief_error;
use maud::{Markup, html};
use std::slice;

/// Rows of the picture; the table has all.
const ROWS: usize = 16;

/// A group of a table: each row with its interval, the band of the margin, and the baseline. `None` without a
/// ratio.
pub(super) fn picture(suite: &SuiteReport, table: &TableReport, group: &Group<'_>) -> Option<Markup> {
    let forest = Forest::for_table(table, slice::from_ref(group))?;
    let address = anchor(&[&suite.name, &table.name]);
    let background = format!("{address}~first");
    let precision = Precision::for_table(table);
    let rows = &group.members[..group.members.len().min(ROWS)];
    let place = if group.label.is_empty() { String::new() } else { format!(" ({})", group.label) };
    Some(html! {
        figure.picture {
            svg.defs aria-hidden="true" width="0" height="0" { (forest.background(&background, group)) }
            ul {
                @for member in rows {
                    li {
                        a href={ "#" (address) "." (anchor(&[&member.cell.id])) } { (member.label) }
                        (forest.row(&background, member.entry))
                        span.v { (value(&precision, member)) }
                    }
                }
            }
            (forest.scale())
            figcaption {
                a href={ "#" (address) } { (table.title) } (place)
                ". Line: 95 % interval; dots: units; band: differences that do not matter"
                @if rows.len() < group.members.len() {
                    "; " (group.members.len() - rows.len()) " more rows in the table"
                }
                "."
            }
        }
    })
}

fn value(precision: &Precision, member: &Alternative<'_>) -> String {
    let entry = member.entry;
    match (&entry.vs_baseline, &entry.vs_truth) {
        (Some(found), _) => format!("{} {}", precision.share(entry.metric, found), layout::mark(found)),
        (None, Some(truth)) => brief_error(truth),
        _ if member.part == Part::Baseline => "100 %, the baseline".to_owned(),
        _ => member.part.name().to_owned(),
    }
}
