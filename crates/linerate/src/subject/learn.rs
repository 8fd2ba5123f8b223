//! Before the first unit of a pair both commands are started once: where they listen, what they answer, and
//! how long they have to be loaded until their rates and their CPU times are steady. `run.json` has all of it
//! beside the plan.

use super::ask::{ASK, Outcome, Question, Response, USUAL, option};
use super::start::{Starter, of_lab, ready_within, until_ready};
use super::windows::{Windows, warming};
use super::{RESPONSES, Servers};
use crate::error::Error;
use crate::lab::pair::{Pair, on_both};
use crate::lab::{CommandLine, Lab};
use crate::measurement::{Expectation, PlannedLoad, PlannedRate, PlannedRequest, Stage, Warmup};
use crate::report::next_of_upgrade;
use linerate_contract::{Done, Event, Layer, Nanos, Role, Spec, Workload};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// How long a window becomes at most until each server has responded in it.
const LONGEST_WINDOW: Nanos = Nanos(1_600_000_000);
/// Requests whose responses are learned, of a log with thousands; a correct response to the others has a
/// status below 400.
const MOST_ASKED: usize = 100;
/// The window of the baseline's capacity.
const OF_CAPACITY: Nanos = Nanos(500_000_000);

/// The means with which pairs of a run are learned.
pub(crate) struct Learner {
    starter: Starter,
    /// linerate's own client.
    client: CommandLine,
    window: Nanos,
    longest: Nanos,
    /// The baseline's responses in words, by request.
    baseline: Vec<String>,
}

/// Finds the address of the upstream: commands name it.
///
/// # Errors
/// The upstream does not serve.
pub(crate) fn find_upstream(lab: &mut dyn Lab, servers: &mut Servers) -> Result<(), Error> {
    let found = Starter::new(&lab.cpus(), &servers.load).upstream(lab, servers);
    lab.stop().map_err(|error| of_lab("", error))?;
    servers.learned.upstream = Some(found?);
    Ok(())
}

impl Learner {
    pub(crate) fn new(cpus: &[u32], client: CommandLine, servers: &Servers, budget: Option<Nanos>) -> Self {
        let [window, longest] = warming(budget);
        Self { starter: Starter::new(cpus, &servers.load), client, window, longest, baseline: Vec::new() }
    }

    /// Starts a command and the baseline, which is the second side, and fills in what is not known of both.
    /// Returns the time of each stage; both are then warm, and go on running, also after a failure.
    ///
    /// # Errors
    /// A command that does not serve, or answers otherwise than the baseline; with the way out.
    pub(crate) fn pair(
        &mut self,
        labs: Pair<'_>,
        servers: &mut Servers,
        command: usize,
    ) -> Result<BTreeMap<Stage, Nanos>, Error> {
        let [a, b] = labs;
        let indices = [command, 0];
        let began = a.now();
        let started = on_both([&mut *a, &mut *b], false, |lab, side| {
            self.starter.server(lab, servers, indices[side], side)
        });
        // Of two errors that of the baseline is the first.
        for (index, address) in indices.into_iter().zip(started).rev() {
            servers.learned.servers[index].address = address?;
        }
        let at_start = a.now();
        // The baseline's responses are the first to be known.
        if self.baseline.is_empty() {
            self.responses(b, servers, 0)?;
        }
        self.responses(a, servers, command)?;
        let [one, two] = self.warm_up([&mut *a, &mut *b], servers, indices)?;
        let time = one.time_to_warm().max(two.time_to_warm());
        let of = |windows: &Windows| Warmup {
            time,
            is_steady: windows.are_steady(),
            response: windows.response(servers.load.under_way()),
            waits: windows.waits,
            served: windows.served(servers.load.connections),
        };
        let warmups = [of(&one), of(&two)];
        for (index, warmup) in indices.into_iter().zip(warmups) {
            // The baseline has the warm-up of each pair that is longer than those before.
            let server = &mut servers.learned.servers[index];
            let known = server.warmup.filter(|known| known.time > warmup.time);
            server.warmup = Some(known.unwrap_or(warmup));
        }
        let connections = servers.load.connections;
        for (index, windows) in indices.into_iter().zip([&one, &two]) {
            if let (Some(_), Some(served)) = (servers.load.rate, windows.served(connections)) {
                let name = servers.subjects[index].name();
                return Err(Error::NothingMeasured(format!(
                    "{name} takes {served} of {connections} connections at a time, and of an open loop \
                     requests would wait on the others without end: -c {served}"
                )));
            }
        }
        if servers.learned.capacity.is_none() && matches!(servers.load.rate, Some(PlannedRate::Share(_))) {
            let done = self.window(b, servers, 0, OF_CAPACITY)?;
            servers.learned.capacity = Some(done.0.operations as f64 / OF_CAPACITY.as_secs_f64());
        }
        let learned = a.now().since(at_start).since(time);
        let start = at_start.since(began);
        Ok([(Stage::Start, start), (Stage::Verify, time), (Stage::Learn, learned)].into())
    }

    /// The responses to each request, one request after the other, and their check.
    fn responses(&mut self, lab: &mut dyn Lab, servers: &mut Servers, index: usize) -> Result<(), Error> {
        let (server, load) = (servers.server(index), &servers.load);
        let Some(address) = server.reached().filter(|_| load.layer == Layer::Http) else { return Ok(()) };
        let subject = server.subject();
        let name = subject.name().to_owned();
        let host = subject.address().map_or_else(|| address.to_string(), |known| known.target.host.clone());
        let request =
            |one: &PlannedRequest| PlannedRequest { path: subject.path(load, one).to_owned(), ..one.clone() };
        let requests: Vec<PlannedRequest> = load.requests.iter().take(MOST_ASKED).map(request).collect();
        let n = requests.len();
        let question =
            Question { address, host, requests, times: RESPONSES, within: ready_within(load).into() };
        let within = if server.is_started_here() { ready_within(load) } else { Duration::ZERO };
        let responses = until_ready(lab, within, |lab| {
            let (responses, reason) = self.asked(lab, &name, &question)?;
            if responses.len() < n * RESPONSES as usize {
                let reason = reason.unwrap_or_else(|| "it sent no response".into());
                // It will not speak another protocol later.
                let is_final = reason.contains("it speaks");
                return Ok((Err(Error::NothingMeasured(format!("{name}: {reason}"))), is_final));
            }
            let is_ready = responses.iter().all(|response| is_expected(load.given, response));
            Ok((Ok(responses), is_ready))
        })??;
        for (number, responses) in responses.chunks(RESPONSES as usize).enumerate() {
            self.check(servers, index, number, responses)?;
        }
        Ok(())
    }

    /// The responses to a question, and why there are no more.
    fn asked(
        &self,
        lab: &mut dyn Lab,
        name: &str,
        question: &Question,
    ) -> Result<(Vec<Response>, Option<String>), Error> {
        let question = serde_json::to_string(question).expect("a question has string keys only");
        let program = std::env::current_exe().map_err(Error::file(&PathBuf::from("/proc/self/exe")))?;
        let run = self.starter.run(lab, name, (program, vec![ASK.into(), question]))?;
        let (mut responses, mut reason) = (Vec::new(), None);
        for outcome in run.stdout.iter().filter_map(|line| serde_json::from_str(line).ok()) {
            match outcome {
                Outcome::Response(response) => responses.push(response),
                Outcome::None { reason: why } => reason = Some(why),
            }
        }
        Ok((responses, reason))
    }

    /// The protocol of a server that has not answered in another one, with what is to be done.
    fn other_protocol(&self, lab: &mut dyn Lab, servers: &Servers, index: usize) -> Option<String> {
        let (server, load) = (servers.server(index), &servers.load);
        let address = server.reached().filter(|_| !load.is_of_datagrams() && load.layer != Layer::Http)?;
        let request = PlannedRequest { path: "/".into(), ..load.requests.first()?.clone() };
        let host = address.to_string();
        let question = Question { address, host, requests: vec![request], times: 1, within: USUAL };
        let (responses, reason) = self.asked(lab, server.subject().name(), &question).ok()?;
        match (&responses[..], reason) {
            ([_, ..], _) if load.has_tls() => Some("it speaks HTTP without TLS: leave out --https".into()),
            ([_, ..], _) if load.layer == Layer::H2c => {
                Some(format!("it speaks HTTP/1.1{}", option("HTTP/1.1")))
            }
            (_, Some(reason)) if reason.contains("speaks TLS") && !load.has_tls() => Some(reason),
            _ => None,
        }
    }

    /// The baseline's responses are what all must answer, as far as the user has not said it.
    fn check(
        &mut self,
        servers: &mut Servers,
        index: usize,
        number: usize,
        responses: &[Response],
    ) -> Result<(), Error> {
        let Some(common) = Response::common(responses) else { return Ok(()) };
        let (subject, request) = (&servers.subjects[index], &servers.load.requests[number]);
        let name = subject.name();
        let asked = format!("{} {}", request.method, subject.path(&servers.load, request));
        let described = format!("{name} answers {asked} with {}", described(common, &responses[0]));
        let given = servers.load.given;
        if let Some(other) = first_difference(servers.expectation(number), common) {
            return Err(Error::NothingMeasured(match self.baseline.get(number) {
                Some(of_baseline) => format!(
                    "the responses differ in their {other}\n  {of_baseline}\n  {described}\n\
                     if both are right, say what is: --expect status=200 alone, or with length=N or json"
                ),
                None => format!("{described}; --expect has another {other}"),
            }));
        }
        if self.baseline.len() == number {
            let status = common.status.unwrap_or(responses[0].status);
            if given.status.is_none() && !(200..400).contains(&status) {
                return Err(Error::NothingMeasured(format!(
                    "{described}\nask for another path with --url, or say that it is right: \
                     --expect status={status}"
                )));
            }
            // What the user has said is all that is expected.
            if given == Expectation::default() && servers.learned.expectations.len() == number {
                servers.learned.expectations.push(Expectation { json: false, ..common });
            }
            self.baseline.push(described);
        }
        Ok(())
    }

    /// Loads both at the same time, in closed loops, until the rates and the CPU times of both are steady.
    fn warm_up(
        &self,
        [a, b]: Pair<'_>,
        servers: &Servers,
        indices: [usize; 2],
    ) -> Result<[Windows; 2], Error> {
        let (mut windows, mut length) = ([Windows::default(), Windows::default()], self.window);
        let (mut until, ready) = (a.now() + self.longest, a.now() + ready_within(&servers.load).into());
        loop {
            let measured = on_both([&mut *a, &mut *b], false, |lab, side| {
                self.window(lab, servers, indices[side], length)
            });
            let now = a.now();
            let (mut is_too_short, mut is_early) = (false, false);
            for (side, done) in measured.into_iter().enumerate() {
                let (done, cpu) = done?;
                let name = servers.subjects[indices[side]].name();
                match done.operations {
                    // Its responses take longer than that, or the machine is busy.
                    0 if done.errors.total() == 0 && length < LONGEST_WINDOW => is_too_short = true,
                    0 if now < ready && may_be_early(servers.load.given, &done) => is_early = true,
                    0 => {
                        let lab = if side == 0 { &mut *a } else { &mut *b };
                        let other = self.other_protocol(lab, servers, indices[side]);
                        return Err(no_response(&servers.load, name, length, &done, other));
                    }
                    _ => {
                        windows[side].waits = done.waits_for_acks().is_some();
                        windows[side].push(&done, length.as_secs_f64(), cpu);
                    }
                }
            }
            if is_early {
                (windows, until) = ([Windows::default(), Windows::default()], a.now() + self.longest);
                continue;
            }
            let are_steady = windows.iter().all(|windows| windows.are_enough() && windows.are_steady());
            if are_steady || a.now() >= until && windows.iter().all(|windows| windows.len() > 0) {
                return Ok(windows);
            }
            length = if is_too_short { Nanos(2 * length.0) } else { length };
        }
    }

    /// One window of a closed loop, and the CPU time of the server in it.
    fn window(
        &self,
        lab: &mut dyn Lab,
        servers: &Servers,
        index: usize,
        length: Nanos,
    ) -> Result<(Done, Option<Nanos>), Error> {
        let (server, load) = (servers.server(index), &servers.load);
        let name = server.subject().name();
        let mut spec = Spec::new(Role::Client, load.layer, Workload::Rr);
        spec.connections = load.connections;
        spec.size = load.size.unwrap_or(0);
        spec.threads = load.threads;
        spec.connect = server.reached();
        spec.duration_ns = Some(length);
        server.ask(&mut spec, 1);
        let (program, words) = self.client.clone();
        let words = words.into_iter().chain([spec.to_json()]).collect();
        let run = self.starter.run(lab, name, (program, words))?;
        let done = run.stdout.iter().rev().find_map(|line| match Event::parse(line) {
            Ok(Event::Done(done)) => Some(*done),
            _ => None,
        });
        let cpu = run.cpu.iter().find(|(role, _)| *role == Role::Server).map(|(_, cpu)| *cpu);
        Ok((done.ok_or_else(|| no_response(load, name, length, &Done::default(), None))?, cpu))
    }
}

/// With the causes, the statuses of the responses, and the protocol that was found.
fn no_response(load: &PlannedLoad, name: &str, window: Nanos, done: &Done, other: Option<String>) -> Error {
    let mut why: Vec<String> =
        done.statuses.iter().map(|(status, n)| format!("status {status}: {n}")).collect();
    for (kind, failed) in &done.errors.0 {
        let known = done.causes.0.get(kind);
        let text = known.map_or_else(String::new, |cause| format!(": {}", cause.text));
        let next =
            ["TLS", "HTTP/2", "HTTP/1.1"].into_iter().find(|name| text.contains(&format!("speaks {name}")));
        let of_upgrade = known.and_then(|cause| next_of_upgrade(&cause.text));
        let next = of_upgrade.map_or_else(|| next.map_or("", option).to_owned(), |next| format!("; {next}"));
        why.push(format!("{} {failed}{text}{next}", kind.name()));
    }
    why.extend(other);
    if !why.is_empty() {
        let (time, why) = (window.as_secs_f64(), why.join("\n  "));
        return Error::NothingMeasured(format!(
            "{name}: not one correct response in {time} s under load\n  {why}"
        ));
    }
    let speaks = match load.layer {
        Layer::H2c => "; --h2 is HTTP/2 with prior knowledge, and with --https over TLS",
        Layer::H3 => "; --h3 is HTTP/3, over UDP",
        Layer::H2 => "; --h2 with --https is HTTP/2 by ALPN, and without it with prior knowledge",
        _ if load.size.is_some() => {
            "; a server has to send back what it gets: one of HTTP is compared without --tcp, --udp or --ws"
        }
        _ => "",
    };
    let time = window.as_secs_f64();
    Error::NothingMeasured(format!("{name}: not one correct response in {time} s under load{speaks}"))
}

/// Statuses of a server that is not ready yet; the last one is of gRPC.
const NOT_READY: [&str; 4] = ["502", "503", "504", "grpc-14"];

/// True if the failures of a load may be those of a server that is not ready yet.
fn may_be_early(given: Expectation, done: &Done) -> bool {
    let mut statuses = done.statuses.keys();
    // A refused upgrade will be one later, too.
    let is_final = |text: &str| {
        let status = text.strip_prefix("the upgrade has status ");
        text.contains("speaks") || status.is_some_and(|status| !NOT_READY.contains(&status))
    };
    let is_other = done.causes.0.values().any(|cause| is_final(&cause.text));
    let is_of_status = given.status.is_some() || statuses.any(|status| NOT_READY.contains(&&**status));
    !is_other && (done.statuses.is_empty() || is_of_status)
}

/// False for a response of a server that is not ready yet: another one than the user has said, or one that
/// says so.
fn is_expected(given: Expectation, response: &Response) -> bool {
    let says_so = || NOT_READY.contains(&&*response.status.to_string());
    given.status.map_or_else(|| !says_so(), |status| response.status == status)
        && given.bytes.is_none_or(|bytes| response.bytes == bytes)
        && (response.json || !given.json)
}

/// The part in which what is common to the responses is not what is expected.
fn first_difference(expected: Expectation, common: Expectation) -> Option<&'static str> {
    let differs = |is_expected: bool, is_same: bool| is_expected && !is_same;
    if differs(expected.status.is_some(), common.status == expected.status) {
        Some("status")
    } else if differs(expected.bytes.is_some(), common.bytes == expected.bytes) {
        Some("length")
    } else if differs(expected.crc32.is_some(), common.crc32 == expected.crc32) {
        Some("content")
    } else if differs(expected.json, common.json) {
        Some("format: JSON")
    } else {
        None
    }
}

fn described(common: Expectation, first: &Response) -> String {
    let status = common.status.map_or("a status that varies".to_owned(), |status| status.to_string());
    let bytes = common.bytes.map_or("a length that varies".to_owned(), |bytes| format!("{bytes} bytes"));
    let content = if common.crc32.is_none() { ", content that varies" } else { "" };
    format!("{status}, {bytes}{content}: {:?}", first.start)
}
