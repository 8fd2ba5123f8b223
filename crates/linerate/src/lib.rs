//! The road that data takes, noun by noun:
//!
//! ```text
//! arguments -> cli -> plan::build (units x rounds, seeded order)   `linerate plan` prints it
//!           -> lab (raised once, gone when the process is gone)
//!           -> unit after unit: raise, start, verify, measure, stop -> journal (one line each, flushed)
//! journal   -> analysis (cells, comparisons, verdicts) -> report::build -> Report
//!           -> terminal | md | html | json | csv
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`cli`], [`command`] | arguments and subcommands |
//! | [`suite`], [`system`] | the folders `suites/` and `systems/`: questions and systems, as data |
//! | [`project`] | `linerate.toml`, in a repository of the user's own |
//! | [`subject`] | servers of the user's own that are compared: planned, learned, started, asked |
//! | `toml_file`, [`home`] | their syntax, and where they are |
//! | [`arm`] | a build of a system as settings |
//! | `address` | the addresses of a URL's host |
//! | [`placement`], [`pins`] | which machine and which CPUs a role has |
//! | [`plan`], [`programs`] | which cells and their order; which systems this machine has |
//! | [`session`] | a run: open, measure; resumed runs |
//! | [`progress`], [`timings`], [`interrupt`] | the line on the terminal, how long trials took, Ctrl-C |
//! | [`trial`], [`journal`] | one unit; the files of a run |
//! | [`engine`], [`selftest`] | the load engine as a process, and the selftest's ground truth |
//! | `authority` | certificates that are made for a trial or a server |
//! | `printable` | text of others, for terminals |
//! | `merge` | runs of several hosts: read, checked, sorted by host |
//! | `fleet` | batch scripts and manifests that run suites on many hosts |
//! | [`error`] | errors with a next step |
//!
//! The nouns of a run are in `crates/model`, statistics and comparisons in `crates/analysis`, text in
//! `crates/report`; namespaces, links, processes and other hosts in `crates/lab`.

pub use linerate_analysis::{judge, parallel, stats, stopping};
pub use linerate_lab as lab;
pub use linerate_model as measurement;
pub use linerate_model::{axes, parameters, path, url};
pub use linerate_report as report;

mod address;
pub mod arm;
mod authority;
pub mod cli;
pub mod command;
pub mod engine;
pub mod error;
mod fleet;
pub mod home;
pub mod interrupt;
pub mod journal;
mod merge;
pub mod pins;
pub mod placement;
pub mod plan;
mod printable;
pub mod programs;
pub mod progress;
pub mod project;
pub mod selftest;
pub mod session;
pub mod subject;
pub mod suite;
pub mod system;
pub mod timings;
mod toml_file;
pub mod trial;
