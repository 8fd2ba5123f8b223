//! The values of a cell, by round.

use std::collections::BTreeMap;

/// One finite value for each round that has one.
pub type ByRound = BTreeMap<u32, f64>;
