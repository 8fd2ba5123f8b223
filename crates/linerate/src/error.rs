//! Errors as users see them, with their exit status.

use crate::lab::LabError;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Each message contains the problem, the place and the next step.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Bad usage or bad input.
    #[error("{0}")]
    Input(String),
    /// The lab cannot be raised, or nothing could be measured.
    #[error("{0}")]
    NothingMeasured(String),
    #[error("{}: {source}{}", path.display(), next_step(source))]
    File { path: PathBuf, source: io::Error },
    /// Something was measured, and too much of it failed.
    #[error("{0}")]
    Failed(String),
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    pub fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::File { path: path.to_owned(), source }
    }

    /// 1 too many failed operations, 2 bad usage or bad input, 3 nothing could be measured or a disk is full,
    /// 130 interrupted (128 + SIGINT, as shells count).
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::File { source, .. } if is_of_disk(source) => 3,
            Self::Input(_) | Self::File { .. } => 2,
            Self::NothingMeasured(_) => 3,
            Self::Failed(_) => 1,
            Self::Interrupted => 130,
        }
    }
}

/// The lab is lost: nothing further can be measured in it.
impl From<LabError> for Error {
    fn from(error: LabError) -> Self {
        match error {
            LabError::Interrupted => Self::Interrupted,
            lost => Self::NothingMeasured(lost.to_string()),
        }
    }
}

/// A disk without room, or one that fails: nothing that a user has typed is wrong.
fn is_of_disk(error: &io::Error) -> bool {
    let is_io = error.raw_os_error() == Some(nix::libc::EIO);
    is_io || [ErrorKind::StorageFull, ErrorKind::QuotaExceeded].contains(&error.kind())
}

fn next_step(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            " (free some space, then continue with `--resume DIR`)"
        }
        ErrorKind::PermissionDenied => " (choose a writable folder with `--out DIR`)",
        _ => "",
    }
}
