//! How many windows a unit of two cells has, and how long they and the turns in them are.

use crate::measurement::Sharing;
use crate::stopping::EARLY_UNITS;
use linerate_contract::Nanos;

/// The window of a unit. A shorter one would leave the starts of clients a visible part; in the time of a
/// longer one, a further unit adds more, unless its systems take longer than that to be ready.
const WINDOW: Nanos = Nanos(500_000_000);
/// The window of two sides that take turns.
const WINDOW_OF_TURNS: Nanos = Nanos(800_000_000);
/// Windows of a unit of a comparison: their spread says how certain few units are
/// (docs/decisions/stopping.md).
pub const WINDOWS: u32 = 3;
/// The shortest of several windows of a unit: the start of a client is a hundredth of it.
const SHORTEST_WINDOW: Nanos = Nanos(250_000_000);
/// The window of two sides whose loads alternate: eight turns of each.
const WINDOW_OF_ALTERNATION: Nanos = Nanos(16 * ALTERNATION.0);
/// The turns of an open loop, and the part of them in which nothing is due. Latencies have the noise of their
/// own milliseconds: in turns of 100 ms their intervals were twice as wide (docs/decisions/latency.md).
/// By the end of the guard all but stalled operations of the other side have ended.
pub(super) const SLICE: Nanos = Nanos(30_000_000);
pub(super) const GUARD_OF_SLICE: Nanos = Nanos(3_000_000);
/// The window of such a unit: 32 turns of each side.
const WINDOW_OF_SLICES: Nanos = Nanos(64 * SLICE.0);
/// The window of the first units of a comparison.
const SHORT_WINDOW_OF_SLICES: Nanos = Nanos(32 * SLICE.0);
/// The window of a second load, which follows the windows of the first one; in the units of early looks half
/// of it.
const WINDOW_OF_SECOND_LOAD: Nanos = Nanos(32 * SLICE.0);
/// Windows of an open loop: each of them has some turns of either side.
const PACED_WINDOWS: u32 = 2;
/// The window of clients that count whole seconds.
const WHOLE_SECOND: Nanos = Nanos(1_000_000_000);
/// A turn of an alternating load, and the part of it that does not count: long enough that caches, timers and
/// the other side's last operations are no part of it (docs/decisions/pairs.md).
pub(super) const ALTERNATION: Nanos = Nanos(120_000_000);
pub(super) const GUARD: Nanos = Nanos(10_000_000);

/// How a unit is measured.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    pub sharing: Sharing,
    /// How long all windows together are, where their length can be chosen.
    length: Length,
    /// Windows of a launch, where their length can be chosen; else there is one.
    windows: u32,
}

#[derive(Debug, Clone, Copy)]
enum Length {
    AtLeast(Nanos),
    Exactly(Nanos),
}

impl Length {
    /// `usual`: by the way of sharing.
    fn or(self, usual: Nanos) -> Nanos {
        match self {
            Self::AtLeast(least) => usual.max(least),
            Self::Exactly(length) => length,
        }
    }
}

impl Manner {
    /// Several windows of a launch, together as long as usual, or `least`.
    pub fn at_least(sharing: Sharing, least: Nanos, windows: u32) -> Self {
        Self { sharing, length: Length::AtLeast(least), windows }
    }

    /// The open loop of a second load, in the unit of this number.
    pub fn of_second_load(number: u32) -> Self {
        let parts = if number <= EARLY_UNITS { 2 } else { 1 };
        let length = Length::Exactly(Nanos(WINDOW_OF_SECOND_LOAD.0 / parts));
        Self { sharing: Sharing::Alternating, length, windows: PACED_WINDOWS }
    }

    /// One window of this length.
    pub fn exactly(sharing: Sharing, length: Nanos) -> Self {
        Self { sharing, length: Length::Exactly(length), windows: 1 }
    }

    /// How many windows there are, and how long each of them is.
    pub(super) fn windows(self, in_seconds: bool, is_paced: bool) -> (u32, Nanos) {
        let several = |all: Nanos| match self.windows {
            1 => (1, all),
            n => (n, Nanos(all.0 / u64::from(n)).max(SHORTEST_WINDOW)),
        };
        match self.sharing {
            Sharing::Alternating if is_paced => {
                let windows = self.windows.min(PACED_WINDOWS);
                let all = match self.length {
                    Length::AtLeast(least) if windows > 1 && least < SHORT_WINDOW_OF_SLICES => {
                        SHORT_WINDOW_OF_SLICES
                    }
                    Length::AtLeast(_) => WINDOW_OF_SLICES,
                    Length::Exactly(length) => length,
                };
                (windows, Nanos(all.0 / u64::from(windows)))
            }
            Sharing::Alternating if self.windows == 1 => (1, WINDOW_OF_ALTERNATION),
            Sharing::Alternating => several(self.length.or(WINDOW_OF_ALTERNATION)),
            Sharing::Together if in_seconds => (1, WHOLE_SECOND),
            Sharing::Together => several(self.length.or(WINDOW)),
            Sharing::Turns if in_seconds => (1, Nanos(2 * WHOLE_SECOND.0)),
            Sharing::Turns => several(self.length.or(WINDOW_OF_TURNS)),
        }
    }
}
