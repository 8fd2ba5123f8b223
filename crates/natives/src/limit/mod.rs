//! Limit rows: parts of the work alone, so that no system can beat them; and `blocking`, a reference.
//!
//! | `options.limit` | workload | remaining work |
//! |---|---|---|
//! | `blocking` | `rr` | two processes, blocking sockets, a thread for each connection: no event loop |
//! | `loop` | `dispatch` | prepared function pointers, called one after the other: no queue |
//! | `copies` | `stream` | the two copies that a socket transfer needs, in one process: no sockets |
//! | `aead` | `stream` | sealing and opening the records of TLS, in one process |
//! | `mask` | `stream` | masking and unmasking the frames of WebSocket, in one process |
//! | `calls` | `stream` | an empty system call for each write and each read: no bytes |

mod blocking;
mod calls;
mod passes;
mod syscalls;

use linerate_contract::{Datagrams, Direction, Done, Layer, Role, Spec, Workload};
use linerate_load::Refusal;

/// Runs `spec` as the limit row of this name.
///
/// # Errors
/// Unknown limits and unsupported workloads, invalid specs, failing system calls.
pub fn run(limit: &str, spec: &Spec) -> Result<Option<Done>, Refusal> {
    let done = match (limit, spec.role, spec.workload) {
        ("blocking", Role::Server, Workload::Rr) => return blocking::serve(spec).map(|()| None),
        ("blocking", Role::Client, Workload::Rr) => blocking::client(spec),
        ("loop", Role::Client, Workload::Dispatch) => calls::run(spec),
        ("copies" | "calls" | "aead" | "mask", Role::Server, Workload::Stream) => {
            return passes::serve(spec).map(|()| None);
        }
        ("aead", Role::Client, Workload::Stream) => passes::aead(spec),
        ("mask", Role::Client, Workload::Stream) => passes::mask(spec),
        ("calls", Role::Client, Workload::Stream) => syscalls::run(spec),
        ("copies", Role::Client, Workload::Stream) => passes::copies(spec),
        (_, role, workload) => {
            Err(Refusal::Unsupported(format!("{role} of workload {workload:?} with limit {limit:?}")))
        }
    };
    done.map(Some)
}

/// Checks the fields that every limit with messages needs: the size of a message.
fn check_messages(spec: &Spec) -> Result<usize, Refusal> {
    let enough = spec.operations.is_some() || spec.duration_ns.is_some();
    if !(1..=LARGEST_MESSAGE).contains(&spec.size)
        || spec.connections == 0
        || !enough
        || spec.timeout_ns.0 == 0
    {
        return Err(Refusal::BadSpec(format!(
            "needs \"size\" of 1 to {LARGEST_MESSAGE} bytes, \"connections\" and \"timeout_ns\" above 0, and \
             \"operations\" or \"duration_ns\""
        )));
    }
    Ok(spec.size as usize)
}

/// Directions of a stream that carry content.
fn ways(spec: &Spec) -> Result<u64, Refusal> {
    Ok(if spec.direction()? == Direction::Both { 2 } else { 1 })
}

/// Whether transfers of `bytes` follow one another until the time is over; over UDP there is one.
fn repeats(spec: &Spec) -> bool {
    spec.bytes.is_some() && spec.duration_ns.is_some() && spec.layer != Layer::Udp
}

/// Datagrams of a layer without loss.
fn datagrams(spec: &Spec, all: u64) -> Option<Datagrams> {
    (spec.layer == Layer::Udp).then(|| Datagrams { sent: all, received: all, ..Datagrams::default() })
}

/// As for the systems of the same workload.
const LARGEST_MESSAGE: u64 = 65_536;
