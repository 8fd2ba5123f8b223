//! WebSocket (RFC 6455) as a codec for both ends: bytes to payload and payload to bytes. It has
//! no sockets.
//!
//! | module | contents |
//! |---|---|
//! | [`frame`] | the head of a frame: parsing, writing, and what RFC 6455 forbids |
//! | [`mask`] | the masking pass, at the speed of memory |
//! | [`decoder`] | frames parsed in place, control frames between fragments, limits |
//! | [`encoder`] | frames made while they are copied into the send buffer |
//! | [`upgrade`] | the HTTP/1.1 handshake |
//! | [`utf8`], [`close`] | text in pieces; reasons for a close |
//!
//! No extensions: the reserved bits must be zero.

pub mod close;
pub mod decoder;
pub mod encoder;
pub mod frame;
pub mod mask;
pub mod upgrade;
pub mod utf8;

use std::fmt;

/// Which end of the connection this is: clients mask, servers do not (section 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Client,
    Server,
}

/// The longest message that is accepted: the contract's. RFC 6455, section 10.4, requires some limit.
pub const LARGEST_MESSAGE: u64 = 16 << 20;

/// The peer's violation of the protocol, by the status code of the close frame (section 7.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    Protocol,
    NotUtf8,
    TooBig,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Protocol => "a frame that RFC 6455 forbids",
            Self::NotUtf8 => "a text that is not UTF-8",
            Self::TooBig => "a message of more than 16 MiB",
        })
    }
}

impl Broken {
    pub fn code(self) -> u16 {
        match self {
            Self::Protocol => 1002,
            Self::NotUtf8 => 1007,
            Self::TooBig => 1009,
        }
    }
}
