//! Traffic patterns, one file each: `workload/<name>.rs`.
//!
//! A workload is the state machine of one connection: its first step, and the steps after a response and
//! after a failure. It reports to the meter. The layer handles the bytes.

pub mod crr;
pub mod fanout;
pub mod multiplexed;
pub mod paced;
pub mod paced_lanes;
pub mod rr;
pub mod stream;
