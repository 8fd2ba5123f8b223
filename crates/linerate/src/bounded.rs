//! Files that others may have written, read within limits: a device has no end, and a pipe may have no
//! writer.

use crate::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The longest text that is read as a whole: a hundred times the largest plan of a run.
const MOST_BYTES: u64 = 64 << 20;

/// The text of a file that the user names, which may be a pipe.
///
/// # Errors
/// The file cannot be read, is not UTF-8 or has no end.
pub(crate) fn text(path: &Path) -> Result<String, Error> {
    whole(path, File::open(path).map_err(Error::file(path))?)
}

/// The text of an open file.
///
/// # Errors
/// As of [`text`].
pub(crate) fn whole(path: &Path, source: impl Read) -> Result<String, Error> {
    let text = String::from_utf8(bytes_of(path, source)?);
    text.map_err(|error| Error::file(path)(io::Error::new(ErrorKind::InvalidData, error)))
}

/// The bytes of a file that the user names.
///
/// # Errors
/// The file cannot be read, or has no end.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, Error> {
    bytes_of(path, File::open(path).map_err(Error::file(path))?)
}

fn bytes_of(path: &Path, source: impl Read) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    source.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(Error::file(path))?;
    if bytes.len() as u64 > MOST_BYTES {
        let (place, most) = (path.display(), MOST_BYTES >> 20);
        return Err(Error::Input(format!("{place}: it has more than {most} MiB: use a smaller one")));
    }
    Ok(bytes)
}

/// A file of a stored run, opened to read; `None` if there is none.
///
/// # Errors
/// The file cannot be opened, or is a pipe or device.
pub(crate) fn existing(path: &Path) -> Result<Option<File>, Error> {
    match regular(path, OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK)) {
        Err(Error::File { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        file => file.map(Some),
    }
}

/// Opens a file of a run: a pipe or device would have no end.
///
/// # Errors
/// As of [`existing`].
pub(crate) fn regular(path: &Path, options: &mut OpenOptions) -> Result<File, Error> {
    let file = options.open(path).map_err(Error::file(path))?;
    if file.metadata().map_err(Error::file(path))?.is_file() {
        return Ok(file);
    }
    Err(Error::Input(format!("{}: it is no file but a pipe, folder or device: remove it", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_a_run_that_is_a_pipe_is_an_error() {
        let pipe = std::env::temp_dir().join(format!("linerate-journal-{}", std::process::id()));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRUSR).unwrap();
        let error = existing(&pipe).unwrap_err();
        std::fs::remove_file(&pipe).unwrap();
        assert!(error.to_string().contains("it is no file but a pipe"), "{error}");
    }

    #[test]
    fn a_device_without_an_end_is_an_error() {
        let error = text(Path::new("/dev/zero")).unwrap_err();
        assert!(error.to_string().starts_with("/dev/zero: it has more than 64 MiB"), "{error}");
    }
}
