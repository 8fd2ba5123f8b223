//! Responses of a server, by request.

use crate::fields::Method;
use crate::h2::client::prefixed;
use crate::h2::hpack::Blocks;
use std::sync::Arc;

/// `grpc-status: 0` as a literal that no table keeps: a block of its own would shift what is in the table.
pub(super) const RPC_DONE: &[u8] = b"\x00\x0bgrpc-status\x010";

/// The content that is served.
#[derive(Debug, Clone)]
pub struct Content {
    pub(super) head: Blocks,
    body: Arc<[u8]>,
    is_rpc: bool,
}

impl Content {
    /// A page for each GET.
    pub fn page(page: &[u8]) -> Self {
        let size = page.len().to_string();
        let head = Blocks::new(&[
            (":status", "200"),
            ("server", "linerate"),
            ("content-type", "text/plain"),
            ("content-length", &size),
        ]);
        Self { head, body: page.into(), is_rpc: false }
    }

    /// Answers each call of gRPC, whatever its method, with [`rpc_response`] `messages` times.
    pub fn call(page: &[u8], messages: usize) -> Self {
        let head = Blocks::new(&[(":status", "200"), ("content-type", "application/grpc")]);
        Self { head, body: rpc_response(page).repeat(messages).into(), is_rpc: true }
    }

    pub(super) fn answers(&self, method: Method) -> bool {
        if self.is_rpc { method == Method::Post } else { method.is_read() }
    }

    /// The body of a response, and whether trailers follow.
    pub(super) fn response_to(&self, method: Method) -> (&[u8], bool) {
        if self.answers(method) && method != Method::Head { (&self.body, self.is_rpc) } else { (&[], false) }
    }
}

/// The body of a response of gRPC whose message has `page` in its first field, so that clients with a schema
/// can read it (`string page = 1;`).
pub fn rpc_response(page: &[u8]) -> Vec<u8> {
    // Field 1, of bytes that are counted by a number of seven bits in each byte.
    let mut message = vec![0x0a];
    let mut length = page.len();
    while length > 0x7f {
        message.push(0x80 | (length & 0x7f) as u8);
        length >>= 7;
    }
    message.push(length as u8);
    message.extend_from_slice(page);
    prefixed(&message)
}
