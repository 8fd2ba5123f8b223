//! Text that a terminal shows and does not obey.
//!
//! Versions, the output of systems and stored runs are written by others. Each text passes here on its way
//! to a terminal or a report.

use std::borrow::Cow;
use std::fmt::Write;

/// The colours and weights of linerate's own output begin so.
const COLOUR: &str = "\u{1b}[";

/// The text with escapes such as `\u001b` in place of control characters, and of characters that change the
/// direction of text. Line breaks, tabs and colours are kept. JSON keeps its meaning.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = colour(rest).unwrap_or(c.len_utf8());
        if is_obeyed(c) && length == c.len_utf8() {
            let _ = write!(clean, "\\u{:04x}", u32::from(c));
        } else {
            clean.push_str(&rest[..length]);
        }
        rest = &rest[length..];
    }
    Cow::Owned(clean)
}

/// The length of a colour or weight at the start of a text. Hidden text (8) is none.
fn colour(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix(COLOUR)?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    let is_hidden = parameters[..end].split(';').any(|number| number.trim_start_matches('0') == "8");
    (parameters[end..].starts_with('m') && !is_hidden).then_some(COLOUR.len() + end + 1)
}

/// C0 and C1, and the characters of Unicode's bidirectional algorithm.
fn is_obeyed(c: char) -> bool {
    let is_direction = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}');
    let is_embedding = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() && c != '\n' && c != '\t' || is_direction || is_embedding
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_text_colours_and_line_breaks_only() {
        for (given, shown) in [
            ("a\tb\n", "a\tb\n"),
            ("\u{1b}[38;5;10mgreen\u{1b}[0m", "\u{1b}[38;5;10mgreen\u{1b}[0m"),
            ("1.0\u{1b}[2J", "1.0\\u001b[2J"),
            ("\u{1b}]0;title\u{7}", "\\u001b]0;title\\u0007"),
            ("\u{1b}[8mhidden", "\\u001b[8mhidden"),
            ("\u{9b}2J\rover", "\\u009b2J\\u000dover"),
            ("\u{202e}drawkcab", "\\u202edrawkcab"),
            ("\u{1b}", "\\u001b"),
            ("\u{1b}[1", "\\u001b[1"),
        ] {
            assert_eq!(printable(given), shown);
        }
    }

    #[test]
    fn json_keeps_its_meaning() {
        let text = serde_json::to_string("\u{1b}[2J\u{9b}\u{202e}\u{7f}").unwrap();
        let shown = printable(&text);
        assert!(shown.is_ascii());
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), "\u{1b}[2J\u{9b}\u{202e}\u{7f}");
    }
}
