//! Known causes of a difference, each with what shows it and what to do.

use super::why::change;
use linerate_analysis::why::{CallDifference, Cause, CauseDifference, CountDifference, Explanation};
use linerate_model::Count;

/// A count for a request from which on it is one of nearly each request.
const EACH: f64 = 0.5;
/// A cause that is a smaller part of the whole difference is no reason.
const PART: f64 = 0.1;
/// Calls that open a connection, take one, open a file, write, send a datagram.
const CONNECTS: &[&str] = &["connect(2)"];
const ACCEPTS: &[&str] = &["accept(2)", "accept4(2)"];
const OPENS: &[&str] = &["open(2)", "openat(2)", "openat2(2)"];
const PACKETS: [Count; 2] = [Count::Segments, Count::Datagrams];
const WRITES: &[&str] = &["write(2)", "writev(2)", "pwrite64(2)", "pwritev(2)"];

/// The hints of a pair, the most certain first.
pub(super) fn hints(counts: &[CountDifference], found: Option<&Explanation>, operation: &str) -> Vec<String> {
    let count = |wanted: Count| counts.iter().find(|found| found.count == wanted);
    let each_of = |wanted: Count| count(wanted).filter(|found| found.difference.abs() >= EACH);
    let of_count = |wanted: Count, words: &str, hint: &str| {
        let [base, head] = each_of(wanted)?.per_operation;
        Some(format!("{words} {base:.2} -> {head:.2} per {operation}: {hint}"))
    };
    let calls = found.map_or(&[][..], |found| &found.calls);
    let call = |names: &[&str], hint: &str| {
        let found = calls.iter().find(|call| names.contains(&&*call.name))?;
        (found.difference.abs() >= EACH).then(|| format!("{}: {hint}", call_words(found, operation)))
    };
    let again = calls.iter().find(|call| call.name.ends_with("EAGAIN") && call.difference.abs() >= EACH);
    let meanwhile = found.map_or(&[][..], |found| &found.counts);
    let is_of_packets = counts.iter().chain(meanwhile).any(|one| PACKETS.contains(&one.count));
    let mut hints: Vec<Option<String>> = vec![
        of_count(
            Count::DelayedAcks,
            "delayed ACKs",
            "parts of a response wait up to 40 ms for them; set TCP_NODELAY, or write once",
        ),
        call(CONNECTS, "a new connection to what is behind the server; keep connections (nginx: keepalive)"),
        call(ACCEPTS, "connections that are not kept; answer with keep-alive"),
        again.map(|found| {
            format!(
                "{}: a call that finds nothing; stop after a short read, or wait first",
                call_words(found, operation)
            )
        }),
        call(OPENS, "a file is opened for each; keep it open (nginx: open_file_cache)"),
        call(WRITES, "writes that are no packets, such as a log; buffer it, or turn it off")
            .filter(|_| !is_of_packets),
        call(&["futex(2)"], "a thread waits for another, or wakes it, for each"),
        of_count(Count::VoluntarySwitches, "waits of a thread", "a thread is woken for each"),
        of_count(Count::Datagrams, "datagrams", "one by one; UDP_SEGMENT (GSO) sends many in a call"),
    ];
    let whole = found.map_or(0.0, |found| found.cpu.difference_us.abs());
    let is_large = |one: &&CauseDifference| one.cost.difference_us.abs() >= PART * whole;
    let causes = found.into_iter().flat_map(|found| &found.causes).filter(is_large);
    hints.extend(
        causes.map(|one| Some(format!("{} µs per {operation} {}", change(&one.cost), words(one.cause)))),
    );
    // A wait is told once.
    let mut told: Vec<String> = hints.into_iter().flatten().collect();
    if told.iter().any(|hint| hint.starts_with("futex") || hint.starts_with("delayed")) {
        told.retain(|hint| !hint.starts_with("waits of a thread"));
    }
    told
}

/// Such as `write(2) 1.00 -> 2.00 per request`.
pub(super) fn call_words(found: &CallDifference, operation: &str) -> String {
    let [base, head] = found.per_operation;
    format!("{} {base:.2} -> {head:.2} per {operation}", found.name)
}

fn words(cause: Cause) -> &'static str {
    match cause {
        Cause::Collector => "in the garbage collector: what does a request allocate?",
        Cause::Allocation => "in the allocation of memory: what does a request allocate?",
        Cause::Lock => "in locks: which threads share what?",
        Cause::PageFaults => "in page faults: memory is new or given back for each; keep it",
        Cause::Compression => "in compression: lower its level, or compress beforehand",
        Cause::TlsHandshakes => "in TLS handshakes: keep connections, and resume sessions",
    }
}

#[cfg(test)]
mod tests {
    use super::super::why::REQUEST;
    use super::*;
    use linerate_analysis::why::CostDifference;

    fn told(counts: &[(Count, f64)], calls: &[(&str, f64)], causes: &[(Cause, f64)]) -> Vec<String> {
        let cost = |us: f64| CostDifference { us: [0.0, us], difference_us: us, ci95: [us; 2] };
        let explanation = Explanation {
            rounds: 9,
            cpu: cost(4.0),
            functions: Vec::new(),
            explained: None,
            calls: calls
                .iter()
                .map(|(name, head)| CallDifference {
                    name: (*name).to_owned(),
                    per_operation: [0.0, *head],
                    difference: *head,
                    ci95: [*head; 2],
                })
                .collect(),
            causes: causes
                .iter()
                .map(|(cause, us)| CauseDifference { cause: *cause, cost: cost(*us) })
                .collect(),
            counts: Vec::new(),
            lacking: Vec::new(),
        };
        let counts = counts.iter().map(|(count, head)| CountDifference {
            count: *count,
            per_operation: [0.0, *head],
            difference: *head,
            ci95: [*head; 2],
        });
        hints(&counts.collect::<Vec<_>>(), Some(&explanation), REQUEST)
    }

    #[test]
    fn known_causes_are_told_with_what_shows_them() {
        for (found, word) in [
            (told(&[(Count::DelayedAcks, 0.98)], &[], &[]), "TCP_NODELAY"),
            (told(&[], &[("connect(2)", 1.0)], &[]), "keep connections"),
            (told(&[], &[("read(2) with EAGAIN", 1.0)], &[]), "finds nothing"),
            (told(&[], &[("write(2)", 1.0)], &[]), "such as a log"),
            (told(&[], &[("futex(2)", 1.0)], &[]), "wakes it"),
            (told(&[(Count::VoluntarySwitches, 1.0)], &[], &[]), "woken"),
            (told(&[(Count::Datagrams, 9.0)], &[], &[]), "GSO"),
            (told(&[], &[], &[(Cause::Collector, 1.0)]), "garbage collector"),
            (told(&[], &[], &[(Cause::Compression, 3.0)]), "compression"),
        ] {
            assert!(found.len() == 1 && found[0].contains(word), "{found:?}");
        }
    }

    #[test]
    fn what_is_small_or_has_another_cause_is_no_hint() {
        let packets = told(&[(Count::Segments, 1.0)], &[("write(2)", 1.0)], &[]);
        assert!(packets.is_empty(), "a write that is a packet");
        assert!(told(&[], &[("connect(2)", 0.1)], &[(Cause::Lock, 0.1)]).is_empty());
    }
}
