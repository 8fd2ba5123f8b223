//! Suggestions for misspelt names.

/// The known name that is closest to `word`, if one is close: at most a third of its letters differ.
///
/// The distance counts insertions, deletions, substitutions and swaps of neighbours (optimal string
/// alignment), and ignores case. The first of several equally close names wins.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (distance(word, name), name))
        .filter(|(distance, name)| *distance <= word.chars().count().max(name.chars().count()).max(3) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Up to this number, all known names are listed.
const FEW: usize = 24;
/// How many of more names are listed, the closest.
const LISTED: usize = 6;

/// The end of a message about an unknown name: `nearest: "direction"`, or `known: direction, transfers,
/// ...`; where many are known `the closest of 260: go, oha, ...`.
#[must_use]
pub fn suggestion<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let mut known: Vec<&str> = known.into_iter().collect();
    if let Some(name) = nearest(word, known.iter().copied()) {
        return format!("nearest: {name:?}");
    }
    if known.len() <= FEW {
        return format!("known: {}", known.join(", "));
    }
    known.sort_by_key(|name| (distance(word, name), *name));
    known.dedup();
    format!("the closest of {}: {}", known.len(), known[..known.len().min(LISTED)].join(", "))
}

fn distance(a: &str, b: &str) -> usize {
    let letters = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<Vec<_>>();
    let (a, b) = (letters(a), letters(b));
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let substitution = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = substitution.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before_last[j - 2] + 1);
            }
            row.push(least);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits_and_swaps() {
        for (a, b, edits) in
            [("", "abc", 3), ("size", "size", 0), ("kitten", "sitting", 3), ("rtt", "trt", 1)]
        {
            assert_eq!((distance(a, b), distance(b, a)), (edits, edits), "{a} {b}");
        }
    }

    #[test]
    fn a_misspelt_name_finds_its_neighbour_and_nonsense_finds_none() {
        let known = ["connections", "direction", "nc", "size", "mode"];
        for (word, expected) in [
            ("conections", Some("connections")),
            ("Direction", Some("direction")),
            ("dirction", Some("direction")),
            ("sized", Some("size")),
            ("mdoe", Some("mode")),
            ("cn", Some("nc")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
        assert_eq!(suggestion("mod", known), "nearest: \"mode\"");
        assert_eq!(suggestion("colour", ["nc", "size"]), "known: nc, size");
        let many: Vec<String> = (100..200).map(|number| number.to_string()).collect();
        let all = many.iter().chain(&many).map(String::as_str);
        assert_eq!(suggestion("1", all), "the closest of 100: 100, 101, 102, 103, 104, 105");
    }
}
