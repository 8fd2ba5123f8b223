//! Datagrams of `stream` over UDP: a sequence number of eight bytes, then content; and control datagrams.
//!
//! ```text
//! client -> server   HELLO  until it is answered         (sequence 2^64-1, 8 bytes of zero)
//! server -> client   WELCOME                             (2^64-4, 8 bytes of zero)
//! client -> server   payload 0, 1, 2, ...                (sequence, content from position 8)
//! client -> server   END    until the report             (2^64-2, datagrams sent)
//! server -> client   REPORT                              (2^64-3, counts of [`Account`])
//! ```
//!
//! A server answers nothing that a server sends, so two servers never answer each other.
//!
//! Parsing is total: any bytes are a datagram of one of these kinds, or none.

mod account;
mod receiver;

pub use account::{Account, DatagramOrder};
pub use receiver::Receiver;

use crate::Nanos;

/// The least bytes of a payload datagram, so that none looks like a control datagram of another layer.
pub const SMALLEST: usize = 64;
/// The largest payload of UDP over IPv4.
pub const LARGEST: usize = 65_507;
/// Bytes before the content.
pub const HEADER: usize = 8;
/// Sequence numbers from here on are control datagrams.
pub const FIRST_CONTROL: u64 = u64::MAX - 15;

const HELLO: u64 = u64::MAX;
const END: u64 = u64::MAX - 1;
const REPORT: u64 = u64::MAX - 2;
const WELCOME: u64 = u64::MAX - 3;
/// The length of HELLO, WELCOME and END.
pub const SHORT_CONTROL: usize = 16;
/// The most copies of a datagram, duplicates and damaged ones: no path makes so many.
const MOST_COPIES: u64 = 64;
/// The clocks of two hosts run at the same speed, up to a share of one in this; the usual limit of a
/// corrected clock is one in 2,000 (adjtimex(2)).
const CLOCK_TOLERANCE: u64 = 100;
/// The length of REPORT.
pub const REPORT_LENGTH: usize = 8 + 7 * 8;

/// The kinds of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Datagram {
    /// Opens a flow.
    Hello,
    /// The server's response to that.
    Welcome,
    /// The flow is over; the number of payload datagrams sent.
    End { sent: u64 },
    /// The server's response to that.
    Report(Report),
    /// Payload with this number.
    Payload { sequence: u64 },
}

/// A server's counts of one flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// Good ones, each sequence number once.
    pub received: u64,
    /// Bytes of those, headers included.
    pub bytes: u64,
    /// Received after one with a higher number (RFC 4737, Type-P-Reordered).
    pub reordered: u64,
    pub duplicates: u64,
    /// With wrong length or content.
    pub damaged: u64,
    /// `CLOCK_MONOTONIC` of the server when the first and the last payload datagram arrived; 0 if none did.
    pub first_ns: u64,
    pub last_ns: u64,
}

impl Report {
    /// From the first to the last payload datagram, by the server's clock; zero if that clock went backwards.
    #[must_use]
    pub fn duration(&self) -> Nanos {
        Nanos(self.last_ns.saturating_sub(self.first_ns))
    }

    /// Whether a server can have received this of `sent` datagrams of `size` bytes, all of them sent within
    /// `elapsed`, the time until the report arrived.
    #[must_use]
    pub fn is_possible(&self, sent: u64, size: u64, elapsed: Nanos) -> bool {
        let copies = self.duplicates.checked_add(self.damaged);
        self.received <= sent
            && Some(self.bytes) == self.received.checked_mul(size)
            && self.reordered <= self.received
            && copies.is_some_and(|copies| copies <= sent.saturating_mul(MOST_COPIES))
            && self.first_ns <= self.last_ns
            && self.duration().0 <= elapsed.0.saturating_add(elapsed.0 / CLOCK_TOLERANCE)
    }
}

impl Datagram {
    /// Parses one; `None` if it is too short for its kind, or of an unknown kind.
    #[inline]
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let sequence = word(bytes, 0)?;
        match sequence {
            HELLO if bytes.len() == SHORT_CONTROL => Some(Self::Hello),
            WELCOME if bytes.len() == SHORT_CONTROL => Some(Self::Welcome),
            END if bytes.len() == SHORT_CONTROL => Some(Self::End { sent: word(bytes, 1)? }),
            REPORT if bytes.len() == REPORT_LENGTH => Some(Self::Report(Report {
                received: word(bytes, 1)?,
                bytes: word(bytes, 2)?,
                reordered: word(bytes, 3)?,
                duplicates: word(bytes, 4)?,
                damaged: word(bytes, 5)?,
                first_ns: word(bytes, 6)?,
                last_ns: word(bytes, 7)?,
            })),
            FIRST_CONTROL.. => None,
            sequence => Some(Self::Payload { sequence }),
        }
    }

    /// The bytes of a control datagram; of payload only the header.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        let words = match self {
            Self::Hello => vec![HELLO, 0],
            Self::Welcome => vec![WELCOME, 0],
            Self::End { sent } => vec![END, sent],
            Self::Report(r) => {
                vec![REPORT, r.received, r.bytes, r.reordered, r.duplicates, r.damaged, r.first_ns, r.last_ns]
            }
            Self::Payload { sequence } => vec![sequence],
        };
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }
}

#[inline]
fn word(bytes: &[u8], index: usize) -> Option<u64> {
    let bytes = bytes.get(index * 8..index * 8 + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().expect("the slice has eight bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_parsed_as_it_was_written() {
        let report = Report {
            received: 1,
            bytes: 2,
            reordered: 3,
            duplicates: 4,
            damaged: 5,
            first_ns: 6,
            last_ns: 7,
        };
        for datagram in [
            Datagram::Hello,
            Datagram::Welcome,
            Datagram::End { sent: u64::MAX },
            Datagram::Report(report),
            Datagram::Payload { sequence: FIRST_CONTROL - 1 },
        ] {
            assert_eq!(Datagram::parse(&datagram.to_bytes()), Some(datagram));
        }
        assert_eq!(Datagram::Hello.to_bytes().len(), SHORT_CONTROL);
        assert_eq!(Datagram::Report(report).to_bytes().len(), REPORT_LENGTH);
    }

    #[test]
    fn cut_and_unknown_datagrams_are_none() {
        let end = Datagram::End { sent: 9 };
        for datagram in [Datagram::Hello, Datagram::Welcome, end, Datagram::Report(Report::default())] {
            let bytes = datagram.to_bytes();
            for length in 0..bytes.len() {
                assert_eq!(Datagram::parse(&bytes[..length]), None, "{datagram:?} cut to {length}");
            }
        }
        let unknown = Datagram::Payload { sequence: FIRST_CONTROL }.to_bytes();
        assert_eq!(Datagram::parse(&unknown), None);
    }
}
