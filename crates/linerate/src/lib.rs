//! The road that data takes, noun by noun:
//!
//! ```text
//! argv -> Command -> Plan (trials, duets x rounds, seeded order)   `linerate plan` stops here and prints it
//!      -> Lab (raised once, gone when the process is gone)
//!      -> for each trial: raise, start, verify, measure, stop -> Measurement -> journal (one line, flushed)
//! journal -> Summary per cell -> Comparison (paired by duet) -> Verdict -> Report
//!         -> terminal | md | html | json | csv
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`cli`], [`command`] | arguments and subcommands |
//! | [`engine`], [`selftest`] | the load engine as a process, and the selftest's ground truth |
//! | `authority` | certificates that are made for a trial or a server |
//! | [`suite`], [`system`] | the folders `suites/` and `systems/`: questions and systems, as data |
//! | [`session`] | a run: open, measure, publish; resumed runs, budget |
//! | [`plan`], [`programs`] | which cells and their order; which systems this machine has |
//! | [`path`], [`placement`] | the path between client and server, as data; which machine plays which role |
//! | [`lab`] | namespaces, links, processes; the scripted one of the tests |
//! | [`trial`], [`journal`] | one trial; the files of a run |
//! | `fleet` | batch scripts and manifests that run suites on many hosts |
//! | `merge` | runs of several hosts: read, checked, sorted by host |
//! | [`measurement`] | the nouns of the journal |
//! | `parallel` | the same work for many items, on all CPUs |
//! | [`stats`] | what is made of them; pure |
//! | [`report`] | the only place where numbers become text |

pub mod arm;
mod authority;
pub mod axes;
pub mod cli;
pub mod command;
pub mod comparison;
pub mod engine;
pub mod error;
mod fleet;
pub mod home;
pub mod host;
pub mod interrupt;
pub mod journal;
pub mod lab;
pub mod measurement;
mod merge;
mod parallel;
pub mod parameters;
pub mod path;
pub mod pins;
pub mod placement;
pub mod plan;
pub mod programs;
pub mod progress;
pub mod report;
pub mod selftest;
pub mod session;
mod shell;
pub mod stats;
pub mod suite;
pub mod system;
pub mod timings;
mod toml_file;
pub mod trial;
