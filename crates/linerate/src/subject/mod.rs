//! Commands of the user's own that start servers: the subjects of `linerate compare './a' './b'`.
//!
//! | module | contents |
//! |---|---|
//! | [`words`] | a command line into a program and its arguments |
//! | `plan` | the suite of one table that is measured, and its systems |
//! | [`values`] | a command for each value, and what each has of its own |
//! | `hooks` | what is done before and after all of it |
//! | `learn` | before the first unit of a pair: what each answers, how long it warms up |
//! | `start` | a command is started: its companions, itself, and where it listens |
//! | [`ask`] | the requests of `learn`, made inside the lab |
//! | `windows` | when a server is warm |

pub mod ask;
mod hooks;
mod learn;
mod plan;
mod start;
pub mod values;
mod windows;
pub mod words;

pub(crate) use hooks::{clean_up, set_up};
pub(crate) use learn::{Learner, find_upstream};
pub(crate) use plan::{registry, suite};

use crate::error::Error;
use crate::lab::protocol::UserProcess;
use crate::lab::{CommandLine, Launch, Ready};
use crate::measurement::{
    Expectation, PlannedCommand, PlannedCommands, PlannedHost, PlannedRequest, PlannedTarget,
};
use crate::programs::Served;
use ask::{Question, Response};
use linerate_contract::{Expect, Request, Spec, Tls, WeightedRequest};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// How long a client waits outside of its window.
const PATIENCE_MS: u64 = 20;
/// Responses that are compared.
const RESPONSES: u32 = 5;

/// Names of the commands: the given ones, else the programs' names where these differ, else the commands.
///
/// # Errors
/// Names that are not one for each command, or not different.
pub fn named(commands: &[String], names: &[String]) -> Result<Vec<PlannedCommand>, Error> {
    if let [number] = names
        && number.parse::<u64>().is_ok()
    {
        return Err(Error::Input(format!(
            "-n {number} is a name here: a comparison ends when all is decided, or after --budget; a number \
             of requests is of linerate load"
        )));
    }
    if !names.is_empty() && names.len() != commands.len() {
        return Err(Error::Input(format!(
            "--name is there {} times for {} commands: give one for each, in their order",
            names.len(),
            commands.len()
        )));
    }
    let are_different = |names: &[String]| names.iter().collect::<BTreeSet<_>>().len() == names.len();
    let mut chosen = match names {
        [] => commands.iter().map(|command| words::short_name(command)).collect(),
        given => given.to_vec(),
    };
    if !are_different(&chosen) {
        if let Some(twice) = names.first() {
            return Err(Error::Input(format!("--name {twice}: names must differ from each other")));
        }
        chosen = commands.to_vec();
    }
    if !are_different(&chosen) {
        // The same command twice: a comparison with itself.
        let numbered = commands.iter().zip(1..).map(|(command, n)| format!("{command} ({n})"));
        chosen = numbered.collect();
    }
    let named = chosen.into_iter().zip(commands);
    Ok(named
        .map(|(name, command)| PlannedCommand { name, command: command.clone(), ..PlannedCommand::default() })
        .collect())
}

/// The program and the arguments of each command that is started.
///
/// # Errors
/// A command that cannot be split, or whose program is not there.
pub fn lines(planned: &PlannedCommands) -> Result<Vec<CommandLine>, Error> {
    let folder = |one: &PlannedCommand| one.folder.clone().unwrap_or_else(|| planned.folder.clone());
    let upstream = planned.upstream.as_ref().and_then(|upstream| upstream.address);
    let text = |one: &PlannedCommand| match upstream {
        Some(address) => one.command.replace("{upstream}", &address.to_string()),
        None => one.command.clone(),
    };
    let parsed = |one: &PlannedCommand| {
        words::parse(&text(one), &folder(one), (!planned.on_host).then_some(planned.port))
    };
    let started = planned.commands.iter().filter(|one| one.target.is_none());
    started.map(parsed).collect::<Result<_, _>>().map_err(Error::Input)
}

/// The same of their upstream and companions.
///
/// # Errors
/// As of [`lines`].
pub fn companions(planned: &PlannedCommands) -> Result<Vec<CommandLine>, Error> {
    let parsed = |command: &String| words::parse(command, &planned.folder, Some(planned.port));
    let upstream = planned.upstream.iter().map(|upstream| &upstream.command);
    upstream.chain(&planned.companions).map(parsed).collect::<Result<_, _>>().map_err(Error::Input)
}

/// Two ports of this machine that nothing uses.
pub(crate) fn free_ports() -> Result<[u16; 2], Error> {
    let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let both = listen().and_then(|one| Ok([one, listen()?]));
    let ports = both.and_then(|[one, other]| Ok([one.local_addr()?.port(), other.local_addr()?.port()]));
    ports.map_err(|e| Error::NothingMeasured(format!("no free port on 127.0.0.1: {e}")))
}

/// A server in the network of the host with its port: in its words, in PORT, and where it has to listen.
pub(crate) fn at_port(launch: Launch, port: u16) -> Launch {
    let at = |(program, words): CommandLine| {
        (program, words.iter().map(|word| words::with_port(word, port)).collect())
    };
    let with_port = |user: UserProcess| UserProcess {
        environment: [("PORT".to_owned(), port.to_string())].into(),
        ..user
    };
    Launch { process: launch.process.map(at), user: launch.user.map(with_port), port, ..launch }
}

/// What shows that a server is ready.
pub(crate) fn ready(planned: &PlannedCommands) -> Ready {
    if planned.is_of_datagrams() { Ready::Datagrams } else { Ready::Listen }
}

/// What a server that runs already answers, by its first responses.
pub(crate) fn served(host: &PlannedHost) -> Result<Served, Error> {
    let failed = |what: &str| Error::NothingMeasured(format!("{}: {what}", host.place));
    let url = host.served_at().ok_or_else(|| failed("it is no URL"))?;
    let request = PlannedRequest {
        method: "GET".into(),
        path: url.path.clone(),
        headers: Vec::new(),
        body: String::new(),
        weight: 1,
        expect: Expectation::default(),
    };
    let address = SocketAddr::from((host.address.unwrap_or(Ipv4Addr::LOCALHOST), url.port));
    let host = url.authority();
    let question = Question { address, host: host.clone(), requests: vec![request], times: RESPONSES };
    let mut answers = Vec::new();
    ask::ask(&question, |answer| answers.push(answer.clone())).map_err(|e| failed(&e))?;
    let expect = Response::common(&answers).unwrap_or_default();
    match expect.status {
        Some(status) if status < 400 => Ok(Served { target: PlannedTarget { host, path: url.path }, expect }),
        _ => Err(failed(&format!("it answers with status {}: {:?}", answers[0].status, answers[0].start))),
    }
}

/// Sets the request to such a server.
pub(crate) fn ask_served(served: &Served, spec: &mut Spec, check_every: u64) {
    spec.path = Some(served.target.path.clone());
    spec.request = Some(Request { host: Some(served.target.host.clone()), ..Request::default() });
    spec.expect = of_engine(served.expect, Expectation::default(), check_every);
}

/// Sets the request to the command of this name, and the expectation of a client. Certificates are not
/// verified: those of a server in a lab are seldom signed.
pub(crate) fn ask_of(planned: &PlannedCommands, name: &str, spec: &mut Spec, check_every: u64) {
    // Over the loopback a connection is there at once, or the server's queue was full. From elsewhere nothing
    // is known.
    if spec.rate.is_none() && !planned.are_elsewhere() {
        spec.set_option("patience_ms", PATIENCE_MS);
    }
    let host = planned.named(name).and_then(|command| command.target.as_ref()).map(|target| &target.host);
    let common = Request { host: host.cloned(), insecure: planned.has_tls(), ..Request::default() };
    if planned.has_tls() {
        spec.tls = Some(Tls { name: "localhost".into(), ..Tls::default() });
    }
    // An echo has no request, but the certificate of its server is not verified, either.
    if planned.size.is_some() {
        spec.request = planned.has_tls().then_some(common);
        if ["websocket", "wss"].contains(&planned.layer.as_str()) {
            spec.path = Some(planned.path(name, &planned.requests[0]).to_owned());
        }
        return;
    }
    if let Some(streams) = planned.streams {
        spec.set_option("streams", streams);
    }
    if planned.are_calls {
        spec.set_option("grpc", "yes");
    }
    let weighted = planned.requests.iter().map(|one| WeightedRequest {
        path: planned.path(name, one).to_owned(),
        expect: of_engine(one.expect, planned.given, check_every),
        ..sent(one)
    });
    requested(spec, common, weighted.collect());
}

/// A request as the load engine sends it.
pub(crate) fn sent(planned: &PlannedRequest) -> WeightedRequest {
    let PlannedRequest { method, path, headers, body, weight, .. } = planned.clone();
    let method = Some(method).filter(|method| method != "GET");
    let request = Request { method, headers, body, ..Request::default() };
    WeightedRequest { path, request, expect: None, weight }
}

/// Sets the requests of a client, with host and trust of `common`.
pub(crate) fn requested(spec: &mut Spec, common: Request, mut requests: Vec<WeightedRequest>) {
    if let [_] = requests[..]
        && let Some(WeightedRequest { path, request, expect, .. }) = requests.pop()
    {
        spec.request = Some(Request { host: common.host, insecure: common.insecure, ..request });
        (spec.path, spec.expect) = (Some(path), expect);
    } else {
        (spec.request, spec.requests, spec.path, spec.expect) = (Some(common), requests, None, None);
    }
}

/// What the load engine compares. JSON is for the first responses alone, and where content varies, the next
/// length may be another.
pub(crate) fn of_engine(expect: Expectation, given: Expectation, every: u64) -> Option<Expect> {
    let Expectation { status, bytes, crc32, .. } = expect;
    let bytes = bytes.filter(|_| crc32.is_some() || given.bytes.is_some());
    Some(Expect { status, bytes, crc32, every }).filter(|_| status.is_some() || bytes.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(commands: &[&str], names: &[&str]) -> Result<Vec<String>, String> {
        let owned = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        let named = named(&owned(commands), &owned(names)).map_err(|e| e.to_string())?;
        Ok(named.into_iter().map(|command| command.name).collect())
    }

    #[test]
    fn commands_are_named_by_their_programs_or_by_what_differs() {
        assert_eq!(names(&["./shop-v1 -p 1", "bin/shop-v2"], &[]).unwrap(), ["shop-v1", "shop-v2"]);
        assert_eq!(names(&["./shop -t 1", "./shop -t 2"], &[]).unwrap(), ["./shop -t 1", "./shop -t 2"]);
        assert_eq!(names(&["./shop", "./shop"], &[]).unwrap(), ["./shop (1)", "./shop (2)"]);
        assert_eq!(names(&["./a", "./b"], &["old", "new"]).unwrap(), ["old", "new"]);
    }

    #[test]
    fn names_must_be_as_many_as_commands_and_differ() {
        assert!(names(&["./a", "./b"], &["old"]).unwrap_err().contains("1 times for 2 commands"));
        assert!(names(&["./a", "./b"], &["1000"]).unwrap_err().contains("requests is of linerate load"));
        assert!(names(&["./a", "./b"], &["x", "x"]).unwrap_err().contains("must differ"));
    }
}
