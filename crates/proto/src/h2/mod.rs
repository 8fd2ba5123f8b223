//! HTTP/2 (RFC 9113) for both ends, without I/O: frames, header compression, flow control, streams.
//!
//! | module | contents |
//! |---|---|
//! | [`client`] | the client's end of a connection: lanes, each with a stream under way |
//! | [`server`] | the server's end: the same response to each request |
//! | [`hpack`] | header compression |
//! | `connection` | what both ends have: settings, header blocks, the windows of the connection, limits |
//! | `frame` | frames made and split, in pieces of any size |
//! | `window` | flow control in one direction |

pub mod client;
mod connection;
mod frame;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod hpack;
pub mod server;
mod window;

use crate::fields::BadBlock;
use std::fmt;

/// The first bytes of a client.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Why a stream or a connection ended (section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Code(pub u32);

impl Code {
    pub const NO_ERROR: Self = Self(0);
    pub const PROTOCOL_ERROR: Self = Self(1);
    pub const FLOW_CONTROL_ERROR: Self = Self(3);
    pub const STREAM_CLOSED: Self = Self(5);
    pub const FRAME_SIZE_ERROR: Self = Self(6);
    pub const REFUSED_STREAM: Self = Self(7);
    pub const CANCEL: Self = Self(8);
    pub const COMPRESSION_ERROR: Self = Self(9);
    pub const ENHANCE_YOUR_CALM: Self = Self(11);

    /// Codes with a name. Others are legal, and mean nothing in particular.
    pub const NAMES: [&'static str; 14] = [
        "no_error",
        "protocol_error",
        "internal_error",
        "flow_control_error",
        "settings_timeout",
        "stream_closed",
        "frame_size_error",
        "refused_stream",
        "cancel",
        "compression_error",
        "connect_error",
        "enhance_your_calm",
        "inadequate_security",
        "http_1_1_required",
    ];
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMES.get(self.0 as usize).copied().unwrap_or("unknown"))
    }
}

impl From<BadBlock> for Code {
    fn from(bad: BadBlock) -> Self {
        match bad {
            BadBlock::Malformed => Self::COMPRESSION_ERROR,
            BadBlock::TooLong => Self::ENHANCE_YOUR_CALM,
        }
    }
}
