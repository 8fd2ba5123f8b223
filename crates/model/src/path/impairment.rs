//! Impairments of a link, for the packets of one direction. A new kind is a key and a field here, and the
//! work of both means in the lab (`agent/wire/`).

use super::units::{self, BitRate, Share};
use linerate_contract::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The names of the fields: keys of a suite's path, of `up` and `down` in it, and names of axes.
pub const KEYS: [&str; 7] = ["delay", "jitter", "loss", "burst", "rate", "queue", "reorder"];
/// A queue of the bandwidth-delay product at the round trip that the rule for router buffers assumes, where a
/// suite sets none: half of it would cost a single flow of TCP a tenth of a slow rate.
const QUEUE_TIME: Nanos = Nanos(100_000_000);
/// The initial window of TCP (RFC 6928) fits into any queue.
const LEAST_QUEUE: Bytes = Bytes(15_140);

/// In this order: loss, rate with its queue, delay. All zero: packets pass the same means, unchanged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Impairment {
    #[serde(skip_serializing_if = "is_zero")]
    pub delay: Nanos,
    /// Each delay is drawn evenly from `delay - jitter` to `delay + jitter`, so packets can overtake.
    #[serde(skip_serializing_if = "is_zero")]
    pub jitter: Nanos,
    #[serde(skip_serializing_if = "Share::is_zero")]
    pub loss: Share,
    /// Mean number of packets lost in a row (Gilbert's model); `None`: each is lost independently.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<f64>,
    /// Rate of frames, with their 14 bytes of Ethernet header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// Bytes that wait for the rate; what arrives beyond is dropped. Only with a rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Bytes>,
    /// The share of packets that are not delayed, and so overtake others.
    #[serde(skip_serializing_if = "Share::is_zero")]
    pub reorder: Share,
}

fn is_zero(time: &Nanos) -> bool {
    *time == Nanos::ZERO
}

impl Impairment {
    /// From the text of each of the [`KEYS`] that is set.
    ///
    /// # Errors
    /// The key and what is wrong with its text.
    pub fn read<'a>(text: impl Fn(&str) -> Option<&'a str>) -> Result<Self, (&'static str, String)> {
        let reader = Reader(&text);
        let (delay, jitter) = (reader.or_zero("delay", units::time)?, reader.or_zero("jitter", units::time)?);
        let (loss, reorder) =
            (reader.or_zero("loss", units::share)?, reader.or_zero("reorder", units::share)?);
        let burst = reader.value("burst", |text| {
            let packets = text.parse::<f64>().ok().filter(|packets| (1.0..=1e6).contains(packets));
            packets.ok_or_else(|| format!("`{text}` is not a mean number of packets from 1"))
        })?;
        let rate = reader.value("rate", units::rate)?.flatten();
        let queue = reader.value("queue", units::size)?;
        if jitter > delay {
            return Err(("jitter", "it cannot exceed the delay".into()));
        }
        if !reorder.is_zero() && delay == Nanos::ZERO {
            return Err(("reorder", "packets overtake only those that are delayed: set `delay`".into()));
        }
        // In Gilbert's model the state without loss lasts for one packet at least.
        if burst.is_some_and(|burst| loss.0 > burst / (1.0 + burst)) {
            return Err(("loss", "no such share is possible with losses in bursts of this length".into()));
        }
        let queue = rate.map(|rate| queue.unwrap_or(rate.bytes_in(QUEUE_TIME).max(LEAST_QUEUE)));
        Ok(Self { delay, jitter, loss, burst: burst.filter(|burst| *burst > 1.0), rate, queue, reorder })
    }
}

struct Reader<F>(F);

impl<'a, F: Fn(&str) -> Option<&'a str>> Reader<F> {
    fn value<T>(
        &self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, (&'static str, String)> {
        (self.0)(key).map(|text| parse(text).map_err(|e| (key, e))).transpose()
    }

    fn or_zero<T: Default>(
        &self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, (&'static str, String)> {
        Ok(self.value(key, parse)?.unwrap_or_default())
    }
}

impl fmt::Display for Impairment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if !is_zero(&self.delay) {
            let jitter = (!is_zero(&self.jitter)).then(|| format!(" +- {}", millis(self.jitter)));
            parts.push(format!("{}{} ms", millis(self.delay), jitter.unwrap_or_default()));
        }
        if !self.loss.is_zero() {
            let burst = self.burst.map_or_else(String::new, |burst| format!(" in bursts of {burst}"));
            parts.push(format!("loss {}{burst}", self.loss));
        }
        if let Some(rate) = self.rate {
            let queue = self.queue.map(|Bytes(queue)| format!(" with a queue of {queue} bytes"));
            parts.push(format!("{rate}{}", queue.unwrap_or_default()));
        }
        if !self.reorder.is_zero() {
            parts.push(format!("reordered {}", self.reorder));
        }
        f.write_str(&if parts.is_empty() { "unchanged".into() } else { parts.join(", ") })
    }
}

fn millis(time: Nanos) -> f64 {
    time.0 as f64 / 1e6
}
