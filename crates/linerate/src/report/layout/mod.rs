//! Shared by the readable formats: the text at each place. The formats differ only in how they draw it.

mod answer;
mod columns;
mod details;
mod facts;
mod grid;
mod groups;
mod lookup;
mod named;
mod path;
mod sentences;
mod tiers;
mod transport;

pub(super) use answer::{GroupAnswer, Phrase, Sentence, answer, answers, further_metrics, unit};
pub(super) use columns::{Depth, Details};
pub(super) use details::{details, facts_of, roles};
pub(super) use facts::{HOW_TO_READ, exceptions, host, hosts, progress, time, versions};
pub(super) use grid::{Grid, GridCell, grid, mark, notes, usual_rounds};
pub(super) use groups::{Alternative, Group, Part, groups};
pub(super) use named::named;
pub(super) use sentences::sentences;

#[cfg(test)]
mod tests;
