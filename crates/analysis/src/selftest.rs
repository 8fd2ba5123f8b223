//! The rows of a selftest: a ground truth, its measurement, and the allowed difference.

/// A case is measured up to this many times until all of its rows can be judged.
pub const TRIES: u32 = 3;

/// A ground truth, its measurement, and the allowed difference.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub what: String,
    pub truth: f64,
    pub measured: f64,
    pub unit: Unit,
    pub bound: Bound,
    /// The largest share of its time that the client may lose; with more, the row is not judged.
    pub tolerates: f64,
}

/// How a row compares with its bound, if that can be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowState {
    Within,
    Off,
    /// The client lost more of its time than the row tolerates.
    Disturbed,
    /// The way through the loopback is not known as well as the bound needs.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Nanos,
    PerSecond,
    Count,
}

/// The allowed difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    Exact,
    /// At most this share of the ground truth.
    Share(f64),
    /// At most this many nanoseconds above it.
    Above(f64),
    /// At most this far from it, in its unit.
    Within(f64),
    /// At most this far from it, on a machine whose loopback varies by less.
    Unknown(f64),
    /// Shown without a bound: a property of the machine.
    None,
}

impl Row {
    /// A row without a bound.
    pub fn shown(what: &str, measured: f64, unit: Unit) -> Self {
        Self { what: what.into(), truth: 0.0, measured, unit, bound: Bound::None, tolerates: 1.0 }
    }

    /// The state for a client that lost this share of its time.
    pub fn state(&self, lost: f64) -> RowState {
        match self.is_within_bound() {
            _ if matches!(self.bound, Bound::Unknown(_)) => RowState::Unknown,
            _ if self.bound != Bound::None && lost > self.tolerates => RowState::Disturbed,
            true => RowState::Within,
            false => RowState::Off,
        }
    }

    pub fn is_within_bound(&self) -> bool {
        let off = self.measured - self.truth;
        match self.bound {
            Bound::Exact => self.measured == self.truth,
            Bound::Share(share) => off.abs() <= share * self.truth,
            Bound::Above(nanos) => (0.0..=nanos).contains(&off),
            Bound::Within(distance) => off.abs() <= distance,
            Bound::Unknown(_) | Bound::None => true,
        }
    }
}
