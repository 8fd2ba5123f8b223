//! The path of a cell and what its impaired links did.

#[cfg(test)]
use schemars::JsonSchema;
use serde::Serialize;

/// A path that delays, drops or holds back packets.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PathReport {
    /// In one line.
    pub description: String,
    /// By what packets were impaired: `relay`, or disciplines of the kernel; empty without a trial.
    pub means: String,
    /// Counts of the relay, of all measured trials and links together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<WayReport>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<WayReport>,
}

/// Packets of one direction.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct WayReport {
    pub packets: u64,
    /// Percent that were dropped as required.
    pub lost_percent: f64,
    /// Percent that the queue of the rate dropped.
    pub overflowed_percent: f64,
    /// Percent that left more than 100 microseconds after their time.
    pub late_percent: f64,
    /// Packets that the relay itself lost.
    pub overrun: u64,
}
