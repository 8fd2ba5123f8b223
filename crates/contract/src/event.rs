//! What a program answers: JSON lines on stdout, one event each.

use crate::{Bytes, Counts, Errors, Nanos};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// One line of a program's standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event {
    /// A server or relay accepts connections at this address.
    Ready { address: SocketAddr },
    /// Progress of the interval since the last sample; optional.
    Sample(Sample),
    /// The task is done; the last line of a client.
    Done(Box<Done>),
    /// What the program is; the only line of role `describe`.
    Describe(Describe),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Since the start of the window.
    pub at_ns: Nanos,
    pub operations: u64,
    pub bytes: Bytes,
    /// Operations that failed.
    #[serde(default)]
    pub failed: u64,
    /// Response times of the whole window so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Counts>,
}

/// How an open loop kept its schedule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adherence {
    /// Operations that were sent more than a millisecond after their time, for want of a connection or of CPU.
    pub late: u64,
    /// Operations that were due inside the window and never sent.
    pub unsent: u64,
    /// From the intended to the actual start of each operation.
    pub delay: Counts,
}

/// What a client measured, counted at its end of the wire.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// Operations that succeeded. Failed ones are in `errors` alone.
    pub operations: u64,
    /// Payload bytes of the successful operations.
    pub bytes: Bytes,
    /// The window on `CLOCK_MONOTONIC`: first operation begun, last operation ended.
    pub start_ns: Nanos,
    pub end_ns: Nanos,
    #[serde(default)]
    pub errors: Errors,
    /// Response time of each successful operation in nanoseconds; in an open loop from its intended start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Counts>,
    /// In an open loop: the same from the actual start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Counts>,
    /// In an open loop: how the schedule was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Adherence>,
    /// The part of it until the connection stood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect: Option<Counts>,
    /// CPU time of this process (user and system) inside the window.
    pub cpu_ns: Nanos,
    /// Operations whose content was compared byte by byte or by checksum.
    #[serde(default)]
    pub verified: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Describe {
    pub name: String,
    /// Of the library under test, from the library itself where it tells.
    pub version: String,
    pub roles: Vec<crate::Role>,
    pub layers: Vec<String>,
    pub workloads: Vec<String>,
}

impl Event {
    /// Reads one line.
    ///
    /// # Errors
    /// The parser's sentence, with the start of the line.
    pub fn parse(line: &str) -> Result<Self, String> {
        serde_json::from_str(line).map_err(|e| format!("not an event of the contract: {e}"))
    }

    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("events have string keys only, so they always serialise")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_documented_shape() {
        let ready = Event::Ready { address: "127.0.0.1:80".parse().unwrap() };
        assert_eq!(ready.to_json(), r#"{"event":"ready","address":"127.0.0.1:80"}"#);
        assert_eq!(Event::parse(&ready.to_json()), Ok(ready));
        let done = Event::Done(Box::new(Done { operations: 3, ..Done::default() }));
        assert_eq!(Event::parse(&done.to_json()), Ok(done));
    }
}
