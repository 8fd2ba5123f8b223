//! What a journal shows. Pure: nothing here reads files, prints, or draws random numbers, and no text is made
//! that a report prints.
//!
//! | module | contents |
//! |---|---|
//! | [`stats`] | functions of numbers: estimates, intervals, costs, bottlenecks |
//! | [`summary`] | journal to cells and tables: values, which trials count, comparisons with baselines |
//! | [`comparison`] | two builds or two stored runs: what changed, and what is still open |
//! | [`repeat`] | several runs of the same pairs: does the interval of one contain what all found? |
//! | [`selftest`] | measurements beside a ground truth: within their bounds or not |
//! | [`stopping`] | when a run has measured enough |
//! | [`parallel`] | the same work for many items, on all CPUs |

pub mod comparison;
pub mod parallel;
pub mod repeat;
pub mod selftest;
pub mod stats;
pub mod stopping;
pub mod summary;
