//! Findings of a journal. Pure: nothing here reads files, prints, or draws random numbers, and no text is
//! made that a report prints.
//!
//! | module | contents |
//! |---|---|
//! | [`stats`] | functions of numbers: estimates, intervals, costs, bottlenecks |
//! | [`judge`] | journal to findings: values of cells, comparisons with baselines, verdicts |
//! | [`selftest`] | measurements beside a ground truth: within their bounds or not |
//! | [`stopping`] | when a run has measured enough |
//! | [`why`] | which functions a difference of CPU time comes from |
//! | [`parallel`] | the same work for many items, on all CPUs |

pub mod judge;
pub mod parallel;
pub mod selftest;
pub mod stats;
pub mod stopping;
pub mod why;
