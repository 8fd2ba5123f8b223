//! Why a task ended without a result, and with which exit status.

use crate::EXIT_UNSUPPORTED;
use std::fmt;
use std::io;

/// Why a task ended without a result.
#[derive(Debug)]
pub enum Refusal {
    /// The contract allows it, this program does not support it: exit status 127.
    Unsupported(String),
    /// The spec is not valid: exit status 2.
    BadSpec(String),
    /// The task failed: exit status 1.
    Failed(io::Error),
}

impl Refusal {
    #[must_use]
    pub fn exit_status(&self) -> i32 {
        match self {
            Self::Unsupported(_) => EXIT_UNSUPPORTED,
            Self::BadSpec(_) => 2,
            Self::Failed(_) => 1,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(text) => write!(f, "unsupported: {text}"),
            Self::BadSpec(text) => write!(f, "bad spec: {text}"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_its_message_and_exit_status() {
        let failed = Refusal::from(io::Error::other("no such device"));
        for (refusal, text, status) in [
            (Refusal::Unsupported("\"rate\"".into()), "unsupported: \"rate\"", 127),
            (Refusal::BadSpec("\"size\" is missing".into()), "bad spec: \"size\" is missing", 2),
            (failed, "no such device", 1),
        ] {
            assert_eq!((refusal.to_string().as_str(), refusal.exit_status()), (text, status));
        }
    }
}
