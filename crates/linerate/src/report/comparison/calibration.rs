//! `linerate gate --calibrate`: false alarms and power.

use crate::report::numbers::seconds;
use crate::report::style::Style;
use crate::report::terminal::plain_table;
use crate::stats::calibration::clopper_pearson;
use crate::stats::verdict::Verdict;

/// Gates of a build against itself, with a planted slowdown of the head.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    pub iterations: u32,
    /// Gates by exit status.
    pub statuses: [u64; 4],
    /// Of a gate, on average.
    pub seconds: f64,
}

/// The table: a slowdown of 0 gives false alarms, others the power.
#[must_use]
pub fn calibration(found: &[Calibration], style: Style) -> String {
    let mut table = plain_table(style);
    table.set_header(["planted", "gates", "slowdown", "none", "open", "nothing", "share (95 %)", "each"]);
    for Calibration { iterations, statuses, seconds: each } in found {
        let [none, slower, open, nothing] = *statuses;
        let gates = statuses.iter().sum::<u64>();
        let [low, high] = clopper_pearson(slower, gates).map(|share| share * 100.0);
        let share = slower as f64 / gates as f64 * 100.0;
        let counts = [gates, slower, none, open, nothing].map(|count| count.to_string());
        let first = if *iterations == 0 { "nothing".to_owned() } else { format!("{iterations} iterations") };
        let last = [format!("{share:.1} % ({low:.1} to {high:.1})"), seconds(*each)];
        table.add_row([first].into_iter().chain(counts).chain(last));
    }
    let about =
        "share: gates that found a slowdown; of nothing planted these are false alarms, else the power";
    format!("{}\n{about}\n", table.trim_fmt())
}

/// The verdict on all cells of a gate.
#[must_use]
pub fn conclusion_words(conclusion: Verdict) -> &'static str {
    match conclusion {
        Verdict::Slower => "slowdown",
        Verdict::CannotTell | Verdict::Failed => "open",
        Verdict::Missing => "nothing measured",
        _ => "no slowdown",
    }
}
