//! Why a task ended without its result, and the exit status that says so.

use linerate_contract::EXIT_UNSUPPORTED;

/// Each kind has an exit status of its own: `linerate` turns them into `unsupported` and `failed` rows.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The contract allows it, this program or this machine does not do it: 127.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// The spec contradicts itself or lacks something: 2.
    #[error("bad spec: {0}")]
    BadSpec(String),
    /// The kernel refused something that any run needs: 1.
    #[error("{what}: {source}")]
    System { what: String, source: nix::Error },
}

impl Refusal {
    #[must_use]
    pub fn exit_status(&self) -> i32 {
        match self {
            Self::Unsupported(_) => EXIT_UNSUPPORTED,
            Self::BadSpec(_) => 2,
            Self::System { .. } => 1,
        }
    }
}

/// Names what was tried when a system call fails.
pub(crate) trait Doing<T> {
    fn doing(self, what: &str) -> Result<T, Refusal>;
}

impl<T> Doing<T> for nix::Result<T> {
    fn doing(self, what: &str) -> Result<T, Refusal> {
        self.map_err(|source| Refusal::System { what: what.into(), source })
    }
}
