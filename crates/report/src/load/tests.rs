use super::*;
use linerate_contract::{Bytes, ErrorKind, Layer, Role, Tls, Workload};

fn result<'a>(spec: &'a Spec, done: &'a Done) -> LoadResult<'a> {
    let words = Words { operation: "request", payload: "bodies" };
    LoadResult { target: "http://a/", words, spec, done, samples: &[] }
}

fn done() -> Done {
    Done {
        operations: 1_000,
        bytes: Bytes(4_096_000),
        start_ns: Nanos(5),
        end_ns: Nanos(2_000_000_005),
        errors: Errors([(ErrorKind::Reset, 10), (ErrorKind::Timeout, 2)].into()),
        latency: Some(Counts { pairs: vec![(60_000, 990), (1_100_000, 10)], min: 60_000, max: 1_100_000 }),
        cpu_ns: Nanos(10_120_000),
        statuses: [("200".to_owned(), 998), ("302".to_owned(), 2)].into(),
        by_status: [("200", 60_000, 990), ("302", 1_100_000, 2)]
            .map(|(status, time, n)| {
                (status.to_owned(), Counts { pairs: vec![(time, n)], min: time, max: time })
            })
            .into(),
        ..Done::default()
    }
}

#[test]
fn pipelining_and_batching_are_printed() {
    let mut spec = Spec::new(Role::Client, Layer::Http, Workload::Rr);
    assert_eq!(loop_kind(&spec), "closed loop");
    for (spin, words) in
        [("50", "threads poll for up to 50 µs before they sleep"), ("always", "threads never sleep")]
    {
        spec.options.insert("spin".into(), spin.into());
        assert_eq!(loop_kind(&spec), format!("closed loop, {words}"));
    }
    spec.options.remove("spin");
    spec.options.insert("pipeline".into(), "16".into());
    spec.options.insert("coalesce_us".into(), "60".into());
    let kind = "closed loop, 16 requests pipelined, responses batched for up to 60 µs";
    assert_eq!(loop_kind(&spec), kind);
}

#[test]
fn the_text_has_rates_failures_cpu_and_latencies() {
    let mut spec = Spec::new(Role::Client, Layer::Http, Workload::Rr);
    (spec.connections, spec.threads) = (10, 2);
    spec.connect = Some("127.0.0.1:80".parse().unwrap());
    let done = done();
    let text = text(&result(&spec, &done), Style::default());
    for part in [
        "127.0.0.1:80, 10 connections, 2 threads, closed loop",
        "requests    1,000 in 2.00 s: 500 per second",
        "failed      12 of 1,012 (1.19 %): reset 10, timeout 2",
        "statuses    200: 998, 302: 2",
        "            200: 990 responses, p50 60.0 µs, p99 60.0 µs\n",
        "            302: 2 responses, p50 1.10 ms, p99 -\n",
        "client CPU  10.0 µs per request",
        "99 %     60.0 µs",
        "99.9 %     1.10 ms",
        "< 65.5 µs  ########################################    99.0 %",
    ] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
}

#[test]
fn an_open_loop_shows_its_schedule_and_both_times() {
    let mut spec = Spec::new(Role::Client, Layer::Http, Workload::Rr);
    spec.rate = Some(500.0);
    let counts = Counts { pairs: vec![(20_000, 1_000)], min: 20_000, max: 20_000 };
    let schedule = Some(Adherence { late: 3, unsent: 1, delay: counts.clone() });
    let polling_ns = Some(Nanos(8_096_000));
    let done = Done { service: Some(counts), schedule, polling_ns, ..done() };
    let result = result(&spec, &done);
    let text = text(&result, Style::default());
    assert!(text.contains("within 20.0 µs of their time; 3 late (over 1 ms), 1 never sent"), "{text}");
    assert!(text.contains("response     service") && text.contains("response: from the time"), "{text}");
    let cpu = "client CPU  2.00 µs per request, and 8.00 µs of polling in place of a sleep";
    assert!(text.contains(cpu), "{text}");
    let json: serde_json::Value = serde_json::from_str(&json(&result)).unwrap();
    assert_eq!((json["latency_us"]["p99"].as_f64(), &json["statuses"]["302"]), (Some(60.0), &2.into()));
    assert_eq!(json["by_status_us"]["302"]["p50"], 1_100.0);
    assert_eq!(json["service_us"]["p50"], 20.0);
    assert_eq!(json["done"]["schedule"]["late"], 3);
    assert_eq!(
        (&json["client_cpu_us_per_request"], &json["client_polling_us_per_request"]),
        (&2.0.into(), &8.0.into())
    );
}

#[test]
fn delayed_acknowledgements_in_most_responses_are_said_with_the_remedy() {
    let spec = Spec::new(Role::Client, Layer::Http, Workload::Rr);
    for (acks, nanos, is_said) in [(970, 44_000_000, true), (100, 44_000_000, false), (970, 400_000, false)] {
        let latency = Some(Counts { pairs: vec![(nanos, 1_000)], min: nanos, max: nanos });
        let done = Done { latency, delayed_acks: Some(acks), ..done() };
        let text = text(&result(&spec, &done), Style::default());
        assert_eq!(
            text.contains("0.970 delayed acknowledgements of 40 ms for each request"),
            is_said,
            "{text}"
        );
        assert_eq!(text.contains("TCP_NODELAY"), is_said);
        assert_eq!(json(&result(&spec, &done)).contains("TCP_NODELAY"), is_said);
    }
}

#[test]
fn no_private_key_is_in_the_document() {
    let mut spec = Spec::new(Role::Client, Layer::Https, Workload::Rr);
    spec.tls = Some(Tls { key: "PRIVATE".into(), certificate: "PUBLIC".into(), ..Tls::default() });
    let json = json(&result(&spec, &done()));
    assert!(json.contains("PUBLIC") && !json.contains("PRIVATE"), "{json}");
}

#[test]
fn an_open_loop_off_its_schedule_gets_a_warning() {
    let mut spec = Spec::new(Role::Client, Layer::Http, Workload::Rr);
    (spec.rate, spec.connections) = (Some(500.0), 10);
    let with = |late, unsent| Done {
        schedule: Some(Adherence { late, unsent, delay: Counts::default() }),
        ..done()
    };
    for (late, unsent, words) in [
        (0, 0, &[][..]),
        (10, 600, &["the rate was not reached: 600 of 1,612 requests were never sent"][..]),
        (100, 0, &["100 of 1,012 requests were sent more than 1 ms late"]),
    ] {
        let done = with(late, unsent);
        let text = text(&result(&spec, &done), Style::default());
        assert!(words.iter().all(|words| text.contains(words)), "{text}");
        assert_eq!(text.matches("WARNING").count(), words.len(), "{text}");
    }
}

#[test]
fn an_empty_result_has_no_histogram() {
    let (spec, done) = (Spec::new(Role::Client, Layer::Http, Workload::Rr), Done::default());
    let result = result(&spec, &done);
    assert!(!text(&result, Style::default()).contains('#'));
    assert!(json(&result).contains("\"requests_per_second\": 0.0"));
}

#[test]
fn what_a_server_did_without_a_failure_is_shown() {
    let spec = Spec::new(Role::Client, Layer::Https, Workload::Rr);
    let handshakes = Some(HandshakeCounts { full: 7, resumed: 13 });
    let accepted = [("folded header".to_owned(), 12)].into();
    let done = Done { closed_idle: 3, accepted, handshakes, ..done() };
    let text = text(&result(&spec, &done), Style::default());
    for words in [
        "closed      3 connections by the server between requests",
        "accepted    folded header: 12 responses",
        "handshakes  7 full, 13 resumed",
    ] {
        assert!(text.contains(words), "{text}");
    }
}
