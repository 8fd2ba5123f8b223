//! The facts that are found out about the servers of a comparison before their first unit. They are beside
//! the plan, and changes nothing of it.

use crate::Expectation;
use linerate_contract::Nanos;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Responses on each connection in the shortest window.
const RESPONSES: u64 = 3;

/// The facts about the servers of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// By subject, in their order.
    pub servers: Vec<LearnedServer>,
    /// The value of `{upstream}` in the commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<SocketAddr>,
    /// A correct response to each request, by the baseline's first ones, where the user does not say it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<Expectation>,
    /// Requests per second of the baseline in a closed loop, where the rate is a share of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<f64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LearnedServer {
    /// Where it listens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup: Option<Warmup>,
}

impl Learned {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// True if all servers have been warm once.
    pub fn is_complete(&self) -> bool {
        self.servers.iter().all(|server| server.warmup.is_some())
    }

    /// False: the rate of a server still rose at the end of the longest warm-up.
    pub fn are_steady(&self) -> bool {
        self.warmups().all(|warmup| warmup.is_steady)
    }

    /// The shortest window in which each connection has responses, by those after the warm-up.
    pub fn least_window(&self) -> Nanos {
        let responses = self.warmups().map(|warmup| warmup.response);
        Nanos(RESPONSES * responses.max().unwrap_or(Nanos::ZERO).0)
    }

    /// True if a server keeps connections waiting, on which the requests of an open loop would wait, too.
    pub fn has_unserved(&self) -> bool {
        self.warmups().any(|warmup| warmup.served.is_some())
    }

    fn warmups(&self) -> impl Iterator<Item = Warmup> {
        self.servers.iter().filter_map(|server| server.warmup)
    }
}

/// How long a server takes until its rate and its CPU time are steady, measured once and used in all units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warmup {
    /// Under load, beside the other side of its pair.
    pub time: Nanos,
    /// False: the rate still changed at the end of the longest warm-up.
    pub is_steady: bool,
    /// The mean time of a response after it.
    pub response: Nanos,
    /// Most responses wait for a delayed acknowledgement.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
    /// As many of the connections were served, and the others kept waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<u32>,
}
