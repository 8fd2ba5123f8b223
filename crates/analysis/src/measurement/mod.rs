//! The nouns of the journal and of `run.json`.
//!
//! `run.json` contains a [`Run`]: the plan and the machine. Each line of `journal.jsonl` is an [`Entry`]: a
//! [`Trial`] or a [`Duet`]. Reports are made from these files alone.

mod commands;
mod comparison;
mod duet;
mod entry;
mod histogram;
mod metric;
mod planned;
mod published;
mod trial;

pub use commands::*;
pub use comparison::*;
pub use duet::*;
pub use histogram::*;
pub use metric::*;
pub use planned::*;
pub use published::*;
pub use trial::*;
