//! What crosses a process boundary: one JSON document goes in, JSON lines come out.
//!
//! ```text
//! argv[1] = Spec  ->  a program (client, server or relay)  ->  Event per line on stdout
//!                                                              logs on stderr, SIGTERM ends it
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`spec`] | what a program is asked to do |
//! | [`event`] | what it answers: `ready`, `sample`, `done`, `describe` |
//! | [`histogram`] | latency counts, as they travel and as they are recorded |
//! | [`units`] | nanoseconds and bytes as types |
//! | [`datagram`] | datagrams of a UDP `stream`, and the receiver's account of them |
//! | [`content`] | the bytes that every server sends and every client checks |
//! | [`errors`] | operations that failed, by kind |
//! | [`program`] | argument, lines and exit status: the frame of a program that speaks the contract |
//! | [`tally`], [`clock`] | what a client counts, and the clocks it reads |
//!
//! The crate is small on purpose: systems written in Rust link it.

pub mod clock;
pub mod content;
pub mod datagram;
pub mod errors;
pub mod event;
pub mod histogram;
pub mod program;
pub mod spec;
pub mod tally;
pub mod units;

pub use content::{crc32, page};
pub use errors::{ErrorKind, Errors};
pub use event::{Adherence, Datagrams, Describe, Done, Event, Sample, TcpEnds, TcpInfo};
pub use histogram::{Counts, Recorder};
pub use spec::{Arrival, Expect, Request, Role, Spec, Tls};
pub use units::{Bytes, Nanos};

/// The version of the contract that this crate speaks; a spec carries it.
pub const CONTRACT: u32 = 1;

/// The exit status that means "this I do not support": `unsupported` in the report, not `failed`.
pub const EXIT_UNSUPPORTED: i32 = 127;
