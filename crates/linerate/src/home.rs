//! Where `suites/` and `systems/` are: the folder is the registry.

use crate::error::Error;
use std::path::{Path, PathBuf};

/// The folder that holds `suites/` and `systems/`: `LINERATE_HOME`, or the nearest one at or above the current
/// folder, or at or above the program itself.
///
/// # Errors
/// If there is none.
pub fn find() -> Result<PathBuf, Error> {
    if let Some(home) = std::env::var_os("LINERATE_HOME") {
        let home = PathBuf::from(home);
        return if is_home(&home) {
            Ok(home)
        } else {
            Err(Error::Input(format!(
                "LINERATE_HOME is {}, but that has no suites/ and systems/",
                home.display()
            )))
        };
    }
    let starts = [std::env::current_dir().ok(), std::env::current_exe().ok()];
    let above = starts.iter().flatten().flat_map(|start| start.ancestors());
    above.into_iter().find(|folder| is_home(folder)).map(Path::to_owned).ok_or_else(|| {
        Error::Input(
            "no suites/ and systems/ here or above: run linerate inside its checkout, or set LINERATE_HOME to it".into(),
        )
    })
}

/// linerate's folder for what can be made again: builds, and what is known of trial times (XDG Base Directory 0.8).
#[must_use]
pub fn cache() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    Some(cache.join("linerate"))
}

/// Paths as a shell writes them, `~` for the user's home: reports are published, and whose machine it was is nobody's business.
#[must_use]
pub fn shortened(text: &str) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    if home.len() > 1 { text.replace(home.trim_end_matches('/'), "~") } else { text.to_owned() }
}

fn is_home(folder: &Path) -> bool {
    folder.join("suites").is_dir() && folder.join("systems").is_dir()
}
