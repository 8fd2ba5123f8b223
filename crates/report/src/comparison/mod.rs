//! The words of a comparison: the verdict on all cells, and how it was made. Cells of builds are in the
//! tables, a column for each build.

mod answer;
mod comment;
mod hints;
mod history;
mod latency;
mod made;
mod model;
mod name;
mod ranking;
mod reasons;
mod requests;
mod sentence;
mod stored;
mod waits;
mod why;

pub(crate) use answer::value_words;
pub(super) use answer::{Answer, answer};
pub use comment::comment;
pub use history::{entries, history, newest_of};
pub(super) use latency::{margins, table as latencies};
pub(super) use made::{made, short, written};
pub use model::*;
pub(super) use reasons::{counted, reasons};
pub use sentence::prospect;
pub use stored::of_stored;
pub(super) use waits::{waiting, waits};
pub use why::with_profile;
pub(crate) use why::{change_words, count_name, values};

/// The answer of servers, or the verdict on builds, as one sentence.
pub(super) fn in_one_sentence(comparison: &ComparisonReport) -> String {
    match comparison.commands.is_empty() {
        true => sentence::sentence(comparison),
        false => answer::sentence(comparison),
    }
}

impl ComparisonReport {
    /// Takes the reason why nothing was measured, such as a command that ended at its start.
    pub fn never_began(&mut self, reason: &str) {
        self.cells.iter_mut().for_each(|cell| cell.detail = Some(reason.to_owned()));
        self.sentence = in_one_sentence(self);
    }
}
