//! TOML files and JSON lines of users: errors with file, line and the nearest known key.

use crate::error::Error;
use linerate_contract::nearest::suggestion;
use serde::de::DeserializeOwned;
use std::path::Path;

/// Reads a file's text as `T`.
///
/// # Errors
/// `path:line: message`; an unknown key or word with the nearest known one.
pub(crate) fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, Error> {
    toml::from_str(text).map_err(|e| {
        let line = e.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        Error::Input(format!("{}:{line}: {}", path.display(), with_suggestion(e.message())))
    })
}

/// Reads a text with one JSON object a line; empty lines are left out.
///
/// # Errors
/// As [`parse`].
pub(crate) fn parse_lines<T: DeserializeOwned>(path: &Path, text: &str) -> Result<Vec<T>, Error> {
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    let parsed = lines.map(|(line, number)| {
        serde_json::from_str(line).map_err(|e| {
            let text = e.to_string();
            // The parser has one line.
            let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
            Error::Input(format!("{}:{number}: {}", path.display(), with_suggestion(message)))
        })
    });
    parsed.collect()
}

/// serde's `unknown field `x`, expected one of `a`, `b`` lists every known key; the nearest one is enough.
fn with_suggestion(message: &str) -> String {
    let Some((unknown, expected)) = message.split_once(", expected ") else { return message.to_owned() };
    let quoted = |text: &'_ str| text.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let (Some(word), known) = (quoted(unknown).pop(), quoted(expected)) else { return message.to_owned() };
    if !unknown.starts_with("unknown ") || known.is_empty() {
        return message.to_owned();
    }
    format!("{unknown}; {}", suggestion(&word, known.iter().map(String::as_str)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only its keys matter")]
    struct File {
        rounds: u32,
        question: Option<String>,
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line_and_the_nearest_key() {
        let error =
            parse::<File>(Path::new("x.toml"), "rounds = 1\n\nquestoin = \"?\"\n").unwrap_err().to_string();
        assert_eq!(error, "x.toml:3: unknown field `questoin`; nearest: \"question\"");
    }

    #[test]
    fn json_lines_have_errors_with_their_line_and_the_nearest_key() {
        let of = |text: &str| parse_lines::<File>(Path::new("x.jsonl"), text).map_err(|e| e.to_string());
        assert_eq!(of("{\"rounds\": 1}\n\n{\"rounds\": 2}\n").unwrap().len(), 2);
        let error = of("{\"rounds\": 1}\n{\"rounds\": 2, \"questoin\": \"?\"}").unwrap_err();
        assert_eq!(error, "x.jsonl:2: unknown field `questoin`; nearest: \"question\"");
        assert_eq!(of("\n{").unwrap_err(), "x.jsonl:2: EOF while parsing an object");
    }

    #[test]
    fn a_value_of_a_wrong_type_is_refused_with_its_line() {
        let error = parse::<File>(Path::new("x.toml"), "rounds = \"ten\"\n").unwrap_err().to_string();
        assert!(error.starts_with("x.toml:1: ") && error.contains("u32"), "{error}");
    }
}
