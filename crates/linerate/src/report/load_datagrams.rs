//! Output of `linerate load udp` and `linerate load kcp`: the result as text, and as JSON.

use super::load_json::{DatagramsJson, LoadJson, RunJson};
use super::numbers::{count, counted, plain};
use linerate_contract::{Done, Spec};
use std::fmt::Write;

const BITS_PER_GBIT: f64 = 1e9;

/// The result as text.
#[must_use]
pub fn text(spec: &Spec, done: &Done) -> String {
    let seconds = done.end_ns.since(done.start_ns).as_secs_f64();
    let per_second = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
    let address = spec.connect.map(|a| a.to_string()).unwrap_or_default();
    let mut out = String::new();
    let mut line = |name: &str, value: String| _ = writeln!(out, "{name:<12}{value}");
    line(
        &spec.layer,
        format!("{address}, {}, {} bytes per send", counted(spec.connections, "flow"), count(spec.size)),
    );
    line(
        "received",
        format!(
            "{} Gbit/s, {} {} per second, {} s",
            plain(per_second(done.bytes.0 as f64 * 8.0 / BITS_PER_GBIT)),
            count(per_second(done.operations as f64) as u64),
            if spec.layer == "udp" { "datagrams" } else { "writes" },
            plain(seconds)
        ),
    );
    if let Some(d) = &done.datagrams {
        let share = if d.sent > 0 { d.lost as f64 / d.sent as f64 * 100.0 } else { 0.0 };
        line(
            "datagrams",
            format!(
                "{} sent, {} received, {} lost ({} %)",
                count(d.sent),
                count(d.received),
                count(d.lost),
                plain(share)
            ),
        );
        line(
            "",
            format!(
                "{} reordered, {} duplicates, {} damaged",
                count(d.reordered),
                count(d.duplicates),
                count(d.damaged)
            ),
        );
    }
    if let Some(schedule) = &done.schedule {
        line("schedule", format!("{} late, {} never sent", count(schedule.late), count(schedule.unsent)));
    }
    line("sender CPU", format!("{} s", plain(done.cpu_ns.as_secs_f64())));
    for (kind, times) in &done.errors.0 {
        line("failed", format!("{} of {}", kind.name(), counted(*times, "flow")));
    }
    out
}

/// The spec, and the engine's `done` event.
#[must_use]
pub fn json(spec: &Spec, done: &Done) -> String {
    let run = RunJson { spec, done };
    LoadJson::Datagrams(DatagramsJson { schema: "linerate.load.datagrams/1", run }).text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Bytes, Datagrams, ErrorKind, Nanos, Role};

    #[test]
    fn the_text_has_received_and_lost_datagrams() {
        let mut spec = Spec::new(Role::Client, "udp", "stream");
        (spec.connect, spec.size) = (Some("10.0.0.1:9000".parse().unwrap()), 1_472);
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
        let printed = text(&spec, &done);
        for part in [
            "10.0.0.1:9000",
            "5.00 Gbit/s",
            "499,500 datagrams",
            "1,000,000 sent",
            "1000 lost (0.100 %)",
            "reset of 1",
        ] {
            assert!(printed.contains(part), "{part} is missing in:\n{printed}");
        }
        assert!(json(&spec, &done).contains("\"lost\": 1000"));
        assert!(text(&spec, &Done::default()).contains("0 Gbit/s"));
    }
}
