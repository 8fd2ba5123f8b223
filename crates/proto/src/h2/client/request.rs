//! A client's request, encoded before its window.

use crate::fields::{Rendered, RequestList, VaryingMessage};
use crate::h2::frame;
use crate::h2::hpack::{Blocks, WRITING};
use crate::http::vary::{Template, varies};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use linerate_contract::{Refusal, Request};
use std::sync::Arc;

/// A request, for all streams or, of several, for some.
#[derive(Debug, Clone)]
pub struct EncodedRequest {
    pub(super) blocks: Blocks,
    pub(super) body: Arc<[u8]>,
    pub(super) is_head: bool,
    /// The number of the request, where a connection has several: the peer's table then keeps none of them.
    pub(super) number: Option<u32>,
    /// Its fields and its body are others each time.
    varying: Option<Arc<VaryingMessage>>,
}

impl EncodedRequest {
    /// A plain GET unless `request` sets something else; `scheme` is http or https.
    ///
    /// # Errors
    /// A request that HTTP/1.1 cannot carry, or fields that do not fit into a frame.
    pub fn new(scheme: &str, path: &str, host: &str, request: &Request) -> Result<Self, Refusal> {
        let body = varies(path, request).then(|| Template::new(&request.body)).transpose()?;
        Self::encoded((scheme, path, host), request, &request.body, &[], body)
    }

    /// A call of gRPC (PROTOCOL-HTTP2.md of gRPC): `path` is `/package.Service/Method`; the headers of
    /// `request` are metadata, and its body is the message in Base64, since a text has no bytes. The message
    /// is sent `messages` times.
    ///
    /// # Errors
    /// As [`Self::new`], or the body is no Base64.
    pub fn grpc(
        scheme: &str,
        path: &str,
        host: &str,
        request: &Request,
        messages: usize,
    ) -> Result<Self, Refusal> {
        let message = STANDARD
            .decode(&*request.body)
            .map_err(|e| Refusal::BadSpec(format!("\"request.body\" of a call of gRPC is Base64: {e}")))?;
        let metadata =
            Request { method: Some("POST".into()), headers: request.headers.clone(), ..Request::default() };
        let fields = [("content-type", "application/grpc"), ("te", "trailers")];
        let body = prefixed(&message).repeat(messages);
        let varied = varies(path, &metadata).then(|| Template::constant(&body));
        Self::encoded((scheme, path, host), &metadata, &body, &fields, varied)
    }

    fn encoded(
        (scheme, path, host): (&str, &str, &str),
        request: &Request,
        body: &[u8],
        more: &[(&str, &str)],
        varied: Option<Template>,
    ) -> Result<Self, Refusal> {
        let list = RequestList::new(scheme, path, host, request, more)?;
        let blocks = Blocks::new(&list.fields());
        if blocks.longest() > frame::LONGEST {
            let most = frame::LONGEST;
            return Err(Refusal::BadSpec(format!("\"request\" has more than {most} bytes of headers")));
        }
        let varied =
            varied.map(|body| VaryingMessage::new(&[], &list.fields(), body, &WRITING)).transpose()?;
        let varying = varied.map(Arc::new);
        Ok(Self { blocks, body: body.into(), is_head: list.is_head(), number: None, varying })
    }

    /// Whether it is another one each time.
    #[inline]
    pub fn varies(&self) -> bool {
        self.varying.is_some()
    }

    /// Renders one that varies with its number, for [`Client::start_varied`](super::Client::start_varied).
    pub fn render(&self, rendered: &mut Rendered, sequence: u64, seed: u64) {
        if let Some(varying) = &self.varying {
            varying.render(rendered, sequence, seed);
        }
    }

    /// Connections have others, too; this is its place among all.
    pub fn is_one_of_several(&mut self, number: u32) {
        self.number = Some(number);
    }

    #[cfg(test)]
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }
}

/// A message of gRPC as it is in a body: not compressed, its length, its bytes.
pub fn prefixed(message: &[u8]) -> Vec<u8> {
    [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat()
}
