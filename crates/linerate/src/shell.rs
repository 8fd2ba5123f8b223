//! Words for a POSIX shell.

/// One word, whatever it contains.
#[must_use]
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
