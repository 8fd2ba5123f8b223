//! The address of each table and cell inside the page.

/// Of a suite, a table or a cell: `proxy`, `proxy.forwarding`, `proxy.forwarding.nginx/direct`. An address
/// has no spaces, and a percent sign in it begins an escape.
pub(in crate::report) fn anchor(parts: &[&str]) -> String {
    parts.join(".").replace(char::is_whitespace, "_").replace('%', "percent")
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_anchor_is_an_address_as_it_is() {
        assert_eq!(super::anchor(&["transport", "paths", "1%/a b"]), "transport.paths.1percent/a_b");
    }
}
