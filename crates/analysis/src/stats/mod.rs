//! The statistics: pure functions of numbers. Nothing here reads files, prints or draws random numbers: the
//! same journal gives the same report, byte for byte.
//!
//! ```text
//! Measurement -> value (by Metric) -> ByRound -> Estimate (median, 95 % interval)
//!                                  -> compare: log ratio of each round -+
//! Duet -> duet: log ratio of each unit ------------------------------------+-> ratio -> verdict
//!                                  -> outliers, drift, check, bound, cost, latency: notes
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`metric`] | the value of a trial |
//! | [`estimate`] | the median and its interval |
//! | [`compare`], [`duet`] | log ratios of two cells: by round, by unit of duets |
//! | [`sharing`] | whether a pair's sides run side by side or in turns |
//! | [`sensitivity`] | how much of a cell's rate each role decides |
//! | [`difference`] | the ratio of latencies in microseconds |
//! | [`highest_rate`] | the highest rate at which a latency is at most a bound |
//! | [`ratio`] | Hodges-Lehmann estimate and signed-rank interval |
//! | [`sequential`] | looks at a comparison while it goes on, without more false findings |
//! | [`early`] | looks at three to eleven units, for large differences |
//! | [`verdict`], [`multiplicity`] | the words of a comparison; q values over a table |
//! | [`over_hosts`] | ratios of several hosts: median, range, hosts that disagree |
//! | [`accuracy`] | right, wrong, cannot tell: values whose truth is known |
//! | [`outliers`] | outlying trials, CPU steal, drift |
//! | [`autocorrelation`] | units that depend on one another |
//! | [`bound`] | the bottleneck |
//! | [`check`] | Little's law: consistency of throughput, latency and connections |
//! | [`cost`] | CPU time per unit of work |
//! | [`usage`] | resource usage of the server before and after, leaks |
//! | [`latency`] | percentiles of all trials together |
//! | [`transport`] | datagrams, TCP, throughput over time |

pub mod accuracy;
pub mod autocorrelation;
pub mod bound;
pub mod check;
pub mod compare;
pub mod cost;
pub mod difference;
pub mod duet;
pub mod early;
pub mod estimate;
pub mod highest_rate;
pub mod latency;
pub mod metric;
pub mod multiplicity;
pub mod outliers;
pub mod over_hosts;
pub mod ratio;
pub mod sensitivity;
pub mod sequential;
pub mod sharing;
pub mod starts;
pub mod transport;
pub mod usage;
pub mod verdict;

use std::collections::BTreeMap;

/// One finite value for each round that has one.
pub type ByRound = BTreeMap<u32, f64>;
