//! Whether a load has failed: a server that was dead for a part of the time is no success.

use crate::error::Error;
use crate::report::numbers::plain;
use crate::stats::check::{LONGEST_STALL, has_hung};
use linerate_contract::{Done, Spec, Workload};

/// An error if more than `most` of the work failed, or if nothing ended for a fifth of the time.
///
/// Connections are counted of streams and flows, since one that fails may have carried most of the work.
///
/// # Errors
/// [`Error::Failed`], with the share or the time.
pub(super) fn check(spec: &Spec, done: &Done, most: f64) -> Result<(), Error> {
    let failed = done.errors.total();
    let (all, what) = match spec.workload {
        Workload::Stream => (u64::from(spec.connections), "connections"),
        _ => (done.operations + failed, "operations"),
    };
    let share = failed as f64 / all.max(1) as f64;
    if share > most {
        return Err(Error::Failed(format!(
            "{} % of the {what} failed, and --max-failed is {} %",
            plain(share * 100.0),
            plain(most * 100.0)
        )));
    }
    match (done.stall_ns, spec.duration_ns) {
        (Some(stall), Some(time)) if has_hung(done.operations, stall, time, LONGEST_STALL) => {
            Err(Error::Failed(format!(
                "the server hung: no operation ended for {} s of {} s",
                plain(stall.as_secs_f64()),
                plain(time.as_secs_f64())
            )))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{ErrorKind, Layer, Nanos, Role, Workload};

    #[test]
    fn failures_and_hangs_decide_the_status() {
        let mut spec = Spec::new(Role::Client, Layer::Http, Workload::Rr);
        spec.duration_ns = Some(Nanos(3_000_000_000));
        let mut done = Done { operations: 995, stall_ns: Some(Nanos(100_000_000)), ..Done::default() };
        done.errors.add(ErrorKind::Timeout, 5);
        assert!(check(&spec, &done, 0.01).is_ok());
        let error = check(&spec, &done, 0.001).unwrap_err();
        assert_eq!(error.to_string(), "0.500 % of the operations failed, and --max-failed is 0.100 %");
        assert_eq!(error.exit_status(), 1);
        done.stall_ns = Some(Nanos(1_950_000_000));
        let error = check(&spec, &done, 0.01).unwrap_err().to_string();
        assert_eq!(error, "the server hung: no operation ended for 1.95 s of 3.00 s");
        let few = Done { operations: 3, stall_ns: Some(Nanos(1_000_000_000)), ..Done::default() };
        assert!(check(&spec, &few, 0.01).is_ok(), "one operation a second is a rate, and no hang");
    }

    #[test]
    fn one_of_two_streams_is_half_of_the_work() {
        let mut spec = Spec::new(Role::Client, Layer::Tcp, Workload::Stream);
        spec.connections = 2;
        let mut done = Done { operations: 100_000, ..Done::default() };
        done.errors.add(ErrorKind::Timeout, 1);
        assert!(check(&spec, &done, 0.01).unwrap_err().to_string().starts_with("50.0 % of the connections"));
    }
}
