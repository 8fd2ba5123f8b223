//! The JSON of `linerate load --json`; its schema is `docs/load.schema.json`.

use super::load_causes::{CauseJson, causes};
use super::load_series::{OperationsSecond, StreamSecond};
use linerate_contract::{Done, Errors, Spec, StreamCounts, Tls};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// The JSON of a load, by the way its operations are counted.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(super) enum LoadJson<'a> {
    Operations(Box<OperationsJson<'a>>),
    Repeats(RepeatsJson<'a>),
    Sweep(SweepJson<'a>),
    Streams(StreamsJson<'a>),
    Datagrams(DatagramsJson<'a>),
}

impl LoadJson<'_> {
    /// Pretty, with a line break at its end.
    pub(super) fn text(&self) -> String {
        serde_json::to_string_pretty(self).expect("keys are strings and all floats are finite") + "\n"
    }
}

/// HTTP requests, or round trips over TCP or WebSocket.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct OperationsJson<'a> {
    /// `linerate.load/1`.
    pub(super) schema: &'static str,
    /// The URL or address of the server.
    pub(super) url: &'a str,
    pub(super) seconds: f64,
    pub(super) requests_per_second: f64,
    pub(super) mib_per_second: f64,
    /// Failed operations, which are not among the others.
    pub(super) failed: u64,
    /// Connections that the server closed while it owed nothing; requests that met the close were sent again.
    pub(super) closed_idle: u64,
    /// Connections by the address that they went to, where the server has several.
    pub(super) by_address: &'a BTreeMap<String, u64>,
    /// Operations that had begun and not ended when the time was over; they are not in the rate.
    pub(super) in_flight: u64,
    /// HTTP: responses by status, those after the time was over included.
    pub(super) statuses: &'a BTreeMap<String, u64>,
    /// HTTP: response times in microseconds by status and percentile, of wrong responses too; empty unless
    /// there are several statuses or wrong responses.
    pub(super) by_status_us: BTreeMap<&'a str, BTreeMap<&'static str, f64>>,
    /// HTTP/2: `most`, the most streams under way on a connection; `messages` of the responses of gRPC; and
    /// the frames `goaways` and `resets` of the server by code.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<BTreeMap<String, serde_json::Value>>"))]
    pub(super) streams: Option<&'a StreamCounts>,
    /// Without the time of polling.
    pub(super) client_cpu_us_per_request: Option<f64>,
    /// Open loop: CPU time of polling in place of a sleep.
    pub(super) client_polling_us_per_request: Option<f64>,
    /// Response times in microseconds, by percentile; in an open loop from the due time.
    pub(super) latency_us: Option<BTreeMap<&'static str, f64>>,
    /// Open loop: from sending.
    pub(super) service_us: Option<BTreeMap<&'static str, f64>>,
    /// HTTP: until the first byte of a response, from where `latency_us` begins; absent where every response
    /// arrived at once.
    pub(super) first_byte_us: Option<BTreeMap<&'static str, f64>>,
    /// HTTP: events within responses (`--events`).
    pub(super) events: Option<EventsJson>,
    /// HTTP: the operations of each of several requests, in their order.
    pub(super) by_request: Vec<RequestJson<'a>>,
    /// Open loop: from the due time to sending.
    pub(super) send_delay_us: Option<BTreeMap<&'static str, f64>>,
    /// Open loop: what was not done as asked.
    pub(super) warnings: Vec<String>,
    /// Results over time; none of the steps of a sweep.
    pub(super) by_second: Vec<OperationsSecond>,
    #[serde(flatten)]
    pub(super) run: RunJson<'a>,
}

/// Events within responses, such as server-sent ones.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct EventsJson {
    pub(super) count: u64,
    pub(super) per_second: f64,
    /// Until the first event of a response, from where its response time begins, in microseconds.
    pub(super) first_us: BTreeMap<&'static str, f64>,
    /// Between two events of a response; 0 of those that were read together.
    pub(super) gap_us: BTreeMap<&'static str, f64>,
}

/// The operations of one of several requests.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct RequestJson<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    /// Operations that succeeded.
    pub(super) operations: u64,
    pub(super) failed: u64,
    /// Failed ones by kind.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, u64>"))]
    pub(super) errors: &'a Errors,
    /// Response times in microseconds, by percentile.
    pub(super) latency_us: BTreeMap<&'static str, f64>,
}

/// One load several times (`--repeat`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct RepeatsJson<'a> {
    /// `linerate.load.repeats/1`.
    pub(super) schema: &'static str,
    /// By name: `requests_per_second`, `client_cpu_us_per_request`, `p50_us`, `p90_us`, `p95_us`, `p99_us`.
    pub(super) medians: BTreeMap<&'static str, MedianJson>,
    pub(super) runs: Vec<OperationsJson<'a>>,
}

/// Open loops at shares of the rate of a closed one (`--sweep`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct SweepJson<'a> {
    /// `linerate.load.sweep/1`.
    pub(super) schema: &'static str,
    pub(super) url: &'a str,
    pub(super) closed_loop_per_second: f64,
    pub(super) steps: Vec<SweepStepJson<'a>>,
    /// With `--at-most`.
    pub(super) highest: Option<HighestJson>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct SweepStepJson<'a> {
    /// A share of the closed loop's rate.
    pub(super) share: f64,
    #[serde(flatten)]
    pub(super) load: OperationsJson<'a>,
}

/// The highest rate at which a percentile is at most a bound: between `passes` and `fails`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct HighestJson {
    pub(super) percentile: f64,
    pub(super) most_us: f64,
    /// False: the two are not close, or one is not known.
    pub(super) is_decided: bool,
    pub(super) passes_per_second: Option<f64>,
    pub(super) fails_per_second: Option<f64>,
}

/// A median of several runs.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct MedianJson {
    pub(super) median: f64,
    /// Absent with fewer than six runs.
    pub(super) ci95: Option<[f64; 2]>,
    pub(super) n: u32,
}

/// Bytes over TCP or WebSocket.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct StreamsJson<'a> {
    /// `linerate.load.streams/1`.
    pub(super) schema: &'static str,
    pub(super) streams: Vec<StreamJson<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct StreamJson<'a> {
    /// `to server` or `from server`.
    pub(super) direction: &'static str,
    /// Payload, counted at the receiver.
    pub(super) gbit_per_second: f64,
    pub(super) by_second: Vec<StreamSecond>,
    #[serde(flatten)]
    pub(super) run: RunJson<'a>,
}

/// Datagrams over UDP, or KCP.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct DatagramsJson<'a> {
    /// `linerate.load.datagrams/1`.
    pub(super) schema: &'static str,
    #[serde(flatten)]
    pub(super) run: RunJson<'a>,
}

/// The engine's input and output.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct RunJson<'a> {
    /// The spec, in the fields of the contract (sdk/CONTRACT.md, "Input"), without private keys.
    #[serde(serialize_with = "without_key")]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, serde_json::Value>"))]
    pub(super) spec: &'a Spec,
    /// The event `done`, in the fields of the contract (sdk/CONTRACT.md, "Output").
    #[cfg_attr(test, schemars(with = "BTreeMap<String, serde_json::Value>"))]
    pub(super) done: &'a Done,
    /// Why the first operation of each kind has failed.
    causes: Vec<CauseJson>,
}

impl<'a> RunJson<'a> {
    pub(super) fn new(spec: &'a Spec, done: &'a Done) -> Self {
        Self { spec, done, causes: causes(spec, done) }
    }
}

fn without_key<S: Serializer>(spec: &&Spec, serializer: S) -> Result<S::Ok, S::Error> {
    let tls = spec.tls.clone().map(|tls| Tls { key: String::new(), ..tls });
    Spec { tls, ..(*spec).clone() }.serialize(serializer)
}
