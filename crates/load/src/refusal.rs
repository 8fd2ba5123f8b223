//! System calls that the kernel refuses, as reasons why a task ended without its result.

pub use linerate_contract::program::Refusal;
use std::io;

/// Names what was tried when a system call fails.
pub trait Doing<T> {
    /// The value, or a refusal that names `what` was tried.
    ///
    /// # Errors
    /// The system call failed.
    fn doing(self, what: &str) -> Result<T, Refusal>;
}

impl<T> Doing<T> for nix::Result<T> {
    fn doing(self, what: &str) -> Result<T, Refusal> {
        self.map_err(|errno| Refusal::Failed(io::Error::other(format!("{what}: {errno}"))))
    }
}
