//! `stream` over UDP: numbered datagrams in one direction, each of them compared, and a report of the
//! received ones (sdk/CONTRACT.md). `rr` over UDP, one datagram each way, is in [`echo`].

pub mod client;
pub mod echo;
#[cfg(any(test, fuzzing))]
mod fuzz;
mod pace;
pub mod server;
mod throughput;

#[cfg(any(test, fuzzing))]
pub use fuzz::fuzz_datagrams;

use crate::packets::Mode;
use crate::refusal::Refusal;
use linerate_contract::datagram::{HEADER, LARGEST, SMALLEST};
use linerate_contract::{Direction, Spec, page};

/// The options of both ends.
#[derive(Debug, Clone)]
struct UdpConfig {
    mode: Mode,
    /// Bytes of a datagram.
    size: usize,
    /// The content behind the header.
    content: Box<[u8]>,
}

impl UdpConfig {
    fn from_spec(spec: &Spec) -> Result<Self, Refusal> {
        if !(SMALLEST as u64..=LARGEST as u64).contains(&spec.size) {
            return Err(Refusal::BadSpec(format!("\"size\" must be {SMALLEST} to {LARGEST} bytes")));
        }
        if spec.choice::<Direction>()?.is_some_and(|direction| direction != Direction::ClientWrites) {
            return Err(Refusal::Unsupported("a direction other than client-writes over UDP".into()));
        }
        let size = spec.size as usize;
        Ok(Self { mode: Mode::from_spec(spec)?, size, content: page(size)[HEADER..].into() })
    }
}
