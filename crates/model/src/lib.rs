//! The nouns of a run: the plan, the machine, and what was measured. No statistics, and no input or output
//! but JSON.
//!
//! `run.json` contains a [`Run`]: the plan and the machine. Each line of `journal.jsonl` is a [`Unit`].
//! Reports are made from these files alone.
//!
//! | module | contents |
//! |---|---|
//! | [`axes`], [`parameters`], [`path`] | a cell: its coordinates, its numbers, the path between its ends |
//! | `run` | `run.json`: suites, tables, cells and pairs in their order, and the machine |
//! | `comparison`, `load` | what is compared, what decides, and what is asked of it |
//! | `learned` | what was found out about the subjects before they were measured |
//! | [`bounds`] | what the numbers of a run may be |
//! | `place` | where processes are |
//! | `published` | the tables of a document |
//! | `unit`, `measurement` | what was measured: one cell alone, or two at the same time |
//! | `profile` | `profile.json`: what servers did, by function |
//! | `histogram`, `metric` | times of many operations; what a value is of |
//! | [`url`] | the protocol, the place of a server, and what is asked of it |
//! | [`journal`] | the lines of a journal, written and read |

pub mod axes;
pub mod bounds;
mod comparison;
mod histogram;
pub mod journal;
mod learned;
mod load;
mod measurement;
mod metric;
pub mod parameters;
pub mod path;
mod place;
mod profile;
mod published;
mod run;
mod unit;
pub mod url;

pub use comparison::*;
pub use histogram::*;
pub use journal::Stored;
pub use learned::*;
pub use load::*;
pub use measurement::*;
pub use metric::*;
pub use place::*;
pub use profile::*;
pub use published::*;
pub use run::*;
pub use unit::*;
