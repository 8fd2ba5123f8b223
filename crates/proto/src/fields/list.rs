//! The fields of a client's request, from the parts that HTTP/1.1 has.

use crate::http::request::build;
use linerate_contract::{Refusal, Request};

/// Names and values, pseudo-fields first.
#[derive(Debug)]
pub(crate) struct RequestList {
    fields: Vec<(String, String)>,
}

impl RequestList {
    /// A plain GET unless `request` sets something else; `scheme` is http or https. `more` are fields behind
    /// the others; with them the body says its own length.
    ///
    /// # Errors
    /// A field that HTTP/1.1 cannot carry, whose rules for names and values are the same.
    pub(crate) fn new(
        scheme: &str,
        path: &str,
        host: &str,
        request: &Request,
        more: &[(&str, &str)],
    ) -> Result<Self, Refusal> {
        let message = build(path, host, true, request)?;
        let text = String::from_utf8_lossy(&message);
        // The body is behind the first empty line, in whatever coding HTTP/1.1 has it.
        let mut lines = text.split("\r\n").take_while(|line| !line.is_empty());
        let method = lines.next().and_then(|line| line.split(' ').next()).unwrap_or("GET");
        let lines: Vec<(String, &str)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim()))
            .collect();
        let host = lines.iter().find(|(name, _)| name == "host").map_or(host, |(_, value)| *value);
        let pseudo = [(":method", method), (":scheme", scheme), (":authority", host), (":path", path)];
        let is_kept =
            |name: &str| !OF_A_CONNECTION.contains(&name) && (more.is_empty() || name != "content-length");
        let regular = lines.iter().map(|(name, value)| (name.as_str(), *value));
        let all = pseudo.into_iter().chain(regular.filter(|(name, _)| is_kept(name)));
        let all = all.chain(more.iter().copied());
        Ok(Self { fields: all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect() })
    }

    pub(crate) fn fields(&self) -> Vec<(&str, &str)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    pub(crate) fn is_head(&self) -> bool {
        self.fields[0].1 == "HEAD"
    }
}

/// Fields of HTTP/1.1 that have no meaning here (RFC 9113 section 8.2.2), and the name of the host, which is
/// `:authority`.
const OF_A_CONNECTION: [&str; 7] =
    ["host", "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "te"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_no_field_in_whatever_coding_http_1_has_it() {
        let headers = vec!["Transfer-Encoding: chunked".to_owned(), "X: y".into()];
        let request = Request {
            method: Some("POST".into()),
            headers,
            body: "admin: yes\r\n\r\nmore: x".into(),
            ..Request::default()
        };
        let list = RequestList::new("http", "/", "h", &request, &[]).unwrap();
        let names: Vec<&str> = list.fields().iter().map(|(name, _)| *name).collect();
        assert_eq!(names, [":method", ":scheme", ":authority", ":path", "x"]);
    }
}
