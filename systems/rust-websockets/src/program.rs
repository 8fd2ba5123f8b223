//! `main` of every program: checks of the spec.

use crate::{Library, client, server};
use linerate_contract::program::{self, Refusal};
use linerate_contract::{Direction, Done, Role, Spec, Workload};
use linerate_sdk::unsupported;

/// Runs the spec of `argv[1]`, and ends the process.
pub fn main<L: Library>() {
    let describe = |_: &Spec| {
        let roles = [Role::Client, Role::Server];
        linerate_sdk::describe(L::NAME, L::VERSION, &roles, &["websocket", "wss"], &["rr", "stream"])
    };
    program::run(L::NAME, &[], describe, run::<L>);
}

fn run<L: Library>(spec: &Spec) -> Result<Option<Done>, Refusal> {
    let known = ["websocket", "wss"].contains(&spec.layer.as_str())
        && ["rr", "stream"].contains(&spec.workload.as_str());
    if !known || !matches!(spec.role, Role::Client | Role::Server) {
        return Err(unsupported(spec));
    }
    if spec.rate.is_some() || spec.threads > 1 {
        return Err(Refusal::Unsupported("an open loop (\"rate\"), or several threads".into()));
    }
    if spec.connections == 0 || spec.timeout_ns.0 == 0 {
        return Err(Refusal::BadSpec("\"connections\" and \"timeout_ns\" must be above 0".into()));
    }
    let bad = |text: &str| Err(Refusal::BadSpec(text.into()));
    if spec.workload == Workload::Stream {
        if spec.direction()? == Direction::Both {
            return Err(Refusal::Unsupported("a stream both ways".into()));
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
