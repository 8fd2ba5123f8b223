//! A client's request, encoded before its window.

use crate::h2::frame;
use crate::h2::hpack::Blocks;
use crate::http::request::build;
use linerate_contract::{Refusal, Request};
use std::sync::Arc;

/// The request of all streams.
#[derive(Debug, Clone)]
pub struct EncodedRequest {
    pub(super) blocks: Blocks,
    pub(super) body: Arc<[u8]>,
    pub(super) is_head: bool,
}

impl EncodedRequest {
    /// A plain GET unless `request` sets something else; `scheme` is http or https.
    ///
    /// # Errors
    /// What HTTP/1.1 cannot carry, or fields that do not fit into a frame.
    pub fn new(scheme: &str, path: &str, host: &str, request: &Request) -> Result<Self, Refusal> {
        // As HTTP/1.1 has it, whose rules for names and values are the same.
        let message = build(path, host, true, request)?;
        let head = message.len() - request.body.len();
        let text = String::from_utf8_lossy(&message[..head]).into_owned();
        let mut lines = text.split("\r\n").filter(|line| !line.is_empty());
        let method = lines.next().and_then(|line| line.split(' ').next()).unwrap_or("GET");
        let lines: Vec<(String, &str)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim()))
            .collect();
        let host = lines.iter().find(|(name, _)| name == "host").map_or(host, |(_, value)| *value);
        let mut fields =
            vec![(":method", method), (":scheme", scheme), (":authority", host), (":path", path)];
        let regular = lines.iter().map(|(name, value)| (name.as_str(), *value));
        fields.extend(regular.filter(|(name, _)| !OF_A_CONNECTION.contains(name)));
        let blocks = Blocks::new(&fields);
        if blocks.longest() > frame::LONGEST {
            let most = frame::LONGEST;
            return Err(Refusal::BadSpec(format!("\"request\" has more than {most} bytes of headers")));
        }
        Ok(Self { blocks, body: request.body.as_bytes().into(), is_head: method == "HEAD" })
    }

    pub fn body(&self) -> &[u8] {
        &self.body
    }
}

/// Fields of HTTP/1.1 that have no meaning here (RFC 9113 section 8.2.2), and the name of the host, which is
/// `:authority`.
const OF_A_CONNECTION: [&str; 7] =
    ["host", "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "te"];
