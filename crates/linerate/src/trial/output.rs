//! A client's output as a [`Measurement`]: contract events, or the text of a foreign program.

use crate::lab::ClientRun;
use crate::measurement::{Histogram, Measurement, RequestWindow};
use crate::system::manifest::{DatagramPatterns, OutputPatterns};
use linerate_contract::{
    Bytes, Datagrams, Errors, Event, Nanos, RequestCounts, Role, Sample, TcpEnds, TcpInfo,
};
use regex::Regex;
use std::collections::BTreeMap;
use std::str::FromStr;

/// Reads the `done` event of a program that implements the contract.
pub(super) fn read_contract(run: &ClientRun) -> Result<Measurement, String> {
    let line = run.stdout.last().ok_or("the client printed nothing")?;
    let Event::Done(done) = Event::parse(line)? else {
        return Err("the client's last line is not its `done` event".into());
    };
    Ok(Measurement {
        elapsed: done.end_ns.since(done.start_ns),
        operations: done.operations,
        bytes: done.bytes,
        in_flight: done.in_flight,
        counted: done.counted_ns,
        uncounted: done.uncounted,
        stall: done.stall_ns,
        errors: done.errors,
        causes: done.causes,
        latency: done.latency.map(Histogram::from),
        requests: done.requests.into_iter().map(request).collect(),
        connect: done.connect.map(Histogram::from),
        verified: done.verified,
        tls: done.tls,
        datagrams: done.datagrams,
        tcp: tcp(done.tcp, &run.server_stdout),
        series: series(run),
        cpu: [(Role::Client, done.cpu_ns)].into(),
        polling: done.polling_ns,
        ..Measurement::default()
    })
}

fn request(RequestCounts { operations, errors, latency }: RequestCounts) -> RequestWindow {
    RequestWindow { operations, errors, latency: Some(latency.into()) }
}

/// `TCP_INFO` of both ends, as far as they report it.
fn tcp(client: Option<TcpEnds>, server: &[String]) -> Option<TcpEnds> {
    let infos = server.iter().filter_map(|line| match Event::parse(line) {
        Ok(Event::Tcp(info)) => Some(info),
        _ => None,
    });
    let ends = client.unwrap_or_default();
    let ends = TcpEnds { server: infos.reduce(TcpInfo::with).or(ends.server), ..ends };
    (ends != TcpEnds::default()).then_some(ends)
}

/// The server's samples, since the server is the receiver; if it printed none, the client's.
fn series(run: &ClientRun) -> Vec<Sample> {
    let samples = |lines: &[String]| -> Vec<Sample> {
        let sample = |line: &String| match Event::parse(line) {
            Ok(Event::Sample(sample)) => Some(Sample { latency: None, ..sample }),
            _ => None,
        };
        lines.iter().filter_map(sample).collect()
    };
    let received = samples(&run.server_stdout);
    if received.is_empty() { samples(&run.stdout) } else { received }
}

/// Reads the output of a program without the contract that writes `size` bytes at a time. Its CPU time covers
/// the whole process, start and end included.
pub(super) fn read_foreign(
    patterns: &OutputPatterns,
    run: &ClientRun,
    size: u64,
) -> Result<Measurement, String> {
    let text = run.stdout.join("\n") + "\n" + &run.stderr.join("\n");
    let elapsed = time(&text, "elapsed-seconds", &patterns.elapsed_seconds, Some("s"))?
        .ok_or_else(|| not_found(&text, "elapsed-seconds"))?;
    if elapsed == Nanos::ZERO {
        return Err("its time is 0 s".into());
    }
    let mut errors = Errors::default();
    for (kind, pattern) in &patterns.errors {
        errors.add(*kind, find_optional(&text, "errors", pattern)?.unwrap_or(0));
    }
    let bytes: Option<u64> =
        patterns.bytes.as_ref().map(|pattern| find(&text, "bytes", pattern)).transpose()?;
    let arrived = bytes.map(|bytes| bytes.div_ceil(size.max(1)));
    let datagrams =
        patterns.datagrams.as_ref().map(|patterns| datagrams(&text, patterns, arrived)).transpose()?;
    let completed = match (&patterns.operations, &datagrams, arrived) {
        (Some(pattern), _, _) => find(&text, "operations", pattern)?,
        (None, Some(datagrams), _) => datagrams.received,
        (None, None, Some(arrived)) => arrived,
        (None, None, None) => return Err("system.toml has neither output.operations nor output.bytes".into()),
    };
    let failed_among_them = if patterns.operations_include_errors { errors.total() } else { 0 };
    let mut reported_latency = BTreeMap::new();
    for (name, pattern) in &patterns.latency {
        let key = format!("latency.{name}");
        if let Some(value) = time(&text, &key, pattern, patterns.latency_unit.as_deref())? {
            reported_latency.insert(name.clone(), value);
        }
    }
    Ok(Measurement {
        reported_latency,
        elapsed,
        operations: completed.saturating_sub(failed_among_them),
        bytes: Bytes(bytes.unwrap_or(0)),
        errors,
        datagrams,
        cpu: run.cpu.iter().filter(|(role, _)| *role == Role::Client).copied().collect(),
        ..Measurement::default()
    })
}

fn datagrams(text: &str, patterns: &DatagramPatterns, arrived: Option<u64>) -> Result<Datagrams, String> {
    let sent: u64 = find(text, "datagrams.sent", &patterns.sent)?;
    let too_many = |arrived| format!("{arrived} arrived of {sent} datagrams");
    let lost = match (&patterns.lost, arrived) {
        (Some(pattern), _) => find(text, "datagrams.lost", pattern)?,
        (None, Some(arrived)) => sent.checked_sub(arrived).ok_or_else(|| too_many(arrived))?,
        (None, None) => return Err("system.toml has neither output.datagrams.lost nor output.bytes".into()),
    };
    let received = sent.checked_sub(lost).ok_or_else(|| format!("{lost} lost of {sent} datagrams"))?;
    let optional = |key: &str, pattern: &Option<String>| -> Result<u64, String> {
        Ok(pattern
            .as_ref()
            .map(|pattern| find_optional(text, key, pattern))
            .transpose()?
            .flatten()
            .unwrap_or(0))
    };
    Ok(Datagrams {
        sent,
        received,
        lost,
        reordered: optional("datagrams.reordered", &patterns.reordered)?,
        duplicates: optional("datagrams.duplicates", &patterns.duplicates)?,
        ..Datagrams::default()
    })
}

/// A time in the unit of the pattern's second group, else in `unit`; `None` if the output has none.
fn time(text: &str, key: &str, pattern: &str, unit: Option<&str>) -> Result<Option<Nanos>, String> {
    let Some(value) = find_optional::<f64>(text, key, pattern)? else { return Ok(None) };
    if !value.is_finite() {
        return Err(format!("output.{key} finds no time: {value}"));
    }
    let regex = Regex::new(pattern).map_err(|e| format!("output.{key} in system.toml: {e}"))?;
    let found = regex.captures(text).and_then(|groups| groups.get(2)).map(|group| group.as_str());
    let scale = match found.or(unit) {
        Some("ns") => 1.0,
        Some("us" | "µs") => 1e3,
        Some("ms") => 1e6,
        Some("s" | "secs" | "sec") => 1e9,
        other => return Err(format!("output.{key}: {other:?} is no unit of time: ns, us, ms or s")),
    };
    Ok(Some(Nanos((value * scale) as u64)))
}

fn find<T: FromStr>(text: &str, key: &str, pattern: &str) -> Result<T, String> {
    find_optional(text, key, pattern)?.ok_or_else(|| not_found(text, key))
}

fn not_found(text: &str, key: &str) -> String {
    let end = text.trim_end().lines().last().unwrap_or_default();
    format!("its output has nothing that output.{key} finds; it ends with: {end}")
}

fn find_optional<T: FromStr>(text: &str, key: &str, pattern: &str) -> Result<Option<T>, String> {
    let regex = Regex::new(pattern).map_err(|e| format!("output.{key} in system.toml: {e}"))?;
    let Some(found) = regex.captures(text).and_then(|groups| groups.get(1)) else { return Ok(None) };
    found
        .as_str()
        .parse()
        .map(Some)
        .map_err(|_| format!("output.{key} finds `{}`, which is no number", found.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::protocol::{ExitStatus, WindowRecord};
    use linerate_contract::ErrorKind;

    fn run(text: &str) -> ClientRun {
        ClientRun {
            status: ExitStatus::Code(0),
            stdout: text.lines().map(str::to_owned).collect(),
            stderr: Vec::new(),
            server_stdout: Vec::new(),
            cpu: vec![(Role::Client, Nanos(7)), (Role::Server, Nanos(9))],
            record: WindowRecord { running: 1.0, ..WindowRecord::default() },
            window: Nanos::ZERO,
            brake: None,
            others: None,
            peak_memory: None,
            flags: Vec::new(),
        }
    }

    fn patterns() -> OutputPatterns {
        toml::from_str(
            "elapsed-seconds = 'taken: ([0-9.]+)'\noperations = 'Complete: (\\d+)'\n\
             operations-include-errors = true\n[errors]\nfailed = 'Failed: (\\d+)'\n",
        )
        .unwrap()
    }

    #[test]
    fn failed_requests_are_not_counted_as_done() {
        let measurement =
            read_foreign(&patterns(), &run("taken: 1.5\nComplete: 100\nFailed: 7\n"), 0).unwrap();
        assert_eq!((measurement.operations, measurement.elapsed), (93, Nanos(1_500_000_000)));
        assert_eq!(measurement.errors.0[&ErrorKind::Failed], 7);
        assert_eq!(measurement.cpu[&Role::Client], Nanos(7));
    }

    #[test]
    fn latencies_come_with_their_units() {
        let mut patterns = patterns();
        patterns.latency = [("p50".to_owned(), r"50%\s+([0-9.]+)(us|ms|s)".to_owned())].into();
        let read = |text: &str, patterns: &OutputPatterns| {
            let measurement = read_foreign(patterns, &run(&format!("taken: 1\nComplete: 1\n{text}")), 0)?;
            Ok::<_, String>(measurement.reported_latency.get("p50").copied())
        };
        assert_eq!(read("  50%   1.50ms\n", &patterns), Ok(Some(Nanos(1_500_000))));
        assert_eq!(read("nothing", &patterns), Ok(None));
        patterns.latency = [("p50".to_owned(), r"50%\s+([0-9.]+)".to_owned())].into();
        assert!(read("50% 3\n", &patterns).is_err());
        patterns.latency_unit = Some("ms".into());
        assert_eq!(read("50% 3\n", &patterns), Ok(Some(Nanos(3_000_000))));
    }

    #[test]
    fn the_elapsed_time_is_in_seconds_or_in_the_unit_found() {
        let mut patterns = patterns();
        let elapsed = |patterns: &OutputPatterns, text: &str| {
            read_foreign(patterns, &run(&format!("{text}\nComplete: 1\n")), 0).map(|found| found.elapsed)
        };
        patterns.elapsed_seconds = r"in ([0-9.inf]+)(ms|s)".to_owned();
        assert_eq!(elapsed(&patterns, "in 368.02ms"), Ok(Nanos(368_020_000)));
        assert!(elapsed(&patterns, "in 0s").is_err());
        assert!(elapsed(&patterns, "in infs").is_err());
    }

    #[test]
    fn received_writes_count_as_operations_if_the_program_prints_no_count() {
        let bytes: OutputPatterns =
            toml::from_str("elapsed-seconds = 's=(\\S+)'\nbytes = 'b=(\\d+)'\n").unwrap();
        let read = |patterns: &OutputPatterns, text: &str| read_foreign(patterns, &run(text), 1_000);
        assert_eq!(read(&bytes, "s=1\nb=2001\n").unwrap().operations, 3);
        let datagrams: OutputPatterns = toml::from_str(
            "elapsed-seconds = 's=(\\S+)'\n[datagrams]\nsent = 'sent=(\\d+)'\nlost = 'lost=(\\d+)'\n\
             reordered = 'late=(\\d+)'\n",
        )
        .unwrap();
        let measurement = read(&datagrams, "s=1\nsent=10\nlost=4\nlate=2\n").unwrap();
        let counted = measurement.datagrams.unwrap();
        assert_eq!((measurement.operations, counted.received, counted.lost, counted.reordered), (6, 6, 4, 2));
        assert!(read(&datagrams, "s=1\nsent=3\nlost=4\n").is_err());
        let mut counted = datagrams.clone();
        counted.bytes = Some(r"b=(\d+)".into());
        counted.datagrams.as_mut().unwrap().lost = None;
        assert_eq!(read(&counted, "s=1\nsent=10\nb=7000\n").unwrap().datagrams.unwrap().lost, 3);
        assert!(read(&counted, "s=1\nsent=3\nb=7000\n").unwrap_err().contains("7 arrived"));
        let nothing: OutputPatterns = toml::from_str("elapsed-seconds = 's=(\\S+)'\n").unwrap();
        assert!(read(&nothing, "s=1\n").unwrap_err().contains("output.bytes"));
    }

    #[test]
    fn the_error_of_a_missing_number_contains_the_key_and_the_output() {
        let error = read_foreign(&patterns(), &run("taken: 1.5\nconnection refused\n"), 0).unwrap_err();
        assert!(error.contains("output.operations") && error.contains("connection refused"), "{error}");
        assert!(read_foreign(&patterns(), &run("taken: 0\n"), 0).is_err());
    }

    #[test]
    fn a_client_that_ends_without_done_is_an_error() {
        assert!(read_contract(&run("")).is_err());
        assert!(read_contract(&run("{\"event\":\"ready\",\"address\":\"1.2.3.4:5\"}")).is_err());
    }

    #[test]
    fn a_servers_end_of_each_connection_is_added_to_the_clients() {
        let line = r#"{"event":"tcp","retransmits":1,"rtt_us":9,"cwnd":10}"#;
        let server = [line, "not an event", line].map(str::to_owned);
        let client = TcpInfo { retransmits: 5, ..TcpInfo::default() };
        let ends = tcp(Some(TcpEnds { client: Some(client), server: None }), &server).unwrap();
        assert_eq!((ends.client, ends.server.map(|info| info.retransmits)), (Some(client), Some(2)));
        assert_eq!(tcp(None, &[]), None);
    }

    #[test]
    fn samples_of_the_receiver_are_used_if_there_are_any() {
        let sample = |bytes| {
            format!("{{\"event\":\"sample\",\"at_ns\":100,\"operations\":1,\"bytes\":{bytes},\"lost\":2}}")
        };
        let mut both = run(&sample(7));
        assert_eq!(series(&both)[0].bytes, Bytes(7));
        both.server_stdout = vec![sample(5), sample(6)];
        let series = series(&both);
        assert_eq!((series.len(), series[0].bytes, series[0].lost), (2, Bytes(5), Some(2)));
    }
}
