//! linerate's own programs that are no load generation, in one binary behind the contract of
//! [`linerate_contract`]. What they share with the load engine is its library.
//!
//! | module | role | contents |
//! |---|---|---|
//! | [`relay`] | relay | TCP forwarding by `splice(2)` |
//! | [`limit`] | client, server | limit rows: the same work with the part under test left out |
//! | [`dispatch`] | client | loops without sockets: handlers are posted and run |
//! | [`http_faults`], [`udp_faults`] | server | fault injectors with a known ground truth |
//! | [`tun_bridge`] | server | two TUN devices joined, for the kernel's rows beside stacks in a process |
//!
//! Any other spec is the load engine's: a server behind a TUN bridge is its server.

pub mod dispatch;
pub mod http_faults;
pub mod limit;
pub mod relay;
pub mod tun_bridge;
pub mod udp_faults;

use linerate_contract::{Describe, Done, Layer, Role, Spec, Workload};
use linerate_load::Refusal;

/// Options of a spec that only this program supports, beside those of the contract and of the load engine.
pub const OWN_OPTIONS: &[&str] = &[
    "limit",
    "tun_bridge",
    // Injected faults of datagrams and of HTTP responses.
    "loss",
    "duplicate",
    "reorder",
    "delay",
    "stall",
    "errors",
    "cap",
];

/// Does what `spec` says; returns when the task is over, for a client with its account.
///
/// # Errors
/// A [`Refusal`], which has its exit status.
pub fn run(spec: &Spec) -> Result<Option<Done>, Refusal> {
    linerate_load::prepare(spec)?;
    if let (Role::Client | Role::Server, Some(limit)) = (spec.role, spec.options.get("limit")) {
        return limit::run(limit, spec);
    }
    match (spec.role, spec.layer, spec.workload) {
        (Role::Relay, ..) => relay::run(spec).map(|()| None),
        (Role::Client, Layer::None, Workload::Dispatch) if spec.rate.is_some() => {
            Err(Refusal::Unsupported(format!("\"rate\" with workload {:?}", spec.workload)))
        }
        (Role::Client, Layer::None, Workload::Dispatch) => dispatch::run(spec).map(Some),
        (Role::Server, Layer::Http, _) if http_faults::is_requested(spec) => {
            http_faults::run(spec).map(|()| None)
        }
        (Role::Server, Layer::Udp, Workload::Stream) if udp_faults::is_requested(spec) => {
            udp_faults::run(spec).map(|()| None)
        }
        (role, ..) => {
            if role == Role::Server {
                tun_bridge::start(spec)?;
            }
            linerate_load::run(spec)
        }
    }
}

/// Roles, layers and workloads of this program.
pub fn describe() -> Describe {
    let mut described = linerate_load::describe();
    described.roles = vec![Role::Client, Role::Relay, Role::Server];
    described.layers.push(Layer::None);
    described.workloads.extend([Workload::Dispatch, Workload::Relay]);
    described.layers.sort();
    described.workloads.sort();
    described
}
