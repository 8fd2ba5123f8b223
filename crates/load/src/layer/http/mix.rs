//! The requests of a client, built before its window.

use super::verify::Verifier;
use crate::layer::order::Order;
use crate::refusal::Refusal;
use linerate_contract::{Expect, Request, Spec};
use linerate_proto::http::request;
use linerate_proto::http::vary::{Varying, varies};
use std::sync::Arc;

const IDEMPOTENT: &[&str] = &["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"];

/// A request, and what answers it.
#[derive(Debug, Clone)]
pub(super) struct Kind {
    /// Where it is among the bytes of all.
    pub(super) start: usize,
    pub(super) length: usize,
    /// The response to HEAD has a length and no body.
    pub(super) bodiless: bool,
    /// The request may be sent twice (RFC 9110 section 9.2.2).
    pub(super) idempotent: bool,
    pub(super) verifier: Verifier,
    /// The bytes of the request are others each time.
    pub(super) varying: Option<Arc<Varying>>,
}

/// A thread's requests. `SEVERAL`: more than one; the code for one then has no choice in it.
#[derive(Debug, Clone)]
pub(super) struct Mix<const SEVERAL: bool> {
    first: Kind,
    all: Box<[Kind]>,
    pub(super) order: Order,
}

impl<const SEVERAL: bool> Mix<SEVERAL> {
    /// The requests of `spec`, and their bytes one after the other.
    ///
    /// # Errors
    /// A request that HTTP/1.1 cannot carry, or weights that make no order.
    pub(super) fn new(spec: &Spec, persistent: bool) -> Result<(Self, Vec<u8>), Refusal> {
        let common = spec.request.clone().unwrap_or_default();
        let host = common.host.clone().or_else(|| spec.connect.map(|address| address.to_string()));
        let host = host.unwrap_or_else(|| "localhost".into());
        let mut bytes = Vec::new();
        let mut add = |path: &str, request: &Request, expect: Option<Expect>| {
            let host = request.host.as_deref().unwrap_or(&host);
            let (start, built) = (bytes.len(), request::build(path, host, persistent, request)?);
            bytes.extend(&built);
            let method = request.method.as_deref().unwrap_or("GET");
            let bodiless = method == "HEAD";
            let idempotent = IDEMPOTENT.contains(&method);
            let varying = varies(path, request).then(|| Varying::new(&built, &request.body));
            Ok(Kind {
                start,
                length: built.len(),
                bodiless,
                idempotent,
                verifier: Verifier::new(expect)?,
                varying: varying.transpose()?.map(Arc::new),
            })
        };
        let all: Vec<Kind> = match &spec.requests[..] {
            [] => vec![add(spec.path.as_deref().unwrap_or("/"), &common, spec.expect)?],
            several => several
                .iter()
                .map(|one| add(&one.path, &one.request, one.expect))
                .collect::<Result<_, Refusal>>()?,
        };
        Ok((Self { first: all[0].clone(), all: all.into(), order: Order::new(spec)? }, bytes))
    }

    /// The request with this number, of several.
    #[inline]
    pub(super) fn kind(&mut self, number: Option<u32>) -> &mut Kind {
        if SEVERAL { &mut self.all[number.unwrap_or(0) as usize] } else { &mut self.first }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::order::tests::weighted;
    use linerate_contract::{Layer, Role, Workload};

    #[test]
    fn each_request_has_its_own_bytes_and_the_host_of_all() {
        let mut spec = Spec::new(Role::Client, Layer::Http, Workload::Rr);
        spec.request = Some(Request { host: Some("shop".into()), ..Request::default() });
        spec.requests = weighted(&[1, 1]);
        spec.requests[1].request.method = Some("HEAD".into());
        let (mut mix, bytes) = Mix::<true>::new(&spec, true).unwrap();
        let text = |kind: &Kind| String::from_utf8_lossy(&bytes[kind.start..][..kind.length]).into_owned();
        assert_eq!(text(mix.kind(Some(0))), "GET /0 HTTP/1.1\r\nHost: shop\r\n\r\n");
        assert_eq!(text(mix.kind(Some(1))), "HEAD /1 HTTP/1.1\r\nHost: shop\r\n\r\n");
        assert!(mix.kind(Some(1)).bodiless && !mix.kind(Some(0)).bodiless);
    }
}
