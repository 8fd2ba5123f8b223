//! What a journal shows. Pure: nothing here reads files, prints, or draws random numbers, and no text is made
//! that a report prints.
//!
//! | module | contents |
//! |---|---|
//! | [`axes`], [`parameters`], [`path`] | a cell: its coordinates, its numbers, the path between its ends |
//! | [`measurement`] | the nouns of the journal |
//! | [`stats`] | functions of numbers: estimates, intervals, costs, bottlenecks |
//! | [`summary`] | journal to cells and tables: values, which trials count, comparisons with baselines |
//! | [`comparison`] | two builds or two stored runs: what changed, and what is still open |
//! | [`stopping`] | when a run has measured enough |
//! | [`parallel`] | the same work for many items, on all CPUs |

pub mod axes;
pub mod comparison;
pub mod measurement;
pub mod parallel;
pub mod parameters;
pub mod path;
pub mod stats;
pub mod stopping;
pub mod summary;
