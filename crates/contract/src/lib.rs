//! Data that crosses a process boundary: one JSON document goes in, JSON lines come out.
//!
//! ```text
//! argv[1] = Spec  ->  a program (client, server or relay)  ->  Event per line on stdout
//!                                                              logs on stderr, SIGTERM ends it
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`spec`] | the task of one process |
//! | [`alternation`] | load that alternates between two clients |
//! | [`layer`] | protocols and traffic patterns by their names |
//! | [`options`] | the spec's options: known names, typed values |
//! | [`event`] | output lines: `ready`, `sample`, `done`, `describe` |
//! | [`histogram`], [`packed`] | latency counts: recorder, serialised form, packed form |
//! | [`units`] | nanoseconds and bytes as types |
//! | [`datagram`] | datagrams of a UDP `stream`, and the receiver's counts |
//! | [`content`] | the bytes that every server sends and every client checks |
//! | [`errors`] | failed operations by kind, and their causes |
//! | [`resumption`] | resumed TLS sessions, for programs with rustls (a feature) |
//! | [`program`], [`refusal`] | the frame of a program: argument, output lines, exit status |
//! | [`tally`], [`window`], [`clock`] | counters of a client, its window, and its clocks |
//! | [`nearest`] | suggestions for misspelt names |
//!
//! The crate is small: systems written in Rust link it.

pub mod alternation;
pub mod body;
pub mod clock;
pub mod content;
pub mod datagram;
pub mod errors;
pub mod event;
pub mod histogram;
pub mod layer;
mod named;
pub mod nearest;
pub mod options;
pub mod packed;
pub mod program;
pub mod refusal;
#[cfg(feature = "rustls")]
pub mod resumption;
pub mod spec;
pub mod tally;
pub mod units;
pub mod window;

pub use alternation::Alternation;
pub use body::Body;
pub use content::{crc32, page};
pub use errors::{Cause, Causes, ErrorKind, Errors, PeerFailures, TlsFailure};
pub use event::{
    Adherence, Datagrams, Describe, Done, Event, EventCounts, HandshakeCounts, RequestCounts, Sample,
    StreamCounts, TcpEnds, TcpInfo,
};
pub use histogram::{Counts, Recorder};
pub use layer::{Layer, Workload};
pub use nearest::nearest;
pub use options::{Choice, Direction, Ends, Runtime, Shape};
pub use refusal::Refusal;
pub use spec::{Arrival, Expect, Request, Role, Spec, Tls, Tunnel, WeightedRequest};
pub use units::{Bytes, Nanos};
pub use window::Window;

/// The version of the contract that this crate speaks; a spec carries it.
pub const CONTRACT: u32 = 3;

/// Pending connections of every listener: the default of nginx and Apache (systems/README.md).
pub const BACKLOG: u16 = 511;

/// Bytes of both socket buffers of a KCP program: the default of kcptun. The kernel grants less where
/// `net.core.rmem_max` is smaller, to all programs the same.
pub const KCP_SOCKET_BUFFER: usize = 4 << 20;

/// Exit status of a role, layer, workload or mode that a program does not support: `unsupported` in the
/// report.
pub const EXIT_UNSUPPORTED: i32 = 127;
