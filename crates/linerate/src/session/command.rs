//! The command that makes a run again, with the seed that this one drew.

use super::Request;
use crate::lab::program::quoted;
use crate::measurement::{
    ComparisonKind, DecidingPercentile, Expectation, LatencyMargin, PlannedComparison, PlannedLoad,
    PlannedRate, PlannedRequest, Subject,
};
use crate::suite;
use std::time::Duration;

pub(super) fn line(request: &Request, seed: u64) -> String {
    let Request { choice, budget, hosts, .. } = request;
    let comparison = choice.comparison.as_ref();
    let subcommand = match comparison.map(|comparison| comparison.kind) {
        None => "run",
        Some(ComparisonKind::Compare) => "compare",
        Some(ComparisonKind::Gate) => "gate",
    };
    let mut words = vec![format!("linerate {subcommand}")];
    let servers = comparison.and_then(PlannedComparison::servers);
    words.extend(servers.into_iter().flat_map(of_servers));
    let is_all = choice.suites.is_empty() && servers.is_none();
    let all = is_all.then(|| suite::ALL.to_owned());
    words.extend(all.into_iter().chain(choice.suites.iter().cloned()));
    words.extend(choice.quick.then(|| "--quick".into()));
    words.extend(choice.published.then(|| "--published".into()));
    words.extend(choice.complete.then(|| "--complete".into()));
    words.extend(choice.rounds.map(|rounds| format!("--rounds {rounds}")));
    words.extend(budget.map(|budget| format!("--budget {}", time(budget))));
    words.extend(choice.only.iter().map(|glob| format!("--only {}", quoted(glob))));
    words.extend(hosts.places.iter().map(|given| format!("--host {given}")));
    words.extend(
        hosts.servers.iter().map(|(name, place)| format!("--host {}", quoted(&format!("{name}={place}")))),
    );
    words.extend(hosts.file.iter().map(|file| format!("--hosts {}", quoted(&file.display().to_string()))));
    words.extend(hosts.network.then(|| "--host-network".into()));
    words.extend(choice.probe.then(|| "--probe".into()));
    words.extend(comparison.into_iter().flat_map(of_comparison));
    words.push(format!("--seed {seed}"));
    words.join(" ")
}

fn of_comparison(comparison: &PlannedComparison) -> Vec<String> {
    let PlannedComparison { subjects, system, margin, latency_margin, percentile, rate, source, .. } =
        comparison;
    let arms = ["base", "head"].into_iter().zip(subjects);
    let arms = arms.filter_map(|(name, one)| Some(format!("--{name} {}", quoted(&one.given_arm()?.arm))));
    let mut words: Vec<String> = arms.collect();
    words.extend(system.iter().map(|system| format!("--system {system}")));
    words.extend(source.iter().flat_map(|source| {
        let required = [("checkout", &source.checkout), ("build", &source.build)];
        let all = required.into_iter().chain(source.program.iter().map(|program| ("program", program)));
        all.map(|(name, value)| format!("--{name} {}", quoted(value)))
    }));
    let percent = |share: f64| (share * 1e6).round() / 1e4;
    words.extend(rate.map(|rate| match rate {
        PlannedRate::PerSecond(rate) => format!("--rate {rate}"),
        PlannedRate::Share(share) => format!("--rate {}%", percent(share)),
    }));
    // A margin that is given is that of both, and otherwise each has its own.
    match latency_margin {
        LatencyMargin::Microseconds(us) => {
            words.push(format!("--margin {}% --margin-us {us}", percent(*margin)));
        }
        _ if rate.is_some() && *latency_margin == LatencyMargin::default() => {}
        _ => words.push(format!("--margin {}%", percent(*margin))),
    }
    if *percentile == DecidingPercentile::P90 {
        words.push("--percentile p90".into());
    }
    words
}

fn of_servers((subjects, planned): (&[Subject], &PlannedLoad)) -> Vec<String> {
    // Those of a file are named by it.
    let one = planned.requests.iter().find(|_| planned.requests_file.is_none());
    let option = |name: &str, value: &str| format!("--{name} {}", quoted(value));
    // Revisions have one command.
    let is_one = subjects.iter().any(|subject| subject.given_arm().is_some());
    let commands = &subjects[..if is_one { 1 } else { subjects.len() }];
    let are_started_here = subjects.iter().all(Subject::is_started_here);
    let mut words: Vec<String> = commands.iter().map(|one| quoted(one.text())).collect();
    words.extend(subjects.iter().map(|one| option("name", one.name())));
    let hooks = commands.iter().filter_map(Subject::hooks);
    let hooks = hooks.flat_map(|hooks| [("setup", &hooks.setup), ("cleanup", &hooks.cleanup)]);
    let hooks = hooks.filter_map(|(name, text)| Some(option(name, text.as_ref()?)));
    words.extend(planned.upstream.iter().map(|upstream| option("upstream", upstream)));
    words.extend(hooks.chain(planned.companions.iter().map(|one| option("with", one))));
    words.extend(planned.requests_file.iter().map(|file| option("requests", &file.display().to_string())));
    let (calls, requests) = if planned.are_calls { (one, None) } else { (None, one) };
    words.extend(calls.map(|one| option("grpc", one.path.trim_start_matches('/'))));
    words.extend(requests.filter(|_| are_started_here).map(|one| option("url", &one.path)));
    let layers = [("tcp", "--tcp"), ("udp", "--udp"), ("websocket", "--ws")].into_iter();
    let layers = layers.map(|(layer, option)| (layer == planned.layer, option));
    let layers = layers.chain([(planned.has_tls(), "--https")]);
    let chosen = layers.filter(|(is_chosen, _)| *is_chosen && are_started_here);
    words.extend(chosen.map(|(_, option)| option.to_owned()));
    let version = match planned.layer.as_str() {
        _ if planned.are_calls => "",
        "h3" => "--h3 ",
        _ => "--h2 ",
    };
    words.extend(planned.streams.map(|streams| format!("{version}--streams {streams}")));
    words.extend(planned.size.map(|size| format!("--size {size}")));
    if let Some(PlannedRequest { method, headers, body, .. }) = one {
        words.extend((method != "GET" && !planned.are_calls).then(|| option("method", method)));
        words.extend(headers.iter().map(|header| option("header", header)));
        words.extend((!body.is_empty()).then(|| match planned.are_calls {
            true => option("message", &format!("base64:{body}")),
            false => option("body", body),
        }));
    }
    let Expectation { status, bytes, json, .. } = planned.given;
    let parts = [status.map(|n| format!("status={n}")), bytes.map(|n| format!("length={n}"))];
    let expect: Vec<String> = parts.into_iter().flatten().chain(json.then(|| "json".into())).collect();
    words.extend((!expect.is_empty()).then(|| option("expect", &expect.join(","))));
    words.push(format!("--connections {}", planned.connections));
    words.extend((are_started_here && !planned.place.is_lab()).then(|| "--network host".into()));
    words.extend(planned.port_is_given.then(|| format!("--port {}", planned.port)));
    words
}

fn time(time: Duration) -> String {
    humantime::format_duration(time).to_string().replace(' ', "")
}
