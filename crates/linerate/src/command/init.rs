//! `linerate init`: a first `linerate.toml`, by the files of the folder.

use super::print;
use crate::cli::InitArgs;
use crate::error::Error;
use crate::home::PROJECT;
use crate::project::{files, look};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

/// Writes the file, or prints it.
///
/// # Errors
/// The file is there already, or no file says how the server is built.
pub fn init(args: &InitArgs) -> Result<ExitCode, Error> {
    let path = Path::new(PROJECT);
    let guess = look(Path::new(".")).ok_or_else(|| {
        let files = files().collect::<Vec<_>>().join(", ");
        Error::Input(format!(
            "there is none of {files} here: write {PROJECT} by hand, with start = \"./server\" and, if it is \
             built, build = \"COMMAND\""
        ))
    })?;
    let text = guess.text();
    if args.print {
        return print(&text);
    }
    // No link is followed, whether what it names exists or not.
    let made = File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes()));
    made.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Error::Input(format!("{PROJECT} exists: `linerate init --print` shows a new one"))
        }
        _ => Error::file(path)(error),
    })?;
    print(&format!("{text}\n{PROJECT} is written; commit it, then: linerate gate\n"))
}
