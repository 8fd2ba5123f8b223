//! The turns of a client whose load alternates with another's ([`linerate_contract::Alternation`]).

use super::Meter;
use linerate_contract::Nanos;

impl Meter {
    /// In a closed loop that works in turns: operations begin if `now` is in an own turn.
    pub fn take_turn(&mut self, now: Nanos) {
        let Some(alternation) = self.alternation.filter(|_| self.paced.is_none()) else { return };
        let turn = alternation.own(now);
        // Nothing counts before the end of the guard, which the first operation after it notices.
        self.counts_until = Nanos::ZERO;
        (self.begins_until, self.next_turn) = if now < turn.begin {
            (Nanos::ZERO, turn.begin)
        } else {
            (turn.end.min(self.window_end), alternation.own(turn.end).begin)
        };
    }

    /// When the next own turn of a closed loop begins; without turns that is never.
    #[inline]
    pub fn next_turn(&self) -> Nanos {
        self.next_turn
    }

    /// Whether an operation that ended at `now`, at or after `counts_until`, counts all the same.
    #[cold]
    pub(super) fn counts_again(&mut self, now: Nanos) -> bool {
        let Some(turn) = self.alternation.map(|alternation| alternation.own(now)) else { return false };
        let counts = turn.counts_from <= now && now < self.window_end;
        if counts {
            self.counts_until = turn.end.min(self.window_end);
        }
        counts
    }

    /// An operation does not count: it ended after the window, or not in the counted part of an own turn.
    #[cold]
    pub(super) fn leave_out(&mut self, now: Nanos) {
        if now < self.window_end {
            self.uncounted += 1;
        } else {
            self.in_flight += 1;
        }
    }
}
