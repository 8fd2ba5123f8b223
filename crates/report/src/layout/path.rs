//! Columns of a path that impairs packets.

use super::details::{Column, Depth};
use crate::model::{CellReport, PathReport, WayReport};
use crate::numbers::{count, plain};

/// Without text where nothing is impaired.
pub(super) fn columns<'a>(depth: Depth) -> Vec<Column<'a>> {
    let column = |header: &str, text: fn(&PathReport) -> String| {
        Column::new(header, move |cell: &CellReport| cell.path.as_ref().map_or(String::new(), text))
    };
    let mut columns = vec![column("path\nimpaired by", |path| path.means.clone())];
    if depth == Depth::Full {
        columns.push(column("path", |path| path.description.clone()));
        columns.push(column("path, to the server", |path| way(path.up.as_ref())));
        columns.push(column("path, to the client", |path| way(path.down.as_ref())));
    }
    columns
}

fn way(way: Option<&WayReport>) -> String {
    let Some(way) = way else { return String::new() };
    let mut text = format!("{} packets", count(way.packets));
    for (share, what) in [
        (way.lost_percent, "lost"),
        (way.overflowed_percent, "dropped by the queue"),
        (way.late_percent, "late"),
    ] {
        if share > 0.0 {
            text += &format!(", {} % {what}", plain(share));
        }
    }
    if way.overrun > 0 {
        text += &format!(", {} lost by the relay itself", count(way.overrun));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_shows_what_was_dropped_and_nothing_else() {
        let mut counts = WayReport { packets: 12_000, lost_percent: 1.25, ..WayReport::default() };
        assert_eq!(way(Some(&counts)), "12,000 packets, 1.25 % lost");
        counts.overrun = 3;
        assert_eq!(way(Some(&counts)), "12,000 packets, 1.25 % lost, 3 lost by the relay itself");
        assert_eq!(way(None), "");
    }
}
