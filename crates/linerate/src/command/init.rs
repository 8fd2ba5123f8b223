//! `linerate init`: a first `linerate.toml`, by the files of the folder.

use super::print;
use crate::cli::InitArgs;
use crate::error::Error;
use crate::home::PROJECT;
use crate::project::{files, look};
use std::path::Path;
use std::process::ExitCode;

/// Writes the file, or prints it.
///
/// # Errors
/// It is there already, or no file says how the server is built.
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
    if path.exists() {
        return Err(Error::Input(format!("{PROJECT} exists: `linerate init --print` shows a new one")));
    }
    std::fs::write(path, &text).map_err(Error::file(path))?;
    print(&format!("{text}\n{PROJECT} is written; commit it, then: linerate gate\n"))
}
