//! Whether the clients of a trial did their work, by their output.

use super::Launches;
use crate::lab::ClientRun;
use crate::measurement::{Measurement, PlannedCell};
use crate::parameters::Parameters;
use crate::system::SystemVariant;
use crate::system::manifest::OutputPatterns;
use crate::trial::work::{TOLERATED_ERRORS, most_failures};
use crate::trial::{output, progress};
use linerate_contract::{Layer, Nanos, Spec, Workload};

/// Operations a second of an open loop whose gaps are far below a fifth of any window.
const STEADY_RATE: u64 = 1_000;

impl Launches {
    /// An error unless the client did its work, and worked for its time.
    pub(in crate::trial) fn check(&self, measurement: &Measurement) -> Result<(), String> {
        let work = if self.overshoots { self.work.with_overshoot(measurement) } else { self.work };
        let tolerated = self.tolerated_errors.unwrap_or(TOLERATED_ERRORS);
        work.check(measurement, tolerated).map_err(|reason| reason + &self.failing(measurement))?;
        if self.may_starve {
            Ok(())
        } else {
            self.work.check_time(measurement, self.timing, self.longest_stall)
        }
    }

    /// The request with most failures of several, for the end of a reason.
    fn failing(&self, measurement: &Measurement) -> String {
        let spec = self.client.process.as_ref().and_then(|(_, words)| Spec::parse(words.first()?).ok());
        spec.map_or_else(String::new, |spec| most_failures(&spec.requests, measurement))
    }

    /// An error if the server made no progress for a fifth of the time.
    pub(in crate::trial) fn check_progress(
        &self,
        progress: &[(Nanos, u64)],
        measurement: &Measurement,
    ) -> Result<(), String> {
        if !self.is_steady || self.may_starve {
            return Ok(());
        }
        progress::check(progress, measurement.elapsed, measurement.operations, self.output.is_some())
    }

    /// No operation of the verification may fail. The longest of its latencies is that of the first one.
    pub(in crate::trial) fn check_verified(&self, run: &ClientRun) -> Result<Nanos, String> {
        let verified = self.read_as(self.verifier_output.as_ref(), run)?;
        // A client that verifies itself sends whole writes, and may stop counting before the last one has
        // arrived.
        if self.verifier_output.is_some() {
            return if verified.bytes.0 > 0 { Ok(verified.elapsed) } else { Err("nothing arrived".into()) };
        }
        self.verify.check_all_good(&verified)?;
        let longest = verified.latency.and_then(|latency| latency.percentile(100.0));
        Ok(longest.map_or(verified.elapsed, Nanos))
    }

    /// Reads the output of the measuring client.
    pub(in crate::trial) fn read(&self, run: &ClientRun) -> Result<Measurement, String> {
        self.read_as(self.output.as_ref(), run)
    }

    fn read_as(&self, output: Option<&OutputPatterns>, run: &ClientRun) -> Result<Measurement, String> {
        match output {
            None => output::read_contract(run),
            Some(patterns) => output::read_foreign(patterns, run, self.size),
        }
    }
}

/// Whether the client searches for the highest rate.
pub(super) fn is_search(cell: &PlannedCell, client: SystemVariant<'_>) -> bool {
    cell.options.contains_key("search") || client.variant.options.contains_key("search")
}

/// Whether the server of a cell sends packets all the time. One that only receives datagrams does not; its
/// rate is what it received, by the whole time. In an open loop of few operations it pauses between them.
pub(super) fn is_steady(cell: &PlannedCell, parameters: &Parameters) -> bool {
    let only_receives = cell.layer == Layer::Udp && cell.workload == Workload::Stream;
    !only_receives && cell.layer != Layer::None && parameters.rate.is_none_or(|rate| rate >= STEADY_RATE)
}
