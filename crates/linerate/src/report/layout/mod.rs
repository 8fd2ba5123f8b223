//! Shared by the readable formats: the text at each place. The formats differ only in how they draw it.

mod columns;
mod details;
mod facts;
mod grid;
mod lookup;
mod sentences;
mod transport;

pub(super) use columns::{Depth, Details};
pub(super) use details::details;
pub(super) use facts::{HOW_TO_READ, exceptions, host, progress, time, versions};
pub(super) use grid::{Grid, GridCell, grid};
pub(super) use sentences::sentences;
