//! Output of `linerate load --stream`: the live line, the result as text, and as JSON.

use super::load::{failures, time};
use super::load_causes::causes;
use super::load_json::{DatagramsJson, LoadJson, RunJson, StreamJson, StreamsJson};
use super::load_series;
use super::numbers::{count, counted, plain};
use linerate_contract::{Bytes, Done, Layer, Nanos, Sample, Spec};
use std::fmt::Write;

const BITS_PER_GBIT: f64 = 1e9;
const NANOS_PER_MICRO: u64 = 1_000;

fn reads(spec: &Spec) -> bool {
    spec.options.get("direction").is_some_and(|direction| direction == "client-reads")
}

fn direction(spec: &Spec) -> &'static str {
    if reads(spec) { "from server" } else { "to server" }
}

/// Whether the server counts what arrives, and reports it at the end.
pub fn has_datagrams(spec: &Spec) -> bool {
    matches!(spec.layer, Layer::Udp | Layer::Kcp)
}

fn gbit(bytes: Bytes, time: Nanos) -> f64 {
    let seconds = time.as_secs_f64();
    if seconds > 0.0 { bytes.0 as f64 * 8.0 / BITS_PER_GBIT / seconds } else { 0.0 }
}

/// Options of `linerate serve` for the peer.
pub fn served(spec: &Spec) -> &'static str {
    if reads(spec) && spec.layer != Layer::Tcp { "--stream --reverse" } else { "--stream" }
}

/// ` 3.5 s   to server 35.2 Gbit/s, round trip 45.0 µs   from server 33.1 Gbit/s, round trip 47.0 µs`
pub fn live(last: &[Option<(&Spec, Sample)>], every: Nanos) -> String {
    let known = || last.iter().flatten();
    let at = known().map(|(_, sample)| sample.at_ns).max().unwrap_or_default();
    let mut line = format!("{:6.1} s", at.as_secs_f64());
    for (spec, sample) in known() {
        let _ = write!(line, "   {} {} Gbit/s", direction(spec), plain(gbit(sample.bytes, every)));
        if let Some(rtt) = sample.rtt_us {
            let _ = write!(line, ", round trip {}", time(rtt * NANOS_PER_MICRO));
        }
    }
    line
}

/// The result as text.
pub fn text(target: &str, runs: &[(Spec, Done)]) -> String {
    let mut out = String::new();
    let Some((first, done)) = runs.first() else { return out };
    if has_datagrams(first) {
        datagrams(&mut out, target, first, done);
        return out;
    }
    let each = if first.layer == Layer::Tcp { "writes" } else { "messages" };
    let mut row = |name: &str, value: String| _ = writeln!(out, "{name:<14}{value}");
    row(
        first.layer.as_str(),
        format!(
            "{target}, {} each way, {each} of {} bytes",
            counted(first.connections, "connection"),
            count(first.size)
        ),
    );
    for (spec, done) in runs {
        let took = done.end_ns.since(done.start_ns);
        let all = done.verified == done.bytes.0 && done.verified > 0;
        let compared = if all { "every byte compared" } else { "not compared" };
        row(
            direction(spec),
            format!(
                "{} Gbit/s: {} bytes in {} s, {compared}",
                plain(gbit(done.bytes, took)),
                count(done.bytes.0),
                plain(took.as_secs_f64())
            ),
        );
        if let Some(info) = done.tcp.and_then(|ends| ends.client) {
            let trip = format!(
                "round trip {}, min {}",
                time(info.rtt_us * NANOS_PER_MICRO),
                time(info.min_rtt_us * NANOS_PER_MICRO)
            );
            // A receiver has no retransmissions or congestion window of interest.
            row(
                "  TCP",
                if reads(spec) {
                    trip
                } else {
                    format!(
                        "{} segments retransmitted, {trip}, congestion window {} segments",
                        count(info.retransmits),
                        count(info.cwnd)
                    )
                },
            );
        }
        if let Some(tls) = &done.tls {
            row("  TLS", tls.clone());
        }
        row("  client CPU", format!("{} s", plain(done.cpu_ns.as_secs_f64())));
        if done.errors.total() > 0 {
            row("  failed", failures(&done.errors, done.operations));
        }
        causes(spec, done).iter().for_each(|cause| row("", cause.sentence()));
    }
    if let [_, _] = runs {
        let sum =
            runs.iter().map(|(_, done)| gbit(done.bytes, done.end_ns.since(done.start_ns))).sum::<f64>();
        row("together", format!("{} Gbit/s", plain(sum)));
    }
    out
}

fn datagrams(out: &mut String, target: &str, spec: &Spec, done: &Done) {
    let took = done.end_ns.since(done.start_ns);
    let mut line = |name: &str, value: String| _ = writeln!(out, "{name:<12}{value}");
    let flows = counted(spec.connections, "flow");
    line(spec.layer.as_str(), format!("{target}, {flows}, {} bytes per send", count(spec.size)));
    let operations = done.operations as f64 / took.as_secs_f64().max(f64::MIN_POSITIVE);
    line(
        "received",
        format!(
            "{} Gbit/s, {} {} per second, {} s",
            plain(gbit(done.bytes, took)),
            count(operations as u64),
            if spec.layer == Layer::Udp { "datagrams" } else { "writes" },
            plain(took.as_secs_f64())
        ),
    );
    if let Some(d) = &done.datagrams {
        let [sent, received, lost] = [d.sent, d.received, d.lost].map(count);
        let share = plain(d.lost as f64 / d.sent.max(1) as f64 * 100.0);
        line("datagrams", format!("{sent} sent, {received} received, {lost} lost ({share} %)"));
        let [reordered, duplicates, damaged] = [d.reordered, d.duplicates, d.damaged].map(count);
        line("", format!("{reordered} reordered, {duplicates} duplicates, {damaged} damaged"));
    }
    if let Some(schedule) = &done.schedule {
        line("schedule", format!("{} late, {} never sent", count(schedule.late), count(schedule.unsent)));
    }
    line("sender CPU", format!("{} s", plain(done.cpu_ns.as_secs_f64())));
    for (kind, times) in &done.errors.0 {
        line("failed", format!("{} of {}", kind.name(), counted(*times, "flow")));
    }
    causes(spec, done).iter().for_each(|cause| line("", cause.sentence()));
}

/// A line for each second and direction.
pub fn csv(runs: &[(Spec, Done)], samples: &[Vec<Sample>]) -> String {
    let each = runs.iter().zip(samples);
    let each = each.map(|((spec, done), samples)| (direction(spec), load_series::of_stream(done, samples)));
    load_series::stream_csv(&each.collect::<Vec<_>>())
}

/// The document of a load: the spec and the engine's `done` event of each direction.
pub fn json(runs: &[(Spec, Done)], samples: &[Vec<Sample>]) -> String {
    if let [(spec, done)] = runs
        && has_datagrams(spec)
    {
        let run = RunJson::new(spec, done);
        return LoadJson::Datagrams(DatagramsJson { schema: "linerate.load.datagrams/1", run }).text();
    }
    let each = runs.iter().zip(samples).map(|((spec, done), samples)| StreamJson {
        direction: direction(spec),
        gbit_per_second: gbit(done.bytes, done.end_ns.since(done.start_ns)),
        by_second: load_series::of_stream(done, samples),
        run: RunJson::new(spec, done),
    });
    let streams = each.collect();
    LoadJson::Streams(StreamsJson { schema: "linerate.load.streams/1", streams }).text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Datagrams, ErrorKind, Role, TcpEnds, TcpInfo, Workload};

    fn run(direction: &str) -> (Spec, Done) {
        let mut spec = Spec::new(Role::Client, Layer::Tcp, Workload::Stream);
        (spec.size, spec.connections) = (131_072, 4);
        spec.options.insert("direction".into(), direction.into());
        let client =
            Some(TcpInfo { retransmits: 12, rtt_us: 45, min_rtt_us: 20, cwnd: 1_200, ..TcpInfo::default() });
        let done = Done {
            operations: 1,
            bytes: Bytes(2_500_000_000),
            verified: 2_500_000_000,
            end_ns: Nanos(1_000_000_000),
            tcp: Some(TcpEnds { client, server: None }),
            ..Done::default()
        };
        (spec, done)
    }

    #[test]
    fn both_directions_and_their_sum_are_printed() {
        let mut runs = [run("client-writes"), run("client-reads")];
        runs[1].1.errors.add(ErrorKind::Truncated, 1);
        let text = text("127.0.0.1:9000", &runs);
        for part in [
            "tcp           127.0.0.1:9000, 4 connections each way, writes of 131,072 bytes",
            "to server     20.0 Gbit/s: 2,500,000,000 bytes in 1.00 s, every byte compared",
            "  TCP         12 segments retransmitted, round trip 45.0 µs, min 20.0 µs, \
             congestion window 1,200 segments",
            "from server   20.0 Gbit/s",
            "  TCP         round trip 45.0 µs, min 20.0 µs\n",
            "truncated 1",
            "together      40.0 Gbit/s",
        ] {
            assert!(text.contains(part), "{part:?} is missing in:\n{text}");
        }
        let json: serde_json::Value = serde_json::from_str(&json(&runs, &[Vec::new(), Vec::new()])).unwrap();
        assert_eq!(json["streams"][1]["direction"], "from server");
        assert_eq!(json["streams"][0]["gbit_per_second"], 20.0);
    }

    #[test]
    fn the_live_line_omits_unknown_directions() {
        let (spec, _) = run("client-reads");
        let sample = Sample {
            at_ns: Nanos(3_500_000_000),
            operations: 0,
            bytes: Bytes(1_250_000_000),
            failed: 0,
            latency: None,
            lost: None,
            rtt_us: Some(45),
        };
        let line = live(&[None, Some((&spec, sample))], Nanos(500_000_000));
        assert_eq!(line, "   3.5 s   from server 20.0 Gbit/s, round trip 45.0 µs");
    }

    #[test]
    fn the_text_has_received_and_lost_datagrams() {
        let mut spec = Spec::new(Role::Client, Layer::Udp, Workload::Stream);
        spec.size = 1_472;
        let mut done = Done {
            operations: 999_000,
            bytes: Bytes(1_250_000_000),
            end_ns: Nanos(2_000_000_000),
            datagrams: Some(Datagrams {
                sent: 1_000_000,
                received: 999_000,
                lost: 1_000,
                ..Datagrams::default()
            }),
            ..Done::default()
        };
        done.errors.add(ErrorKind::Reset, 1);
        let runs = [(spec, done)];
        let printed = text("10.0.0.1:9000", &runs);
        for part in [
            "10.0.0.1:9000",
            "5.00 Gbit/s",
            "499,500 datagrams",
            "1,000,000 sent",
            "1,000 lost (0.100 %)",
            "reset of 1",
        ] {
            assert!(printed.contains(part), "{part} is missing in:\n{printed}");
        }
        assert!(json(&runs, &[]).contains("\"lost\": 1000"));
        let [(spec, _)] = runs;
        assert!(text("10.0.0.1:9000", &[(spec, Done::default())]).contains("0 Gbit/s"));
    }
}
