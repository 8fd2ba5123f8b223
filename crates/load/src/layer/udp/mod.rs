//! `stream` over UDP: numbered datagrams one way, each of them compared, and a report of what came (sdk/CONTRACT.md). `rr` over UDP,
//! a datagram there and back, is in [`echo`].

pub mod client;
pub mod echo;
mod pace;
pub mod server;
mod throughput;
pub mod truth;

use crate::packets::Mode;
use crate::refusal::Refusal;
use linerate_contract::datagram::{HEADER, LARGEST, SMALLEST};
use linerate_contract::{Spec, page};

/// What both ends read out of a spec.
#[derive(Debug, Clone)]
struct Setting {
    mode: Mode,
    /// Bytes of a datagram.
    size: usize,
    /// What stands behind the header.
    content: Box<[u8]>,
}

impl Setting {
    fn of(spec: &Spec) -> Result<Self, Refusal> {
        if !(SMALLEST as u64..=LARGEST as u64).contains(&spec.size) {
            return Err(Refusal::BadSpec(format!("\"size\" must be {SMALLEST} to {LARGEST} bytes")));
        }
        match spec.options.get("direction").map(String::as_str) {
            None | Some("client-writes") => {}
            Some(other) => {
                return Err(Refusal::Unsupported(format!(
                    "direction {other:?} over UDP; there is client-writes"
                )));
            }
        }
        let size = spec.size as usize;
        Ok(Self { mode: Mode::of(spec)?, size, content: page(size)[HEADER..].into() })
    }
}
