//! The order of several requests. It has each by its weight and is drawn from the spec's seed: two clients
//! with the same spec send the same sequence.

use crate::random::uniform;
use crate::refusal::Refusal;
use linerate_contract::{Spec, WeightedRequest};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Requests of an order at least, so that it is no short pattern, and at most: all threads read 16 MiB.
const SHORTEST_ORDER: usize = 4 << 10;
const LONGEST_ORDER: u64 = 4 << 20;

/// A thread's place in the order.
#[derive(Debug, Clone)]
pub(super) struct Order {
    numbers: Arc<[u32]>,
    next: usize,
    /// Requests that are sent again, before the next of the order.
    again: Vec<u32>,
}

impl Order {
    /// The order of the requests of `spec`; one that it has alone is the first.
    ///
    /// # Errors
    /// Weights that make no order.
    pub(super) fn new(spec: &Spec) -> Result<Self, Refusal> {
        let numbers = match (&spec.replay[..], &spec.requests[..]) {
            (_, []) => vec![0],
            ([], requests) => numbers(requests, spec.seed)?,
            (replay, _) => replay.iter().map(|(_, number)| *number).collect(),
        };
        Ok(Self { numbers: numbers.into(), next: 0, again: Vec::new() })
    }

    /// The number of the next request.
    #[inline]
    pub(super) fn choose(&mut self) -> u32 {
        if let Some(again) = self.again.pop() {
            return again;
        }
        let chosen = self.numbers[self.next];
        self.next += 1;
        if self.next == self.numbers.len() {
            self.next = 0;
        }
        chosen
    }

    /// The request was not answered, and is sent again.
    #[cold]
    pub(super) fn give_back(&mut self, number: u32) {
        self.again.push(number);
    }
}

/// The numbers of requests that vary, which all threads take from one count.
#[derive(Debug, Clone)]
pub(super) struct Numbering {
    next: Arc<AtomicU64>,
    pub(super) seed: u64,
}

impl Numbering {
    pub(super) fn new(spec: &Spec) -> Self {
        Self { next: Arc::new(AtomicU64::new(1)), seed: spec.seed }
    }

    pub(super) fn next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

/// Numbers of requests, each as often as its weight says.
fn numbers(requests: &[WeightedRequest], seed: u64) -> Result<Vec<u32>, Refusal> {
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
    let once: Vec<u32> = once.collect();
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
pub(in crate::layer) mod tests {
    use super::*;
    use linerate_contract::{Layer, Nanos, Request, Role, Workload};

    /// A GET of `/0`, `/1`, ... with these weights.
    pub(in crate::layer) fn weighted(weights: &[u32]) -> Vec<WeightedRequest> {
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
        let drawn = numbers(&requests, 7).unwrap();
        let count = |number| drawn.iter().filter(|one| **one == number).count();
        assert!(drawn.len() >= SHORTEST_ORDER);
        assert_eq!((count(0), count(1)), (drawn.len() / 5, drawn.len() / 5 * 3));
        assert_eq!(drawn, numbers(&requests, 7).unwrap());
        assert_ne!(drawn, numbers(&requests, 8).unwrap());
        assert!((0..3).all(|number| drawn[..40].contains(&number)), "{:?}", &drawn[..40]);
    }

    #[test]
    fn each_of_many_requests_is_sent_as_often_as_the_others() {
        let mut drawn = numbers(&weighted(&[1; 70_000]), 1).unwrap();
        drawn.sort_unstable();
        assert!(drawn.iter().copied().eq(0..70_000));
    }

    #[test]
    fn a_replay_has_its_own_order() {
        let mut spec = Spec::new(Role::Client, Layer::Http, Workload::Rr);
        spec.requests = weighted(&[1, 9]);
        spec.replay = [1, 0, 1, 1].map(|number| (Nanos(0), number)).to_vec();
        let mut order = Order::new(&spec).unwrap();
        assert!((0..6).map(|_| order.choose()).eq([1, 0, 1, 1, 1, 0]));
    }

    #[test]
    fn weights_that_make_no_order_are_refused() {
        assert!(numbers(&weighted(&[1, 0]), 0).unwrap_err().to_string().contains("at least 1"));
        assert!(numbers(&weighted(&[1, 5_000_000]), 0).unwrap_err().to_string().contains("5000001"));
        assert!(numbers(&weighted(&[5_000_000, 10_000_000]), 0).is_ok());
    }
}
