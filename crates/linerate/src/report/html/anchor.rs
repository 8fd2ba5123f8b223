//! The address of each table and cell inside the page.

/// Of a suite, a table or a cell: `proxy`, `proxy.forwarding`, `proxy.forwarding.nginx/direct`. An address
/// has no spaces.
pub(in crate::report) fn anchor(parts: &[&str]) -> String {
    parts.join(".").replace(char::is_whitespace, "_")
}
