//! Before the first trial each command is started once, alone: where it listens, what it answers, and how
//! many requests it needs until its rate is steady. All of it becomes part of the plan in `run.json`.

use super::ask::{ASK, Question, Response};
use super::windows::{Windows, alike};
use super::{RESPONSES, ask_of, at_port, ready};
use crate::error::Error;
use crate::lab::protocol::HostName;
use crate::lab::{ClientRun, CommandLine, Lab, LabError, Label, Launch, Purpose, Ready};
use crate::measurement::{DEFAULT_BUILD, Expectation, PlannedCommands, PlannedRate, PlannedRequest, Warmup};
use crate::path::Shape;
use crate::pins::{self, Pins};
use crate::programs::Programs;
use crate::system::VERIFIER;
use linerate_contract::{Event, Nanos, Role, Spec};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

/// After the first listener, others may follow within this time.
const SETTLE: Duration = Duration::from_millis(100);
/// The window of a warm-up's rate, how long it becomes at most until it has a response (as long as a unit),
/// and how many are measured at most: five seconds for a server that is not slow.
const WINDOW: Nanos = Nanos(250_000_000);
const LONGEST_WINDOW: Nanos = Nanos(1_000_000_000);
const MOST_WINDOWS: usize = 20;
/// The longest wait for the requests of one client.
const DEADLINE: Duration = Duration::from_secs(30);

/// Fills in what the plan lacks: addresses, the expectation, the warm-up.
///
/// # Errors
/// A command that does not serve, or answers otherwise than the baseline; with the way out.
pub(crate) fn learn(
    lab: &mut dyn Lab,
    programs: &Programs,
    planned: &mut PlannedCommands,
    lines: &[CommandLine],
) -> Result<(), Error> {
    let mut learner = Learner { pins: pins(lab, planned), lab, programs, planned: planned.clone() };
    let (mut baseline, mut warm) = (Vec::new(), Vec::new());
    for index in 0..planned.commands.len() {
        let learned = learner.of_one(index, lines.get(index), &mut baseline);
        // Also after a failure.
        learner.lab.stop().map_err(|error| of_lab("", error))?;
        let (address, warmup, rate) = learned?;
        if index == 0 && matches!(planned.rate, Some(PlannedRate::Share(_))) {
            planned.capacity = Some(rate);
        }
        planned.commands[index].address = Some(address);
        warm.push((warmup, rate));
    }
    for (command, warmup) in planned.commands.iter_mut().zip(alike(&warm)) {
        command.warmup = Some(warmup);
    }
    planned.requests = learner.planned.requests;
    Ok(())
}

/// Fills in the address of the upstream, which is the first companion: commands name it.
///
/// # Errors
/// It does not serve.
pub(crate) fn find_upstream(
    lab: &mut dyn Lab,
    programs: &Programs,
    planned: &mut PlannedCommands,
) -> Result<(), Error> {
    let mut learner = Learner { pins: pins(lab, planned), lab, programs, planned: planned.clone() };
    let found = learner.upstream();
    learner.lab.stop().map_err(|error| of_lab("", error))?;
    let found = found?;
    planned.upstream.iter_mut().for_each(|upstream| upstream.address = Some(found));
    Ok(())
}

fn pins(lab: &dyn Lab, planned: &PlannedCommands) -> Pins {
    pins::assign(&lab.cpus(), &[Role::Client, Role::Server], planned.threads as usize)
}

struct Learner<'a> {
    lab: &'a mut dyn Lab,
    programs: &'a Programs,
    /// With the expectations as far as they are known.
    planned: PlannedCommands,
    pins: Pins,
}

impl Learner<'_> {
    fn of_one(
        &mut self,
        index: usize,
        line: Option<&CommandLine>,
        baseline: &mut Vec<String>,
    ) -> Result<(SocketAddr, Warmup, f64), Error> {
        let name = self.planned.commands[index].name.clone();
        let failed = |error| of_lab(&name, error);
        self.lab.raise(&label(&name), Shape::Loopback.into(), Vec::new()).map_err(failed)?;
        let address = match (line, self.planned.commands[index].address) {
            (None, Some(address)) => address,
            (line, _) => self.started(&name, line.cloned())?,
        };
        if self.planned.layer == "http" {
            let answers = self.answers(&name, address)?;
            for (number, answers) in answers.chunks(RESPONSES as usize).enumerate() {
                self.check(&name, number, answers, baseline)?;
            }
        }
        let (warmup, rate) = self.warm_up(&name, address)?;
        Ok((address, warmup, rate))
    }

    fn upstream(&mut self) -> Result<SocketAddr, Error> {
        let name = "the upstream";
        let failed = |error| of_lab(name, error);
        self.lab.raise(&label(name), Shape::Loopback.into(), Vec::new()).map_err(failed)?;
        let server = Launch { user: self.programs.user(name), ..self.launch(Role::Server, name, None) };
        let upstream = self.programs.companions(&server).into_iter().next();
        self.lab.start(&upstream.unwrap_or(server)).map_err(failed)?;
        self.address(name, &[])
    }

    /// Starts a server with its companions; where it listens.
    fn started(&mut self, name: &str, line: Option<CommandLine>) -> Result<SocketAddr, Error> {
        let failed = |error| of_lab(name, error);
        let server = Launch {
            user: self.programs.user(name),
            ready: ready(&self.planned),
            ..self.launch(Role::Server, name, line)
        };
        let server = match self.programs.ports {
            Some([port, _]) => at_port(server, port),
            None => server,
        };
        for companion in self.programs.companions(&server) {
            self.lab.start(&companion).map_err(failed)?;
        }
        let of_companions = self.lab.listeners(ready(&self.planned)).map_err(failed)?;
        self.lab.start(&server).map_err(|error| self.of_start(name, error))?;
        self.address(name, &of_companions)
    }

    /// The error of a server that was not ready.
    fn of_start(&self, name: &str, error: LabError) -> Error {
        match (of_lab(name, error), self.programs.ports) {
            (Error::NothingMeasured(reason), Some([port, _])) => Error::NothingMeasured(format!(
                "{reason}\nwith --network host it has to listen on {{port}}, which is also PORT: here {port}"
            )),
            (error, _) => error,
        }
    }

    fn launch(&self, role: Role, system: &str, process: Option<CommandLine>) -> Launch {
        Launch {
            role,
            system: system.into(),
            host: HostName::Server,
            folder: PathBuf::from(role.to_string()),
            process,
            ready: Ready::Event,
            cpus: self.pins.cpus.get(&role).cloned().unwrap_or_default(),
            ..Launch::default()
        }
    }

    /// Where it listens, as a client reaches it.
    fn address(&mut self, name: &str, of_others: &[SocketAddr]) -> Result<SocketAddr, Error> {
        sleep(SETTLE);
        let mut all = self.lab.listeners(ready(&self.planned)).map_err(|error| of_lab(name, error))?;
        all.retain(|address| !of_others.contains(address));
        all.sort_by_key(|address| (address.port(), address.is_ipv6()));
        all.dedup_by_key(|address| address.port());
        let given = self.programs.ports.map(|[port, _]| port);
        let (port, port_is_given) =
            (given.unwrap_or(self.planned.port), self.planned.port_is_given || given.is_some());
        if all.is_empty() {
            // It has ended, and a client's run says how.
            self.answers(name, SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port))?;
            return Err(Error::NothingMeasured(format!("{name} does not listen any more")));
        }
        let has = |port: u16| all.iter().find(|address| address.port() == port);
        let chosen = match (&all[..], has(port)) {
            (_, Some(address)) => *address,
            (_, None) if port_is_given => {
                let ports = ports(&all);
                return Err(Error::Input(format!("{name} does not listen on --port {port}, but on {ports}")));
            }
            ([one], None) => *one,
            (several, None) => {
                let (ports, first) = (ports(several), several.first().map_or(0, SocketAddr::port));
                return Err(Error::Input(format!(
                    "{name} listens on several ports ({ports}): name the one to measure, such as \
                     --port {first}"
                )));
            }
        };
        let ip = match chosen.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            // Most sockets of both protocols have the address `::`.
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_loopback() => Ipv6Addr::LOCALHOST.into(),
            other => other,
        };
        Ok(SocketAddr::new(ip, chosen.port()))
    }

    /// The responses to each request, one request after the other.
    fn answers(&mut self, name: &str, address: SocketAddr) -> Result<Vec<Response>, Error> {
        let planned = &self.planned;
        let target = planned.named(name).and_then(|command| command.target.clone());
        let host = target.map_or_else(|| address.to_string(), |target| target.host);
        let request =
            |one: &PlannedRequest| PlannedRequest { path: planned.path(name, one).to_owned(), ..one.clone() };
        let requests = planned.requests.iter().map(request).collect();
        let question = Question { address, host, requests, times: RESPONSES };
        let question = serde_json::to_string(&question).expect("a question has string keys only");
        let program = std::env::current_exe().map_err(Error::file(&PathBuf::from("/proc/self/exe")))?;
        let run = self.run(name, (program, vec![ASK.into(), question]))?;
        let answers: Vec<Response> =
            run.stdout.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if answers.len() < self.planned.requests.len() * RESPONSES as usize {
            return Err(Error::NothingMeasured(format!("{name}: it sent no response")));
        }
        Ok(answers)
    }

    fn run(&mut self, name: &str, process: CommandLine) -> Result<ClientRun, Error> {
        let client = self.launch(Role::Client, name, Some(process));
        self.lab.run(&client, Purpose::Verify, DEADLINE).map_err(|error| of_lab(name, error))
    }

    /// The baseline's responses are what all must answer, as far as the user has not said it.
    fn check(
        &mut self,
        name: &str,
        number: usize,
        answers: &[Response],
        baseline: &mut Vec<String>,
    ) -> Result<(), Error> {
        let Some(common) = Response::common(answers) else { return Ok(()) };
        let request = &self.planned.requests[number];
        let asked = format!("{} {}", request.method, self.planned.path(name, request));
        let described = format!("{name} answers {asked} with {}", described(common, &answers[0]));
        let given = self.planned.given;
        if let Some(other) = first_difference(request.expect, common) {
            return Err(Error::NothingMeasured(match baseline.get(number) {
                Some(of_baseline) => format!(
                    "the responses differ in their {other}\n  {of_baseline}\n  {described}\n\
                     if both are right, say what is: --expect status=200 alone, or with length=N or json"
                ),
                None => format!("{described}; --expect has another {other}"),
            }));
        }
        if baseline.len() == number {
            let status = common.status.unwrap_or(answers[0].status);
            if given.status.is_none() && !(200..400).contains(&status) {
                return Err(Error::NothingMeasured(format!(
                    "{described}\nask for another path with --url, or say that it is right: \
                     --expect status={status}"
                )));
            }
            // What the user has said is all that is expected.
            if given == Expectation::default() {
                self.planned.requests[number].expect = Expectation { json: false, ..common };
            }
            baseline.push(described);
        }
        Ok(())
    }

    /// Measures its rate until it is steady, in a closed loop; returns the rate, too.
    fn warm_up(&mut self, name: &str, address: SocketAddr) -> Result<(Warmup, f64), Error> {
        let native = self.programs.command_line(Role::Client, VERIFIER, DEFAULT_BUILD).cloned();
        let (program, words) =
            native.ok_or_else(|| Error::NothingMeasured("linerate-load is not beside linerate".into()))?;
        let mut spec = Spec::new(Role::Client, &self.planned.layer, "rr");
        spec.connections = self.planned.connections;
        spec.size = self.planned.size.unwrap_or(0);
        spec.threads = self.planned.threads;
        spec.connect = Some(address);
        ask_of(&self.planned, name, &mut spec, 1);
        let (mut windows, mut window) = (Windows::default(), WINDOW);
        while !windows.are_steady() && windows.len() < MOST_WINDOWS {
            spec.duration_ns = Some(window);
            let words = words.iter().cloned().chain([spec.to_json()]).collect();
            let run = self.run(name, (program.clone(), words))?;
            let done = run.stdout.iter().rev().find_map(|line| match Event::parse(line) {
                Ok(Event::Done(done)) => Some(done),
                _ => None,
            });
            match done {
                Some(done) if done.operations > 0 => {
                    windows.push(done.operations, done.end_ns.since(done.start_ns).as_secs_f64());
                }
                // Its responses take longer than that, or the machine is busy.
                Some(done) if done.errors.total() == 0 && window < LONGEST_WINDOW => {
                    window = Nanos(2 * window.0);
                }
                _ => return Err(self.no_response(name, window)),
            }
        }
        Ok((windows.warm_up(), windows.rate()))
    }

    fn no_response(&self, name: &str, window: Nanos) -> Error {
        let speaks = match self.planned.layer.as_str() {
            "h2c" => "; --h2 is HTTP/2 with prior knowledge, and with --https over TLS",
            "h3" => "; --h3 is HTTP/3, over UDP",
            "h2" => "; --h2 with --https is HTTP/2 by ALPN, and without it with prior knowledge",
            _ => "",
        };
        let time = window.as_secs_f64();
        Error::NothingMeasured(format!("{name}: not one correct response in {time} s under load{speaks}"))
    }
}

fn label(name: &str) -> Label {
    Label { suite: "commands".into(), cell: name.into(), round: 0, warmup: true }
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

fn ports(listeners: &[SocketAddr]) -> String {
    listeners.iter().map(|address| address.port().to_string()).collect::<Vec<_>>().join(", ")
}

fn of_lab(name: &str, error: LabError) -> Error {
    match error {
        LabError::Interrupted => Error::Interrupted,
        LabError::System { reason, log } => {
            let log: String = log.lines().map(|line| format!("\n  {line}")).collect();
            Error::NothingMeasured(format!("{reason}{log}"))
        }
        other => Error::NothingMeasured(format!("{name}: {other}")),
    }
}
