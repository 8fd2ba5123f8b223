//! The work of a client (operations, bytes or time), and the check that all of it was done.

use crate::measurement::Measurement;
use crate::parameters::Parameters;
use crate::stats::check::{LONGEST_STALL, has_hung};
use linerate_contract::{Datagrams, Nanos, WeightedRequest};
use std::collections::BTreeMap;
use std::time::Duration;

/// Failed operations above this share make the trial a failure.
pub(super) const TOLERATED_ERRORS: f64 = 0.01;
/// Timeout of a trial: a base, and time for each operation; twenty times as much as the slowest system needs.
const BASE_TIMEOUT: Duration = Duration::from_secs(20);
const TIMEOUT_PER_OPERATION: Duration = Duration::from_millis(5);
const SECOND: Nanos = Nanos(1_000_000_000);
/// How the time of a client's result is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timing {
    /// The contract's: a timed window ends at its end.
    Window,
    /// A foreign client's own: it may leave out its start, and the wait for the last responses.
    Foreign,
    /// The last trial of a search for the highest rate.
    Search,
}

impl Timing {
    /// A client that works for a smaller share of its time has ended early, whatever its exit status.
    fn least_share(self) -> f64 {
        match self {
            // Rounding alone.
            Self::Window => 0.99,
            Self::Foreign => 1.0 - LONGEST_STALL,
            // Its trials have a quarter of its time each.
            Self::Search => 0.2,
        }
    }
}

/// The longest timeout: ten times the longest trial of any suite. A system that hangs costs it in each trial.
const MAX_TIMEOUT: Duration = Duration::from_secs(120);

/// The work of one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Operations(u64),
    /// Bytes of all directions and transfers together.
    Bytes(u64),
    /// As many operations as possible in this time.
    Time(Nanos),
}

impl Work {
    pub(super) fn from_parameters(parameters: &Parameters, options: &BTreeMap<String, String>) -> Self {
        let directions = if options.get("direction").is_some_and(|d| d == "both") { 2 } else { 1 };
        let transfers = parameters.transfers.unwrap_or(1);
        match (parameters.bytes, parameters.operations) {
            (Some(bytes), _) => Self::Bytes(bytes * directions * transfers),
            (None, Some(operations)) => Self::Operations(operations),
            (None, None) => parameters
                .seconds
                .map_or(Self::Operations(1), |seconds| Self::Time(Nanos(seconds * SECOND.0))),
        }
    }

    /// The trial has failed after this time.
    pub(super) fn timeout(&self) -> Duration {
        match self {
            Self::Operations(operations) => {
                let operations = u32::try_from(*operations).unwrap_or(u32::MAX);
                (BASE_TIMEOUT + TIMEOUT_PER_OPERATION.saturating_mul(operations)).min(MAX_TIMEOUT)
            }
            Self::Bytes(_) => MAX_TIMEOUT,
            Self::Time(time) => (BASE_TIMEOUT + Duration::from_nanos(time.0)).min(MAX_TIMEOUT),
        }
    }

    /// The work of a client that also ends and counts operations beyond its number: up to one percent more.
    pub(super) fn with_overshoot(&self, measurement: &Measurement) -> Self {
        match self {
            Self::Operations(expected) => {
                let most = expected + expected / 100;
                Self::Operations((measurement.operations + measurement.errors.total()).clamp(*expected, most))
            }
            other => *other,
        }
    }

    /// An error unless all of the work was done, with at most this share of failed operations.
    pub(super) fn check(&self, measurement: &Measurement, tolerated: f64) -> Result<(), String> {
        let failed = measurement.errors.total();
        if let Some(datagrams) = &measurement.datagrams {
            check_datagrams(datagrams)?;
        }
        match self {
            // Datagrams may be lost; the report shows the loss beside the number.
            Self::Bytes(_) if measurement.datagrams.is_some() && failed == 0 => {}
            Self::Operations(expected) if failed as f64 > *expected as f64 * tolerated => {
                return Err(format!("{failed} of {expected} operations failed: {}", kinds(measurement)));
            }
            Self::Operations(expected) if measurement.operations + failed != *expected => {
                let done = measurement.operations;
                return Err(format!(
                    "{done} operations succeeded and {failed} failed of {expected} expected"
                ));
            }
            Self::Time(_) if failed as f64 > (measurement.operations + failed) as f64 * tolerated => {
                let done = measurement.operations;
                return Err(format!(
                    "{failed} operations failed and {done} succeeded: {}",
                    kinds(measurement)
                ));
            }
            Self::Bytes(expected) if measurement.bytes.0 != *expected || failed > 0 => {
                let received = measurement.bytes.0;
                let kinds = if failed > 0 { format!(": {}", kinds(measurement)) } else { String::new() };
                return Err(format!("{received} bytes arrived of {expected}{kinds}"));
            }
            _ => {}
        }
        Ok(())
    }

    /// An error unless the client worked for its time, and the system as well; `longest` is the share of the
    /// time without progress that is a hang.
    pub(super) fn check_time(
        &self,
        measurement: &Measurement,
        timing: Timing,
        longest: f64,
    ) -> Result<(), String> {
        match self {
            Self::Time(time) if measurement.operations == 0 => {
                Err(format!("not one operation in {} s", time.as_secs_f64()))
            }
            _ if measurement.elapsed == Nanos::ZERO => {
                Err("the client reported no time for its operations".into())
            }
            Self::Time(time) if (measurement.elapsed.0 as f64) < timing.least_share() * time.0 as f64 => {
                let (worked, time) = (measurement.elapsed.as_secs_f64(), time.as_secs_f64());
                Err(format!("the client worked for {worked:.6} s in place of {time} s"))
            }
            Self::Time(time) => check_progress(measurement, measurement.counted.unwrap_or(*time), longest),
            _ => Ok(()),
        }
    }

    /// No operation may fail before the measurement.
    pub(super) fn check_all_good(&self, verified: &Measurement) -> Result<(), String> {
        let failed = verified.errors.total();
        match self {
            Self::Operations(expected) if failed > 0 || verified.operations != *expected => Err(format!(
                "{failed} of {expected} operations failed before the measurement: {}",
                kinds(verified)
            )),
            Self::Operations(_) => Ok(()),
            Self::Bytes(_) | Self::Time(_) => {
                self.check(verified, TOLERATED_ERRORS)?;
                self.check_time(verified, Timing::Search, LONGEST_STALL)
            }
        }
    }
}

/// An error if the system made no progress for a large share of the time.
fn check_progress(measurement: &Measurement, time: Nanos, longest: f64) -> Result<(), String> {
    let stall = measurement.stall.unwrap_or(Nanos::ZERO);
    if !has_hung(measurement.operations, stall, time, longest) {
        return Ok(());
    }
    let (stall, time) = (stall.as_secs_f64(), time.as_secs_f64());
    Err(format!("no operation ended for {stall:.3} s of {time} s: the system hung"))
}

/// An error if no datagram arrived, or one arrived damaged.
fn check_datagrams(datagrams: &Datagrams) -> Result<(), String> {
    let sent = datagrams.sent;
    if sent > 0 && datagrams.received == 0 && datagrams.damaged == 0 {
        return Err(format!(
            "not one of {sent} datagrams arrived: they exceed the path's MTU, or the server does not receive"
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

/// Such as `12 wrong_status: status 429 in place of 200`.
fn kinds(measurement: &Measurement) -> String {
    let causes = &measurement.causes.0;
    let cause = |kind| causes.get(kind).map_or_else(String::new, |cause| format!(": {}", cause.text));
    let kinds: Vec<String> = measurement
        .errors
        .0
        .iter()
        .map(|(kind, count)| format!("{count} {}{}", kind.name(), cause(kind)))
        .collect();
    kinds.join(", ")
}

/// Such as `; 50 of them: GET /order`: the request with most failures of several. Empty without any.
pub(super) fn most_failures(requests: &[WeightedRequest], measurement: &Measurement) -> String {
    let counted = requests.iter().zip(&measurement.requests);
    let failing = counted.map(|(request, counted)| (request, counted.errors.total()));
    let most = failing.max_by_key(|(_, failed)| *failed).filter(|(_, failed)| *failed > 0);
    most.map_or_else(String::new, |(WeightedRequest { path, request, .. }, failed)| {
        format!("; {failed} of them: {} {path}", request.method.as_deref().unwrap_or("GET"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::RequestWindow;
    use crate::stats::check::LONGEST_STALL_WITH_LOSS;
    use linerate_contract::{Bytes, Cause, ErrorKind, Errors};

    fn work(pairs: &[(&str, u64)], direction: &str) -> Work {
        let mut parameters = Parameters::default();
        pairs.iter().for_each(|(name, value)| *parameters.by_name(name).unwrap() = Some(*value));
        Work::from_parameters(&parameters, &BTreeMap::from([("direction".to_owned(), direction.to_owned())]))
    }

    #[test]
    fn a_short_stream_is_a_failure_and_both_ways_count_twice() {
        let second = Nanos(1_000_000_000);
        let moved = |bytes| Measurement { bytes: Bytes(bytes), elapsed: second, ..Measurement::default() };
        let one_way = work(&[("bytes", 1_000), ("operations", 7)], "client-reads");
        assert_eq!(one_way.check(&moved(1_000), TOLERATED_ERRORS), Ok(()));
        let short = Err("999 bytes arrived of 1000".into());
        assert_eq!(one_way.check(&moved(999), TOLERATED_ERRORS), short);
        let three = work(&[("bytes", 1_000), ("transfers", 3)], "client-reads");
        assert_eq!(three.check(&moved(3_000), TOLERATED_ERRORS), Ok(()));
        assert_eq!(work(&[("bytes", 1_000)], "both").check(&moved(2_000), TOLERATED_ERRORS), Ok(()));
    }

    #[test]
    fn a_failure_has_the_first_cause_of_its_kind() {
        let mut measured = Measurement { operations: 3, elapsed: Nanos(1), ..Measurement::default() };
        measured.errors.add(ErrorKind::WrongStatus, 12);
        measured.causes.note(ErrorKind::WrongStatus, || Cause::new("status 429 in place of 200"));
        let reason = Work::Time(Nanos(1)).check(&measured, TOLERATED_ERRORS).unwrap_err();
        assert!(reason.ends_with("3 succeeded: 12 wrong_status: status 429 in place of 200"), "{reason}");
    }

    #[test]
    fn one_percent_of_failed_operations_is_tolerated() {
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
        assert!(work(&[], "").check(&with(0), TOLERATED_ERRORS).unwrap_err().contains("of 1 expected"));
    }

    #[test]
    fn a_client_that_overshoots_may_do_up_to_one_percent_more_and_no_less() {
        let done = |operations| Measurement { operations, elapsed: Nanos(1), ..Measurement::default() };
        let thousand = work(&[("operations", 1_000)], "");
        let check = |done: &Measurement| thousand.with_overshoot(done).check(done, TOLERATED_ERRORS);
        assert_eq!((check(&done(1_000)), check(&done(1_010))), (Ok(()), Ok(())));
        assert!(check(&done(1_011)).unwrap_err().contains("of 1010 expected"));
        assert!(check(&done(999)).unwrap_err().contains("of 1000 expected"));
        assert!(thousand.check(&done(1_010), TOLERATED_ERRORS).is_err());
    }

    #[test]
    fn work_by_time_accepts_any_number_of_operations_above_zero() {
        let timed = work(&[("seconds", 2)], "");
        assert_eq!(timed, Work::Time(Nanos(2 * SECOND.0)));
        assert_eq!(work(&[("seconds", 2), ("operations", 7)], ""), Work::Operations(7));
        let mut measurement = Measurement { operations: 500, elapsed: SECOND, ..Measurement::default() };
        assert_eq!(timed.check(&measurement, TOLERATED_ERRORS), Ok(()));
        measurement.errors.add(ErrorKind::Reset, 6);
        assert!(timed.check(&measurement, TOLERATED_ERRORS).is_err());
        let nothing = Measurement { elapsed: SECOND, ..Measurement::default() };
        assert!(timed.check_time(&nothing, Timing::Search, LONGEST_STALL).is_err());
    }

    #[test]
    fn a_client_that_ends_early_is_a_failure() {
        let timed = work(&[("seconds", 2)], "");
        let worked = |elapsed| Measurement { operations: 24, elapsed, ..Measurement::default() };
        let check = |elapsed, timing| timed.check_time(&worked(elapsed), timing, LONGEST_STALL);
        assert_eq!(check(Nanos(2 * SECOND.0), Timing::Window), Ok(()));
        assert_eq!(check(SECOND, Timing::Search), Ok(()));
        assert_eq!(check(Nanos(1_700_000_000), Timing::Foreign), Ok(()));
        assert!(check(Nanos(1_700_000_000), Timing::Window).is_err());
        assert!(check(Nanos(1_500_000_000), Timing::Foreign).is_err());
        let error = check(Nanos(83_933), Timing::Window).unwrap_err();
        assert_eq!(error, "the client worked for 0.000084 s in place of 2 s");
    }

    #[test]
    fn a_system_without_progress_for_a_fifth_of_the_time_has_failed() {
        let timed = work(&[("seconds", 2)], "");
        let stalled = |operations, stall| Measurement {
            operations,
            elapsed: Nanos(2 * SECOND.0),
            stall: Some(Nanos(stall)),
            ..Measurement::default()
        };
        let within =
            |measurement: &Measurement, longest| timed.check_time(measurement, Timing::Window, longest);
        let check = |measurement: &Measurement| within(measurement, LONGEST_STALL);
        assert_eq!(check(&stalled(10_000, 399_000_000)), Ok(()));
        let error = check(&stalled(10_000, 1_300_000_000)).unwrap_err();
        assert_eq!(error, "no operation ended for 1.300 s of 2 s: the system hung");
        assert_eq!(check(&stalled(3, 1_300_000_000)), Ok(()), "each of three takes as long");
        let in_turns = Measurement { counted: Some(SECOND), ..stalled(10_000, 300_000_000) };
        assert!(check(&in_turns).is_err(), "a third of what counts");
        assert_eq!(within(&stalled(10_000, 900_000_000), LONGEST_STALL_WITH_LOSS), Ok(()));
        assert!(within(&stalled(10_000, 1_100_000_000), LONGEST_STALL_WITH_LOSS).is_err());
    }

    #[test]
    fn datagrams_may_be_lost_but_not_all_and_not_damaged() {
        let arrived = |received, damaged| {
            let datagrams =
                Datagrams { sent: 100, received, lost: 100 - received, damaged, ..Datagrams::default() };
            let datagrams = Some(datagrams);
            Measurement {
                operations: received,
                bytes: Bytes(received),
                elapsed: SECOND,
                datagrams,
                ..Measurement::default()
            }
        };
        for work in [work(&[("bytes", 100)], ""), work(&[("seconds", 1)], "")] {
            assert_eq!(work.check(&arrived(60, 0), TOLERATED_ERRORS), Ok(()));
            assert!(
                work.check(&arrived(0, 0), TOLERATED_ERRORS)
                    .unwrap_err()
                    .contains("not one of 100 datagrams")
            );
            assert!(work.check(&arrived(60, 1), TOLERATED_ERRORS).unwrap_err().contains("1 of 100"));
            assert!(work.check_all_good(&arrived(60, 0)).is_ok());
        }
    }

    #[test]
    fn the_timeout_has_a_maximum() {
        assert_eq!(work(&[("operations", 1_000)], "").timeout(), Duration::from_secs(25));
        assert_eq!(work(&[("operations", 1_000_000)], "").timeout(), MAX_TIMEOUT);
    }

    #[test]
    fn of_several_requests_the_one_with_most_failures_is_named() {
        let request = |path: &str| WeightedRequest {
            path: path.into(),
            request: linerate_contract::Request::default(),
            expect: None,
            weight: 1,
        };
        let failing = |count: u64| RequestWindow {
            errors: Errors([(ErrorKind::Reset, count)].into()),
            ..RequestWindow::default()
        };
        let of = |requests| Measurement { requests, ..Measurement::default() };
        let mix = [request("/a"), request("/b")];
        assert_eq!(most_failures(&mix, &of(vec![failing(2), failing(5)])), "; 5 of them: GET /b");
        assert_eq!(most_failures(&mix, &of(vec![failing(0), failing(0)])), "");
        assert_eq!(most_failures(&mix, &of(Vec::new())), "", "a client that counts no requests");
    }
}
