//! A server without progress for a fifth of the window: it hangs, and its rate is none.
//!
//! The client cannot be asked: programs of others report what they completed, and some end their time with
//! it. The lab counts the packets that the server sends, for every client the same.

use crate::stats::check::{LEAST_OPERATIONS, LEAST_PAUSE, LONGEST_STALL};
use linerate_contract::Nanos;

/// A server that sends less than this share of its usual packets makes no progress: what is left are the
/// kernel's responses to probes of its window.
const NEXT_TO_NOTHING: f64 = 0.01;
/// A pause is seen by samples, one each 10 ms. With fewer of them in it the agent did not run either: the
/// machine did not run, and not the server.
const LEAST_SAMPLES: u64 = 4;
const SAMPLE: Nanos = Nanos(10_000_000);

/// An error if the server made no progress for a fifth of the time. `progress` contains its packets by time;
/// the client worked for `elapsed` after their start, or after the first packet (`is_late`: a program whose
/// window is its whole run, with its start).
pub(super) fn check(
    progress: &[(Nanos, u64)],
    elapsed: Nanos,
    operations: u64,
    is_late: bool,
) -> Result<(), String> {
    let pause = Nanos((elapsed.0 as f64 * LONGEST_STALL) as u64).max(LEAST_PAUSE);
    let first = if is_late { progress.windows(2).position(|two| two[0].1 < two[1].1) } else { Some(0) };
    let samples = first.and_then(|first| progress.get(first..)).unwrap_or_default();
    let (Some((start, sent)), true) = (samples.first(), operations >= LEAST_OPERATIONS) else {
        return Ok(());
    };
    let end = samples.last().map_or(*start, |(end, _)| (*start + elapsed).min(*end));
    let share = pause.as_secs_f64() / elapsed.as_secs_f64();
    let usual = (count_at(samples, end) - *sent) as f64 * share;
    let wanted = (pause.0 / SAMPLE.0 / 2).max(LEAST_SAMPLES);
    for (index, (from, count)) in samples.iter().enumerate() {
        let to = *from + pause;
        if to > end || usual == 0.0 {
            break;
        }
        let seen = samples[index..].iter().take_while(|(time, _)| *time <= to).count() as u64;
        if seen >= wanted && ((count_at(samples, to) - count) as f64) < usual * NEXT_TO_NOTHING {
            return Err(format!(
                "the server made no progress for {:.3} s of the window, from {:.3} s on: it sent \
                 next to nothing",
                pause.as_secs_f64(),
                from.since(*start).as_secs_f64()
            ));
        }
    }
    Ok(())
}

/// Between two samples, packets come evenly.
fn count_at(samples: &[(Nanos, u64)], at: Nanos) -> u64 {
    let next = samples.partition_point(|(time, _)| *time <= at);
    let (Some(before), after) = (samples.get(next.saturating_sub(1)), samples.get(next)) else { return 0 };
    let Some(after) = after else { return before.1 };
    let share = at.since(before.0).0 as f64 / after.0.since(before.0).0.max(1) as f64;
    before.1 + ((after.1 - before.1) as f64 * share) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos(1_000_000_000);

    /// A second in samples of 10 ms, with 100 packets in each that is not in a pause.
    fn samples(pauses: impl Fn(u64) -> bool) -> Vec<(Nanos, u64)> {
        let mut sent = 0;
        let sample = |number: u64| {
            sent += if pauses(number) { 0 } else { 100 };
            (Nanos(number * SAMPLE.0), sent)
        };
        (0..=100).map(sample).collect()
    }

    fn judged(samples: &[(Nanos, u64)]) -> bool {
        check(samples, SECOND, 5_000, false).is_ok()
    }

    #[test]
    fn a_pause_of_a_fifth_of_the_window_fails_wherever_it_is() {
        assert!(judged(&samples(|_| false)));
        for (from, to) in [(35, 101), (0, 30), (40, 70), (74, 101)] {
            let samples = samples(|number| (from..to).contains(&number));
            assert!(!judged(&samples), "{from} to {to}");
        }
        assert!(judged(&samples(|number| (40..60).contains(&number))), "a shorter one");
        let error = check(&samples(|number| number >= 35), SECOND, 5_000, false).unwrap_err();
        assert!(error.contains("0.250 s of the window, from 0.340 s on"), "{error}");
    }

    #[test]
    fn a_few_packets_of_the_kernel_are_no_progress() {
        let mut samples = samples(|number| number >= 35);
        samples.iter_mut().skip(50).for_each(|(_, sent)| *sent += 1);
        assert!(!judged(&samples));
    }

    #[test]
    fn the_time_before_the_first_packet_and_after_the_work_is_not_judged_in_a_whole_run() {
        let late = samples(|number| !(40..=70).contains(&number));
        let work = Nanos(40 * SAMPLE.0);
        assert_eq!(check(&late, work, 5_000, true), Ok(()));
        assert!(check(&late, SECOND, 5_000, false).is_err());
        assert!(check(&late, Nanos(60 * SAMPLE.0), 5_000, true).is_err());
    }

    #[test]
    fn nothing_is_judged_without_samples_packets_or_operations() {
        let hung = samples(|number| number >= 35);
        assert_eq!(check(&[], SECOND, 5_000, false), Ok(()));
        assert_eq!(check(&samples(|_| true), SECOND, 5_000, false), Ok(()));
        assert_eq!(check(&hung, SECOND, 3, false), Ok(()));
        // The agent took no sample in the pause: the machine did not run.
        let still: Vec<_> = [&hung[..36], &hung[100..]].concat();
        assert_eq!(check(&still, SECOND, 5_000, false), Ok(()));
    }
}
