//! A program's output: JSON lines on stdout, one event each.

use crate::datagram::Report;
use crate::{Bytes, Causes, Counts, Errors, Nanos, PeerFailures};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::AddAssign;

/// One line of a program's standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event {
    /// A server or relay accepts connections at this address.
    Ready { address: SocketAddr },
    /// Progress of the interval since the last sample; optional.
    Sample(Sample),
    /// A server's `TCP_INFO` at the end of a TCP stream; optional, one for each connection.
    Tcp(TcpInfo),
    /// Faults of the peers of a server so far; optional, at the first of a kind and at the end.
    Peers(PeerFailures),
    /// The task is done; the last line of a client.
    Done(Box<Done>),
    /// The program's description; the only line of role `describe`.
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
    /// Datagrams missing below the highest received number; negative where late ones filled earlier gaps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<i64>,
    /// The transport's current smoothed round-trip time (TCP or KCP).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_us: Option<u64>,
}

/// Datagrams of all flows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Datagrams {
    pub sent: u64,
    /// Good ones, each once.
    pub received: u64,
    /// Sent and not received.
    pub lost: u64,
    /// Received after one that was sent later (RFC 4737).
    #[serde(default)]
    pub reordered: u64,
    #[serde(default)]
    pub duplicates: u64,
    /// Arrived with another length or content.
    #[serde(default)]
    pub damaged: u64,
}

impl Datagrams {
    /// One flow: the datagrams sent, and the server's report.
    #[must_use]
    pub fn of_flow(sent: u64, report: &Report) -> Self {
        Self {
            sent,
            received: report.received,
            lost: sent.saturating_sub(report.received),
            reordered: report.reordered,
            duplicates: report.duplicates,
            damaged: report.damaged,
        }
    }
}

impl AddAssign for Datagrams {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.lost += other.lost;
        self.reordered += other.reordered;
        self.duplicates += other.duplicates;
        self.damaged += other.damaged;
    }
}

/// `TCP_INFO` of both ends when a stream is over, where reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpEnds {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<TcpInfo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<TcpInfo>,
}

/// One end. Several connections: counts are summed, times and windows are those of the longest round trip.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpInfo {
    /// Segments sent again.
    pub retransmits: u64,
    /// Smoothed and smallest round-trip time.
    pub rtt_us: u64,
    #[serde(default)]
    pub min_rtt_us: u64,
    /// Congestion window, in segments.
    pub cwnd: u64,
    /// Bytes sent, retransmissions included, and bytes retransmitted.
    #[serde(default)]
    pub bytes_sent: u64,
    #[serde(default)]
    pub bytes_retransmitted: u64,
}

impl TcpInfo {
    /// Two connections as one.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let longer = if self.rtt_us >= other.rtt_us { self } else { other };
        Self {
            retransmits: self.retransmits + other.retransmits,
            bytes_sent: self.bytes_sent + other.bytes_sent,
            bytes_retransmitted: self.bytes_retransmitted + other.bytes_retransmitted,
            ..longer
        }
    }
}

/// Deviations of an open loop from its schedule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adherence {
    /// Operations sent more than a millisecond late, for lack of a connection or of CPU.
    pub late: u64,
    /// Operations due inside the window and never sent.
    pub unsent: u64,
    /// From the intended to the actual start of each operation.
    pub delay: Counts,
}

/// Handshakes of TLS, before and within the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandshakeCounts {
    pub full: u64,
    /// Handshakes that resumed a session, which are cheaper for both ends.
    pub resumed: u64,
}

impl HandshakeCounts {
    /// Counts one.
    pub fn add(&mut self, is_resumed: bool) {
        *(if is_resumed { &mut self.resumed } else { &mut self.full }) += 1;
    }
}

impl AddAssign for HandshakeCounts {
    fn add_assign(&mut self, other: Self) {
        self.full += other.full;
        self.resumed += other.resumed;
    }
}

/// Events within responses, such as server-sent ones, as they arrived within the window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCounts {
    pub count: u64,
    /// From the beginning of an operation to the first event of its response.
    pub first: Counts,
    /// Between two events of a response; 0 of those that were read together.
    pub gap: Counts,
}

/// The operations of one of several requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestCounts {
    /// Operations that succeeded.
    pub operations: u64,
    #[serde(default)]
    pub errors: Errors,
    /// As that of all operations.
    pub latency: Counts,
}

/// Streams of HTTP/2, with what the server has ended by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamCounts {
    /// The most that were under way on a connection at the same time. A server may allow fewer than asked
    /// for.
    pub most: u32,
    /// gRPC: messages of the calls that succeeded, those after the window included.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub messages: u64,
    /// GOAWAY and RST_STREAM frames received, by code, such as `no_error`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub goaways: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resets: BTreeMap<String, u64>,
}

impl StreamCounts {
    /// Adds those of other connections.
    pub fn merge(&mut self, other: &Self) {
        self.most = self.most.max(other.most);
        self.messages += other.messages;
        for (sum, part) in [(&mut self.goaways, &other.goaways), (&mut self.resets, &other.resets)] {
            part.iter().for_each(|(code, count)| *sum.entry(code.clone()).or_default() += count);
        }
    }
}

/// A client's result, counted at its end of the wire.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// Operations that succeeded. Failed ones are in `errors` alone.
    pub operations: u64,
    /// Payload bytes of the successful operations.
    pub bytes: Bytes,
    /// The window on `CLOCK_MONOTONIC`: from the start of the first operation to the end of `duration_ns`, or
    /// of the last operation where their number ended it.
    pub start_ns: Nanos,
    pub end_ns: Nanos,
    /// Operations that had begun and not ended when the window ended: neither in `operations` nor in
    /// `latency`. One that did not end within the timeout is in `errors` too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub in_flight: u64,
    /// The part of the window that counts, where a client works in turns ([`crate::Alternation`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_ns: Option<Nanos>,
    /// Operations of such a client that succeeded within the window and do not count. They are in
    /// `cpu_ns`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncounted: u64,
    /// Connections that the peer closed without a word while it owed nothing. A request that met the close
    /// was sent again on another connection, and has not failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub closed_idle: u64,
    /// Connections of a closed loop whose first operation had not ended when the window ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unserved: u64,
    /// Acknowledgements of TCP that were sent late in the client's network, by whichever connection: beside
    /// 40 ms in most responses, a peer that waits for them between two writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delayed_acks: Option<u64>,
    /// The longest time within the window, in turns within the part that counts, in which no operation ended,
    /// or in a `stream` no byte moved; of the thread that had the shortest. Absent if not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_ns: Option<Nanos>,
    #[serde(default)]
    pub errors: Errors,
    /// Why the first operation of each kind has failed.
    #[serde(default, skip_serializing_if = "Causes::is_empty")]
    pub causes: Causes,
    /// Oddities of responses that were accepted, by name, with the number of responses.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub accepted: BTreeMap<String, u64>,
    /// Response time of each successful operation in nanoseconds; in an open loop from its intended start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Counts>,
    /// In an open loop: the same from the actual start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Counts>,
    /// HTTP: the time until the first byte of each response that `latency` has, from the same beginning.
    /// Absent where every response arrived at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<Counts>,
    /// HTTP: what arrived within responses, where the spec asks for it (`options.events`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<EventCounts>,
    /// HTTP: operations by the request of the spec's `requests`, in their order; absent where there are more
    /// than a thousand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestCounts>,
    /// In an open loop: deviations from the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Adherence>,
    /// Time until the connection was established.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect: Option<Counts>,
    /// CPU time of this process (user and system) inside the window.
    pub cpu_ns: Nanos,
    /// Operations whose content was compared byte by byte or by checksum.
    #[serde(default)]
    pub verified: u64,
    /// Counted by transports with loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<Datagrams>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpEnds>,
    /// HTTP: responses by status, those after the window included.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub statuses: BTreeMap<String, u64>,
    /// Connections by the address that they went to, where there were several.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_address: BTreeMap<String, u64>,
    /// HTTP: response times by status, of wrong responses too, where there are several or wrong ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_status: BTreeMap<String, Counts>,
    /// HTTP/2: what the streams of all connections have in common.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<StreamCounts>,
    /// Layers with TLS: version, cipher suite, library and its version, read from the connection and the
    /// library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<String>,
    /// TLS: full and resumed handshakes, where they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshakes: Option<HandshakeCounts>,
    /// In an open loop: the part of `cpu_ns` in which threads polled the clock and the sockets in place of a
    /// sleep, until the next operation was due or a response arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polling_ns: Option<Nanos>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Responses of each connection in the mean, with which one that has none is not served.
const MANY_RESPONSES: u64 = 20;
/// The shortest delay of an acknowledgement on Linux (TCP_DELACK_MIN), without the jitter of its clock.
const DELAYED_ACK: Nanos = Nanos(38_000_000);

impl Done {
    /// How many of the connections were served, where the others got nothing at all in a time in which each
    /// could have had many responses: a peer that keeps a thread for each has no more threads.
    #[must_use]
    pub fn served_of(&self, connections: u32) -> Option<u32> {
        let served = u64::from(connections).saturating_sub(self.unserved);
        let is_enough = self.operations >= MANY_RESPONSES * u64::from(connections);
        (self.unserved > 0 && served > 0 && is_enough).then_some(served as u32)
    }

    /// Delayed acknowledgements for each operation, where most operations wait for one: the peer writes
    /// twice, and Nagle's algorithm holds the second write back until the first is acknowledged.
    #[must_use]
    pub fn waits_for_acks(&self) -> Option<f64> {
        let each = self.delayed_acks? as f64 / self.operations as f64;
        let median = self.latency.as_ref()?.percentile(50.0)?;
        (each >= 0.5 && median >= DELAYED_ACK.0).then_some(each)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Describe {
    pub name: String,
    /// Version of the library under test, read from the library where possible.
    pub version: String,
    pub roles: Vec<crate::Role>,
    pub layers: Vec<crate::Layer>,
    pub workloads: Vec<crate::Workload>,
    /// Words of `options.ends` that the program implements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<String>,
}

impl Event {
    /// Reads one line.
    ///
    /// # Errors
    /// The parser's message.
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
        let tcp = Event::Tcp(TcpInfo { retransmits: 2, ..TcpInfo::default() });
        assert_eq!(Event::parse(&tcp.to_json()), Ok(tcp));
        let done = Event::Done(Box::new(Done { operations: 3, ..Done::default() }));
        assert_eq!(Event::parse(&done.to_json()), Ok(done));
    }

    #[test]
    fn operations_in_flight_are_printed_only_where_there_are_some() {
        let line = |in_flight| Event::Done(Box::new(Done { in_flight, ..Done::default() })).to_json();
        assert!(!line(0).contains("in_flight"));
        assert!(line(7).contains(r#""in_flight":7"#));
        assert_eq!(Event::parse(&line(0)), Ok(Event::Done(Box::default())));
    }
}
