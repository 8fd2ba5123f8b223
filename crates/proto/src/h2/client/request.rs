//! A client's request, encoded before its window.

use crate::h2::frame;
use crate::h2::hpack::Blocks;
use crate::http::request::build;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
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
        Self::encoded(scheme, path, host, request, request.body.as_bytes(), &[])
    }

    /// A unary call of gRPC (PROTOCOL-HTTP2.md of gRPC): `path` is `/package.Service/Method`; the headers of
    /// `request` are metadata, and its body is the message in Base64, since a text has no bytes.
    ///
    /// # Errors
    /// As [`Self::new`], or the body is no Base64.
    pub fn grpc(scheme: &str, path: &str, host: &str, request: &Request) -> Result<Self, Refusal> {
        let message = STANDARD
            .decode(&request.body)
            .map_err(|e| Refusal::BadSpec(format!("\"request.body\" of a call of gRPC is Base64: {e}")))?;
        let metadata =
            Request { method: Some("POST".into()), headers: request.headers.clone(), ..Request::default() };
        let fields = [("content-type", "application/grpc"), ("te", "trailers")];
        Self::encoded(scheme, path, host, &metadata, &prefixed(&message), &fields)
    }

    fn encoded(
        scheme: &str,
        path: &str,
        host: &str,
        request: &Request,
        body: &[u8],
        more: &[(&str, &str)],
    ) -> Result<Self, Refusal> {
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
        // A message of gRPC says its own length.
        let is_kept = |name: &str| more.is_empty() || name != "content-length";
        fields.extend(regular.filter(|(name, _)| !OF_A_CONNECTION.contains(name) && is_kept(name)));
        fields.extend(more);
        let blocks = Blocks::new(&fields);
        if blocks.longest() > frame::LONGEST {
            let most = frame::LONGEST;
            return Err(Refusal::BadSpec(format!("\"request\" has more than {most} bytes of headers")));
        }
        Ok(Self { blocks, body: body.into(), is_head: method == "HEAD" })
    }

    pub fn body(&self) -> &[u8] {
        &self.body
    }
}

/// A message of gRPC as it is in a body: not compressed, its length, its bytes.
pub fn prefixed(message: &[u8]) -> Vec<u8> {
    [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat()
}

/// Fields of HTTP/1.1 that have no meaning here (RFC 9113 section 8.2.2), and the name of the host, which is
/// `:authority`.
const OF_A_CONNECTION: [&str; 7] =
    ["host", "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "te"];
