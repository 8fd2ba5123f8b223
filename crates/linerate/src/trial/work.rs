//! What a client is asked to do, and whether it did: so many operations, or so many bytes.

use crate::measurement::Measurement;
use crate::parameters::Parameters;
use linerate_contract::{Datagrams, Nanos};
use std::collections::BTreeMap;
use std::time::Duration;

/// Failed operations above this share make the trial a failure, whatever its speed.
pub(super) const TOLERATED_ERRORS: f64 = 0.01;
/// A trial may take this long, and so much more for each operation: twenty times what the slowest system here needs.
const PATIENCE: Duration = Duration::from_secs(20);
const PATIENCE_PER_OPERATION: Duration = Duration::from_millis(5);
/// No trial may take longer: the longest of any suite takes a tenth of it, and a system that hangs costs it each time.
const MOST_PATIENCE: Duration = Duration::from_secs(120);

/// The work of one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Operations(u64),
    /// Of all directions and transfers together.
    Bytes(u64),
    /// As much as can be done in so many seconds.
    Seconds(u64),
}

impl Work {
    pub(super) fn of(parameters: &Parameters, options: &BTreeMap<String, String>) -> Self {
        let directions = if options.get("direction").is_some_and(|d| d == "both") { 2 } else { 1 };
        let transfers = options.get("transfers").and_then(|n| n.parse().ok()).unwrap_or(1);
        match (parameters.bytes, parameters.operations) {
            (Some(bytes), _) => Self::Bytes(bytes * directions * transfers),
            (None, Some(operations)) => Self::Operations(operations),
            (None, None) => parameters.seconds.map_or(Self::Operations(1), Self::Seconds),
        }
    }

    /// When to give up.
    pub(super) fn patience(&self) -> Duration {
        match self {
            Self::Operations(operations) => {
                let operations = u32::try_from(*operations).unwrap_or(u32::MAX);
                (PATIENCE + PATIENCE_PER_OPERATION.saturating_mul(operations)).min(MOST_PATIENCE)
            }
            Self::Bytes(_) => MOST_PATIENCE,
            Self::Seconds(seconds) => (PATIENCE + Duration::from_secs(*seconds)).min(MOST_PATIENCE),
        }
    }

    /// All of it, and no more failures among it than this share.
    pub(super) fn check(&self, measurement: &Measurement, tolerated: f64) -> Result<(), String> {
        let failed = measurement.errors.total();
        if let Some(datagrams) = &measurement.datagrams {
            check_datagrams(datagrams)?;
        }
        match self {
            // Datagrams may be lost, and how many were is told beside the number.
            Self::Bytes(_) if measurement.datagrams.is_some() && failed == 0 => {}
            Self::Operations(asked) if failed as f64 > *asked as f64 * tolerated => {
                return Err(format!("{failed} of {asked} operations failed: {}", kinds(measurement)));
            }
            Self::Operations(asked) if measurement.operations + failed != *asked => {
                let done = measurement.operations;
                return Err(format!("{done} operations succeeded and {failed} failed of {asked} asked for"));
            }
            Self::Seconds(_) if failed as f64 > (measurement.operations + failed) as f64 * tolerated => {
                let done = measurement.operations;
                return Err(format!(
                    "{failed} operations failed and {done} succeeded: {}",
                    kinds(measurement)
                ));
            }
            Self::Seconds(seconds) if measurement.operations == 0 => {
                return Err(format!("not one operation in {seconds} seconds"));
            }
            Self::Bytes(asked) if measurement.bytes.0 != *asked || failed > 0 => {
                let came = measurement.bytes.0;
                let kinds = if failed > 0 { format!(": {}", kinds(measurement)) } else { String::new() };
                return Err(format!("{came} bytes arrived of {asked}{kinds}"));
            }
            _ => {}
        }
        if measurement.elapsed == Nanos::ZERO {
            return Err("the client tells no time for its operations".into());
        }
        Ok(())
    }

    /// Before anything is timed, not one may fail.
    pub(super) fn check_all_good(&self, verified: &Measurement) -> Result<(), String> {
        let failed = verified.errors.total();
        match self {
            Self::Operations(asked) if failed > 0 || verified.operations != *asked => Err(format!(
                "{failed} of {asked} operations, before the clock, went wrong: {}",
                kinds(verified)
            )),
            Self::Operations(_) => Ok(()),
            Self::Bytes(_) | Self::Seconds(_) => self.check(verified, TOLERATED_ERRORS),
        }
    }
}

/// Some arrive, and those as they were sent.
fn check_datagrams(datagrams: &Datagrams) -> Result<(), String> {
    let sent = datagrams.sent;
    if sent > 0 && datagrams.received == 0 && datagrams.damaged == 0 {
        return Err(format!(
            "not one of {sent} datagrams arrived: they are larger than the path takes, or nobody receives"
        ));
    }
    if datagrams.damaged > 0 {
        return Err(format!(
            "{} of {sent} datagrams arrived with another length or content",
            datagrams.damaged
        ));
    }
    Ok(())
}

fn kinds(measurement: &Measurement) -> String {
    let kinds: Vec<String> =
        measurement.errors.0.iter().map(|(kind, count)| format!("{count} {}", kind.name())).collect();
    kinds.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Bytes, ErrorKind};

    fn work(parameters: &[(&str, u64)], direction: &str) -> Work {
        let parameters = Parameters::from_pairs(parameters.iter().copied()).unwrap();
        Work::of(&parameters, &BTreeMap::from([("direction".to_owned(), direction.to_owned())]))
    }

    #[test]
    fn a_short_stream_is_a_failure_and_both_ways_count_twice() {
        let second = Nanos(1_000_000_000);
        let came = |bytes| Measurement { bytes: Bytes(bytes), elapsed: second, ..Measurement::default() };
        let one_way = work(&[("bytes", 1_000), ("operations", 7)], "client-reads");
        assert_eq!(one_way.check(&came(1_000), TOLERATED_ERRORS), Ok(()));
        assert_eq!(one_way.check(&came(999), TOLERATED_ERRORS), Err("999 bytes arrived of 1000".into()));
        assert_eq!(work(&[("bytes", 1_000)], "both").check(&came(2_000), TOLERATED_ERRORS), Ok(()));
    }

    #[test]
    fn one_percent_of_failures_is_a_flaw_and_more_is_a_failure() {
        let with = |failed| {
            let mut m =
                Measurement { operations: 1_000 - failed, elapsed: Nanos(1), ..Measurement::default() };
            m.errors.add(ErrorKind::Reset, failed);
            m
        };
        let thousand = work(&[("operations", 1_000)], "");
        assert_eq!(thousand.check(&with(10), TOLERATED_ERRORS), Ok(()));
        assert_eq!(thousand.check(&with(11), 0.05), Ok(()));
        assert!(thousand.check(&with(11), TOLERATED_ERRORS).unwrap_err().contains("11 reset"));
        assert!(thousand.check_all_good(&with(1)).is_err());
        assert!(work(&[], "").check(&with(0), TOLERATED_ERRORS).unwrap_err().contains("of 1 asked for"));
    }

    #[test]
    fn a_time_is_filled_with_whatever_succeeds() {
        let timed = work(&[("seconds", 2)], "");
        assert_eq!(timed, Work::Seconds(2));
        assert_eq!(work(&[("seconds", 2), ("operations", 7)], ""), Work::Operations(7));
        let mut measurement = Measurement { operations: 500, elapsed: Nanos(1), ..Measurement::default() };
        assert_eq!(timed.check(&measurement, TOLERATED_ERRORS), Ok(()));
        measurement.errors.add(ErrorKind::Reset, 6);
        assert!(timed.check(&measurement, TOLERATED_ERRORS).is_err());
        assert!(
            timed
                .check(&Measurement { elapsed: Nanos(1), ..Measurement::default() }, TOLERATED_ERRORS)
                .is_err()
        );
    }

    #[test]
    fn datagrams_may_be_lost_but_not_all_and_not_damaged() {
        let came = |received, damaged| {
            let datagrams =
                Datagrams { sent: 100, received, lost: 100 - received, damaged, ..Datagrams::default() };
            let datagrams = Some(datagrams);
            Measurement {
                operations: received,
                bytes: Bytes(received),
                elapsed: Nanos(1),
                datagrams,
                ..Measurement::default()
            }
        };
        for work in [work(&[("bytes", 100)], ""), work(&[("seconds", 1)], "")] {
            assert_eq!(work.check(&came(60, 0), TOLERATED_ERRORS), Ok(()));
            assert!(
                work.check(&came(0, 0), TOLERATED_ERRORS).unwrap_err().contains("not one of 100 datagrams")
            );
            assert!(work.check(&came(60, 1), TOLERATED_ERRORS).unwrap_err().contains("1 of 100"));
            assert!(work.check_all_good(&came(60, 0)).is_ok());
        }
    }

    #[test]
    fn patience_has_an_end() {
        assert_eq!(work(&[("operations", 1_000)], "").patience(), Duration::from_secs(25));
        assert_eq!(work(&[("operations", 1_000_000)], "").patience(), MOST_PATIENCE);
    }
}
