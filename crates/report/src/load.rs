//! Output of `linerate load`: the live line, the result as text, and as JSON.

#[cfg(test)]
mod tests;

use super::Style;
use super::load_causes::causes;
use super::load_details;
use super::load_json::{EventsJson, LoadJson, OperationsJson, RunJson};
use super::load_series;
use super::numbers::{count, counted, plain};
use linerate_contract::{
    Adherence, Arrival, Counts, Done, Errors, HandshakeCounts, Nanos, Sample, Spec, StreamCounts, Workload,
};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The percentiles of the table; the histogram below shows the rest.
const PERCENTILES: [f64; 7] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99];
/// Length of the longest bar of the histogram, in characters.
const BAR: usize = 40;

/// More than this share of operations that are late or never sent gets a warning, as failed operations do.
const OFF_SCHEDULE: f64 = 0.01;

/// The names of a protocol's operation and payload.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    pub operation: &'static str,
    pub payload: &'static str,
}

/// A run of the load engine: its spec and its result.
#[derive(Debug, Clone, Copy)]
pub struct LoadResult<'a> {
    pub target: &'a str,
    pub words: Words,
    pub spec: &'a Spec,
    pub done: &'a Done,
    /// One a second, for its document; empty where there is none.
    pub samples: &'a [Sample],
}

impl LoadResult<'_> {
    pub(super) fn seconds(&self) -> f64 {
        self.done.end_ns.since(self.done.start_ns).as_secs_f64()
    }

    pub(super) fn per_second(&self, amount: f64) -> f64 {
        let seconds = self.seconds();
        if seconds > 0.0 { amount / seconds } else { 0.0 }
    }

    /// CPU time of the client without [`Self::polling_us_per_request`].
    pub(super) fn cpu_us_per_request(&self) -> Option<f64> {
        self.each(self.done.cpu_ns.since(self.done.polling_ns.unwrap_or_default()))
    }

    /// In an open loop: time spent polling in place of a sleep, which buys punctuality alone.
    pub(super) fn polling_us_per_request(&self) -> Option<f64> {
        self.done.polling_ns.and_then(|polling| self.each(polling.min(self.done.cpu_ns)))
    }

    fn each(&self, time: Nanos) -> Option<f64> {
        let all = self.done.operations + self.done.errors.total();
        (all > 0).then(|| time.as_micros_f64() / all as f64)
    }
}

/// ` 3.5 s   123,456 requests/s   p50 72 us   p99 130 us   0 failed`
pub fn live(sample: &Sample, every: Nanos, words: Words) -> String {
    let rate = sample.operations as f64 / every.as_secs_f64();
    let percentile = |percent| {
        let value = sample.latency.as_ref().and_then(|counts| counts.supported_percentile(percent));
        value.map_or_else(|| "-".into(), time)
    };
    format!(
        "{:6.1} s   {} {}s/s   p50 {}   p99 {}   p99.9 {}   {} failed",
        sample.at_ns.as_secs_f64(),
        count(rate as u64),
        words.operation,
        percentile(50.0),
        percentile(99.0),
        percentile(99.9),
        count(sample.failed)
    )
}

/// The result as text.
pub fn text(result: &LoadResult<'_>, style: Style) -> String {
    let LoadResult { target, words, spec, done, .. } = result;
    let mut out = String::new();
    let address = spec.connect.map(|address| address.to_string());
    let address = address.or_else(|| spec.unix.clone()).unwrap_or_default();
    let _ = writeln!(
        out,
        "{}\n{address}, {}, {}, {}\n",
        console::style(target).bold().force_styling(style.colour),
        counted(spec.connections, "connection"),
        counted(spec.threads.min(spec.connections), "thread"),
        loop_kind(spec)
    );
    let row = |out: &mut String, name: &str, value: &str| {
        let _ = writeln!(out, "  {name:<12}{value}");
    };
    row(
        &mut out,
        &format!("{}s", words.operation),
        &format!(
            "{} in {} s: {} per second",
            count(done.operations),
            plain(result.seconds()),
            plain(result.per_second(done.operations as f64))
        ),
    );
    row(&mut out, words.payload, &format!("{} MiB/s", plain(result.per_second(done.bytes.as_mib_f64()))));
    row(&mut out, "failed", &failures(&done.errors, done.operations));
    for cause in causes(spec, done) {
        row(&mut out, "", &cause.sentence());
    }
    if !done.statuses.is_empty() {
        let each = done.statuses.iter().map(|(status, n)| format!("{status}: {}", count(*n)));
        row(&mut out, "statuses", &each.collect::<Vec<_>>().join(", "));
    }
    for (status, times) in &done.by_status {
        row(&mut out, "", &load_details::of_status(status, times));
    }
    if let Some(streams) = &done.streams {
        row(&mut out, "streams", &stream_counts(spec, streams));
    }
    if !done.by_address.is_empty() {
        let each = done.by_address.iter().map(|(address, n)| format!("{address} {}", count(*n)));
        row(&mut out, "connections", &each.collect::<Vec<_>>().join(", "));
    }
    if done.closed_idle > 0 {
        let connections = counted(done.closed_idle, "connection");
        let value = format!("{connections} by the server between {}s, which were not lost", words.operation);
        row(&mut out, "closed", &value);
    }
    for (what, n) in &done.accepted {
        row(&mut out, "accepted", &format!("{what}: {} responses", count(*n)));
    }
    if done.in_flight > 0 {
        row(&mut out, "in flight", &format!("{} when the time was over", count(done.in_flight)));
    }
    if let Some(tls) = &done.tls {
        row(&mut out, "TLS", tls);
    }
    if let Some(HandshakeCounts { full, resumed }) = done.handshakes {
        row(&mut out, "handshakes", &format!("{} full, {} resumed", count(full), count(resumed)));
    }
    if let Some(cpu) = result.cpu_us_per_request() {
        let polling = |us| format!(", and {} µs of polling in place of a sleep", plain(us));
        let polling = result.polling_us_per_request().map_or_else(String::new, polling);
        row(&mut out, "client CPU", &format!("{} µs per {}{polling}", plain(cpu), words.operation));
    }
    if let Some(schedule) = &done.schedule {
        let on_time = schedule.delay.supported_percentile(99.0).map_or_else(|| "-".into(), time);
        row(
            &mut out,
            "schedule",
            &format!(
                "99 % sent within {on_time} of their time; {} late (over 1 ms), {} never sent",
                count(schedule.late),
                count(schedule.unsent)
            ),
        );
    }
    if let Some(events) = &done.events {
        row(&mut out, "events", &load_details::events(events, result.seconds()));
    }
    latencies(&mut out, done);
    load_details::rows(&mut out, spec, done);
    for warning in warnings(result) {
        let warning = format!("WARNING: {warning}");
        let _ = writeln!(out, "\n{}", console::style(warning).red().bold().force_styling(style.colour));
    }
    out
}

/// Warnings where an open loop did not do as asked.
fn warnings(result: &LoadResult<'_>) -> Vec<String> {
    let LoadResult { words, spec, done, .. } = result;
    let mut warnings: Vec<String> = delayed(result).into_iter().chain(unserved(result)).collect();
    let Some(Adherence { late, unsent, .. }) = done.schedule else { return warnings };
    let sent = done.operations + done.errors.total() + done.in_flight;
    let tolerated = ((sent + unsent) as f64 * OFF_SCHEDULE) as u64;
    let operation = words.operation;
    let connections = counted(spec.connections, "connection");
    if unsent > tolerated {
        warnings.push(format!(
            "the rate was not reached: {} of {} {operation}s were never sent: {connections} waited (-c)",
            count(unsent),
            count(sent + unsent)
        ));
    }
    if late > tolerated {
        warnings.push(format!(
            "{} of {} {operation}s were sent more than 1 ms late, for lack of a connection (-c) or of CPU \
             (-t); response times include that",
            count(late),
            count(sent)
        ));
    }
    warnings
}

/// The wait of a peer that writes twice, where most responses have it.
fn delayed(result: &LoadResult<'_>) -> Option<String> {
    let LoadResult { words, done, .. } = result;
    done.waits_for_acks().map(|each| {
        let each = plain(each);
        format!(
            "{each} delayed acknowledgements of 40 ms for each {0}: the server sends a response in small \
             writes and waits in between; TCP_NODELAY or one write is the remedy",
            words.operation
        )
    })
}

/// The connections that a server keeps waiting for ever.
fn unserved(result: &LoadResult<'_>) -> Option<String> {
    let LoadResult { spec, done, .. } = result;
    let served = done.served_of(spec.connections)?;
    Some(format!("the server takes {}", at_a_time(served, spec.connections)))
}

/// The number of connections that a server takes at a time while others wait, and the next step.
pub(super) fn at_a_time(served: u32, connections: u32) -> String {
    let number = if served == 1 { "one".into() } else { served.to_string() };
    format!("{number} of {connections} connections at a time and keeps the others waiting: -c {served}")
}

pub(super) fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

pub(super) fn loop_kind(spec: &Spec) -> String {
    let keep = if spec.workload == Workload::Crr { ", a new connection for each request" } else { "" };
    let spin = match spec.options.get("spin").map(String::as_str) {
        None => String::new(),
        Some("always") => ", threads never sleep".into(),
        Some(micros) => format!(", threads poll for up to {micros} µs before they sleep"),
    };
    let keep = format!("{keep}{spin}");
    match (spec.rate, spec.arrival) {
        (None, _) => format!("closed loop{keep}{}", batching(spec)),
        (Some(rate), Arrival::Constant) => format!("open loop, {} per second{keep}", plain(rate)),
        (Some(rate), Arrival::Poisson) => {
            format!("open loop, Poisson arrivals, {} per second{keep}", plain(rate))
        }
        (Some(rate), Arrival::Ramp) => format!("open loop, ramp up to {} per second{keep}", plain(rate)),
    }
}

/// Pipelining and batching of a closed loop.
fn batching(spec: &Spec) -> String {
    let option = |name: &str, words: &dyn Fn(&str) -> String| {
        spec.options.get(name).map_or_else(String::new, |value| words(value))
    };
    let requests = option("pipeline", &|n| format!(", {n} requests pipelined"))
        + &option("streams", &|n| format!(", {n} streams on each connection"));
    let responses = option("coalesce_us", &|us| format!(", responses batched for up to {us} µs"));
    requests + &responses
}

/// `100 at once on a connection, of 250 asked for; 40 messages received; GOAWAY no_error 3`
fn stream_counts(spec: &Spec, streams: &StreamCounts) -> String {
    let asked = spec.option("streams").and_then(|n| n.parse().ok()).unwrap_or(1);
    let mut text = format!("{} at once on a connection", count(streams.most.into()));
    if streams.most < asked {
        text += &format!(", of {} asked for", count(asked.into()));
    }
    if streams.messages > 0 {
        text += &format!("; {} messages received", count(streams.messages));
    }
    for (frame, counts) in [("GOAWAY", &streams.goaways), ("RST_STREAM", &streams.resets)] {
        counts.iter().for_each(|(code, n)| text += &format!("; {frame} {code} {}", count(*n)));
    }
    text
}

/// `12 of 10,000 (0.12 %): reset 10, timeout 2`
pub(super) fn failures(errors: &Errors, good: u64) -> String {
    let (failed, all) = (errors.total(), errors.total() + good);
    if failed == 0 {
        return "none".into();
    }
    let share = plain(failed as f64 / all as f64 * 100.0);
    format!("{} of {} ({share} %): {}", count(failed), count(all), by_kind(errors))
}

/// `reset 10, timeout 2`
pub(super) fn by_kind(errors: &Errors) -> String {
    let kinds = errors.0.iter().map(|(kind, n)| format!("{} {}", kind.name(), count(*n)));
    kinds.collect::<Vec<_>>().join(", ")
}

fn latencies(out: &mut String, done: &Done) {
    let Some(latency) = done.latency.as_ref().filter(|counts| counts.total() > 0) else { return };
    let mut columns = vec![(if done.service.is_some() { "response" } else { "latency" }, latency)];
    columns.extend(done.service.as_ref().map(|counts| ("service", counts)));
    columns.extend(done.first_byte.as_ref().map(|counts| ("first byte", counts)));
    let mut line = |name: &str, cells: Vec<String>| {
        let cells: String = cells.iter().map(|cell| format!("{cell:>12}")).collect();
        let _ = writeln!(out, "  {name:>10}{cells}");
    };
    let each = |of: &dyn Fn(&Counts) -> String| columns.iter().map(|(_, counts)| of(counts)).collect();
    line("", columns.iter().map(|(name, _)| (*name).to_owned()).collect());
    line("mean", each(&|counts| counts.mean().map_or_else(|| "-".into(), |ns| time(ns as u64))));
    line("min", each(&|counts| time(counts.min)));
    for percent in PERCENTILES.into_iter().filter(|p| latency.supported_percentile(*p).is_some()) {
        let at = |counts: &Counts| counts.percentile(percent).map_or_else(|| "-".into(), time);
        line(&format!("{percent} %"), each(&at));
    }
    line("max", each(&|counts| time(counts.max)));
    if done.service.is_some() {
        out.push_str("  response: from the time at which a request was due; service: from sending it\n");
    }
    out.push('\n');
    histogram(out, latency);
}

/// A bar for each power of two: latencies of a server span decades.
fn histogram(out: &mut String, latency: &Counts) {
    let mut octaves: BTreeMap<u32, u64> = BTreeMap::new();
    for (value, n) in &latency.pairs {
        *octaves.entry(value.max(&1).ilog2()).or_default() += n;
    }
    let most = octaves.values().copied().max().unwrap_or(1);
    let (Some(low), Some(high)) = (octaves.keys().next(), octaves.keys().last()) else { return };
    for octave in *low..=*high {
        let n = octaves.get(&octave).copied().unwrap_or(0);
        // At least one character, so that a single slow response is visible.
        let bar = (n as f64 / most as f64 * BAR as f64).ceil() as usize;
        let share = plain(n as f64 / latency.total() as f64 * 100.0);
        let end = time(1_u64.checked_shl(octave + 1).unwrap_or(u64::MAX));
        let _ = writeln!(out, "  {:>10}  {:<BAR$} {share:>7} %", format!("< {end}"), "#".repeat(bar));
    }
}

/// `72.3 µs`, `1.20 ms`: three digits.
pub fn time(nanos: u64) -> String {
    super::times::time(nanos as f64 / 1e3)
}

/// `linerate.load/1`.
pub fn json(result: &LoadResult<'_>) -> String {
    LoadJson::Operations(Box::new(operations_json(result))).text()
}

pub(super) fn operations_json<'a>(result: &LoadResult<'a>) -> OperationsJson<'a> {
    let LoadResult { target, spec, done, .. } = result;
    OperationsJson {
        schema: "linerate.load/1",
        url: target,
        seconds: result.seconds(),
        requests_per_second: result.per_second(done.operations as f64),
        mib_per_second: result.per_second(done.bytes.as_mib_f64()),
        failed: done.errors.total(),
        closed_idle: done.closed_idle,
        by_address: &done.by_address,
        in_flight: done.in_flight,
        statuses: &done.statuses,
        by_status_us: done.by_status.iter().map(|(status, times)| (&**status, percentiles(times))).collect(),
        streams: done.streams.as_ref(),
        client_cpu_us_per_request: result.cpu_us_per_request(),
        client_polling_us_per_request: result.polling_us_per_request(),
        latency_us: done.latency.as_ref().map(percentiles),
        service_us: done.service.as_ref().map(percentiles),
        first_byte_us: done.first_byte.as_ref().map(percentiles),
        events: done.events.as_ref().map(|events| EventsJson::new(events, result.seconds())),
        by_request: load_details::by_request(spec, done),
        send_delay_us: done.schedule.as_ref().map(|s| percentiles(&s.delay)),
        warnings: warnings(result),
        by_second: load_series::of_operations(done, result.samples),
        run: RunJson::new(spec, done),
    }
}

/// The percentiles that at least one value lies beyond.
pub(super) fn percentiles(counts: &Counts) -> BTreeMap<&'static str, f64> {
    let mut all = BTreeMap::new();
    let Some(mean) = counts.mean() else { return all };
    all.insert("mean", mean / 1e3);
    all.insert("min", micros(counts.min));
    all.insert("max", micros(counts.max));
    for (name, percent) in
        [("p50", 50.0), ("p90", 90.0), ("p95", 95.0), ("p99", 99.0), ("p999", 99.9), ("p9999", 99.99)]
    {
        all.extend(counts.supported_percentile(percent).map(|value| (name, micros(value))));
    }
    all
}
