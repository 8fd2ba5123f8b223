//! `main` of every library's program: what a spec may ask.

use crate::{Library, client, server};
use linerate_contract::program::{self, Refusal};
use linerate_contract::{Describe, Done, Role, Spec};

/// Runs the task of the command line, and ends the process.
pub fn main<L: Library>() {
    program::run(L::NAME, &[], |_| describe::<L>(), run::<L>);
}

fn run<L: Library>(spec: &Spec) -> Result<Option<Done>, Refusal> {
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
        Role::Server => local.block_on(&runtime, server::run::<L>(spec.clone())).map(|()| None),
        _ => local.block_on(&runtime, client::run::<L>(spec.clone())).map(Some),
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
