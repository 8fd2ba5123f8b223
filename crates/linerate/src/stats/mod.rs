//! The statistics: pure functions of numbers. Nothing here reads, prints, or draws a random number, so the
//! same journal gives the same report byte for byte.
//!
//! ```text
//! Measurement -> value (by Metric) -> ByRound -> Estimate (median, 95 % interval)
//!                                  -> compare: ratio paired by round -> Verdict
//!                                  -> outliers, drift, check, bound, cost, latency: what to say beside it
//! ```
//!
//! | module | answers |
//! |---|---|
//! | [`metric`] | what is a trial's value? |
//! | [`estimate`] | what is the median, and how sure is it? |
//! | [`compare`] | is this cell faster than that one, by how much? |
//! | [`outliers`] | which trials stand apart, which lost time to the hypervisor, does the cell drift? |
//! | [`bound`] | what was saturated? |
//! | [`check`] | do throughput, latency and connections agree? |
//! | [`cost`] | what did it cost in CPU time? |
//! | [`usage`] | what did the server hold before and after, and does it leak? |
//! | [`latency`] | percentiles of all trials together |
//! | [`transport`] | what became of datagrams, how did TCP fare, how did it go over time? |

pub mod bound;
pub mod check;
pub mod compare;
pub mod cost;
pub mod estimate;
pub mod latency;
pub mod metric;
pub mod outliers;
pub mod transport;
pub mod usage;

use std::collections::BTreeMap;

/// One value for each round that has one, by round. Always finite.
pub type ByRound = BTreeMap<u32, f64>;
