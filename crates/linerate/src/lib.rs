//! The road that data takes, noun by noun:
//!
//! ```text
//! argv -> Request -> Plan (cells x rounds, seeded order)
//!      -> Lab (raised once, gone when the process is gone)
//!      -> for each trial: raise, start, verify, measure, stop -> Measurement -> journal (one line, flushed)
//! journal -> Summary per cell -> Comparison (paired by round) -> Verdict -> Report -> terminal | md | html | json | csv
//! ```

pub mod axes;
pub mod measurement;
pub mod report;
pub mod stats;
