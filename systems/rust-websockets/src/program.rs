//! `main` of every library's program: the spec, what it may ask, and the exit statuses.

use crate::{Library, client, server};
use linerate_contract::{Describe, EXIT_UNSUPPORTED, Event, Role, Spec};
use std::io::Write;

/// Why a task ended without its result.
pub(crate) enum Refusal {
    Unsupported(String),
    BadSpec(String),
    Failed(std::io::Error),
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Runs the task of the command line, and ends the process.
pub fn main<L: Library>() {
    let mut arguments = std::env::args().skip(1);
    let outcome = match (arguments.next(), arguments.next()) {
        (Some(json), None) => Spec::parse(&json).map_err(Refusal::BadSpec).and_then(|spec| run::<L>(spec)),
        _ => Err(Refusal::BadSpec("expected one argument, the spec as JSON (sdk/CONTRACT.md)".into())),
    };
    let (status, text) = match outcome {
        Ok(event) => return event.iter().for_each(emit),
        Err(Refusal::Unsupported(text)) => (EXIT_UNSUPPORTED, format!("unsupported: {text}")),
        Err(Refusal::BadSpec(text)) => (2, format!("bad spec: {text}")),
        Err(Refusal::Failed(error)) => (1, error.to_string()),
    };
    eprintln!("{}: {text}", L::NAME);
    std::process::exit(status);
}

/// Prints one event and flushes it.
pub(crate) fn emit(event: &Event) {
    println!("{}", event.to_json());
    // A reader that went away is no reason to fail.
    let _ = std::io::stdout().flush();
}

fn run<L: Library>(spec: Spec) -> Result<Option<Event>, Refusal> {
    if spec.role == Role::Describe {
        return Ok(Some(Event::Describe(describe::<L>())));
    }
    let known = ["websocket", "wss"].contains(&spec.layer.as_str())
        && ["rr", "stream"].contains(&spec.workload.as_str());
    if !known || !matches!(spec.role, Role::Client | Role::Server) {
        return Err(Refusal::Unsupported(format!(
            "{} of layer {:?} and workload {:?}",
            spec.role, spec.layer, spec.workload
        )));
    }
    if spec.rate.is_some() || spec.threads > 1 {
        return Err(Refusal::Unsupported("an open loop (\"rate\"), or several threads".into()));
    }
    if spec.connections == 0 || spec.timeout_ns.0 == 0 {
        return Err(Refusal::BadSpec("\"connections\" and \"timeout_ns\" must be above 0".into()));
    }
    let bad = |text: &str| Err(Refusal::BadSpec(text.into()));
    if spec.workload == "stream" {
        match spec.options.get("direction").map(String::as_str) {
            Some("client-writes" | "client-reads") => {}
            Some("both") => return Err(Refusal::Unsupported("a stream both ways".into())),
            _ => return bad("\"options.direction\" must be client-writes or client-reads"),
        }
        if !(1..=1 << 20).contains(&spec.size) {
            return bad("\"size\" must be from 1 to 1048576 bytes");
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    match spec.role {
        Role::Server => local.block_on(&runtime, server::run::<L>(spec)).map(|()| None),
        _ => local.block_on(&runtime, client::run::<L>(spec)).map(|done| Some(Event::Done(Box::new(done)))),
    }
}

fn describe<L: Library>() -> Describe {
    let names = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    Describe {
        name: L::NAME.into(),
        version: L::VERSION.into(),
        roles: vec![Role::Client, Role::Server],
        layers: names(&["websocket", "wss"]),
        workloads: names(&["rr", "stream"]),
    }
}
