//! The requests of a client, built before its window; of several, also their order.
//!
//! The order has each request by its weight and is drawn from the spec's seed: two clients with the same spec
//! send the same sequence.

use super::verify::Verifier;
use crate::random::uniform;
use crate::refusal::Refusal;
use linerate_contract::{Expect, Request, Spec, WeightedRequest};
use linerate_proto::http::request;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;
use std::sync::Arc;

/// Requests of an order at least, so that it is no short pattern, and at most: a thread reads all of it.
const SHORTEST_ORDER: usize = 4 << 10;
const LONGEST_ORDER: u64 = 64 << 10;

const IDEMPOTENT: &[&str] = &["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"];

/// A request, and what answers it.
#[derive(Debug, Clone)]
pub(super) struct Kind {
    /// Where it is among the bytes of all.
    pub(super) start: usize,
    pub(super) length: usize,
    /// The answer to HEAD has a length and no body.
    pub(super) bodiless: bool,
    /// It may be sent twice (RFC 9110 section 9.2.2).
    pub(super) idempotent: bool,
    pub(super) verifier: Verifier,
}

/// A thread's requests. `SEVERAL`: more than one; the code for one then has no choice in it.
#[derive(Debug, Clone)]
pub(super) struct Mix<const SEVERAL: bool> {
    first: Kind,
    all: Box<[Kind]>,
    order: Arc<[u16]>,
    next: usize,
    /// Requests that are sent again, before the next of the order.
    again: Vec<u16>,
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
            Ok(Kind { start, length: built.len(), bodiless, idempotent, verifier: Verifier::new(expect)? })
        };
        let all: Vec<Kind> = match &spec.requests[..] {
            [] => vec![add(spec.path.as_deref().unwrap_or("/"), &common, spec.expect)?],
            several => several
                .iter()
                .map(|one| add(&one.path, &one.request, one.expect))
                .collect::<Result<_, Refusal>>()?,
        };
        let order = if SEVERAL { order(&spec.requests, spec.seed)? } else { Vec::new() };
        Ok((
            Self { first: all[0].clone(), all: all.into(), order: order.into(), next: 0, again: Vec::new() },
            bytes,
        ))
    }

    /// The request with this number, of several.
    #[inline]
    pub(super) fn kind(&mut self, number: Option<u16>) -> &mut Kind {
        if SEVERAL { &mut self.all[usize::from(number.unwrap_or(0))] } else { &mut self.first }
    }

    /// The number of the next request.
    #[inline]
    pub(super) fn choose(&mut self) -> u16 {
        if let Some(again) = self.again.pop() {
            return again;
        }
        let chosen = self.order[self.next];
        self.next = (self.next + 1) % self.order.len();
        chosen
    }

    /// The request was not answered, and is sent again.
    #[cold]
    pub(super) fn give_back(&mut self, number: u16) {
        self.again.push(number);
    }
}

/// Numbers of requests, each as often as its weight says.
fn order(requests: &[WeightedRequest], seed: u64) -> Result<Vec<u16>, Refusal> {
    let wrong = |what: String| Err(Refusal::BadSpec(format!("\"requests\": {what}")));
    let common = requests.iter().fold(0, |common, one| divisor(common, one.weight));
    if requests.iter().any(|one| one.weight == 0) {
        return wrong("each \"weight\" must be at least 1".into());
    }
    let weights = || requests.iter().map(|one| one.weight / common);
    let sum: u64 = weights().map(u64::from).sum();
    if sum > LONGEST_ORDER {
        return wrong(format!("the weights add up to {sum}, and may to {LONGEST_ORDER}: round them"));
    }
    let once = (0..).zip(weights()).flat_map(|(number, n)| std::iter::repeat_n(number, n as usize));
    let once: Vec<u16> = once.collect();
    let mut order = once.repeat(SHORTEST_ORDER.div_ceil(once.len()));
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    // Fisher and Yates.
    for last in (1..order.len()).rev() {
        order.swap(last, (uniform(&mut random) * (last + 1) as f64) as usize);
    }
    Ok(order)
}

fn divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Role;

    fn weighted(weights: &[u32]) -> Vec<WeightedRequest> {
        let one = |(weight, number): (&u32, usize)| WeightedRequest {
            path: format!("/{number}"),
            request: Request::default(),
            expect: None,
            weight: *weight,
        };
        weights.iter().zip(0..).map(one).collect()
    }

    #[test]
    fn an_order_has_each_request_by_its_weight_and_is_that_of_its_seed() {
        let requests = weighted(&[200, 600, 200]);
        let drawn = order(&requests, 7).unwrap();
        let count = |number| drawn.iter().filter(|one| **one == number).count();
        assert!(drawn.len() >= SHORTEST_ORDER);
        assert_eq!((count(0), count(1)), (drawn.len() / 5, drawn.len() / 5 * 3));
        assert_eq!(drawn, order(&requests, 7).unwrap());
        assert_ne!(drawn, order(&requests, 8).unwrap());
        assert!((0..3).all(|number| drawn[..40].contains(&number)), "{:?}", &drawn[..40]);
    }

    #[test]
    fn weights_that_make_no_order_are_refused() {
        assert!(order(&weighted(&[1, 0]), 0).unwrap_err().to_string().contains("at least 1"));
        assert!(order(&weighted(&[1, 70_000]), 0).unwrap_err().to_string().contains("70001"));
        assert!(order(&weighted(&[70_000, 140_000]), 0).is_ok());
    }

    #[test]
    fn each_request_has_its_own_bytes_and_the_host_of_all() {
        let mut spec = Spec::new(Role::Client, "http", "rr");
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
