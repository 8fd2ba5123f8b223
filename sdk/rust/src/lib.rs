//! The shared parts of systems in Rust on tokio (sdk/CONTRACT.md). Systems differ in the library under test
//! only.
//!
//! | module | contents |
//! |---|---|
//! | [`content`] | the endless content of streams |
//! | [`stream`] | both ends of a stream over any connection |
//! | [`client`] | where to connect, watchdog, shares of operations |
//! | [`server`] | runtime, listener, echo, SIGTERM |
//! | [`perf`] | the protocol of performance tests over QUIC |
//! | [`netstack`] | servers of a TCP/IP stack behind a TUN device |

pub mod client;
pub mod content;
#[cfg(feature = "netstack")]
pub mod netstack;
pub mod perf;
pub mod server;
pub mod stream;

use linerate_contract::datagram::{LARGEST, SMALLEST};
use linerate_contract::{Describe, Direction, Refusal, Role, Spec, page};
use std::str::FromStr;

/// The output of role `describe`.
#[must_use]
pub fn describe(name: &str, version: &str, roles: &[Role], layers: &[&str], workloads: &[&str]) -> Describe {
    Describe {
        name: name.into(),
        version: version.into(),
        roles: roles.to_vec(),
        layers: names(layers),
        workloads: names(workloads),
        ends: Vec::new(),
    }
}

/// Names of the contract.
///
/// # Panics
/// Of a name that the contract has not.
fn names<T: FromStr<Err = String>>(all: &[&str]) -> Vec<T> {
    all.iter().map(|name| name.parse().unwrap_or_else(|reason| panic!("{reason}"))).collect()
}

/// The refusal of a role, layer or workload.
#[must_use]
pub fn unsupported(spec: &Spec) -> Refusal {
    Refusal::Unsupported(format!("{} of layer {:?} and workload {:?}", spec.role, spec.layer, spec.workload))
}

/// The refusal of a spec without `field`.
#[must_use]
pub fn missing(field: &str) -> Refusal {
    Refusal::BadSpec(format!("\"{field}\" is missing"))
}

/// A datagram of a stream over UDP; the sequence number is written over its first bytes.
///
/// # Errors
/// [`Refusal`]: a size out of range, or a direction other than `client-writes`.
pub fn datagram(spec: &Spec) -> Result<Vec<u8>, Refusal> {
    let size = usize::try_from(spec.size).unwrap_or(usize::MAX);
    if !(SMALLEST..=LARGEST).contains(&size) {
        return Err(Refusal::BadSpec(format!("\"size\" must be {SMALLEST} to {LARGEST} bytes")));
    }
    match spec.direction()? {
        Direction::ClientWrites => Ok(page(size)),
        _ => Err(Refusal::Unsupported("datagrams from the server".into())),
    }
}
