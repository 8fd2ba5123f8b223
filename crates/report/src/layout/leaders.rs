//! Who is ahead along the rows of a derived table, and where that changes.

use crate::model::{DerivedRows, RatioOfTwo};
use linerate_analysis::judge::Confirmation;

/// `Document: Asio is ahead up to 16384 bytes, Corosio from 65536 bytes on. This run: Asio is ahead in every
/// row.` `None` where the rows have no owners.
pub(super) fn leaders(table: &DerivedRows) -> Option<String> {
    let [first, second] = table.names.as_ref()?;
    let sentence = |(whose, is_first_ahead): (&str, fn(&RatioOfTwo) -> Option<bool>)| {
        let name = |is_first: bool| if is_first { first.as_str() } else { second.as_str() };
        let rows = table.rows.iter().map(|row| (row.row.as_str(), is_first_ahead(row).map(name)));
        along(&rows.collect::<Vec<_>>()).map(|text| format!("{whose}: {text}."))
    };
    let sentences: Vec<String> =
        [("Document", of_document as fn(&RatioOfTwo) -> Option<bool>), ("This run", of_run)]
            .into_iter()
            .filter_map(sentence)
            .collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// Whether the first is ahead.
fn of_document(row: &RatioOfTwo) -> Option<bool> {
    row.published.map(|ratio| ratio > 1.0)
}

fn of_run(row: &RatioOfTwo) -> Option<bool> {
    match row.confirmation {
        Confirmation::Holds => Some(true),
        // Equal ones have no leader.
        Confirmation::DoesNotHold => row.ci95.filter(|[_, high]| *high < 1.0).map(|_| false),
        Confirmation::NotDecided | Confirmation::NotMeasured => None,
    }
}

/// Rows and their leaders, in their order; `None` if no row has one.
fn along(rows: &[(&str, Option<&str>)]) -> Option<String> {
    // A leader, with its first and its last row.
    let mut stretches: Vec<(&str, &str, &str)> = Vec::new();
    for (row, leader) in rows.iter().filter_map(|(row, leader)| Some((*row, (*leader)?))) {
        match stretches.last_mut() {
            Some((known, _, last)) if *known == leader => *last = row,
            _ => stretches.push((leader, row, row)),
        }
    }
    let open: Vec<&str> = rows.iter().filter(|(_, leader)| leader.is_none()).map(|(row, _)| *row).collect();
    let text = match stretches[..] {
        [] => return None,
        [(leader, ..)] if open.is_empty() => format!("{leader} is ahead in every row"),
        [(leader, ..)] => format!("{leader} is ahead"),
        [(one, _, last), (other, first, _)] => {
            format!("{one} is ahead up to {last}, {other} from {first} on")
        }
        _ => {
            let stretch = |(leader, first, last): &(&str, &str, &str)| {
                if first == last {
                    format!("{leader} at {first}")
                } else {
                    format!("{leader} from {first} to {last}")
                }
            };
            format!("ahead are {}", stretches.iter().map(stretch).collect::<Vec<_>>().join(", "))
        }
    };
    let open = (!open.is_empty()).then(|| format!("; no leader at {}", open.join(", ")));
    Some(text + &open.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_where_the_leader_changes_is_named() {
        let (a, c) = (Some("Asio"), Some("Corosio"));
        let rows = |leaders: [Option<&'static str>; 4]| {
            let sizes = ["1 KiB", "4 KiB", "16 KiB", "64 KiB"];
            along(&sizes.into_iter().zip(leaders).collect::<Vec<_>>())
        };
        assert_eq!(rows([a, a, a, c]).unwrap(), "Asio is ahead up to 16 KiB, Corosio from 64 KiB on");
        assert_eq!(rows([a; 4]).unwrap(), "Asio is ahead in every row");
        assert_eq!(
            rows([a, None, c, c]).unwrap(),
            "Asio is ahead up to 1 KiB, Corosio from 16 KiB on; no leader at 4 KiB"
        );
        assert_eq!(
            rows([a, c, c, a]).unwrap(),
            "ahead are Asio at 1 KiB, Corosio from 4 KiB to 16 KiB, Asio at 64 KiB"
        );
        assert_eq!(rows([None; 4]), None);
    }
}
