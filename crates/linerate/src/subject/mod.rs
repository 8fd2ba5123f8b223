//! Servers of the user's own, by command or address: the subjects of `linerate compare './a' './b'`.
//!
//! | module | contents |
//! |---|---|
//! | [`words`] | a command line into a program and its arguments |
//! | [`values`] | a command for each value, and what each has of its own |
//! | `hooks` | what is done before and after all of it |
//! | `learn` | before the first unit of a pair: what each answers, how long it warms up |
//! | `servers` | how each is started or reached, and what it is asked |
//! | `start` | a command is started: its companions, itself, and where it listens |
//! | [`ask`] | the requests of `learn`, made inside the lab |
//! | `windows` | when a server is warm |

pub mod ask;
mod hooks;
mod learn;
mod servers;
mod start;
pub mod values;
mod windows;
pub mod words;

pub(crate) use hooks::{Tether, clean_up, set_up};
pub(crate) use learn::{Learner, find_upstream};
pub(crate) use servers::{Server, Servers};

use crate::error::Error;
use crate::lab::Ready;
use crate::measurement::{
    Expectation, Hooks, Learned, Place, PlannedAddress, PlannedHost, PlannedLoad, PlannedRequest,
    PlannedTarget, Subject,
};
use ask::{Question, Response};
use linerate_contract::{Body, Expect, Layer, Request, Spec, WeightedRequest};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};

/// Responses that are compared.
const RESPONSES: u32 = 5;

/// Names of the commands: the given ones, else the programs' names where these differ, else the commands.
///
/// # Errors
/// Names that are not one for each command, or not different.
pub fn names(commands: &[String], names: &[String]) -> Result<Vec<String>, Error> {
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
        let short = commands.iter().map(|command| words::short_name(command));
        let numbered = short.zip(1..).map(|(command, n)| format!("{command} ({n})"));
        chosen = numbered.collect();
    }
    Ok(chosen)
}

/// Checks that the commands of servers and companions can be started; `are_made`: those of servers are made
/// before they are.
///
/// # Errors
/// A command that cannot be split, or whose program is not there.
pub fn check(subjects: &[Subject], load: &PlannedLoad, are_made: bool) -> Result<(), Error> {
    let mut servers = Servers::new(subjects, load, Learned::default());
    servers.read_companions()?;
    if are_made { Ok(()) } else { servers.read_lines() }
}

/// The sign that a server is ready.
pub(crate) fn ready(load: &PlannedLoad) -> Ready {
    if load.is_of_datagrams() { Ready::Datagrams } else { Ready::Listen }
}

/// A server that runs already, and is that of every cell, with a correct response by its first ones.
pub(crate) fn served(host: &PlannedHost) -> Result<Servers, Error> {
    let failed = |what: &str| Error::NothingMeasured(format!("{}: {what}", host.place));
    let url = host.place.served_at().ok_or_else(|| failed("it is no URL"))?;
    let target = PlannedTarget { host: url.authority(), path: url.path.clone() };
    let address = SocketAddr::from((host.address.unwrap_or(Ipv4Addr::LOCALHOST), url.port));
    let request = PlannedRequest {
        method: "GET".into(),
        path: url.path.clone(),
        headers: Vec::new(),
        body: Body::default(),
        weight: 1,
        expect: Expectation::default(),
    };
    let requests = vec![request];
    let question = Question {
        address,
        host: target.host.clone(),
        requests: requests.clone(),
        times: RESPONSES,
        within: ask::USUAL,
    };
    let mut responses = Vec::new();
    ask::ask(&question, |response| responses.push(response)).map_err(|e| failed(&e))?;
    let expect = Response::common(&responses).unwrap_or_default();
    if expect.status.is_none_or(|status| status >= 400) {
        let Response { status, start, .. } = &responses[0];
        return Err(failed(&format!("it answers with status {status}: {start:?}")));
    }
    let load = PlannedLoad { layer: Layer::Http, place: Place::Local, requests, ..PlannedLoad::default() };
    let subject = Subject::Address(PlannedAddress {
        name: host.place.to_string(),
        url: host.place.to_string(),
        target,
        address,
        further: Vec::new(),
        watched_on: None,
        hooks: Hooks::default(),
    });
    let learned = Learned { expectations: vec![expect], ..Learned::default() };
    Ok(Servers::new(&[subject], &load, learned))
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

/// The expectation that the load engine compares. JSON is for the first responses alone, and where content
/// varies, the next length may be another.
pub(crate) fn expected(expect: Expectation, given: Expectation, every: u64) -> Option<Expect> {
    let Expectation { status, bytes, crc32, .. } = expect;
    let bytes = bytes.filter(|_| crc32.is_some() || given.bytes.is_some());
    Some(Expect { status, bytes, crc32, every }).filter(|_| status.is_some() || bytes.is_some())
}

#[cfg(test)]
mod tests {
    fn names(commands: &[&str], names: &[&str]) -> Result<Vec<String>, String> {
        let owned = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        super::names(&owned(commands), &owned(names)).map_err(|e| e.to_string())
    }

    #[test]
    fn commands_are_named_by_their_programs_or_by_what_differs() {
        assert_eq!(names(&["./shop-v1 -p 1", "bin/shop-v2"], &[]).unwrap(), ["shop-v1", "shop-v2"]);
        assert_eq!(names(&["./shop -t 1", "./shop -t 2"], &[]).unwrap(), ["./shop -t 1", "./shop -t 2"]);
        assert_eq!(names(&["./shop", "./shop"], &[]).unwrap(), ["shop (1)", "shop (2)"]);
        assert_eq!(names(&["./a", "./b"], &["old", "new"]).unwrap(), ["old", "new"]);
    }

    #[test]
    fn names_must_be_as_many_as_commands_and_differ() {
        assert!(names(&["./a", "./b"], &["old"]).unwrap_err().contains("1 times for 2 commands"));
        assert!(names(&["./a", "./b"], &["1000"]).unwrap_err().contains("requests is of linerate load"));
        assert!(names(&["./a", "./b"], &["x", "x"]).unwrap_err().contains("must differ"));
    }
}
