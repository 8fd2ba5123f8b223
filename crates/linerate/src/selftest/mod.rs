//! The selftest: ground truth of a fault injector, the engine's measurement, and the allowed difference.
//!
//! Each case is a fault injector (crates/natives, `*_faults`) that delays, drops or fails in a
//! defined way and reports exactly what it did, and an ordinary client. The ground truth is what the injector
//! did and not what was requested: the sample that it drew, with the lateness of its own timers. The
//! remaining difference is the engine's error.
//!
//! A client without a CPU is late through no fault of the engine. A row is judged if the client lost too
//! little of its time to put it out of bounds ([`lost`]); a case with other rows is measured again. Neither
//! rule looks at values.

pub mod cost;
pub mod lost;
pub mod path;
#[cfg(test)]
mod tests;

use linerate_analysis::selftest::{Bound, Row, Unit};
use linerate_contract::{Arrival, Counts, Done, ErrorKind, Layer, Nanos, Recorder, Role, Spec, Workload};
use std::collections::BTreeSet;

/// As in the report: p99.99 needs tens of thousands of samples, which the default duration provides.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];
/// Bound of a percentile. It includes two passes through the loopback, which the injector cannot measure:
/// 0.02 to 0.05 ms on an idle machine, so with delays of 10 ms and more half of the bound remains for the
/// engine.
const PERCENTILE_BOUND: f64 = 0.01;
/// Nanoseconds; smaller percentiles have no bound, because the path dominates them. Those of short delays
/// have bounds of their own.
const JUDGED_FROM: f64 = 10_000_000.0;
/// Nanoseconds: bounds of p50 and p99 of delays below 10 ms, once the way through the loopback is added to
/// the ground truth. Lancet reports its errors at this scale (Kogias et al., USENIX ATC 2019).
const SHORT_P50: f64 = 5_000.0;
const SHORT_P99: f64 = 10_000.0;
/// Nanoseconds; a larger delay of sending counts as late on an idle machine.
const DELAY_BOUND: f64 = 50_000.0;
const RATE_BOUND: f64 = 0.001;
const STALL_BOUND: f64 = 0.02;
/// Requests per second, and enough connections that none waits for one: of 25 ms each, 100 are under way.
const RATE: f64 = 4_000.0;
const CONNECTIONS: u32 = 400;
/// Datagrams per second; at this rate the default socket buffer suffices while the reader waits 25 ms for a
/// CPU, so that only injected losses occur.
const DATAGRAM_RATE: f64 = 10_000.0;
/// The injected stall, which an open loop must not omit, and its period.
const STALL: Nanos = Nanos(100_000_000);
const PERIOD: Nanos = Nanos(1_000_000_000);

/// One measurement of the test.
#[derive(Debug, Clone)]
pub struct Case {
    /// The part that the injector cannot see of a response time.
    way: Way,
    pub name: &'static str,
    pub about: &'static str,
    pub server: Spec,
    pub client: Spec,
    judge: fn(&Case, &Done, &Done) -> Vec<Row>,
}

/// The way of a message and its response through the loopback, without a wake-up ([`cost::way`]).
/// Nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    /// The median over one pair of sockets, one message after the other.
    pub least: f64,
    /// Over as many pairs as a case has connections, in turn and at its pace.
    pub p50: f64,
    pub p99: f64,
}

/// Every case, each `duration` long.
pub fn cases(duration: Nanos, seed: u64, way: Way) -> Vec<Case> {
    let case = |name, about, options: &[(&str, &str)], judge| {
        let mut server = Spec::new(Role::Server, Layer::Http, Workload::Rr);
        server.listen = Some(([127, 0, 0, 1], 0).into());
        (server.size, server.seed) = (128, seed);
        server.options = options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let mut client = Spec::new(Role::Client, Layer::Http, Workload::Rr);
        (client.duration_ns, client.seed) = (Some(duration), seed);
        // The machine's wake-up delays are a row of their own (cost.rs); the injector's are part of its
        // ground truth.
        client.options.insert("spin".into(), "always".into());
        Case { way, name, about, server, client, judge }
    };
    let open = |mut case: Case, rate, arrival| {
        (case.client.rate, case.client.arrival, case.client.connections) = (Some(rate), arrival, CONNECTIONS);
        case
    };
    let mut errors =
        case("errors", "5 % of requests fail, in five ways", &[("errors", "0.05")], judge_errors);
    // Limited by number only: requests in flight at the end of a time are answered but not counted.
    (errors.client.duration_ns, errors.client.operations, errors.client.connections) =
        (None, Some(20_000), 8);
    let mut loss = case(
        "loss",
        "3 % of datagrams lost, 1 % duplicated, 1 % reordered",
        &[("loss", "0.03"), ("duplicate", "0.01"), ("reorder", "0.01")],
        judge_loss,
    );
    for spec in [&mut loss.server, &mut loss.client] {
        (spec.layer, spec.workload, spec.size) = (Layer::Udp, Workload::Stream, 128);
    }
    loss.client.rate = Some(DATAGRAM_RATE);
    let mut cap = case("cap", "at most 5,000 responses per second", &[("cap", "5000")], judge_cap);
    cap.client.connections = 16;
    // The injector does not sleep either: its first calls after a sleep take 10 to 30 us, which are in no
    // ground truth. Fixed delays alone: a percentile of a wide distribution moves by the mean of every
    // disturbance.
    let short = |name, about, delay| {
        let case = case(name, about, &[("delay", delay), ("spin", "always")], judge_short);
        open(case, RATE, Arrival::Constant)
    };
    let delayed = |name, about, delay, arrival| {
        open(case(name, about, &[("delay", delay)], judge_delays), RATE, arrival)
    };
    let stall = case(
        "stall",
        "no response during 100 ms of each second",
        &[("stall", "100000 1000000")],
        judge_stall,
    );
    vec![
        short("fixed, 100 µs", "each response after 100 µs", "fixed 100"),
        short("fixed, 1 ms", "each response after 1 ms", "fixed 1000"),
        short("fixed, 5 ms", "each response after 5 ms", "fixed 5000"),
        delayed("fixed", "each response after 20 ms", "fixed 20000", Arrival::Constant),
        delayed("uniform", "each response after 10 to 40 ms", "uniform 10000 40000", Arrival::Poisson),
        delayed(
            "exponential",
            "each response after 10 ms plus 5 ms on average",
            "exponential 10000 5000",
            Arrival::Poisson,
        ),
        delayed(
            "bimodal",
            "95 % of responses after 15 ms, 5 % after 100 ms",
            "bimodal 15000 100000 0.05",
            Arrival::Constant,
        ),
        open(stall, 1_000.0, Arrival::Constant),
        errors,
        cap,
        loss,
    ]
}

impl Case {
    /// Compares the ground truth with the measurement.
    pub fn judge(&self, server: &Done, client: &Done) -> Vec<Row> {
        (self.judge)(self, server, client)
    }
}

fn percentiles(truth: &Counts, measured: &Counts, bound: impl Fn(f64, f64) -> Bound) -> Vec<Row> {
    // An absent histogram counts as empty: its row shows 0 and fails.
    let at = |counts: &Counts, percent| counts.percentile(percent).unwrap_or(0) as f64;
    let row = |percent| {
        let truth = at(truth, percent);
        let (what, measured, bound) = (format!("p{percent}"), at(measured, percent), bound(percent, truth));
        // Operations that are due while the client has no CPU are late. They are fewer than half of those
        // beyond the percentile.
        let tolerates = (1.0 - percent / 100.0) / 2.0;
        Row { what, truth, measured, unit: Unit::Nanos, bound, tolerates }
    };
    PERCENTILES.into_iter().map(row).collect()
}

/// At most this share of what is long enough for the path to be a small part of it.
fn share(share: f64) -> impl Fn(f64, f64) -> Bound {
    move |_, truth| if truth < JUDGED_FROM { Bound::None } else { Bound::Share(share) }
}

fn counted(what: &str, truth: u64, measured: u64) -> Row {
    Row {
        what: what.into(),
        truth: truth as f64,
        measured: measured as f64,
        unit: Unit::Count,
        bound: Bound::Exact,
        tolerates: f64::INFINITY,
    }
}

fn judge_delays(_: &Case, server: &Done, client: &Done) -> Vec<Row> {
    delays(server, client, &latency(server), share(PERCENTILE_BOUND))
}

/// With the way through the loopback, which is no small part of a short delay.
fn judge_short(case: &Case, server: &Done, client: &Done) -> Vec<Row> {
    let Way { least, p50, p99 } = case.way;
    // Recorded as the client records: the steps of the histogram are 4 us at 5 ms.
    let mut truth = Recorder::default();
    for (value, count) in latency(server).pairs {
        (0..count).for_each(|_| truth.record(value + p50 as u64));
    }
    delays(server, client, &truth.counts(), |percent, _| {
        let bound = |bound: f64, way: f64| {
            if way - least <= bound { Bound::Within(bound) } else { Bound::Unknown(bound) }
        };
        match percent {
            50.0 => bound(SHORT_P50, p50),
            99.0 => bound(SHORT_P99, p99),
            _ => Bound::None,
        }
    })
}

fn latency(done: &Done) -> Counts {
    done.latency.clone().unwrap_or_default()
}

fn delays(server: &Done, client: &Done, truth: &Counts, bound: impl Fn(f64, f64) -> Bound) -> Vec<Row> {
    let mut rows = vec![counted("responses", server.operations, client.operations)];
    rows.extend(percentiles(truth, &latency(client), bound));
    if let Some(schedule) = &client.schedule {
        rows.push(Row {
            what: "send delay, p99".into(),
            truth: 0.0,
            measured: schedule.delay.percentile(99.0).unwrap_or(0) as f64,
            unit: Unit::Nanos,
            bound: Bound::Above(DELAY_BOUND),
            tolerates: 0.005,
        });
    }
    rows
}

/// The ground truth is computed from the schedule and the stalls alone, so that a client that sends nothing
/// during a stall cannot hide it. Stalls count from the server's first request, which is the client's first
/// operation.
fn judge_stall(case: &Case, server: &Done, client: &Done) -> Vec<Row> {
    let gap = 1e9 / case.client.rate.unwrap_or(1.0);
    let number = client.operations + client.errors.total();
    let offset = client.start_ns.0 as f64 - server.start_ns.0 as f64;
    let mut truth: Vec<u64> = (0..number)
        .map(|n| {
            let at = (n as f64 * gap + offset).max(0.0) as u64 % PERIOD.0;
            STALL.0.saturating_sub(at)
        })
        .collect();
    truth.sort_unstable();
    let counts = Counts {
        min: truth.first().copied().unwrap_or(0),
        max: truth.last().copied().unwrap_or(0),
        pairs: truth.into_iter().map(|value| (value, 1)).collect(),
    };
    let mut rows = vec![counted("responses", server.operations, client.operations)];
    rows.extend(percentiles(&counts, &latency(client), share(STALL_BOUND)));
    rows
}

fn judge_errors(_: &Case, server: &Done, client: &Done) -> Vec<Row> {
    let failed = |done: &Done, kind: &ErrorKind| done.errors.0.get(kind).copied().unwrap_or(0);
    // On a connection that has answered before, such a request is sent again, and has not failed.
    let unanswered = [ErrorKind::Reset, ErrorKind::EmptyResponse];
    let ended =
        |done: &Done| done.closed_idle + unanswered.iter().map(|kind| failed(done, kind)).sum::<u64>();
    let mut rows = vec![
        counted("successful responses", server.operations, client.operations),
        counted("closed or reset before a response", ended(server), ended(client)),
    ];
    let kinds = server.errors.0.keys().chain(client.errors.0.keys());
    let kinds: BTreeSet<_> = kinds.filter(|kind| !unanswered.contains(kind)).collect();
    rows.extend(kinds.iter().map(|kind| counted(&kind.name(), failed(server, kind), failed(client, kind))));
    rows
}

/// The ground truth is the rate of sent responses; on a busy machine it is below the cap.
fn judge_cap(_: &Case, server: &Done, client: &Done) -> Vec<Row> {
    // The first response is sent at once, so n responses take n - 1 gaps.
    let rate = |done: &Done| {
        let seconds = done.end_ns.since(done.start_ns).as_secs_f64();
        if seconds > 0.0 { done.operations.saturating_sub(1) as f64 / seconds } else { 0.0 }
    };
    let (truth, measured) = (rate(server), rate(client));
    let bound = Bound::Share(RATE_BOUND);
    let what = "responses per second".into();
    vec![Row { what, truth, measured, unit: Unit::PerSecond, bound, tolerates: RATE_BOUND / 2.0 }]
}

/// The ground truth is the injected loss, plus the kernel's count of datagrams dropped for a full buffer.
fn judge_loss(_: &Case, server: &Done, client: &Done) -> Vec<Row> {
    let (truth, measured) = (server.datagrams.unwrap_or_default(), client.datagrams.unwrap_or_default());
    let mut rows = vec![
        counted("datagrams sent", truth.sent, measured.sent),
        counted("lost", truth.sent.saturating_sub(truth.received), measured.lost),
        counted("duplicated", truth.duplicates, measured.duplicates),
        counted("reordered", truth.reordered, measured.reordered),
    ];
    let by_kernel = truth.sent.saturating_sub(truth.received + truth.lost);
    if by_kernel > 0 {
        let row = counted("lost by the kernel", by_kernel, by_kernel);
        rows.push(Row { bound: Bound::None, ..row });
    }
    rows
}
