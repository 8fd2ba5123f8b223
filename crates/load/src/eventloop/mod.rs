//! The parts of an event loop that need no socket: a queue of posted handlers, and timers.
//!
//! Nothing else in the engine posts or sets timers: its loop knows beforehand what it has to do. They are here because every
//! event loop has them, and because what they can cost at least is worth knowing beside what they do cost in libraries.

pub mod queue;
pub mod timers;
