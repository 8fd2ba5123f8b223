//! Addresses inside a page.

/// The address of a suite, a table or a cell inside the page: `proxy`, `proxy.forwarding`,
/// `proxy.forwarding.nginx/direct`. An address has no spaces, and a percent sign in it begins an escape.
pub(crate) fn anchor(parts: &[&str]) -> String {
    parts.join(".").replace(char::is_whitespace, "_").replace('%', "percent")
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_anchor_is_an_address_as_it_is() {
        assert_eq!(super::anchor(&["transport", "paths", "1%/a b"]), "transport.paths.1percent/a_b");
    }
}
