//! Is the instrument right? What is injected, what is measured, and how far apart the two may be.
//!
//! Each case is a server that is slow, wrong or limited in a known way, or behind a path that loses a known share, and tells
//! exactly what it did (crates/load, `layer/http/fault_injector.rs` and `layer/udp/fault_injector.rs`), and a client that knows nothing of it. Truth is what was done and not what was asked for: the
//! sample that the server drew, with its own timers' lateness. What then differs is the instrument.

pub mod cost;

use linerate_contract::{Arrival, Counts, Done, Nanos, Role, Spec};

/// As in the report: p99.99 needs tens of thousands of samples, and has them at the usual length.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];
/// Of a percentile, with what the path itself takes in it: two passes through the loopback, which the server cannot see. Those are
/// 0.02 to 0.05 ms on a quiet machine, so delays of 10 ms and more leave half of the bound to the engine.
const PERCENTILE_BOUND: f64 = 0.01;
/// Percentiles below this are shown and not judged: they are the path's.
const JUDGED_FROM: f64 = 10_000_000.0;
/// Sent later than this after its time is late, on a quiet machine.
const DELAY_BOUND: f64 = 50_000.0;
const RATE_BOUND: f64 = 0.001;
const STALL_BOUND: f64 = 0.02;
/// Slow enough that the socket's usual buffer holds what comes while its reader waits 25 ms for a CPU: what is lost is then
/// what was injected.
const DATAGRAM_RATE: f64 = 10_000.0;
/// Injected in the stall case: what an open loop must not omit.
const STALL: Nanos = Nanos(100_000_000);
const PERIOD: Nanos = Nanos(1_000_000_000);

/// One measurement of the test.
#[derive(Debug, Clone)]
pub struct Case {
    pub name: &'static str,
    pub about: &'static str,
    pub server: Spec,
    pub client: Spec,
    judge: fn(&Case, &Done, &Done) -> Vec<Row>,
}

/// A truth, what was measured, and whether the two agree.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub what: String,
    pub truth: f64,
    pub measured: f64,
    pub unit: Unit,
    pub bound: Bound,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Nanos,
    PerSecond,
    Count,
}

/// How far apart they may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    Exact,
    /// By this share of the truth.
    Share(f64),
    /// By so many nanoseconds above it.
    Above(f64),
    /// It is shown and judged by nobody: it is the machine's.
    None,
}

impl Row {
    /// One that nobody judges.
    #[must_use]
    pub fn shown(what: &str, measured: f64, unit: Unit) -> Self {
        Self { what: what.into(), truth: 0.0, measured, unit, bound: Bound::None }
    }

    #[must_use]
    pub fn holds(&self) -> bool {
        let off = self.measured - self.truth;
        match self.bound {
            Bound::Exact => self.measured == self.truth,
            Bound::Share(share) => off.abs() <= share * self.truth,
            Bound::Above(nanos) => (0.0..=nanos).contains(&off),
            Bound::None => true,
        }
    }
}

/// Every case, each `duration` long.
#[must_use]
pub fn cases(duration: Nanos, seed: u64) -> Vec<Case> {
    let case = |name, about, options: &[(&str, &str)], judge| {
        let mut server = Spec::new(Role::Server, "http", "rr");
        server.listen = Some(([127, 0, 0, 1], 0).into());
        (server.size, server.seed) = (128, seed);
        server.options = options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let mut client = Spec::new(Role::Client, "http", "rr");
        (client.duration_ns, client.seed) = (Some(duration), seed);
        // How late this machine wakes is shown by itself (cost.rs), and is the machine's. The server's wake-ups are in its own truth.
        client.options.insert("busy".into(), "yes".into());
        Case { name, about, server, client, judge }
    };
    // Enough connections that none is waited for: 4,000 a second, 25 ms each, are 100 at a time.
    let open = |mut case: Case, rate, arrival| {
        (case.client.rate, case.client.arrival, case.client.connections) = (Some(rate), arrival, 400);
        case
    };
    let mut errors =
        case("errors", "5 % of requests fail, in five ways", &[("errors", "0.05")], judge_errors);
    // By number alone: what is under way when a time is over has been answered and is not counted.
    (errors.client.duration_ns, errors.client.operations, errors.client.connections) =
        (None, Some(20_000), 8);
    let mut loss = case(
        "loss",
        "3 % of datagrams lost, 1 % twice, 1 % late",
        &[("loss", "0.03"), ("duplicate", "0.01"), ("reorder", "0.01")],
        judge_loss,
    );
    for spec in [&mut loss.server, &mut loss.client] {
        (spec.layer, spec.workload, spec.size) = ("udp".into(), "stream".into(), 128);
    }
    loss.client.rate = Some(DATAGRAM_RATE);
    let mut cap = case("cap", "5,000 answers a second and no more", &[("cap", "5000")], judge_cap);
    cap.client.connections = 16;
    vec![
        open(
            case("fixed", "each answer after 20 ms", &[("delay", "fixed 20000")], judge_delays),
            4_000.0,
            Arrival::Constant,
        ),
        open(
            case("uniform", "after 10 to 40 ms", &[("delay", "uniform 10000 40000")], judge_delays),
            4_000.0,
            Arrival::Poisson,
        ),
        open(
            case(
                "exponential",
                "after 10 ms, and 5 ms more on average",
                &[("delay", "exponential 10000 5000")],
                judge_delays,
            ),
            4_000.0,
            Arrival::Poisson,
        ),
        open(
            case(
                "bimodal",
                "after 15 ms, one in twenty after 100 ms",
                &[("delay", "bimodal 15000 100000 0.05")],
                judge_delays,
            ),
            4_000.0,
            Arrival::Constant,
        ),
        open(
            case("stall", "nothing for 100 ms of each second", &[("stall", "100000 1000000")], judge_stall),
            1_000.0,
            Arrival::Constant,
        ),
        errors,
        cap,
        loss,
    ]
}

impl Case {
    /// Sets truth beside measurement.
    #[must_use]
    pub fn judge(&self, server: &Done, client: &Done) -> Vec<Row> {
        (self.judge)(self, server, client)
    }
}

fn percentiles(truth: &Counts, measured: &Counts, share: f64) -> Vec<Row> {
    // An absent histogram is an empty one: its row then shows 0 and fails.
    let at = |counts: &Counts, percent| counts.percentile(percent).unwrap_or(0) as f64;
    let row = |percent| {
        let truth = at(truth, percent);
        let bound = if truth < JUDGED_FROM { Bound::None } else { Bound::Share(share) };
        let (what, measured) = (format!("p{percent}"), at(measured, percent));
        Row { what, truth, measured, unit: Unit::Nanos, bound }
    };
    PERCENTILES.into_iter().map(row).collect()
}

fn counted(what: &str, truth: u64, measured: u64) -> Row {
    Row {
        what: what.into(),
        truth: truth as f64,
        measured: measured as f64,
        unit: Unit::Count,
        bound: Bound::Exact,
    }
}

fn judge_delays(_: &Case, server: &Done, client: &Done) -> Vec<Row> {
    let (truth, measured) =
        (server.latency.clone().unwrap_or_default(), client.latency.clone().unwrap_or_default());
    let mut rows = vec![counted("answers", server.operations, client.operations)];
    rows.extend(percentiles(&truth, &measured, PERCENTILE_BOUND));
    if let Some(schedule) = &client.schedule {
        rows.push(Row {
            what: "sent after its time, p99".into(),
            truth: 0.0,
            measured: schedule.delay.percentile(99.0).unwrap_or(0) as f64,
            unit: Unit::Nanos,
            bound: Bound::Above(DELAY_BOUND),
        });
    }
    rows
}

/// Truth is computed from the schedule and the stalls alone, so that a client which stops asking during a stall cannot
/// hide it. Stalls count from the server's first request, which is the client's first operation.
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
    let measured = client.latency.clone().unwrap_or_default();
    let mut rows = vec![counted("answers", server.operations, client.operations)];
    rows.extend(percentiles(&counts, &measured, STALL_BOUND));
    rows
}

fn judge_errors(_: &Case, server: &Done, client: &Done) -> Vec<Row> {
    let mut rows = vec![counted("good answers", server.operations, client.operations)];
    let kinds =
        server.errors.0.keys().chain(client.errors.0.keys()).collect::<std::collections::BTreeSet<_>>();
    for kind in kinds {
        let of = |done: &Done| done.errors.0.get(kind).copied().unwrap_or(0);
        rows.push(counted(&kind.name(), of(server), of(client)));
    }
    rows
}

/// Truth is the rate at which answers left; on a busy machine that is below the cap.
fn judge_cap(_: &Case, server: &Done, client: &Done) -> Vec<Row> {
    // The first answer leaves at once, so that n answers last for n - 1 gaps.
    let rate = |done: &Done| {
        let seconds = done.end_ns.since(done.start_ns).as_secs_f64();
        if seconds > 0.0 { done.operations.saturating_sub(1) as f64 / seconds } else { 0.0 }
    };
    let (truth, measured) = (rate(server), rate(client));
    let bound = Bound::Share(RATE_BOUND);
    vec![Row { what: "answers a second".into(), truth, measured, unit: Unit::PerSecond, bound }]
}

/// Truth is what was dropped on purpose, and what the kernel says that it dropped for want of room.
fn judge_loss(_: &Case, server: &Done, client: &Done) -> Vec<Row> {
    let (truth, measured) = (server.datagrams.unwrap_or_default(), client.datagrams.unwrap_or_default());
    let mut rows = vec![
        counted("datagrams sent", truth.sent, measured.sent),
        counted("lost", truth.sent.saturating_sub(truth.received), measured.lost),
        counted("twice", truth.duplicates, measured.duplicates),
        counted("late", truth.reordered, measured.reordered),
    ];
    let by_kernel = truth.sent.saturating_sub(truth.received + truth.lost);
    if by_kernel > 0 {
        let row = counted("of the lost, by the kernel", by_kernel, by_kernel);
        rows.push(Row { bound: Bound::None, ..row });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Datagrams;

    fn done(values: &[u64]) -> Done {
        let pairs = values.iter().map(|v| (*v, 1)).collect();
        let latency = Some(Counts { pairs, min: values[0], max: values[values.len() - 1] });
        Done { operations: values.len() as u64, latency, ..Done::default() }
    }

    #[test]
    fn a_percent_is_within_and_two_are_not() {
        let case = &cases(Nanos(1), 1)[0];
        let truth = done(&[50_000_000; 10]);
        assert!(case.judge(&truth, &done(&[50_490_000; 10])).iter().all(Row::holds));
        assert!(!case.judge(&truth, &done(&[51_000_000; 10])).iter().all(Row::holds));
        assert!(!case.judge(&truth, &done(&[49_000_000; 10])).iter().all(Row::holds));
        assert!(!case.judge(&truth, &done(&[50_000_000; 9])).iter().all(Row::holds));
    }

    #[test]
    fn a_client_that_omits_the_stall_is_caught() {
        let cases = cases(Nanos(1), 1);
        let case = cases.iter().find(|c| c.name == "stall").unwrap();
        let server = done(&[1; 1000]);
        let honest: Vec<u64> =
            (0..1000).map(|n| 100_000_000_u64.saturating_sub(n * 1_000_000).max(20_000)).rev().collect();
        assert!(case.judge(&server, &done(&honest)).iter().all(Row::holds));
        let mut omitting = vec![20_000; 999];
        omitting.push(100_000_000);
        assert!(!case.judge(&server, &done(&omitting)).iter().all(Row::holds));
    }

    #[test]
    fn a_cap_and_counts_are_judged() {
        let cases = cases(Nanos(1), 1);
        let cap = cases.iter().find(|c| c.name == "cap").unwrap();
        let did = |operations| Done { operations, end_ns: Nanos(2_000_000_000), ..Done::default() };
        assert!(cap.judge(&did(10_001), &did(10_005)).iter().all(Row::holds));
        assert!(!cap.judge(&did(10_001), &did(9_900)).iter().all(Row::holds));
        let errors = cases.iter().find(|c| c.name == "errors").unwrap();
        let mut server = Done::default();
        server.errors.add(linerate_contract::ErrorKind::Reset, 3);
        assert!(!errors.judge(&server, &Done::default()).iter().all(Row::holds));
        assert!(errors.judge(&server, &server.clone()).iter().all(Row::holds));
    }

    #[test]
    fn loss_is_exact_and_what_the_kernel_lost_is_said_to_be_its_own() {
        let cases = cases(Nanos(1), 1);
        let case = cases.iter().find(|c| c.name == "loss").unwrap();
        let of = |sent, received, lost| Done {
            datagrams: Some(Datagrams { sent, received, lost, ..Datagrams::default() }),
            ..Done::default()
        };
        let rows = case.judge(&of(1_000, 970, 30), &of(1_000, 970, 30));
        assert!(rows.iter().all(Row::holds) && rows.len() == 4, "{rows:?}");
        assert!(!case.judge(&of(1_000, 970, 30), &of(1_000, 971, 29)).iter().all(Row::holds));
        let rows = case.judge(&of(1_000, 965, 30), &of(1_000, 965, 35));
        assert!(rows.iter().all(Row::holds), "{rows:?}");
        assert_eq!((rows[4].what.as_str(), rows[4].truth), ("of the lost, by the kernel", 5.0));
    }
}
