//! The parts of an event loop that need no socket: a queue of posted handlers, and timers.
//!
//! The engine's own loop uses neither: its work is known in advance. They exist because every event loop has
//! them, as a lower bound for their cost in libraries.

pub mod queue;
pub mod timers;
