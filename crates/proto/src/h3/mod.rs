//! HTTP/3 (RFC 9114) for both ends, without I/O and without QUIC: what the bytes of its streams mean.
//!
//! | module | contents |
//! |---|---|
//! | [`client`] | the request of all streams, and a response in pieces |
//! | [`server`] | a request in pieces, and the same response to each |
//! | [`control`] | unidirectional streams: settings, and the end of a connection |
//! | `frame` | frames of a message, split in pieces of any size |
//! | `qpack` | header compression |

pub mod client;
pub mod control;
mod frame;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod qpack;
pub mod server;

use crate::fields::BadBlock;
use std::fmt;

/// The protocol's name in a TLS handshake (section 3.1).
pub const ALPN: &[u8] = b"h3";

/// Why a stream or a connection ended (section 8.1; RFC 9204 section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Code(pub u64);

impl Code {
    pub const NO_ERROR: Self = Self(0x100);
    pub const STREAM_CREATION_ERROR: Self = Self(0x103);
    pub const CLOSED_CRITICAL_STREAM: Self = Self(0x104);
    pub const FRAME_UNEXPECTED: Self = Self(0x105);
    pub const FRAME_ERROR: Self = Self(0x106);
    pub const EXCESSIVE_LOAD: Self = Self(0x107);
    pub const ID_ERROR: Self = Self(0x108);
    pub const SETTINGS_ERROR: Self = Self(0x109);
    pub const MISSING_SETTINGS: Self = Self(0x10a);
    pub const REQUEST_INCOMPLETE: Self = Self(0x10d);
    pub const MESSAGE_ERROR: Self = Self(0x10e);
    pub const QPACK_DECOMPRESSION_FAILED: Self = Self(0x200);
    pub const QPACK_ENCODER_STREAM_ERROR: Self = Self(0x201);

    /// Names from 0x100 on.
    const NAMES: [&'static str; 17] = [
        "no_error",
        "general_protocol_error",
        "internal_error",
        "stream_creation_error",
        "closed_critical_stream",
        "frame_unexpected",
        "frame_error",
        "excessive_load",
        "id_error",
        "settings_error",
        "missing_settings",
        "request_rejected",
        "request_cancelled",
        "request_incomplete",
        "message_error",
        "connect_error",
        "version_fallback",
    ];

    /// Whether it concerns one message; the connection is good for others.
    pub fn is_of_a_message(self) -> bool {
        matches!(self, Self::MESSAGE_ERROR | Self::REQUEST_INCOMPLETE)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.0.checked_sub(Self::NO_ERROR.0).and_then(|at| usize::try_from(at).ok());
        f.write_str(place.and_then(|at| Self::NAMES.get(at)).copied().unwrap_or("unknown"))
    }
}

impl From<BadBlock> for Code {
    fn from(bad: BadBlock) -> Self {
        match bad {
            BadBlock::Malformed => Self::QPACK_DECOMPRESSION_FAILED,
            BadBlock::TooLong => Self::EXCESSIVE_LOAD,
        }
    }
}
